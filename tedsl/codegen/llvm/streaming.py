"""Non-temporal stores, which bypass the cache, for loops that write a large output once, vector after vector.

    for i in 0..n: out[16*i + lane] = f(16*i + lane)

becomes, when the output is large (decided at run time) and f is the same function of every position,

    out[0 + lane] = f(lane)                                   the first vector, an ordinary store
    for i in 0..n-1: out[16*i + p + lane] = f(16*i + p + lane)    aligned stores past the cache; p < 16 makes them so
    out[16*(n-1) + lane] = f(16*(n-1) + lane)                 the last vector

Positions that are written twice get the same value. f may not read the output. Such stores are ordered by an sfence
before the function returns.
"""

from __future__ import annotations

from dataclasses import dataclass

from tedsl.codegen.llvm.emitter import Emitter
from tedsl.codegen.llvm.indices import forms as ix
from tedsl.codegen.llvm.indices.conditions import emit_condition
from tedsl.codegen.llvm.indices.forms import Atom, Index
from tedsl.codegen.llvm.loads_stores import address, buffer_info
from tedsl.codegen.llvm.loop import count_body, emit_counted
from tedsl.codegen.llvm.types import memory_type
from tedsl.ir.dtype import dtype
from tedsl.ir.expr import Add, Call, Expr, IntImm, Load, Mul, Ramp, Shuffle, Sub, Var
from tedsl.ir.func import PrimFunc
from tedsl.ir.stmt import For, LetStmt, Store
from tedsl.ir.walk.visitor import post_order, uses

# Bytes of an output from which its stores go past the cache by themselves. Measured for a scaled copy of float32, ordinary
# time / time past the cache: alone 1.08 to 1.18 from 1 to 16 MiB, 1.23 to 1.31 from 32 MiB on; but with a reader of the output
# right after it 0.7 to 0.8 up to 8 MiB, 0.96 at 16 MiB, 1.09 to 1.14 from 32 MiB on.
LARGE = 32 << 20
_FEWEST = 8  # iterations below which it is not worth the two extra vectors
_MOST_NODES = 400


@dataclass(frozen=True)
class Stream:
    """A loop that may use non-temporal stores: its one store, the lanes of a vector, and the alignment that it needs in bytes.
    """

    store: Store
    lanes: int
    alignment: int


def may_stream(out: Emitter) -> bool:
    """Tells whether non-temporal stores are allowed: an output that may alias an input must not be written twice."""
    return out.target.arch == "x86-64" and out.function.noalias


def large_outputs(func: PrimFunc, out: Emitter) -> dict[Var, Var | None]:
    """Maps the outputs that are written and never read to the condition under which they are large; None if they always are."""
    outputs: dict[Var, Var | None] = {}
    if not may_stream(out):
        return outputs
    read: set[Var] | None = None
    for buffer in func.buffers:
        size = ix.constant(buffer.dtype.bytes)
        for dim in buffer.shape:
            text = out.scalar_index(dim)
            size = ix.scale(size, text.const) if not text.terms else _times(out, size, text)
        if not size.terms and size.const < LARGE:
            continue
        if read is None:
            read = {node.buffer_var for node in post_order(func.body) if isinstance(node, Load)}
        if buffer.data in read:
            continue
        if size.terms:
            flag = Var("is_large", dtype("bool"))
            out.scope.data[flag] = out.here(f"icmp sge i64 {out.register(size)[0]}, {LARGE}")
            outputs[buffer.data] = flag
        else:
            outputs[buffer.data] = None
    return outputs


def _times(out: Emitter, a: Index, b: Index) -> Index:
    text = out.here(f"mul i64 {out.register(a)[0]}, {out.register(b)[0]}")
    return ix.atom_index(out.atom(text, out.level, ix.INT64_MIN, ix.INT64_MAX))


# --- which loops ------------------------------------------------------------------------------------------------------

def find_stream(out: Emitter, loop: For) -> Stream | None:
    """Returns the Stream of `loop` if it may use non-temporal stores, else None."""
    if not out.streams:
        return None
    lets, body = [], loop.body
    while isinstance(body, LetStmt):
        lets.append(body)
        body = body.body
    if not isinstance(body, Store) or body.buffer_var not in out.streams or body.predicate is not None:
        return None
    lanes, size = body.value.dtype.lanes, body.value.dtype.bytes
    width = out.target.vector_bits // 8
    alignment = min(width, lanes * size)
    if alignment < 16 or lanes * size % alignment or alignment & (alignment - 1) or not isinstance(body.index, Ramp):
        return None
    if not _is_position_wise(loop, lets, body, lanes):
        return None
    return Stream(body, lanes, alignment)


