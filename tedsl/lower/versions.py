"""Stages with specialized versions: a placement for each version, and for each stage that is computed inside it.

    if n % 8 == 0 { for i.outer: { P'...; C... } } else { for i.outer: { P...; C... } }

Regions and simplifications of a version hold under its condition only. Stages that are computed inside both versions have a
placement and memory in each.
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
from tedsl.ir.script import shown
from tedsl.ir.walk.substitute import substitute
from tedsl.lang.operation import Operation
from tedsl.lower.plan import Computation, Ends, Key, Placement, Program, Read, StagePlan
from tedsl.schedule.causes import attached
from tedsl.schedule.domains import known_values
from tedsl.schedule.state import StageState, find

if TYPE_CHECKING:
    from tedsl.lower.arguments import TensorBuffers

HostLoop = tuple[StageState, int]  # loop number k of a stage, inside which another one is computed


def placements(computations: Mapping[StageState, Computation], places: Mapping[StageState, HostLoop]) -> list[Placement]:
    """The placements of all stages, producers first; versions before the general loops, and those inside of versions of their
    hosts before those inside of the general loops.
    """
    guests: dict[StageState, list[StageState]] = {}
    for guest, (host, _) in places.items():
        guests.setdefault(host, []).append(guest)
    placed: dict[StageState, list[list[Placement]]] = {stage: [] for stage in computations}

    def place(stage: StageState, host: Placement | None, position: int) -> None:
        computation = vars(computations[stage])
        general = Placement(**computation, stage=stage, host=host, position=position)
        versions = [Placement(**computation, stage=version, host=host, position=position, general=general)
                    for version in stage.versions]
        placed[stage].append([*versions, general])
        for around in (general, *versions):
            for guest in guests.get(stage, ()):
                place(guest, around, _position(guest, stage, places[guest][1], around.stage))

    for stage in computations:
        if stage not in places:
            place(stage, None, -1)
    return [placement for stage in computations for group in reversed(placed[stage]) for placement in group]


def _position(guest: StageState, host: StageState, at: int, version: StageState) -> int:
    """The number, in a `version` of `host`, of the loop that is number `at` of `host` and inside which `guest` is computed."""
    loop = host.leaf_iter_vars[at]
    position = find(version.leaf_iter_vars, loop)
    if position is None:
        raise LoweringError(f"{guest.name} is computed at loop {loop.name} of {host.name}, and the version for "
                            f"{shown(version.condition)} has no such loop",
                            hint=f"compute {guest.name} at a loop that both have: compute_at, then specialize",
                            about=attached(guest))
    return position


def _conditions(plan: Placement) -> list[Expr]:
    """The conditions of the version that `plan` belongs to, and of the versions that enclose it."""
    conditions = []
    at: Placement | None = plan
    while at is not None:
        if at.condition is not None:
            conditions.append(at.condition)
        at = at.host
    return conditions


def runs_where(plan: Placement) -> list[Expr]:
    """The conditions under which a call runs `plan`: those of its version and of the versions that enclose it, and the negated
    conditions of the versions that are tested before these.
    """
    conditions = []
    at: Placement | None = plan
    while at is not None:
        for version in (at.stage.version_of or at.stage).versions:
            if version is at.stage:
                break
            assert version.condition is not None
            conditions.append(build.logical_not(version.condition))
        if at.condition is not None:
            conditions.append(at.condition)
        at = at.host
    return conditions


@contextmanager
def under_conditions(plan: Placement, analyzer: Analyzer) -> Iterator[None]:
    """A context in which `analyzer` knows the conditions of the versions around `plan`."""
    with ExitStack() as known:
        for condition in _conditions(plan):
            known.enter_context(analyzer.constraint_scope(condition))
        yield


def readers_inside(plan: Placement, reads: Sequence[tuple[Placement, Read]]) -> list[tuple[Placement, Read]]:
    """Those of `reads` (reads of the outputs of `plan`) that are in the same versions of its hosts."""
    return [(reader, read) for reader, read in reads if _is_inside(reader, plan.host)]


def is_read_outside(plan: Placement, reads: Sequence[tuple[Placement, Read]]) -> bool:
    """Whether one of `reads` is outside of every version of the host of `plan`: a schedule half-way, which `build` refuses."""
    host = plan.host
    return host is not None and not all(_is_in_a_version(reader, host) for reader, _ in reads)


def _is_in_a_version(plan: Placement | None, host: Placement) -> bool:
    of = host.stage.version_of or host.stage
    while plan is not None:
        if (plan.stage.version_of or plan.stage) is of:
            return True
        plan = plan.host
    return False


def _is_inside(plan: Placement | None, host: Placement | None) -> bool:
    while plan is not None:
        if plan is host:
            return True
        plan = plan.host
    return host is None


def specialized(plan: Placement, region: Sequence[Ends]) -> list[Ends]:
    """`region` with variables replaced by the values that the conditions of `plan` give to them: 64 for n where n == 64."""
    values = known_values(_conditions(plan))
    return [(substitute(low, values), substitute(extent, values)) for low, extent in region] if values else list(region)


def memory_of(plan: StagePlan, program: Program, memory: TensorBuffers) -> TensorBuffers:
    """The buffers inside a version: separate ones for the stages that are computed there, for all others those of outside."""
    inside = copy.copy(memory)
    inside.buffers = _Overlay(memory.buffers, {guest.op for guest in program.inside(plan)}, memory.is_argument)
    return inside


class _Overlay(dict[Key, Buffer]):
    """The buffers of `outside`, except that the operations `own` get separate ones unless they are arguments."""

    def __init__(self, outside: dict[Key, Buffer], own: set[Operation], is_argument: Callable[[Buffer], bool]) -> None:
        super().__init__()
        self.outside, self.operations, self.is_argument = outside, own, is_argument

    def get(self, key: Key, default: Any = None) -> Any:
        buffer = self.outside.get(key)
        if key[0] not in self.operations or (buffer is not None and self.is_argument(buffer)):
            return buffer
        return super().get(key)

    def __setitem__(self, key: Key, buffer: Buffer) -> None:
        if key[0] in self.operations:
            super().__setitem__(key, buffer)
        else:
            self.outside[key] = buffer
