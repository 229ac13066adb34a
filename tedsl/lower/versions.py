"""Stages with specialized versions: a plan for each version, and for each stage that is computed inside of it.

    if n % 8 == 0 { for i.outer: { P'...; C... } } else { for i.outer: { P...; C... } }

What is inferred and simplified for a version is so under its condition. Stages that are computed inside of both versions
have a plan and memory in each.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any

from tedsl.arith.analyzer import Analyzer
from tedsl.errors import LoweringError
from tedsl.ir import build
from tedsl.ir.buffer import Buffer
from tedsl.ir.expr import Expr
from tedsl.ir.walk.substitute import substitute
from tedsl.lang.operation import Operation
from tedsl.lower.plan import Ends, Read, StagePlan
from tedsl.schedule.causes import attached
from tedsl.schedule.domains import known_values
from tedsl.schedule.state import StageState, find

if TYPE_CHECKING:
    from tedsl.lower.arguments import Memory

Key = tuple[Operation, int]

def with_versions(plans: Mapping[StageState, StagePlan]) -> list[StagePlan]:
    """The plans, producers first, with those of versions next to those of the general loops."""
    if not any(stage.versions for stage in plans):
        return list(plans.values())
    made: dict[Operation, list[StagePlan]] = {plan.op: [] for plan in plans.values()}
    for plan in plans.values():
        _add_versions(plan, made)
    return [one for plan in plans.values() for one in (*made[plan.op], plan)]


def _add_versions(plan: StagePlan, made: dict[Operation, list[StagePlan]]) -> None:
    for version in plan.stage.versions:
        own = _again(plan, version, plan.host, plan.position)
        own.condition = version.condition
        made[plan.op].append(own)
        plan.versions.append(own)
        for at, guests in plan.guests.items():
            loop = plan.stage.leaf_iter_vars[at]
            place = find(version.leaf_iter_vars, loop)
            if place is None:
                raise LoweringError(f"{guests[0].name} is computed at loop {loop.name} of {plan.name}, and the version for "
                                    f"{version.condition!r} has no such loop",
                                    hint=f"compute {guests[0].name} at a loop that both have: compute_at, then specialize",
                                    about=attached(guests[0].stage))
            own.guests[place] = [_clone(guest, own, place, made) for guest in guests]


def _clone(plan: StagePlan, host: StagePlan, position: int, made: dict[Operation, list[StagePlan]]) -> StagePlan:
    """The plan of a stage inside another version of its host, with all that is computed inside of it."""
    own = _again(plan, plan.stage, host, position)
    made[plan.op].append(own)
    for at, guests in plan.guests.items():
        own.guests[at] = [_clone(guest, own, at, made) for guest in guests]
    _add_versions(own, made)
    return own


def _again(plan: StagePlan, stage: StageState, host: StagePlan | None, position: int) -> StagePlan:
    return StagePlan(stage, plan.op, plan.bodies, plan.reads, plan.domains, host, position, accesses=plan.accesses)


def _conditions(plan: StagePlan) -> list[Expr]:
    """What holds where `plan` stands: the conditions of its version and of those around it."""
    found = []
    at: StagePlan | None = plan
    while at is not None:
        if at.condition is not None:
            found.append(at.condition)
        at = at.host
    return found


def runs_where(plan: StagePlan) -> list[Expr]:
    """What holds in exactly the calls that run `plan`: of several versions the first runs whose condition holds."""
    found = []
    at: StagePlan | None = plan
    while at is not None:
        for version in (at.stage.version_of or at.stage).versions:
            if version is at.stage:
                break
            assert version.condition is not None
            found.append(build.logical_not(version.condition))
        if at.condition is not None:
            found.append(at.condition)
        at = at.host
    return found


@contextmanager
def under_conditions(plan: StagePlan, analyzer: Analyzer) -> Iterator[None]:
    """Inside, `analyzer` knows what holds where `plan` stands."""
    with ExitStack() as known:
        for condition in _conditions(plan):
            known.enter_context(analyzer.constraint_scope(condition))
        yield


def readers_inside(plan: StagePlan, reads: Sequence[tuple[StagePlan, Read]]) -> list[tuple[StagePlan, Read]]:
    """Those of `reads` that find what `plan` computes: those in the version that it stands in."""
    return [(reader, read) for reader, read in reads if _is_inside(reader, plan.host)]


def _is_inside(plan: StagePlan | None, host: StagePlan | None) -> bool:
    while plan is not None:
        if plan is host:
            return True
        plan = plan.host
    return host is None


def specialized(plan: StagePlan, region: Sequence[Ends]) -> list[Ends]:
    """`region` where the conditions of `plan` hold: a size that they say to be 64 is 64."""
    values = known_values(_conditions(plan))
    return [(substitute(low, values), substitute(extent, values)) for low, extent in region] if values else list(region)


def memory_of(plan: StagePlan, memory: Memory) -> Memory:
    """The memory inside of a version: buffers of its own for the stages that are computed there, the others as outside."""
    made = copy.copy(memory)
    made.buffers = _Overlay(memory.buffers, {guest.op for guest in _guests_of(plan)}, memory.is_argument)
    return made


class _Overlay(dict[Key, Buffer]):
    """The buffers of `outside`, but for those of the operations `own` that are no arguments."""

    def __init__(self, outside: dict[Key, Buffer], own: set[Operation], is_argument: Callable[[Buffer], bool]) -> None:
        super().__init__()
        self.outside, self.operations, self.is_argument = outside, own, is_argument

    def get(self, key: Key, default: Any = None) -> Any:
        found = self.outside.get(key)
        if key[0] not in self.operations or (found is not None and self.is_argument(found)):
            return found
        return super().get(key)

    def __setitem__(self, key: Key, buffer: Buffer) -> None:
        if key[0] in self.operations:
            super().__setitem__(key, buffer)
        else:
            self.outside[key] = buffer


def _guests_of(plan: StagePlan) -> Iterator[StagePlan]:
    for guests in plan.guests.values():
        for guest in guests:
            yield guest
            yield from _guests_of(guest)
