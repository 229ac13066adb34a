"""Loops that write an output once, vector after vector: stores that bypass the cache, and loops that begin at lines of memory.

    for i in 0..n: out[16*i + lane] = f(16*i + lane)

becomes, when the output is large (decided at run time) and f is the same function of every position,

    out[lane] = f(lane) for lane < p                              the elements before the first line of memory, p < 16
    for i in 0..n-1: out[16*i + p + lane] = f(16*i + p + lane)    whole lines
    out[16*(n-1) + lane] = f(16*(n-1) + lane) for lane >= p       the rest

or, if p is 0, the loop in the middle with all iterations. Whole lines bypass the cache. What the first and the last iteration
write are parts of lines, whose other parts other loops write, all by ordinary stores: such a store to a line of which another
part bypasses the cache costs 0.3 microseconds, and parts that bypass it go to memory one by one. Vectors that are parts of
lines themselves have ends that bypass the cache as well, in parts of 16 bytes. Memory that is not aligned to its elements, or
to 16 bytes for such vectors, gets ordinary stores. f may not read the output. A loop may also write one vector to each of
several rows, as a tile of a transposition does, if the lines of all rows begin at the same positions.

Loops that are marked to write whole lines from a place on are not moved. They bypass the cache if that place is a line:

    if the output is large and out + start is a multiple of 64: the loop with non-temporal stores
    else: the loop with ordinary stores

The first and the last tile of each row, which are moved inwards, then leave out what they have in common with their neighbours:
ordinary stores to those lines would wait for them to come back from memory.

Such stores are ordered by an sfence before the function returns.

Where an output stays in the caches, vectors that cross lines take up to 1.4 times as long, and arrays of numpy begin 16 bytes
behind a line. A loop of many iterations that do little computes its first and its last vector apart, and the others at lines:

    out[lane] = f(lane)
    for i in 0..n-1: out[16*i + p + lane] = f(16*i + p + lane)    0 < p <= 16
    out[16*(n-1) + lane] = f(16*(n-1) + lane)

Some elements are computed twice, to the same values: inputs are no part of the output.
"""

from __future__ import annotations

import functools
from collections.abc import Callable

from tedsl.codegen.llvm.effort import is_plain
from tedsl.codegen.llvm.emitter import Emitter, PastCache
from tedsl.codegen.llvm.indices import forms as ix
from tedsl.codegen.llvm.indices.conditions import emit_condition
from tedsl.codegen.llvm.indices.forms import Atom, Index
from tedsl.codegen.llvm.loads_stores import address, buffer_info
from tedsl.codegen.llvm.loop import count_body, emit_counted, emit_ends
from tedsl.codegen.llvm.steps import Steps, steps_of
from tedsl.codegen.llvm.types import memory_type
from tedsl.ir import build
from tedsl.ir.buffer import Buffer
from tedsl.ir.dtype import DType, dtype
from tedsl.ir.expr import Call, Load, Ramp, Var
from tedsl.ir.func import PrimFunc
from tedsl.ir.ops import FMA
from tedsl.ir.stmt import AttrStmt, For, LetStmt, Store
from tedsl.ir.types import PointerType
from tedsl.ir.walk.contents import of_kinds
from tedsl.ir.walk.visitor import post_order
from tedsl.passes.machine.mark_streams import MARK, MOVED, PART, alignment_of
from tedsl.record import record

_SMALL = 4  # times smaller outputs than what makes a function large stay in the cache
_FEWEST = 2  # iterations below which it is not worth the code around the loop
_LONG = 64  # iterations from which on a loop begins at a line, whatever it stores
_MANY = 16  # the same where the output begins within a line: two lines of each row are then written in two parts


@record
class Stream:
    """A loop that may be moved to where lines of memory begin: the memory that it writes, the index of the first vector of an
    iteration, the dtype of its elements, and the alignment in bytes that it needs.
    """

    memory: Var
    index: Ramp
    element: DType
    alignment: int

    @property
    def lanes(self) -> int:
        return self.index.lanes


def may_stream(out: Emitter) -> bool:
    """Tells whether non-temporal stores are allowed: an output that may alias an input must not be written twice."""
    return out.target.architecture == "x86-64" and out.function.noalias


