"""Directives on loops: split, fuse, tile, reorder, and annotations."""

from __future__ import annotations

from collections.abc import Callable

from tedsl.fuzz.directives.sites import constant_extents, free_loops, operation, owns_memory, plain_loops
from tedsl.fuzz.scheduler import Scheduler
from tedsl.ir.expr import Reduce
from tedsl.lang.operation import ComputeOp
from tedsl.lang.zeros.borders import conditions_of
from tedsl.lang.zeros.terms import is_sum
from tedsl.schedule.state import StageState

FACTORS = (2, 3, 4, 5, 7, 8, 16, 1)


def split_factor(s: Scheduler) -> str | None:
    return _split(s, "factor")


def split_nparts(s: Scheduler) -> str | None:
    return _split(s, "nparts")


def split_mask(s: Scheduler) -> str | None:
    return _split(s, "factor", "mask")


def split_partition(s: Scheduler) -> str | None:
    return _split(s, "factor", "partition")


def split_shift_inwards(s: Scheduler) -> str | None:
    """Split a loop that is not a reduction, with the tail shift_inwards."""
    return _split(s, "factor", "shift_inwards", _recomputable)


def split_lines_of(s: Scheduler) -> str | None:
    """Split a loop that is not a reduction into tiles that begin at lines of memory, mostly of what the stage reads or writes.
    """
    place = s.pick(_recomputable)
    if place is None:
        return None
    name, at = place
    stage, tensors = s.state(name), [*s.inputs, *s.tensors]
    near = [name, *(one for one in tensors if s.state(one).op.output(s.number_of(one)) in stage.op.input_tensors)]
    of = s.draw.choice(near if s.draw.chance(80) else tensors)
    return f"s[{name}].split(loop({name}, {at}), factor={s.draw.choice(FACTORS)}, tail='shift_inwards', lines_of={of})"


def _recomputable(stage: StageState) -> list[int]:
    return plain_loops(stage) if operation(stage).reduction is None else []


def split_round_up(s: Scheduler) -> str | None:
    """Split a whole axis, with the tail round_up, of a stage whose memory the function allocates."""
    def fits(stage: StageState) -> list[int]:
        return [at for at in plain_loops(stage) if stage.leaf_iter_vars[at] in operation(stage).axis] \
            if owns_memory(stage) else []

    return _split(s, "factor", "round_up", fits)


def _split(s: Scheduler, how: str, tail: str = "", fits: Callable[[StageState], list[int]] = plain_loops) -> str | None:
    place = s.pick(fits)
    if place is None:
        return None
    name, at = place
    how = how if not tail or s.draw.chance(70) else "nparts"
    more = f", tail='{tail}'" if tail else ""
    return f"s[{name}].split(loop({name}, {at}), {how}={s.draw.choice(FACTORS)}{more})"


def fuse(s: Scheduler) -> str | None:
    """Fuse adjacent loops, rarely given from the inside out; rarely three of them, or none."""
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
    return [at for at in plain if at + 1 in plain]


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


def vectorize(s: Scheduler) -> str | None:
    """Vectorize a loop of constant extent with nothing computed inside it, mostly the innermost one."""
    place = s.pick(_vectors, last=60)
    return None if place is None else f"s[{place[0]}].vectorize(loop({place[0]}, {place[1]}))"


def _vectors(stage: StageState) -> list[int]:
    sizes, held = constant_extents(stage), {guest.attach_ivar for guest in stage.guests()}
    first = max((at + 1 for at, leaf in enumerate(stage.leaf_iter_vars) if leaf in held), default=0)
    return [at for at in free_loops(stage) if at >= first and sizes.get(stage.leaf_iter_vars[at], 99) <= 64]


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
    said = s.draw.choice(["'auto_unroll_max_step', 4", "'auto_unroll_max_step', 16", "'unroll_explicit', 1",
                          "'unroll_explicit', 0", "'loop_partition_hint'", "'parallel_stride_pattern'",
                          "'parallel_launch_point'", "'parallel_barrier_when_finish'"])
    return f"s[{place[0]}].pragma(loop({place[0]}, {place[1]}), {said})"


def decompose_reduction(s: Scheduler) -> str | None:
    """Decompose a reduction before a loop that is not inside the reduction's loops."""
    def fits(stage: StageState) -> list[int]:
        reducing = [at for at, leaf in enumerate(stage.leaf_iter_vars) if leaf.is_reduction]
        return list(range(reducing[0] + 1)) if reducing and stage.init_at is None else []

    place = s.pick(fits)
    return None if place is None else f"s[{place[0]}].decompose_reduction(loop({place[0]}, {place[1]}))"


def skip_zeros(s: Scheduler) -> str | None:
    """Skip zeros at a loop of a sum over data with a border, whose other factors are finite."""
    def fits(stage: StageState) -> list[int]:
        body = stage.op.body[0] if type(stage.op) is ComputeOp else None
        if not isinstance(body, Reduce) or not is_sum(body) or not conditions_of(body.source[0]):
            return []
        if body.dtype.is_float and len(stage.op.input_tensors) > 1:
            return []
        return [at for at in free_loops(stage) if stage.leaf_iter_vars[at].is_reduction]

    place = s.pick(fits)
    return None if place is None else f"s[{place[0]}].skip_zeros(loop({place[0]}, {place[1]}))"
