"""The states of a schedule after each directive, for undo and blame.

A state holds references, not copies: the values of the fields of schedules and stages never change, a field gets another value.
So a directive adds what the stages that it changed say from then on; what it left alone costs nothing. The fields are those of
the dataclasses, so that a new field is included.
"""

from __future__ import annotations

import operator
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice, pairwise
from typing import TYPE_CHECKING, Any, TypeVar

from tedsl.record import record

if TYPE_CHECKING:
    from tedsl.lang.operation import Operation
    from tedsl.schedule.state import ScheduleState, StageState

K = TypeVar("K")
Fields = dict[str, Any]
OWN = frozenset(("schedule", "recorder", "undone", "stage_map", "_order"))  # of its place, or derived; not what a state says


@record(eq=False)
class Snapshot:
    """The fields of a schedule. operations, names, objects: how many there were; what came later was put at the end."""

    schedule: Fields
    operations: int
    names: int
    objects: int


class History:
    """Snapshot number k is the schedule after its first k directives.

    said: for each stage its fields, each with the number of the first snapshot in which it has them, in order.
    changed: the stages that changed since the schedule was settled. rest: the settled state, between directives: the last
    snapshot, or the result of `normalize`. unrecorded: the fields of stages in `rest` that the last snapshot does not have.
    operations: the stages of all operations, in the order in which they were made.
    """

    __slots__ = ("changed", "operations", "rest", "said", "snapshots", "unrecorded")

    def __init__(self) -> None:
        self.snapshots: list[Snapshot] = []
        self.said: dict[StageState, list[tuple[int, Fields]]] = {}
        self.changed: set[StageState] = set()
        self.rest: Snapshot | None = None
        self.operations: Mapping[Operation, StageState] = {}
        self.unrecorded: dict[StageState, Fields] = {}

    def take(self, state: ScheduleState) -> None:
        """Appends a snapshot of `state`."""
        self.settle(state)
        assert self.rest is not None
        for stage, fields in self.unrecorded.items():
            self.said.setdefault(stage, []).append((len(self.snapshots), fields))
        self.unrecorded = {}
        self.snapshots.append(self.rest)

    def settle(self, state: ScheduleState) -> None:
        """Sets `rest` to the present `state`, without a directive."""
        recorder = state.recorder
        self.unrecorded.update([(stage, stage.__dict__.copy()) for stage in self.changed])
        self.changed, self.operations = set(), state.stage_map
        self.rest = Snapshot(fields_of(state), len(state.stage_map), len(recorder.names), len(recorder.objects))

    # --- what was said ---

    def fields(self, stage: StageState, number: int) -> Fields | None:
        """The fields of a stage in snapshot `number`; None if it was not there."""
        records = self.said.get(stage, ())
        at = bisect_right(records, number, key=lambda record: record[0])
        return records[at - 1][1] if at else None

    def stages(self, number: int) -> Iterator[tuple[StageState, Fields]]:
        """The stages and versions in snapshot `number`, with their fields."""
        return self._with_fields(self.snapshots[number], lambda stage: self.fields(stage, number))

    def _at_rest(self, stage: StageState) -> Fields | None:
        records = self.said.get(stage)
        return self.unrecorded.get(stage, records[-1][1] if records else None)

    def _with_fields(self, snapshot: Snapshot, find: Callable[[StageState], Fields | None]) \
            -> Iterator[tuple[StageState, Fields]]:
        waiting = list(reversed(snapshot.schedule["stages"]))
        while waiting:
            stage = waiting.pop()
            fields = find(stage)
            assert fields is not None, "a snapshot holds the fields of its stages"
            yield stage, fields
            waiting += reversed(fields["versions"])

    def first(self, stage: StageState, holds: Callable[[Fields], bool]) -> int | None:
        """The number of the directive after which `holds` first returned True for the stage; None if it did from the start."""
        return next((number for number, fields in self.said.get(stage, ()) if holds(fields)), None) or None

    def last_change(self, stage: StageState, read: Callable[[Fields], tuple[object, ...]]) -> int | None:
        """The number of the directive that last changed the result of `read` for the stage; None if none did."""
        records = self.said.get(stage, [])
        for (_, before), (number, now) in reversed(list(pairwise(records))):
            if not _same_items(read(now), read(before)):
                return number
        return records[0][0] or None if records else None  # what a directive made was changed by it

    # --- undo ---

    def return_to(self, state: ScheduleState, number: int | None = None) -> None:
        """Restores `state` from snapshot `number`, counted from the end if negative; None: from `rest`.

        Stages created since are marked `undone`.
        """
        now = state.with_versions()
        if number is None:
            assert self.rest is not None, "create_schedule takes the first one"
            snapshot, those = self.rest, self._with_fields(self.rest, self._at_rest)
        else:
            number %= len(self.snapshots)
            snapshot, those = self.snapshots[number], self.stages(number)
        state.__dict__.update(snapshot.schedule, stage_map=dict(islice(self.operations.items(), snapshot.operations)))
        then = dict(those)
        for stage, fields in then.items():
            stage.__dict__.update({name: value for name, value in fields.items() if name not in OWN}, undone=False)
        for stage in now:
            stage.__dict__["undone"] = stage not in then
        self.changed = set()

    def forget_after(self, number: int) -> None:
        """Drops the snapshots after `number`, which is where the schedule is."""
        self.operations = dict(islice(self.operations.items(), self.snapshots[number].operations))
        del self.snapshots[number + 1:]
        for stage, records in list(self.said.items()):
            while records and records[-1][0] > number:
                records.pop()
            if not records:
                del self.said[stage]
        self.rest, self.unrecorded = self.snapshots[number], {}

    def copied(self, twins: Mapping[StageState, StageState]) -> History:
        """This history for the copies `twins` of its stages."""
        copy, done = History(), {}

        def moved(fields: Fields) -> Fields:
            if id(fields) not in done:
                done[id(fields)] = with_twins(fields, twins)
            return done[id(fields)]

        def twin(snapshot: Snapshot) -> Snapshot:
            return Snapshot(moved(snapshot.schedule), snapshot.operations, snapshot.names, snapshot.objects)

        copy.snapshots = list(map(twin, self.snapshots))
        copy.said = {twins.get(stage, stage): [(number, moved(fields)) for number, fields in records]
                     for stage, records in self.said.items()}
        copy.operations = with_twins(self.operations, twins)
        copy.changed = set(_twins_of(self.changed, twins))
        copy.rest = None if self.rest is None else copy.snapshots[-1] if self.rest is self.snapshots[-1] else twin(self.rest)
        copy.unrecorded = {twins.get(stage, stage): moved(fields) for stage, fields in self.unrecorded.items()}
        return copy


