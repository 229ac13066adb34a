"""Groups of stages: what lies between some inputs and some outputs, placed by one directive."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from tedsl.errors import OptionError, ScheduleError, missing_attribute
from tedsl.ir.iters import IterVar
from tedsl.schedule.attach import at_reader
from tedsl.schedule.primitives.places.compute_at import must_be_possible
from tedsl.schedule.record.applied import Owner, directive
from tedsl.schedule.record.directive import OF_GROUPS, OF_STAGES
from tedsl.schedule.record.term import Name
from tedsl.schedule.state import AttachType, Group, ScheduleState, StageState, describe, show

if TYPE_CHECKING:
    from tedsl.schedule.handles import Schedule
    from tedsl.schedule.stage import Stage


def members(schedule: ScheduleState, group: Group) -> list[StageState]:
    """The stages of `group` and of the groups inside it, producers first."""
    return [stage for stage in schedule.stages if group in schedule.groups_around(stage.group)]


def place_of(schedule: ScheduleState, group: Group | None) -> tuple[StageState, IterVar] | None:
    """The stage and the loop of it at which `group`, or the nearest enclosing group that has a place, is computed."""
    for around in schedule.groups_around(group):
        if around in schedule.group_hosts:
            return schedule.group_hosts[around], schedule.group_loops[around]
    return None


def followers(schedule: ScheduleState, group: Group) -> list[StageState]:
    """The members that are computed where `group` is, since no directive has placed them, or a group inside `group`,
    elsewhere.
    """
    return [stage for stage in members(schedule, group) if not stage.is_placeholder and _follows(stage)
            and not any(inner in schedule.group_hosts for inner in _up_to(stage, group))]


def _up_to(stage: StageState, group: Group) -> list[Group]:
    """The groups inside `group` that contain `stage`, innermost first."""
    chain = stage.schedule.groups_around(stage.group)
    return chain[:chain.index(group)]


def _follows(stage: StageState) -> bool:
    if stage.attach_type == AttachType.ROOT:
        return True
    return _is_at(stage, place_of(stage.schedule, stage.group))


def _is_at(stage: StageState, place: tuple[StageState, IterVar] | None) -> bool:
    return stage.attach_type == AttachType.SCOPE and place is not None \
        and stage.attach_stage is place[0] and stage.attach_ivar is place[1]


def group_compute_at(schedule: ScheduleState, group: Group, host: Any, loop: Any) -> None:
    """Compute the stages of the group that have no place of their own inside the loop `loop` of `host`."""
    moved = followers(schedule, group)
    inside = members(schedule, group)
    first = (moved or [stage for stage in inside if not stage.is_placeholder] or inside)[-1]
    directive = f"compute_at({show(host)}, {show(loop)})"
    if not isinstance(host, StageState) or host.schedule is not schedule:
        wrong = f"the first argument is a stage, got {describe(host)}" if not isinstance(host, StageState) \
            else f"{host.name} is a stage of another schedule"
        raise first.refuse(f"{group.name}.{directive}", wrong,
                           hint=f"write {group.name}.compute_at{at_reader(first).rpartition('.compute_at')[2]}")
    if host in inside:
        raise first.refuse(directive, f"{host.name} belongs to {group.name} itself",
                           hint="compute the group at a loop of a stage that uses its outputs")
    for stage in reversed(moved or [first]):  # if all have places of their own, the loop must still be one for the group
        must_be_possible(stage, host, loop)
    for stage in moved:
        stage.attach_type, stage.attach_stage, stage.attach_ivar = AttachType.SCOPE, host, loop
    schedule.put_group(group, host, loop)


def group_compute_root(schedule: ScheduleState, group: Group) -> None:
    """Takes back compute_at of the group; stages of an enclosing group that has a place go there."""
    moved = followers(schedule, group)
    for stage in moved:
        _must_fit(stage, schedule.group_parents.get(group))
    schedule.put_group(group, None, None)
    for stage in moved:
        put_with_group(stage)


def return_to_group(stage: StageState) -> None:
    """Takes back the place of `stage` alone; refused if it cannot be computed at the loop of its group."""
    _must_fit(stage, stage.group)
    put_with_group(stage)


def _must_fit(stage: StageState, group: Group | None) -> None:
    """Refuses if `stage` cannot be computed where `group` is."""
    place = place_of(stage.schedule, group)
    if place is None or group is None or stage.is_placeholder or _is_at(stage, place):
        return
    held = next(one for one in stage.schedule.groups_around(group) if one in stage.schedule.group_hosts)
    must_be_possible(stage, *place, f"compute_root(), to loop {place[1].name} of {place[0].name} where {held.name} is,")


def put_with_group(stage: StageState) -> None:
    """Computes `stage` where its group is; at the root if it has none."""
    place = place_of(stage.schedule, stage.group)
    stage.attach_type, stage.attach_stage, stage.attach_ivar = AttachType.ROOT, None, None
    if place is not None and not stage.is_placeholder:
        stage.attach_type, stage.attach_stage, stage.attach_ivar = AttachType.SCOPE, *place


def join_group(stage: StageState, other: StageState) -> None:
    """Adds `stage`, which was derived from `other`, to the group of `other`, and computes it there if `other` is."""
    stage.group = other.group
    if other.group is not None and not other.is_placeholder and _follows(other):
        put_with_group(stage)


class StageGroup:
    """Several stages that compute_at places together: what `create_group` returns. It has no loops of its own."""

    __slots__ = ("schedule", "state")
    _directives: ClassVar[frozenset[str]] = OF_GROUPS

    def __init__(self, schedule: Schedule, state: Group) -> None:
        self.schedule = schedule
        self.state = state

    @directive
    def compute_at(self, parent: Stage, scope: IterVar) -> None:
        """Compute the stages of this group that have no place of their own at the loop `scope` of `parent`."""
        group_compute_at(self.schedule.state, self.state, getattr(parent, "state", parent), scope)

    @directive
    def compute_root(self) -> None:
        """Take back compute_at: the stages of this group that have no place of their own are computed before their readers."""
        group_compute_root(self.schedule.state, self.state)

    def _owner(self, directive: str, args: Sequence[Any]) -> Owner:
        state = self.schedule.state
        if self.state not in state.groups:
            now = ", ".join(group.name for group in state.groups)
            raise ScheduleError(directive, self.name, f"{self.name} was made by a create_group that undo took back", loops=(),
                                hint="call create_group again, and use what it returns"
                                     + (f"; the groups now: {now}" if now else ""))
        return Owner(Name(state.recorder.names[self.state]), state)

    if not TYPE_CHECKING:  # type checkers know what there is, and say so themselves

        def __getattr__(self, name: str) -> Any:
            if name in StageGroup.__slots__:  # not yet: it is being copied
                raise AttributeError(name)
            if name not in OF_STAGES:
                raise missing_attribute("a group of stages", name, StageGroup, {})
            each = [f"{stage.written}.{name}(...)" for stage in members(self.schedule.state, self.state)]
            raise OptionError(f"{self.name} is a group of stages: it has a place, no loops and no memory of its own, and "
                              f"{name} is a directive for a stage", hint=f"write {', '.join(each) or f's[C].{name}(...)'}")

    @property
    def name(self) -> str:
        return self.state.name

    @property
    def stages(self) -> Sequence[Stage]:
        """The stages of this group and of the groups in it, producers first."""
        return [self.schedule.handle(stage) for stage in members(self.schedule.state, self.state)]

    @property
    def num_child_stages(self) -> int:
        """How many stages and groups belong to this group directly."""
        state = self.schedule.state
        inside = sum(state.group_parents.get(group) is self.state for group in state.groups)
        return inside + sum(stage.group is self.state for stage in state.stages)

    @property
    def group(self) -> StageGroup | None:
        """The group around this one."""
        around = self.schedule.state.group_parents.get(self.state)
        return None if around is None else StageGroup(self.schedule, around)

    @property
    def attach_type(self) -> AttachType:
        return AttachType.SCOPE if self.state in self.schedule.state.group_hosts else AttachType.ROOT

    @property
    def attach_stage(self) -> Stage | None:
        host = self.schedule.state.group_hosts.get(self.state)
        return None if host is None else self.schedule.handle(host)

    @property
    def attach_ivar(self) -> IterVar | None:
        return self.schedule.state.group_loops.get(self.state)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, StageGroup) and self.state is other.state and self.schedule is other.schedule

    def __hash__(self) -> int:
        return hash(self.state)

    def __repr__(self) -> str:
        return f"{self.state.name}({', '.join(stage.name for stage in self.stages)})"
