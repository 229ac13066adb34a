"""The states of a schedule after each directive, for undo and blame.

A snapshot holds references, not copies, of operations and loops, which are immutable; a stage that a directive left unchanged
shares the record of the previous snapshot. The fields are those of the dataclasses, so that a new field is included.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tedsl.schedule.state import ScheduleState, StageState

Fields = dict[str, Any]
OWN = frozenset(("schedule", "recorder", "undone"))  # what ties a state to its place; not what it says


@dataclass(frozen=True, eq=False)
class Snapshot:
    """The fields of a schedule and of each of its stages, and how many names the journal had given."""

    schedule: Fields
    stages: Mapping[StageState, Fields]
    names: int
    objects: int


class History:
    """Snapshot number k is the schedule after its first k directives.

    rest: the present state between directives: the last snapshot, or the result of `normalize`.
    """

    __slots__ = ("rest", "snapshots")

    def __init__(self) -> None:
        self.snapshots: list[Snapshot] = []
        self.rest: Snapshot | None = None

    def take(self, state: ScheduleState) -> None:
        """Appends a snapshot of `state`."""
        self.settle(state)
        assert self.rest is not None
        self.snapshots.append(self.rest)

    def settle(self, state: ScheduleState) -> None:
        """Sets `rest` to the present `state`, without a directive."""
        before = self.snapshots[-1].stages if self.snapshots else {}
        stages = {stage: _taken(stage, before.get(stage)) for stage in state.with_versions()}
        recorder = state.recorder
        self.rest = Snapshot(fields_of(state), stages, len(recorder.names), len(recorder.objects))

    def put_back(self, state: ScheduleState, snapshot: Snapshot) -> None:
        """Restores `state` from `snapshot`; the snapshots stay. Stages created since are marked `undone`."""
        now = state.with_versions()
        state.__dict__.update({name: _copied(value) for name, value in snapshot.schedule.items()})
        for stage, fields in snapshot.stages.items():
            if fields != stage.__dict__:
                stage.__dict__.update({name: _copied(value) for name, value in fields.items() if name not in OWN})
                stage.undone = False
        for stage in now:
            stage.undone = stage not in snapshot.stages

    def copied(self, twins: dict[StageState, StageState]) -> History:
        """This history for the copies `twins` of its stages."""
        copy = History()
        done: dict[int, Fields] = {}

        def moved(fields: Fields) -> Fields:
            if id(fields) not in done:
                done[id(fields)] = with_twins(fields, twins)
            return done[id(fields)]

        def twin(snapshot: Snapshot) -> Snapshot:
            stages = {twins.get(stage, stage): moved(fields) for stage, fields in snapshot.stages.items()}
            return Snapshot(moved(snapshot.schedule), stages, snapshot.names, snapshot.objects)

        copy.snapshots = list(map(twin, self.snapshots))
        copy.rest = None if self.rest is None else copy.snapshots[-1] if self.rest is self.snapshots[-1] else twin(self.rest)
        return copy

    # --- who did it? The number of a directive, counted from 1, or None ---

    def first(self, stage: StageState, holds: Callable[[Fields], bool]) -> int | None:
        """The number of the directive after which `holds` first returned True for the stage; None if it did from the start."""
        for number, snapshot in enumerate(self.snapshots):
            fields = snapshot.stages.get(stage)
            if fields is not None and holds(fields):
                return number or None
        return None

    def last_change(self, stage: StageState, read: Callable[[Fields], tuple[object, ...]]) -> int | None:
        """The number of the directive that last changed the result of `read` for the stage; None if none did."""
        for number in range(len(self.snapshots) - 1, 0, -1):
            now, before = (self.snapshots[at].stages.get(stage) for at in (number, number - 1))
            if now is None:
                return None
            if before is None or (now is not before and not _same_items(read(now), read(before))):
                return number
        return None


def with_twins(fields: Fields, twins: Mapping[StageState, StageState]) -> Fields:
    """A copy of `fields` in which stages are replaced by their `twins`."""
    return {name: _moved(value, twins) for name, value in fields.items()}


def fields_of(owner: object) -> Fields:
    """The fields of a schedule or stage, with containers copied."""
    return {name: _copied(value) for name, value in owner.__dict__.items() if name not in OWN}


def _taken(stage: StageState, before: Fields | None) -> Fields:
    """The fields of a stage; the record `before` itself if nothing changed.

    Most stages did not change, which one comparison of dicts shows at once, since the values are the same objects.
    """
    if before is not None and before == stage.__dict__:
        return before
    return {name: _copied(value) for name, value in stage.__dict__.items()}


def _copied(value: Any) -> Any:
    return value.copy() if type(value) in (list, dict, set) else value


def _same_items(a: Any, b: Any) -> bool:
    return len(a) == len(b) and all(map(operator.is_, a, b))


def _moved(value: Any, twins: Mapping[StageState, StageState]) -> Any:
    """`value` with every stage replaced by its twin."""
    if type(value) is list:
        return [_twin(one, twins) for one in value]
    if type(value) is dict:
        return {_twin(key, twins): _twin(one, twins) for key, one in value.items()}
    if type(value) is set:
        return {_twin(one, twins) for one in value}
    return _twin(value, twins)


def _twin(value: Any, twins: Mapping[StageState, StageState]) -> Any:
    return twins.get(value, value) if hasattr(type(value), "loop_names") else value  # a stage
