"""What a placement takes: estimated from the times of its parts, or measured."""

from __future__ import annotations

from collections.abc import Callable

from tedsl.errors import ArgumentError
from tedsl.graph.placement.problem import Assignment, Problem, makespan

Measure = Callable[[Assignment], float]  # the seconds of a whole run


def measured_by(problem: Problem, measure: Measure | None) -> Measure:
    """The function that tells the seconds of an assignment; each is measured once."""
    known: dict[Assignment, float] = {}

    def time(assignment: Assignment) -> float:
        if assignment not in known:
            seconds = makespan(problem, assignment) if measure is None else measure(assignment)
            if isinstance(seconds, bool) or not isinstance(seconds, (int, float)) or not seconds >= 0:
                raise ArgumentError(f"place: measure returned {seconds!r} for {assignment}, no number from 0",
                                    hint="it returns the seconds of a whole run")
            known[assignment] = seconds
        return known[assignment]

    return time
