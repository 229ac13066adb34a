"""The frame of a function: its arrays on the stack, its workspaces, and how it is left with a status."""

from __future__ import annotations

from tedsl.codegen.c.emitter import BufferInfo, Emitter
from tedsl.codegen.c.text.piece import INT64_MAX, Piece, call, cast, number
from tedsl.codegen.c.text.types import memory_type
from tedsl.codegen.c.values.index import combined
from tedsl.codegen.kernels import abi
from tedsl.ir.dtype import INT64
from tedsl.ir.expr import Add, Cast, Expr, IntImm, Load, Mul, Sub
from tedsl.ir.stmt import Allocate, Store
from tedsl.ir.walk.visitor import post_order

SMALL = 256  # bytes of an array that starts as zeros: a load of what is overwritten later is no question then


def emit_allocate(out: Emitter, s: Allocate) -> None:
    element = memory_type(s.dtype)
    name = out.names.fresh(s.buffer_var.name)
    out.buffers[s.buffer_var] = BufferInfo(name, s.dtype.element, own=True)
    if s in out.function.on_stack:
        count = s.dtype.lanes
        for e in s.extents:
            count *= max(0, e.value) if isinstance(e, IntImm) else 1
        first, is_read = array_uses(s)
        start = " = {0}" if count * s.dtype.bytes <= SMALL or first is Load else ""
        out.line(f"TEDSL_ALIGNED {element} {name}[{max(1, count)}]{start};")
        if not is_read:
            out.line(f"(void){name};")
        out.statement(s.body)
        return
    _in_workspace(out, s, name, element)


def array_uses(s: Allocate) -> tuple[type | None, bool]:
    """Returns the kind of the first access to the array, in the order of the text, and whether it is ever read."""
    first: type | None = None
    for node in post_order(s.body):
        if isinstance(node, (Load, Store)) and node.buffer_var is s.buffer_var:
            first = first or type(node)
            if isinstance(node, Load):
                return first, True
        elif node is s.buffer_var:
            return first, True  # its address goes somewhere
    return first, False


def _in_workspace(out: Emitter, s: Allocate, name: str, element: str) -> None:
    """Emits an allocation around a body; it is freed after the body or when the function is left."""
    out.begin(*s.extents)
    out.module.uses.add("workspace")
    size = _bytes_of(out, s)
    space = "" if element.endswith("*") else " "
    out.line(f"{element}{space}*const {name} = ({element}{space}*)tedsl_workspace_alloc({size.text});")
    with out.block(f"if ({name} == NULL)"):
        out.leave(str(abi.NO_MEMORY))
    out.workspaces.append(name)
    out.statement(s.body)
    out.workspaces.pop()
    out.line(f"tedsl_workspace_free({name});")


def _bytes_of(out: Emitter, s: Allocate) -> Piece:
    """Returns the number of bytes of an array, 0 where an extent is negative, as loops that run nothing may say.
    What does not fit 64 bits leaves the function first: it is computed in doubles, too, which do not wrap.
    """
    size = number(s.dtype.bytes * s.dtype.lanes)
    total, sure = float(size.low), True
    for e in s.extents:
        extent = out.value(e, True)
        if extent.low < 0:
            extent = call(out.module.helper("imax", INT64), extent, number(0))._replace(low=0, high=max(0, extent.high))
        sure = sure and size.high * extent.high <= INT64_MAX
        size = combined(out, Mul, size, extent)
    if not sure:
        product = " * ".join([repr(total), *(_in_doubles(out, e) for e in s.extents)])
        with out.block(f"if (!({product} < {float(1 << 62)!r}))"):
            out.leave(str(abi.NO_MEMORY))
    return size


def _in_doubles(out: Emitter, e: Expr) -> str:
    """Returns the approximate value, as a double, of an index whose parts may exceed 64 bits."""
    match e:
        case Add(a=a, b=b) | Sub(a=a, b=b) | Mul(a=a, b=b):
            operator = {Add: "+", Sub: "-", Mul: "*"}[type(e)]
            return f"({_in_doubles(out, a)} {operator} {_in_doubles(out, b)})"
        case Cast(value=value) if value.dtype.is_integer:
            return _in_doubles(out, value)
    return cast("double", out.value(e, True)).text


def emit_return(out: Emitter, value: Piece | None) -> None:
    """Leaves the function without a failure. value: the number that it returns; None: 0, if it returns a number at all."""
    if out.function.result:
        out.line(f"*{out.function.result} = {'0' if value is None else value.text};")
    out.leave(str(abi.OK))