def large_outputs(func: PrimFunc, out: Emitter) -> dict[Var, Var | None]:
    """Maps the outputs that are written and never read to the condition under which they are large; None if they always are."""
    outputs: dict[Var, Var | None] = {}
    if not may_stream(out):
        return outputs
    enough = out.target.machine.large
    sizes = {buffer.data: _bytes(out, buffer) for buffer in func.buffers}
    total = ix.ZERO
    for size in sizes.values():
        total = ix.add(total, size)
    if not total.terms and total.const < enough:
        return outputs
    read = {node.buffer_var for node in post_order(func.body) if isinstance(node, Load)}
    for data, size in sizes.items():
        if data in read:
            continue
        conditions = [emit_condition(out, "sge", total, ix.constant(enough)),
                      emit_condition(out, "sge", size, ix.constant(enough // _SMALL))]
        if "false" in conditions:
            continue
        unknown = [condition for condition in conditions if condition != "true"]
        outputs[data] = None
        if unknown:
            outputs[data] = flag = Var("is_large", dtype("bool"))
            out.scope.data[flag] = unknown[0] if len(unknown) == 1 else out.here(f"and i1 {unknown[0]}, {unknown[1]}")
    return outputs


def _bytes(out: Emitter, buffer: Buffer) -> Index:
    """The size of an array of the user, in bytes."""
    size = ix.constant(buffer.dtype.bytes)
    for dim in buffer.shape:
        text = out.scalar_index(dim)
        size = ix.scale(size, text.const) if not text.terms else _times(out, size, text)
    return size


def _times(out: Emitter, a: Index, b: Index) -> Index:
    text = out.here(f"mul i64 {out.register(a)[0]}, {out.register(b)[0]}")
    return ix.atom_index(out.atom(text, out.level, 0, ix.INT64_MAX))


# --- code -------------------------------------------------------------------------------------------------------------

def find_stream(out: Emitter, loop: For) -> Stream | None:
    """Returns the Stream of `loop` if it may be moved to where lines of memory begin, else None."""
    mark = loop.body
    if not isinstance(mark, AttrStmt) or mark.attr_key != MARK or out.nontemporal or not may_stream(out):
        return None
    assert isinstance(mark.value, Ramp) and isinstance(mark.node, Var)
    assert isinstance(mark.node.type_annotation, PointerType)
    element = mark.node.type_annotation.element_type.dtype
    return Stream(mark.node, mark.value, element, alignment_of(mark.value.lanes, element.bytes, out.target))


def emit_range(out: Emitter, s: For, first: Index, end: Index) -> None:
    """Emits the iterations of `s` in [first, end), serially."""
    out.has_plain_loops = out.has_plain_loops or is_plain(s)
    stream = find_stream(out, s)
    if stream is None or not _is_in_step(out, s, stream, first):
        emit_counted(out, s, first, end, None)
    elif stream.memory in out.streams:
        emit_stream(out, s, stream, first, end)
    else:
        _emit_ordinary(out, s, stream, first, end)


def emit_whole_lines(out: Emitter, mark: AttrStmt) -> None:
    """Emits statements that are marked to write whole lines if their first vector is one."""
    memory = mark.node
    if memory not in out.streams or out.nontemporal:
        out.statement(mark.body)
        return
    assert isinstance(memory, Var) and isinstance(memory.type_annotation, PointerType) and isinstance(mark.value, Ramp)
    start, line, element = out.scalar_index(mark.value.base), out.target.machine.line, memory.type_annotation.element_type.dtype
    place = out.assign(f"ptrtoint ptr {address(out, buffer_info(out, memory), start, memory_type(element))} to i64")
    flag, inner, lanes = out.streams[memory], mark.body, mark.value.lanes
    wanted = [_is_multiple(out, place, line), *([] if flag is None else [out.scope.data[flag]])]
    elements = None
    if flag is None and isinstance(inner, AttrStmt) and inner.attr_key == MOVED:
        elements = _nominal(out, out.scalar_index(inner.value), lanes)

    def emit(past: PastCache | None) -> None:
        if past is not None:
            out.nontemporal[memory] = past
        out.statement(mark.body)
        out.nontemporal.pop(memory, None)

    _emit_either(out, _all(out, wanted), lambda: emit(PastCache(line, start, lanes)),
                 lambda: emit(None if elements is None else PastCache(line, start, lanes, elements)))


def _nominal(out: Emitter, moved: Index, lanes: int) -> tuple[str, str]:
    """Emits the bounds of the elements of a vector of a tile that were in it before it was moved."""
    low, high = (out.register(ix.add(ix.constant(by), moved, -1))[0] for by in (0, lanes))
    smax, smin = (out.module.declare(f"llvm.{name}.i64", f"declare i64 @llvm.{name}.i64(i64, i64)")
                  for name in ("smax", "smin"))
    return out.assign(f"call i64 {smax}(i64 {low}, i64 0)"), out.assign(f"call i64 {smin}(i64 {high}, i64 {lanes})")


def _emit_either(out: Emitter, wanted: str, past: Callable[[], None], ordinary: Callable[[], None]) -> None:
    """Emits both, and the branch between the two."""
    labels = [out.fresh(name) for name in ("past_cache", "ordinary", "join")]
    marks = out.mark()
    out.line(f"br i1 {wanted}, label %{labels[0]}, label %{labels[1]}")
    out.open_region()
    out.start_block(labels[0])
    past()
    out.line(f"br label %{labels[2]}")
    out.next_side(marks)
    out.start_block(labels[1])
    ordinary()
    out.line(f"br label %{labels[2]}")
    out.close_region(marks)
    out.start_block(labels[2])


def _is_in_step(out: Emitter, loop: For, stream: Stream, first: Index) -> bool:
    """Tells whether an iteration is seen to write whole lines further on than the one before. Of sums in int32 that may wrap,
    such as a place that data holds and the loop's variable, it is not.
    """
    starts = []
    for iteration in (first, ix.add(first, ix.constant(1))):
        out.memo.clear()
        out.index_memo.clear()
        out.scope.index[loop.loop_var] = iteration
        starts.append(out.scalar_index(stream.index.base))
    apart = ix.add(starts[1], starts[0], -1)
    return not apart.terms and apart.const % (stream.alignment // stream.element.bytes) == 0


def emit_stream(out: Emitter, loop: For, stream: Stream, first: Index, end: Index) -> None:
    """Emits the loop with ordinary and with non-temporal stores, and the branch between the two."""
    memory = stream.memory
    out.memo.clear()
    out.index_memo.clear()
    out.scope.index[loop.loop_var] = first
    start = out.scalar_index(stream.index.base)
    place = out.assign(f"ptrtoint ptr {address(out, buffer_info(out, memory), start, memory_type(stream.element))} to i64")
    wanted = _is_worth_it(out, stream, place, ix.add(end, first, -1))
    _emit_either(out, wanted, lambda: _emit_past(out, loop, stream, (first, end), (start, place)),
                 lambda: _emit_ordinary(out, loop, stream, first, end))


def _emit_ordinary(out: Emitter, loop: For, stream: Stream, first: Index, end: Index) -> None:
    """Emits the loop with ordinary stores, which begins at a line if it has many iterations that do little."""
    is_long = emit_condition(out, "sge", ix.add(end, first, -1), ix.constant(_LONG)) if _does_little(loop, stream) else "false"
    if is_long == "true":
        _emit_at_lines(out, loop, stream, first, end)
    elif is_long == "false":
        emit_counted(out, loop, first, end, None)
    else:
        _emit_either(out, is_long, lambda: _emit_at_lines(out, loop, stream, first, end),
                     lambda: emit_counted(out, loop, first, end, None))


def _does_little(loop: For, stream: Stream) -> bool:
    """Tells whether memory takes the time of an iteration: a vector that may cross a line is stored, without functions."""
    assert isinstance(loop.body, AttrStmt)
    store = loop.body.body
    while isinstance(store, LetStmt):
        store = store.body
    calls = (node for node in of_kinds(store, Call) if isinstance(node, Call))
    return stream.alignment > PART and isinstance(store, Store) and all(call.op is FMA for call in calls)


def _emit_at_lines(out: Emitter, loop: For, stream: Stream, first: Index, end: Index) -> None:
    """Emits the loop with ordinary stores, all of which but the first and the last begin at lines, or at vectors of a line."""
    memory, unit = stream.memory, stream.alignment // stream.element.bytes

    def forget() -> None:
        out.memo.clear()
        out.index_memo.clear()

    forget()
    out.scope.index[loop.loop_var] = first
    start = out.scalar_index(stream.index.base)
    place = out.assign(f"ptrtoint ptr {address(out, buffer_info(out, memory), start, memory_type(stream.element))} to i64")
    behind = out.assign(f"lshr i64 {out.assign(f'and i64 {place}, {stream.alignment - 1}')}, "
                        f"{stream.element.bytes.bit_length() - 1}")
    shift = Atom(out.assign(f"sub nuw nsw i64 {unit}, {behind}"), out.level, 0, 1, unit=stream.lanes)
    last = ix.add(end, ix.constant(-1))
    between = ix.add(last, first, -1)
    steps = Steps() if between.terms else steps_of(out, loop.replace(extent=build.const(between.const, loop.extent.dtype)))
    forget()
    count_body(out, loop, first)
    emit_counted(out, loop, first, last, shift, steps)
    forget()
    count_body(out, loop, last)


def _emit_past(out: Emitter, loop: For, stream: Stream, ends: tuple[Index, Index], begin: tuple[Index, str]) -> None:
    """Emits the loop with non-temporal stores. begin: the index of its first vector, and the address."""
    (first, end), (start, place), memory = ends, begin, stream.memory
    shift = _shift(out, stream, place)
    is_aligned = out.assign(f"icmp eq i64 {shift}, 0")
    last = ix.add(end, ix.constant(1), -1)
    stop = out.assign(f"select i1 {is_aligned}, i64 {out.register(end)[0]}, i64 {out.register(last)[0]}")
    stop_index = ix.atom_index(out.atom(stop, out.level, last.bounds()[0], end.bounds()[1]))

    def lines() -> None:
        out.nontemporal[memory] = PastCache(stream.alignment, start, stream.lanes)
        emit_counted(out, loop, first, stop_index, Atom(shift, out.level, 0, 1, unit=stream.lanes))

    def set_elements(is_last: str) -> None:
        out.nontemporal[memory] = PastCache(stream.alignment, start, stream.lanes, _end(out, stream, shift, is_last))

    emit_ends(out, loop, (first, last), is_aligned, set_elements, lines)
    del out.nontemporal[memory]


def _is_worth_it(out: Emitter, stream: Stream, place: str, count: Index) -> str:
    """Emits the condition under which a loop of `count` iterations uses non-temporal stores."""
    wanted = [emit_condition(out, "sge", count, ix.constant(_FEWEST))]
    unit = PART if stream.alignment < out.target.machine.line else stream.element.bytes
    if unit > 1:
        wanted.append(_is_multiple(out, place, unit))
    if stream.alignment > unit:
        is_long = emit_condition(out, "sge", count, ix.constant(_MANY))
        wanted.append("true" if is_long == "true" else
                      out.assign(f"or i1 {_is_multiple(out, place, stream.alignment)}, {is_long}"))
    flag = out.streams[stream.memory]
    if flag is not None:
        wanted.append(out.scope.data[flag])
    return _all(out, wanted)


def _is_multiple(out: Emitter, place: str, unit: int) -> str:
    """Emits the condition that the address `place` is a multiple of `unit`, a power of two."""
    return out.assign(f"icmp eq i64 {out.assign(f'and i64 {place}, {unit - 1}')}, 0")


def _all(out: Emitter, conditions: list[str]) -> str:
    """Emits the condition that all `conditions` hold."""
    return functools.reduce(lambda a, b: b if a == "true" else out.assign(f"and i1 {a}, {b}"),
                            [condition for condition in conditions if condition != "true"], "true")


def _shift(out: Emitter, stream: Stream, place: str) -> str:
    """Emits the number of elements from the address `place` to the first aligned vector."""
    missing = out.assign(f"and i64 {out.assign(f'sub i64 0, {place}')}, {stream.alignment - 1}")
    return out.assign(f"lshr i64 {missing}, {stream.element.bytes.bit_length() - 1}")


def _end(out: Emitter, stream: Stream, shift: str, is_last: str) -> tuple[str, str]:
    """Emits the bounds of the elements that the first or the last iteration writes of each row."""
    low = out.assign(f"select i1 {is_last}, i64 {shift}, i64 0")
    return low, out.assign(f"select i1 {is_last}, i64 {stream.lanes}, i64 {shift}")
