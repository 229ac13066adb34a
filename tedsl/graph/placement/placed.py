"""A placement: the device of each part, when it begins and ends, and why it is there."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

from tedsl.display.markup import Markup
from tedsl.display.page import fragment
from tedsl.display.timeline import Bar, timeline_of
from tedsl.errors import ArgumentError
from tedsl.graph.placement.problem import Assignment, Order, Problem, Times, makespan, schedule_of
from tedsl.graph.placement.profile import Profile
from tedsl.graph.placement.run import Runner


class Placement:
    """What `place` returns. makespan: the estimated seconds of one input. devices: of each part, by name. order: in which parts
    are begun; None: by their distance to the end of the network.
    """

    def __init__(self, problem: Problem, assignment: Assignment, method: str, profile: Profile | None = None,
                 order: Order | None = None) -> None:
        self.problem, self.assignment, self.method, self.profile, self.order = problem, assignment, method, profile, order

    @cached_property
    def times(self) -> Times:
        return schedule_of(self.problem, self.assignment, self.order)

    @property
    def makespan(self) -> float:
        return self.times.makespan

    @property
    def devices(self) -> dict[str, str]:
        return {part: self.problem.devices[at] for part, at in zip(self.problem.parts, self.assignment)}

    @cached_property
    def reasons(self) -> dict[str, str]:
        """For each part, in milliseconds, what it takes here and on other devices, and how much longer the whole would take if
        the part were there; "critical" for those of the critical path.
        """
        return {name: self._reason(part) for part, name in enumerate(self.problem.parts)}

    def _reason(self, part: int) -> str:
        here, names, own = self.assignment[part], self.problem.devices, self.problem.seconds[part]
        said = [f"{own[here] * 1e3:.4g} here"]
        for device, name in enumerate(names):
            if device != here:
                moved = (*self.assignment[:part], device, *self.assignment[part + 1:])
                more = makespan(self.problem, moved, self.order) - self.makespan
                said.append(f"{own[device] * 1e3:.4g} on {name}: the whole {more * 1e3:+.4g}")
        return "; ".join([*(["critical"] if part in self.times.critical_path else []), *said])

    @cached_property
    def runner(self) -> Runner:
        """What runs the parts. Raises ArgumentError for a placement of numbers alone."""
        if self.profile is None:
            raise ArgumentError("run: this is the placement of a problem, which has no parts to run",
                                hint="place(placement.split(graph), devices)")
        return Runner(self.profile.parts, [self.profile.devices[at] for at in self.assignment])

    def run(self, *arrays: Any, batches: int | None = None, feed: Callable[..., Any] | None = None,
            fetch: Callable[..., Any] | None = None) -> Any:
        """Runs the network over actors, a thread for each device.

        arrays: one input of the network; returns its result, a tuple if there are several. Or feed(number, *inputs), which
        fills the arrays of a batch and returns False when there are no more, and fetch(number, *results), for a pipeline:
        devices work on different batches at once. Returns the report of the run.
        """
        return self.runner.one(arrays) if feed is None and fetch is None and batches is None \
            else self.runner.many(arrays, batches, feed, fetch)

    def __str__(self) -> str:
        width = max(map(len, (*self.problem.parts, "part")))
        rows = [f"{name:{width}}  {self.devices[name]:10} {self.times.begin[at] * 1e3:9.4f} {self.times.end[at] * 1e3:9.4f}  "
                f"{self.reasons[name]}" for at, name in enumerate(self.problem.parts)]
        return "\n".join([f"{self.method}: {self.makespan * 1e3:.4g} ms", f"{'part':{width}}  {'device':10} {'begin':>9} "
                          f"{'end':>9}  why (times in ms)", *rows])

    def __repr__(self) -> str:
        return f"<Placement of {len(self.assignment)} parts by {self.method}: {self.makespan * 1e3:.4g} ms>"

    def _repr_svg_(self) -> Markup:
        """The Gantt chart: a row for each device, a bar for each part."""
        bars = [Bar(self.problem.devices[self.assignment[part]], self.times.begin[part] * 1e3, self.times.end[part] * 1e3, name)
                for part, name in enumerate(self.problem.parts)]
        return timeline_of(bars, f"{self.method}: milliseconds")

    def _repr_html_(self) -> str:
        return fragment(repr(self), self._repr_svg_())
