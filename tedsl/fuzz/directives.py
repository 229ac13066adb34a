"""One function per directive: a call of it that the schedule should accept, as text, or None where there is no place for it.

Loops are written `loop(T1, 2)`: by their number now, so that a sequence from which some directives are taken is still one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from tedsl.ir import build
from tedsl.ir.iters import IterVar
from tedsl.lang.operation import ComputeOp
from tedsl.schedule.attach import legal_places
from tedsl.schedule.domains import extents_down, root_extents
from tedsl.schedule.state import AttachType, StageState

if TYPE_CHECKING:
    from tedsl.fuzz.schedules import Scheduler

FACTORS = (2, 3, 4, 5, 7, 8, 16, 1)
SCOPES = ("local", "global", "shared")
Proposal = Callable[["Scheduler"], str | None]

# --- what the schedule says -------------------------------------------------------------------------------------------


def plain_loops(stage: StageState) -> list[int]:
    """The numbers of the loops that may be replaced: not annotated, no pragma, nothing computed there."""
    held = {guest.attach_ivar for guest in stage.guests()}
    return [at for at, one in enumerate(stage.leaf_iter_vars)
            if one not in held and stage.annotation_of(one) is None and not stage.attr_of(one).pragma_keys]


def free_loops(stage: StageState, *, elements: bool = False) -> list[int]:
    """The numbers of the loops that may be annotated. elements: those of a reduction left out."""
    return [at for at, one in enumerate(stage.leaf_iter_vars)
            if stage.annotation_of(one) is None and not (elements and one.is_reduction)]


def constant_extents(stage: StageState) -> dict[IterVar, int]:
    known = extents_down(stage.relations, root_extents(stage))
    return {one: n for one, extent in known.items() if (n := build.as_int(extent)) is not None}


def operation(stage: StageState) -> ComputeOp:
    assert isinstance(stage.op, ComputeOp)
    return stage.op


def _replaceable(stage: StageState) -> bool:
    """Whether cache_write or rfactor may give the stage another operation."""
    return stage.attach_type != AttachType.INLINE and len(plain_loops(stage)) == len(stage.leaf_iter_vars) \
        and isinstance(stage.op, ComputeOp)


# --- loops ------------------------------------------------------------------------------------------------------------

def split_factor(s: Scheduler) -> str | None:
    return _split(s, "factor")


def split_nparts(s: Scheduler) -> str | None:
    return _split(s, "nparts")


def _split(s: Scheduler, how: str) -> str | None:
    place = s.pick(plain_loops)
    if place is None:
        return None
    name, at = place
    return f"s[{name}].split(loop({name}, {at}), {how}={s.draw.choice(FACTORS)})"


def fuse(s: Scheduler) -> str | None:
    """Neighbours, rarely given from the inside out; rarely three of them, or none."""
    name = s.pick_stage(lambda stage: bool(_neighbours(stage)))
    if name is None or s.draw.chance(4):
        name = s.pick_stage(lambda stage: True)
        return None if name is None else f"s[{name}].fuse()"
    stage = s.state(name)
    pair = s.draw.choice(_neighbours(stage))
    loops = [pair, pair + 1]
    if pair + 1 in _neighbours(stage) and s.draw.chance(20):
        loops.append(pair + 2)
    elif s.draw.chance(10):
        loops.reverse()
    return f"s[{name}].fuse({', '.join(f'loop({name}, {at})' for at in loops)})"


def _neighbours(stage: StageState) -> list[int]:
    plain = plain_loops(stage)
    return [at for at in plain if at + 1 in plain
            and stage.leaf_iter_vars[at].is_reduction == stage.leaf_iter_vars[at + 1].is_reduction]


def tile(s: Scheduler) -> str | None:
    name = s.pick_stage(lambda stage: len(plain_loops(stage)) > 1)
    if name is None:
        return None
    x, y = s.draw.sample(plain_loops(s.state(name)), 2)
    return f"s[{name}].tile(loop({name}, {x}), loop({name}, {y}), {s.draw.choice(FACTORS)}, {s.draw.choice(FACTORS)})"


def reorder(s: Scheduler) -> str | None:
    name = s.pick_stage(lambda stage: len(stage.leaf_iter_vars) > 1)
    if name is None:
        return None
    count = len(s.state(name).leaf_iter_vars)
    some = s.draw.sample(range(count), s.draw.between(2, count))
    return f"s[{name}].reorder({', '.join(f'loop({name}, {at})' for at in some)})"


# --- annotations ------------------------------------------------------------------------------------------------------

def vectorize(s: Scheduler) -> str | None:
    """A loop of constant extent with nothing computed inside it, mostly the innermost one."""
    place = s.pick(_vectors, last=60)
    return None if place is None else f"s[{place[0]}].vectorize(loop({place[0]}, {place[1]}))"


def _vectors(stage: StageState) -> list[int]:
    sizes, held = constant_extents(stage), {guest.attach_ivar for guest in stage.guests()}
    first = max((at + 1 for at, one in enumerate(stage.leaf_iter_vars) if one in held), default=0)
    return [at for at in free_loops(stage, elements=True) if at >= first and sizes.get(stage.leaf_iter_vars[at], 99) <= 64]


def unroll(s: Scheduler) -> str | None:
    place = s.pick(_short)
    return None if place is None else f"s[{place[0]}].unroll(loop({place[0]}, {place[1]}))"


def _short(stage: StageState) -> list[int]:
    sizes = constant_extents(stage)
    return [at for at in free_loops(stage) if sizes.get(stage.leaf_iter_vars[at], 99) <= 8]


def parallel(s: Scheduler) -> str | None:
    place = s.pick(lambda stage: free_loops(stage, elements=True), first=50)
    return None if place is None else f"s[{place[0]}].parallel(loop({place[0]}, {place[1]}))"


def pragma(s: Scheduler) -> str | None:
    place = s.pick(lambda stage: list(range(len(stage.leaf_iter_vars))))
    if place is None:
        return None
    kind, value = s.draw.choice([("auto_unroll_max_step", 4), ("auto_unroll_max_step", 16), ("unroll_explicit", 1),
                                 ("unroll_explicit", 0)])
    return f"s[{place[0]}].pragma(loop({place[0]}, {place[1]}), '{kind}', {value})"


# --- place ------------------------------------------------------------------------------------------------------------

def compute_at(s: Scheduler) -> str | None:
    names = {s.state(name): name for name in s.tensors}
    name = s.pick_stage(lambda stage: bool(_places(stage, names)))
    if name is None:
        return None
    host, loop = s.draw.choice(_places(s.state(name), names))
    return f"s[{name}].compute_at(s[{names[host]}], loop({names[host]}, {host.leaf_iter_vars.index(loop)}))"


def _places(stage: StageState, names: dict[StageState, str]) -> list[tuple[StageState, IterVar]]:
    if stage.is_output or stage.is_placeholder:
        return []
    return [(host, loop) for host, loop in legal_places(stage) if host in names]


def compute_inline(s: Scheduler) -> str | None:
    name = s.pick_stage(lambda stage: not stage.is_output and not stage.guests() and len(operation(stage).body) == 1
                        and operation(stage).reduction is None and stage.attach_type != AttachType.INLINE)
    return None if name is None else f"s[{name}].compute_inline()"


def compute_root(s: Scheduler) -> str | None:
    """Of a stage that stands elsewhere; rarely of one that is there already."""
    name = s.pick_stage(lambda stage: stage.attach_type != AttachType.ROOT)
    if name is None and s.draw.chance(30):
        name = s.pick_stage(lambda stage: True)
    return None if name is None else f"s[{name}].compute_root()"


# --- stages -----------------------------------------------------------------------------------------------------------

def cache_read(s: Scheduler) -> str | None:
    """A copy for some readers of an input or a stage."""
    choices = []
    for name in [*s.inputs, *s.tensors]:
        stage = s.state(name)
        readers = [n for n in s.tensors if stage.op.output(s.number_of(name)) in s.state(n).op.input_tensors]
        if readers and stage.attach_type != AttachType.INLINE:
            choices.append((name, readers))
    if not choices:
        return None
    name, readers = s.draw.choice(choices)
    some = s.draw.sample(readers, s.draw.between(1, len(readers)))
    return f"{s.fresh('c')} = s.cache_read({name}, '{s.draw.choice(SCOPES)}', [{', '.join(some)}])"


def cache_write(s: Scheduler) -> str | None:
    def fits(stage: StageState) -> bool:
        split = any(one.is_reduction and one not in operation(stage).reduce_axis for one in stage.leaf_iter_vars)
        return _replaceable(stage) and not split

    name = s.pick_stage(fits)
    if name is None:
        return None
    made, scope, group = s.fresh("c"), s.draw.choice(SCOPES), s.group_of(name)
    if len(group) > 1:
        return f"{made}, {made}_1 = s.cache_write([{', '.join(group)}], '{scope}')"
    return f"{made} = s.cache_write({name}, '{scope}')"


def rfactor(s: Scheduler) -> str | None:
    name = s.pick_stage(lambda stage: bool(_factorable(stage)))
    if name is None:
        return None
    stage, made = s.state(name), s.fresh("f")
    at, place = s.draw.choice(_factorable(stage)), s.draw.between(0, len(operation(stage).axis))
    tail = f", {made}_1" if len(s.group_of(name)) > 1 else ""
    return f"{made}{tail} = s.rfactor({name}, loop({name}, {at}), {place})"


def _factorable(stage: StageState) -> list[int]:
    reduction = operation(stage).reduction if _replaceable(stage) else None
    if reduction is None or reduction.init:
        return []
    if any(one not in operation(stage).axis for one in stage.leaf_iter_vars if not one.is_reduction):
        return []  # loops made of others would be lost
    return [at for at, one in enumerate(stage.leaf_iter_vars) if one.is_reduction]


def set_scope(s: Scheduler) -> str | None:
    name = s.pick_stage(lambda stage: not stage.is_output)
    return None if name is None else f"s[{name}].set_scope('{s.draw.choice(SCOPES)}')"


def nontemporal(s: Scheduler) -> str | None:
    name = s.pick_stage(lambda stage: stage.is_output and not stage.nontemporal)
    return None if name is None else f"s[{name}].nontemporal()"


# --- what should be refused -------------------------------------------------------------------------------------------

def wild(s: Scheduler) -> str | None:
    """Anything that can be written, most of it wrong."""
    name, other = s.draw.choice(s.tensors), s.draw.choice(s.tensors)
    a, b = (f"loop({s.draw.choice([name, name, other])}, {s.draw.which(4)})" for _ in "ab")
    number = s.draw.choice([0, 1, 3, -1])
    return s.draw.choice([
        f"s[{name}].split({a}, factor={number})", f"s[{name}].fuse({a}, {b})", f"s[{name}].reorder({a}, {b})",
        f"s[{name}].tile({a}, {b}, 2, {number})", f"s[{name}].vectorize({a})", f"s[{name}].unroll({a})",
        f"s[{name}].parallel({a})", f"s[{name}].compute_at(s[{other}], loop({other}, {s.draw.which(4)}))",
        f"s[{name}].compute_inline()", f"{s.fresh('c')} = s.cache_write({name}, 'local')",
        f"{s.fresh('f')} = s.rfactor({name}, {a}, {number})", f"{s.fresh('c')} = s.cache_read({name}, 'local', [{other}])",
        f"s[{name}].set_scope('{s.draw.choice(['local', 'nowhere'])}')", f"s[{name}].nontemporal()"])


# Weights make up for directives that seldom find a place: all are to come about equally often.
DIRECTIVES: dict[Proposal, int] = {
    split_factor: 8, split_nparts: 8, fuse: 8, tile: 8, reorder: 9, vectorize: 9, unroll: 8, parallel: 8, pragma: 5,
    compute_at: 16, compute_inline: 8, compute_root: 8, cache_read: 8, cache_write: 12, rfactor: 14, set_scope: 8,
    nontemporal: 8}
