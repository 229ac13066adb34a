"""Directives that place stages: compute_at, compute_inline, compute_root."""

from __future__ import annotations

from tedsl.fuzz.directives.sites import constant_extents, operation
from tedsl.fuzz.scheduler import Scheduler
from tedsl.ir.iters import IterVar
from tedsl.schedule.attach import legal_places
from tedsl.schedule.state import AttachType, StageState


def compute_at(s: Scheduler) -> str | None:
    names = {s.state(name): name for name in s.tensors}
    name = s.pick_stage(lambda stage: bool(places_of(stage, names)))
    if name is None:
        return None
    host, loop = s.draw.choice(places_of(s.state(name), names))
    return f"s[{name}].compute_at(s[{names[host]}], loop({names[host]}, {host.leaf_iter_vars.index(loop)}))"


def places_of(stage: StageState, names: dict[StageState, str]) -> list[tuple[StageState, IterVar]]:
    if stage.is_output or stage.is_placeholder:
        return []
    return [(host, loop) for host, loop in legal_places(stage) if host in names]


def compute_with(s: Scheduler) -> str | None:
    """Make one of the outer loops of two stages at one place, of as many iterations."""
    stages = [(s.state(name), name) for name in s.tensors]
    pairs = [(a, b) for at, a in enumerate(stages) for b in stages[at + 1:] if _of_one_place(a[0], b[0])]
    for _ in range(3 if pairs else 0):
        (first, one), (second, other) = s.draw.choice(pairs)
        depth = s.draw.which(min(len(first.leaf_iter_vars), len(second.leaf_iter_vars)))
        text = f"s[{other}].compute_with(s[{one}], loop({one}, {depth}), loop({other}, {depth}))"
        if s.accepts(text):
            return text
    return None


def _of_one_place(a: StageState, b: StageState) -> bool:
    """Whether both stages have loops at the same place, the outermost with the same number of iterations."""
    if a is b or a.attach_type == AttachType.INLINE or not a.leaf_iter_vars or not b.leaf_iter_vars:
        return False
    counts = [constant_extents(stage).get(stage.leaf_iter_vars[0]) for stage in (a, b)]
    return a.attach_ivar is b.attach_ivar and a.attach_type == b.attach_type and counts[0] == counts[1] is not None


def compute_inline(s: Scheduler) -> str | None:
    name = s.pick_stage(lambda stage: not stage.is_output and not stage.guests()
                        and operation(stage).reduction is None and stage.attach_type != AttachType.INLINE)
    return None if name is None else f"s[{name}].compute_inline()"


def compute_root(s: Scheduler) -> str | None:
    """Move a stage to the root from elsewhere; rarely one that is already at the root."""
    name = s.pick_stage(lambda stage: stage.attach_type != AttachType.ROOT)
    if name is None and s.draw.chance(30):
        name = s.pick_stage(lambda stage: True)
    return None if name is None else f"s[{name}].compute_root()"