def fields_of(owner: object) -> Fields:
    """The fields of a schedule or stage."""
    return {name: value for name, value in owner.__dict__.items() if name not in OWN}


def with_twins(fields: Mapping[K, Any], twins: Mapping[StageState, StageState]) -> dict[K, Any]:
    """A copy of `fields` in which stages are replaced by their `twins`."""
    return {name: value if type(value) in _PLAIN else _moved(value, twins) for name, value in fields.items()}


_PLAIN: set[type] = set()  # of values seen that are neither stages nor made of values


def _moved(value: Any, twins: Mapping[StageState, StageState]) -> Any:
    """`value` with every stage replaced by its twin."""
    if type(value) is tuple:
        return tuple(_twins_of(value, twins)) if value else value
    if type(value) is dict:
        return dict(zip(_twins_of(value, twins), _twins_of(value.values(), twins)))
    return _twin(value, twins)


def _twins_of(values: Iterable[Any], twins: Mapping[StageState, StageState]) -> list[Any]:
    return [value if type(value) in _PLAIN else _twin(value, twins) for value in values]


def _twin(value: Any, twins: Mapping[StageState, StageState]) -> Any:
    if hasattr(type(value), "loop_names"):  # a stage
        return twins.get(value, value)
    if type(value) not in (tuple, dict):
        _PLAIN.add(type(value))
    return value


def _same_items(a: Any, b: Any) -> bool:
    return len(a) == len(b) and all(map(operator.is_, a, b))
