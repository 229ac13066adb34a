"""Checks, before code is generated, calls by `tir.call_extern` of functions of the same module: the number, kinds and dtypes of
the arguments, and the dtype of the value.
"""

from __future__ import annotations

from tedsl.codegen.calls.graph import CallGraph, callee
from tedsl.errors import LoweringError
from tedsl.ir.buffer import Buffer
from tedsl.ir.build import as_int
from tedsl.ir.calls.raw import raw_arguments, raw_signature
from tedsl.ir.calls.returns import result_of
from tedsl.ir.dtype import VOID, DType
from tedsl.ir.expr import Call, Expr, Load, StringImm, Var
from tedsl.ir.func import PrimFunc
from tedsl.ir.ops import ACCESS_PTR, ADDRESS_OF, CALL_PACKED, MAKE_ARRAY
from tedsl.ir.script import shown
from tedsl.ir.stmt import Evaluate
from tedsl.ir.types import PointerType
from tedsl.ir.walk.visitor import post_order
from tedsl.runtime.signature import signature_of


def check_calls(graph: CallGraph) -> None:
    """Raises LoweringError for the first call between functions of the module whose arguments or value do not fit."""
    for name in graph.called:
        if graph.called[name]:
            _check_calls_of(graph.functions[name], graph)


def _check_calls_of(func: PrimFunc, graph: CallGraph) -> None:
    unused = {id(node.value) for node in post_order(func.body) if isinstance(node, Evaluate)}
    for node in post_order(func.body):
        called = callee(node, func, graph.functions)
        if called is None:
            continue
        assert isinstance(node, Call)
        if id(node) not in unused:
            _check_value(func, node, called)
        if node.op is not CALL_PACKED:
            _check_arguments(func, node, called)


def _check_value(func: PrimFunc, call: Call, called: PrimFunc) -> None:
    result = result_of(called)
    if result is not None and call.dtype.element is not result:
        written = f"tir.call_intrin('{result}', 'tir.call_packed', '{called.name}', ...)" if call.op is CALL_PACKED else \
            f"tir.call_extern('{result}', '{called.name}', ...)"
        raise LoweringError(f"{func.name}: {called.name} returns {result}, and the call of it is {call.dtype}",
                            hint=f"write {written}")


def _check_arguments(func: PrimFunc, call: Call, called: PrimFunc) -> None:
    wanted, given = raw_arguments(called), call.args[1:]
    if len(wanted) != len(given):
        raise _refusal(func, called, f"{len(given)} arguments where it takes {len(wanted)}")
    written = {param.buffer: param.written for _, param in signature_of(called).tensors()}
    buffers = {buffer.data: buffer for buffer in called.buffers}
    for k, (var, arg) in enumerate(zip(wanted, given)):
        buffer = buffers.get(var)
        problem = _misfit_of_number(var, arg, call.dtype.lanes) if buffer is None else \
            _misfit_of_pointer(buffer, arg, written[buffer])
        if problem:
            raise _refusal(func, called, f"argument {k + 1}, {problem}")
    if called.attrs.get("tir.noalias"):
        outputs = [k for k, buffer in enumerate(called.buffers) if written[buffer]]
        for k, other in ((k, other) for k in outputs for other in range(len(called.buffers)) if other != k):
            if _surely_meet(given[k], given[other]):
                raise _refusal(func, called, f"one memory as argument {k + 1}, which it writes, and as argument {other + 1}")


def _refusal(func: PrimFunc, called: PrimFunc, problem: str) -> LoweringError:
    return LoweringError(f"{func.name} calls {called.name} with {problem}; in its raw form that is\n"
                         f"    {raw_signature(called)}",
                         hint="pass the data pointers, A.access_ptr('rw'), then every number, also of shapes and strides; "
                              f"tir.call_packed({called.name!r}, A, ...) takes buffers and checks them")


def _misfit_of_number(var: Var, arg: Expr, lanes: int) -> str:
    if isinstance(arg, StringImm):
        return f"the text {arg.value!r} for the number {var.name}"
    if arg.dtype.element is not var.dtype or arg.dtype.lanes not in (1, lanes):
        return f"{shown(arg)} of {arg.dtype} for {var.name}, which is {var.dtype}"
    return ""


def _misfit_of_pointer(buffer: Buffer, arg: Expr, written: bool) -> str:
    if isinstance(arg, StringImm) or not arg.dtype.is_handle or arg.dtype is VOID or arg.dtype.lanes > 1 or (
            isinstance(arg, Call) and arg.op is MAKE_ARRAY):
        what = "an array" if isinstance(arg, Call) and arg.op is MAKE_ARRAY else f"{shown(arg)} of {arg.dtype}"
        return f"{what} for the pointer {buffer.name}"
    of = pointed_at(arg)
    if of is not None and of is not buffer.dtype.element:
        return f"a pointer to {of} for {buffer.name}, which holds {buffer.dtype}"
    if written and isinstance(arg, Call) and arg.op is ACCESS_PTR and not (as_int(arg.args[4]) or 0) & Buffer.WRITE:
        return f"a pointer that is only read for {buffer.name}, which the function writes"
    return ""


def _surely_meet(a: Expr, b: Expr) -> bool:
    """Tells whether two pointers certainly point to a common element: into one buffer, at positions that overlap."""
    (memory, low, extent), (other, first, count) = _region(a), _region(b)
    if memory is None or memory is not other:
        return False
    if low is None or first is None:
        return a is b
    return low <= first < low + extent or first <= low < first + count


def _region(pointer: Expr) -> tuple[Var | None, int | None, int]:
    """Returns the memory that `pointer` points into, the first element if it is a constant, and the least number of
    elements.
    """
    match pointer:
        case Var():
            return pointer, 0, 1
        case Call(op=op, args=(_, Var() as data, offset, extent, _)) if op is ACCESS_PTR:
            return data, as_int(offset), max(as_int(extent) or 1, 1)
    return None, None, 1


def pointed_at(pointer: Expr) -> DType | None:
    """Returns the dtype of the elements that `pointer` points at; None where that is not known."""
    match pointer:
        case Call(op=op, args=(Load() as load,)) if op is ADDRESS_OF:
            return load.dtype.element
        case Call(op=op, args=(marker, Var() as data, *_)) if op is ACCESS_PTR:
            return pointed_at(data) if marker.dtype.is_handle else marker.dtype.element
        case Var(type_annotation=PointerType() as annotation):
            return annotation.element_type.dtype.element
    return None


