"""The question of a placement in numbers, what each part takes on each device and what is sent between parts; and the times of
an answer.

An answer says for each part its device. A device computes one part at a time. Parts are begun in a given order, each as soon
as its device is free and its inputs are there; where no order is given, in that of their distance to the end of the network
(HEFT's upward rank).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

from tedsl.errors import ArgumentError
from tedsl.record import record

Assignment = tuple[int, ...]  # for each part the number of its device
Order = tuple[int, ...]  # the parts in an order in which sources come before targets


@record
class Edge:
    """`bytes` that part number `target` needs of part number `source`. Sources come before targets."""

    source: int
    target: int
    bytes: int = 0


@record
class Transfers:
    """What sending takes, by pairs of devices: seconds[from][to] + bytes * per_byte[from][to]; nothing on one device."""

    seconds: tuple[tuple[float, ...], ...]
    per_byte: tuple[tuple[float, ...], ...]

    def time(self, count: int, source: int, target: int) -> float:
        """The seconds that `count` bytes take from one device to another."""
        return 0.0 if source == target else self.seconds[source][target] + count * self.per_byte[source][target]

    @staticmethod
    def free(devices: int) -> Transfers:
        """Devices that share one memory."""
        nothing = tuple([(0.0,) * devices] * devices)
        return Transfers(nothing, nothing)


@record(eq=False)
class Problem:
    """parts, devices: their names. seconds[part][device]. Parts stand in an order in which sources come before targets."""

    parts: tuple[str, ...]
    devices: tuple[str, ...]
    seconds: tuple[tuple[float, ...], ...]
    edges: tuple[Edge, ...]
    transfers: Transfers

    def __post_init__(self) -> None:
        count = len(self.devices)
        if not self.parts or not count:
            raise ArgumentError("Problem: there are no parts or no devices", hint="list at least one of each")
        if len(self.seconds) != len(self.parts) or any(len(row) != count for row in self.seconds):
            raise ArgumentError(f"Problem: seconds has {len(self.seconds)} rows; it has one for each of {len(self.parts)} "
                                f"parts, with a time for each of {count} devices")
        times = [time for row in (*self.seconds, *self.transfers.seconds, *self.transfers.per_byte) for time in row]
        if not all(isinstance(time, (int, float)) and 0 <= time < float("inf") for time in times):
            raise ArgumentError("Problem: a time is negative, not finite, or no number")
        if any(len(rows) != count or any(len(row) != count for row in rows)
               for rows in (self.transfers.seconds, self.transfers.per_byte)):
            raise ArgumentError(f"Problem: transfers are not those of {count} devices", hint=f"Transfers.free({count})")
        strangers = [edge for edge in self.edges if not isinstance(edge, Edge)]
        if strangers:
            raise ArgumentError(f"Problem: {strangers[0]!r} is no Edge", hint="Edge(source, target, bytes)")
        wrong = [edge for edge in self.edges if not 0 <= edge.source < edge.target < len(self.parts) or edge.bytes < 0]
        if wrong:
            raise ArgumentError(f"Problem: {wrong[0]} does not lead from a part to a later one",
                                hint="number the parts so that sources come before targets")

    @cached_property
    def into(self) -> tuple[tuple[Edge, ...], ...]:
        """The edges that lead to each part."""
        return tuple([tuple([edge for edge in self.edges if edge.target == part]) for part in range(len(self.parts))])

    @cached_property
    def out_of(self) -> tuple[tuple[Edge, ...], ...]:
        """The edges that lead from each part."""
        return tuple([tuple([edge for edge in self.edges if edge.source == part]) for part in range(len(self.parts))])

    @cached_property
    def order(self) -> Order:
        """The parts by their mean distance to the end, farthest first: the order in which they are begun."""
        count = len(self.devices)
        pairs = [(a, b) for a in range(count) for b in range(count) if a != b] or [(0, 0)]
        rank = [0.0] * len(self.parts)
        for part in reversed(range(len(self.parts))):
            after = [rank[edge.target] + sum(self.transfers.time(edge.bytes, a, b) for a, b in pairs) / len(pairs)
                     for edge in self.out_of[part]]
            rank[part] = sum(self.seconds[part]) / count + max(after, default=0.0)
        depth = [0] * len(self.parts)  # decides between equal ranks, of parts that take no time
        for part in range(len(self.parts)):
            depth[part] = max([depth[edge.source] + 1 for edge in self.into[part]], default=0)
        return tuple(sorted(range(len(self.parts)), key=lambda part: (-rank[part], depth[part], part)))

    def check(self, assignment: Sequence[int]) -> Assignment:
        """The assignment; ArgumentError unless it has a device for each part."""
        if len(assignment) != len(self.parts) or not all(0 <= device < len(self.devices) for device in assignment):
            raise ArgumentError(f"the assignment {tuple(assignment)} does not name one of {len(self.devices)} devices for each "
                                f"of {len(self.parts)} parts")
        return tuple(assignment)


@record
class Times:
    """When parts begin and end, in seconds, and the part that each waited for last: a source, one before it on its device, or
    None.
    """

    begin: tuple[float, ...]
    end: tuple[float, ...]
    waited_for: tuple[int | None, ...]

    @property
    def makespan(self) -> float:
        return max(self.end)

    @property
    def critical_path(self) -> tuple[int, ...]:
        """The parts that decide when the last one ends, first to last."""
        part: int | None = max(range(len(self.end)), key=lambda one: self.end[one])
        path: list[int] = []
        while part is not None:
            path.append(part)
            part = self.waited_for[part]
        return tuple(reversed(path))


def schedule_of(problem: Problem, assignment: Sequence[int], order: Sequence[int] | None = None) -> Times:
    """The times of a placement. order: in which parts are begun, by default `problem.order`.

    Raises ArgumentError unless the assignment has a device for each part, and for an order that lacks a part or has a target
    before its source.
    """
    if order is not None:
        place = {part: at for at, part in enumerate(order)}
        if sorted(order) != list(range(len(problem.parts))) or any(place[edge.source] > place[edge.target]
                                                                   for edge in problem.edges):
            raise ArgumentError(f"the order {tuple(order)} does not name each of {len(problem.parts)} parts once, sources "
                                "before targets")
    return _times(problem, problem.check(assignment), order)


def _times(problem: Problem, assignment: Sequence[int], order: Sequence[int] | None) -> Times:
    count = len(problem.parts)
    begin, end = [0.0] * count, [0.0] * count
    waited: list[int | None] = [None] * count
    last: list[int | None] = [None] * len(problem.devices)
    for part in problem.order if order is None else order:
        device = assignment[part]
        before = last[device]
        at, why = (end[before], before) if before is not None else (0.0, None)
        for edge in problem.into[part]:
            there = end[edge.source] + problem.transfers.time(edge.bytes, assignment[edge.source], device)
            if there > at or why is None:
                at, why = max(at, there), edge.source
        begin[part], end[part], waited[part] = at, at + problem.seconds[part][device], why
        last[device] = part
    return Times(tuple(begin), tuple(end), tuple(waited))


def makespan(problem: Problem, assignment: Sequence[int], order: Sequence[int] | None = None) -> float:
    """The seconds from the begin of the first part to the end of the last one."""
    return _times(problem, assignment, order).makespan
