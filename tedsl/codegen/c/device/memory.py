"""Statements of kernels that C does not have: memory of blocks and threads, barriers, no assertions."""

from __future__ import annotations

import math
from collections.abc import Sequence

from tedsl.codegen.c.device.language import Language
from tedsl.codegen.c.emit import TABLES as C_TABLES
from tedsl.codegen.c.emitter import BufferInfo, Emission, Emitter, Tables
from tedsl.codegen.c.text.piece import SUM, Piece
from tedsl.codegen.c.text.types import memory_type
from tedsl.codegen.c.values.calls import emit_call
from tedsl.errors import LoweringError
from tedsl.ir import build
from tedsl.ir.dtype import INT64
from tedsl.ir.expr import Call, Expr, StringImm
from tedsl.ir.ops import ELEMENTS_PAST_LINE, SYNC
from tedsl.ir.script import shown
from tedsl.ir.stmt import Allocate, AssertStmt, Stmt
from tedsl.ir.types import PointerType
from tedsl.ir.walk.visitor import post_order
from tedsl.passes.device.share_memory import common_bytes, offset_of
from tedsl.passes.facts.threads import scope_of
from tedsl.record import record

DYNAMIC, ALIGNMENT = "shared.dyn", 16  # shared memory whose size the launch says: each array in it begins at 16 bytes
BLOCK_SCOPES = ("shared", "global")  # of what a kernel allocates for all threads of a block


@record
class SharedArray:
    """An array that the threads of a block share: its declaration, and the bytes that it takes."""

    name: str
    declaration: str
    size: int


def shared_arrays(out: Emitter, body: Stmt, language: Language) -> list[SharedArray]:
    """Tells `out` the arrays that the threads of a block share in `body`, and returns them; a kernel begins with them."""
    found, together = list[SharedArray](), common_bytes(_placed(body))
    if together:
        memory = out.names.fresh("shared")
        found.append(SharedArray(memory, language.common.format(name=memory, size=together), together))
        found += [_pointer(out, node, memory, language) for node in _placed(body)]
    for node in post_order(body):
        if isinstance(node, Allocate) and offset_of(node) is None and not _is_dynamic(node) \
                and scope_of(node.buffer_var.type_annotation) in BLOCK_SCOPES:
            count, element = _count(node), memory_type(node.dtype)
            name = out.names.fresh(node.buffer_var.name)
            out.buffers[node.buffer_var] = BufferInfo(name, node.dtype.element, own=True)
            found.append(SharedArray(name, f"{language.shared}{element} {name}[{count}];", count * node.dtype.element.bytes))
    return found


def _placed(body: Stmt) -> list[Allocate]:
    """Returns the allocations of a fixed size that have places in memory that they have together."""
    return [node for node in post_order(body)
            if isinstance(node, Allocate) and offset_of(node) is not None and not _is_dynamic(node)]


def _pointer(out: Emitter, s: Allocate, memory: str, language: Language) -> SharedArray:
    """Tells `out` the pointer to an array inside of `memory`; it takes no memory of its own."""
    element, name, place = memory_type(s.dtype), out.names.fresh(s.buffer_var.name), f"({memory} + {offset_of(s)})"
    out.buffers[s.buffer_var] = BufferInfo(name, s.dtype.element, own=True)
    of = f"{language.shared_pointer}{element} *"
    return SharedArray(name, f"{of}const {name} = ({of}){place};", 0)


def dynamic_arrays(body: Stmt) -> list[Allocate]:
    """Returns the allocations of shared memory whose size the launch says, in the order in which they have their places."""
    return [s for s in post_order(body) if isinstance(s, Allocate) and _is_dynamic(s)]


def _is_dynamic(s: Allocate) -> bool:
    annotation = s.buffer_var.type_annotation
    return isinstance(annotation, PointerType) and annotation.storage_scope == DYNAMIC


def emit_dynamic_arrays(out: Emitter, arrays: Sequence[Allocate], memory: str, language: Language) -> None:
    """Emits the pointers to dynamic arrays, which follow one another in `memory`, each aligned to 16 bytes."""
    before: Expr = build.const(0, INT64)
    for s in arrays:
        if offset_of(s) is not None:
            out.line(_pointer(out, s, memory, language).declaration)
            continue
        out.begin(before)
        at, element, name = out.value(before, True), memory_type(s.dtype), out.names.fresh(s.buffer_var.name)
        place = memory if at.constant == 0 else f"({memory} + {at.at(SUM + 1)})"
        out.line(f"{language.shared_pointer}{element} *const {name} = ({language.shared_pointer}{element} *){place};")
        out.buffers[s.buffer_var] = BufferInfo(name, s.dtype.element, own=True)
        size: Expr = build.const(s.dtype.bytes * s.dtype.lanes, INT64)
        for extent in s.extents:
            size = build.mul(size, build.cast(INT64, extent))
        rounded = build.floordiv(build.add(size, build.const(ALIGNMENT - 1, INT64)), build.const(ALIGNMENT, INT64))
        before = build.add(before, build.mul(rounded, build.const(ALIGNMENT, INT64)))


def _count(s: Allocate) -> int:
    """Returns the number of elements of an array of a block or of a thread."""
    extents = [build.as_int(e) for e in s.extents]
    if any(extent is None for extent in extents):
        sizes = " * ".join(shown(e) for e in s.extents)
        raise LoweringError(f"the size of {s.buffer_var.name} is {sizes}: memory of a block or a thread of a device has a size "
                            "that is known when the kernel is compiled", hint="split the loops that fill it by constants")
    return max(1, s.dtype.lanes * math.prod(max(0, extent) for extent in extents if extent is not None))


def emit_allocate(out: Emitter, s: Allocate) -> None:
    """Emits memory of one thread; that of a block is declared already."""
    if s.buffer_var not in out.buffers:
        scope = scope_of(s.buffer_var.type_annotation)
        if scope != "local":
            raise LoweringError(f"{s.buffer_var.name} is memory of the scope {scope!r}, which this device does not have",
                                hint='choose "shared" or "local"')
        count, name = _count(s), out.names.fresh(s.buffer_var.name)
        out.buffers[s.buffer_var] = BufferInfo(name, s.dtype.element, own=True)
        out.line(f"{memory_type(s.dtype)} {name}[{count}];")
    out.statement(s.body)


def emit_assert(out: Emitter, s: AssertStmt) -> None:
    """Emits what an assertion holds for: a kernel has no way to tell that it failed."""
    out.statement(s.body)


def device_tables(language: Language) -> Tables:
    """Returns the functions that emit each kind of node in a kernel in `language`."""

    def emit_device_call(out: Emitter, e: Call) -> Emission:
        if e.op is ELEMENTS_PAST_LINE:
            return Piece("0")
        if e.op is not SYNC:
            return (yield from emit_call(out, e))
        scope = e.args[0].value if e.args and isinstance(e.args[0], StringImm) else ""
        if scope != "warp":
            out.line(f"{language.barrier};")
        return Piece("0")

    return Tables({**C_TABLES.data, Call: emit_device_call}, C_TABLES.index, C_TABLES.index_leaf,
                  {**C_TABLES.statements, Allocate: emit_allocate, AssertStmt: emit_assert})
