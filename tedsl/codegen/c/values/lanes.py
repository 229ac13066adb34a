"""Vectors as loops over their lanes.

    for (int64_t l = 0; l < 8; ++l) {
        C[i * 8 + l] = A[i * 8 + l] + B[i * 8 + l];
    }

All lanes are read before one is written. So a store whose value reads what it writes, elsewhere than at the same lane, goes
through an array; the loop above needs none.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from tedsl.codegen.c.emitter import Emission, Emitter, Lane
from tedsl.codegen.c.text.piece import PRIMARY, PRODUCT, SUM, Piece, number
from tedsl.codegen.c.text.types import memory_type, value_type
from tedsl.codegen.c.values.convert import to_memory
from tedsl.codegen.c.values.expr import FALSE, TRUE, bind
from tedsl.codegen.c.values.memory import buffer_info, condition_of, element
from tedsl.errors import InternalError
from tedsl.ir.expr import Call, Expr, IntImm, Let, Load, Ramp, Shuffle, Var
from tedsl.ir.ops import IF_THEN_ELSE
from tedsl.ir.stmt import Store
from tedsl.ir.walk.equal import structural_equal
from tedsl.ir.walk.visitor import post_order


@contextmanager
def lane_loop(out: Emitter, lanes: int) -> Iterator[Piece]:
    """A loop over lanes around the lines that are written inside; gives the number of the lane."""
    name = out.names.fresh("l")
    saved = out.lane
    lane = Piece(name, low=0, high=lanes - 1)
    out.lane = Lane(lane, len(out.blocks) - 1)
    with out.block(f"for (int64_t {name} = 0; {name} < {lanes}; ++{name})", conditional=False):
        yield lane
    out.lane = saved


def emit_vector_store(out: Emitter, s: Store) -> None:
    """Emits a store of a vector; a lane whose predicate is false is neither computed nor written."""
    d, info = s.value.dtype, buffer_info(out, s.buffer_var)
    predicate = condition_of(s.predicate)
    if reads_what_it_writes(out, s):
        name = out.names.fresh(f"{s.buffer_var.name}.lanes")
        out.line(f"{memory_type(d)} {name}[{d.lanes}]{'' if predicate is None else out.module.dialect.zeros};")
        with lane_loop(out, d.lanes) as lane, guard(out, predicate):
            out.line(f"{name}[{lane.text}] = {to_memory(out, out.value(s.value), d).text};")
        out.begin(s.index, s.predicate)
        with lane_loop(out, d.lanes) as lane, guard(out, predicate):
            out.line(f"{element(info, out.value(s.index, True)).text} = {name}[{lane.text}];")
        return
    with lane_loop(out, d.lanes), guard(out, predicate):
        index = out.value(s.index, True)
        out.line(f"{element(info, index).text} = {to_memory(out, out.value(s.value), d).text};")


@contextmanager
def guard(out: Emitter, predicate: Expr | None) -> Iterator[None]:
    """The lines inside under a condition; as they are without one."""
    condition = TRUE if predicate is None else out.value(predicate)
    if condition is TRUE:
        yield
        return
    with out.block(f"if ({'false' if condition is FALSE else condition.text})"):
        yield


def reads_what_it_writes(out: Emitter, s: Store) -> bool:
    """Tells whether a lane of `s` may read what another lane writes."""
    stored = out.buffers[s.buffer_var]
    steps = isinstance(s.index, Ramp) and isinstance(s.index.stride, IntImm) and s.index.stride.value != 0
    nodes = [node for root in (s.value, s.index, s.predicate) if root is not None for node in post_order(root)]
    branches = s.predicate is not None or any(isinstance(node, Call) and node.op is IF_THEN_ELSE for node in nodes)
    for node in nodes:
        if isinstance(node, Call) and node.op.effect == "opaque":
            return True
        if not isinstance(node, Load):
            continue
        info = out.buffers[node.buffer_var]
        if info is not stored and (out.function.noalias or info.own or stored.own):
            continue
        if node.dtype.lanes == 1 and not branches and node.predicate is None:
            continue  # read before the loop
        if not (steps and info is stored and structural_equal(node.index, s.index)):
            return True
    return False


def array_of(out: Emitter, e: Expr, *, in_memory: bool = False) -> Emission:
    """Emits all lanes of the vector `e` into an array, whose name is the text that comes back.
    in_memory: in the form that memory has.
    """
    d = e.dtype
    if not in_memory and isinstance(e, Var) and e in out.vectors:
        return Piece(out.vectors[e])
    name = out.names.fresh("lanes")
    out.line(f"{(memory_type if in_memory else value_type)(d)} {name}[{d.lanes}];")
    yield from fill(out, name, 0, e, in_memory)
    return Piece(name)


def emit_let(out: Emitter, e: Let) -> Emission:
    """Emits a value and what uses it; a vector outside of lanes is an array, one for all uses of `e` in a statement."""
    if e.value.dtype.lanes > 1 and out.lane is None:
        key = id(e), False, "array"
        known = next((block.memo[key] for block in reversed(out.blocks) if key in block.memo), None)
        if known is None:
            known = out.blocks[-1].memo[key] = yield from array_of(out, e.value)
        out.vectors[e.var] = known.text
    else:
        yield from bind(out, e.var, e.value)
    return (yield e.body, False)


def fill(out: Emitter, name: str, at: int, e: Expr, in_memory: bool = False) -> Emission:
    """Emits the lanes of `e`, a vector or a scalar, into an array from element `at` on."""
    if e.dtype.lanes == 1:
        value = yield e, False
        out.line(f"{name}[{at}] = {value.text};")
        return value
    with lane_loop(out, e.dtype.lanes) as lane:
        value = yield e, False
        place = lane.text if not at else f"{at} + {lane.text}"
        out.line(f"{name}[{place}] = {(to_memory(out, value, e.dtype) if in_memory else value).text};")
    return value


# --- shuffles ---------------------------------------------------------------------------------------------------------

def emit_shuffle(out: Emitter, e: Shuffle) -> Emission:
    picks = [i.value for i in e.indices if isinstance(i, IntImm)]
    if len(picks) == 1 or all(pick == picks[0] for pick in picks):
        vector, at = _picked(e, picks[0])
        return (yield from out.at_lane(vector, number(at), False)) if vector.dtype.lanes > 1 else (yield vector, False)
    if out.lane is None:
        raise InternalError("a shuffle outside of a vector")
    if len(e.vectors) == 1 and e.vectors[0].dtype.lanes > 1:
        step = picks[1] - picks[0]
        if all(pick == picks[0] + step * k for k, pick in enumerate(picks)):
            return (yield from out.at_lane(e.vectors[0], _stepped(out.lane.text, picks[0], step), False))
    return (yield from _shuffled(out, e, picks))


def _picked(e: Shuffle, pick: int) -> tuple[Expr, int]:
    """Returns the vector, and the lane of it, that `pick` means."""
    for vector in e.vectors:
        if pick < vector.dtype.lanes:
            return vector, pick
        pick -= vector.dtype.lanes
    raise InternalError(f"a shuffle of lane {pick}, which is not there")


def _stepped(lane: Piece, first: int, step: int) -> Piece:
    """Returns first + step * lane."""
    if lane.constant is not None:
        return number(first + step * lane.constant)
    text = lane.at(PRODUCT) if step == 1 else f"{step} * {lane.at(PRIMARY)}"
    if first or step < 0:
        text = f"{first} - {lane.at(PRIMARY)}" if step == -1 else f"{first} + {text}"
    ends = first, first + step * lane.high
    return Piece(text, SUM if first or step < 0 else PRODUCT if step != 1 else lane.rank, 1, False, min(ends), max(ends))


def _shuffled(out: Emitter, e: Shuffle, picks: list[int]) -> Emission:
    """Emits any order of lanes: the vectors in one array, and a table of the lanes that are picked."""
    assert out.lane is not None
    element_type, lane = value_type(e.dtype), out.lane
    total = sum(v.dtype.lanes for v in e.vectors)
    key = id(e), False, "lanes"
    known = next((block.memo[key] for block in reversed(out.blocks) if key in block.memo), None)
    if known is None:
        inner = out.blocks[lane.outer + 1:]
        hoists = not any(block.conditional for block in inner)
        if hoists:
            out.blocks, out.lane = out.blocks[:lane.outer + 1], None
        name = out.names.fresh("lanes")
        out.line(f"{element_type} {name}[{total}];")
        at = 0
        for vector in e.vectors:
            yield from fill(out, name, at, vector)
            at += vector.dtype.lanes
        known = out.blocks[-1].memo[key] = Piece(name)
        if hoists:
            out.blocks, out.lane = out.blocks + inner, lane
    if lane.text.constant is not None:
        return Piece(f"{known.text}[{picks[lane.text.constant]}]", depth=1)
    table = out.names.fresh("picks")
    out.line(f"static const int32_t {table}[{len(picks)}] = {{{', '.join(map(str, picks))}}};")
    return Piece(f"{known.text}[{table}[{lane.text.text}]]", depth=1)
