"""Placements that look at no more than the times of single parts."""

from __future__ import annotations

from tedsl.graph.placement.methods.measuring import Measure, measured_by
from tedsl.graph.placement.problem import Assignment, Problem


def single(problem: Problem, measure: Measure | None = None, rounds: int = 1) -> Assignment:
    """All parts on the one device that takes the least time for all."""
    time = measured_by(problem, measure)
    alone = [(device,) * len(problem.parts) for device in range(len(problem.devices))]
    return min(alone, key=time)


def fastest(problem: Problem, measure: Measure | None = None, rounds: int = 1) -> Assignment:
    """Each part on the device that is fastest for it."""
    return tuple([min(range(len(times)), key=lambda device: times[device]) for times in problem.seconds])