def _is_position_wise(loop: For, lets: list[LetStmt], store: Store, lanes: int) -> bool:
    """Tells whether the loop variable occurs only in ramps, all of which advance by stride * lanes per iteration."""
    moved: dict[Expr, int] = {loop.loop_var: 1}
    for let in lets:
        by = _coefficient(let.value, moved)
        if by is None or let.value.dtype.lanes > 1:
            return False
        if by:
            moved[let.var] = by
    stack: list[Expr] = [store.index, store.value]
    count = 0
    while stack:
        e = stack.pop()
        count += 1
        if count > _MOST_NODES or e in moved or isinstance(e, Shuffle) or (isinstance(e, Call) and e.op.effect == "opaque"):
            return False
        if isinstance(e, Load) and e.buffer_var is store.buffer_var:
            return False
        if isinstance(e, Ramp):
            by = _coefficient(e.base, moved)
            if not isinstance(e.stride, IntImm) or by != e.stride.value * lanes or e.lanes != lanes:
                return False
            continue
        stack.extend(e.child_nodes())  # type: ignore[arg-type]
    assert isinstance(store.index, Ramp)
    return isinstance(store.index.stride, IntImm) and store.index.stride.value == 1


def _coefficient(e: Expr, moved: dict[Expr, int]) -> int | None:
    """Returns the step of `e` per iteration; None if it is not a constant."""
    if e in moved:
        return moved[e]
    if isinstance(e, (Add, Sub)):
        a, b = _coefficient(e.a, moved), _coefficient(e.b, moved)
        return None if a is None or b is None else a + b if isinstance(e, Add) else a - b
    if isinstance(e, Mul) and (isinstance(e.a, IntImm) or isinstance(e.b, IntImm)):
        factor, other = (e.a, e.b) if isinstance(e.a, IntImm) else (e.b, e.a)
        by = _coefficient(other, moved)
        return None if by is None else by * factor.value  # type: ignore[attr-defined]
    return None if uses(e, moved.keys()) else 0


# --- code -------------------------------------------------------------------------------------------------------------

def emit_range(out: Emitter, s: For, first: Index, end: Index) -> None:
    """Emits the iterations of `s` in [first, end), serially."""
    stream = find_stream(out, s)
    if stream is not None:
        emit_stream(out, s, stream, first, end)
    else:
        emit_counted(out, s, first, end, None)


def emit_stream(out: Emitter, loop: For, stream: Stream, first: Index, end: Index) -> None:
    """Emits the loop with ordinary and with non-temporal stores, and the branch between the two."""
    count = ix.add(end, first, -1)
    wanted = emit_condition(out, "sge", count, ix.constant(_FEWEST))
    flag = out.streams[stream.store.buffer_var]
    if flag is not None:
        wanted = out.here(f"and i1 {wanted}, {out.scope.data[flag]}")
    past, plain, join = (out.fresh(name) for name in ("past_cache", "ordinary", "join"))
    marks = out.mark()
    out.line(f"br i1 {wanted}, label %{past}, label %{plain}")
    out.open_region()
    out.start_block(past)
    last = ix.add(end, ix.constant(1), -1)
    count_body(out, loop, first)
    shift = _shift(out, loop, stream, first)
    out.nontemporal[stream.store.buffer_var] = stream.alignment
    emit_counted(out, loop, first, last, shift)
    del out.nontemporal[stream.store.buffer_var]
    count_body(out, loop, last)
    out.line(f"br label %{join}")
    out.next_side(marks)
    out.start_block(plain)
    emit_counted(out, loop, first, end, None)
    out.line(f"br label %{join}")
    out.close_region(marks)
    out.start_block(join)


def _shift(out: Emitter, loop: For, stream: Stream, first: Index) -> Atom:
    """Emits the offset of the first aligned vector from the first element, as a fraction of an iteration."""
    out.memo.clear()
    out.index_memo.clear()
    store = stream.store
    assert isinstance(store.index, Ramp)
    element, size = memory_type(store.value.dtype.element), store.value.dtype.bytes
    pointer = address(out, buffer_info(out, store.buffer_var), out.scalar_index(store.index.base), element)
    bits = out.assign(f"ptrtoint ptr {pointer} to i64")
    missing = out.assign(f"and i64 {out.assign(f'sub i64 0, {bits}')}, {stream.alignment - 1}")
    elements = out.assign(f"lshr i64 {missing}, {size.bit_length() - 1}")
    return Atom(elements, out.level, 0, 1, unit=stream.lanes)
