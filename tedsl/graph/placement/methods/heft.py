"""HEFT: parts in the order of their distance to the end, each on the device on which it ends first (Topcuoglu et al., 2002)."""

from __future__ import annotations

from tedsl.graph.placement.methods.measuring import Measure
from tedsl.graph.placement.problem import Assignment, Problem


def heft(problem: Problem, measure: Measure | None = None, rounds: int = 1) -> Assignment:
    """Heterogeneous earliest finish time. It takes times for what they are, and measures none."""
    count = len(problem.parts)
    chosen, end = [0] * count, [0.0] * count
    free = [0.0] * len(problem.devices)
    for part in problem.order:
        ends = []
        for device in range(len(problem.devices)):
            there = [end[edge.source] + problem.transfers.time(edge.bytes, chosen[edge.source], device)
                     for edge in problem.into[part]]
            ends.append(max([free[device], *there]) + problem.seconds[part][device])
        device = min(range(len(ends)), key=lambda one: ends[one])
        chosen[part], end[part], free[device] = device, ends[device], ends[device]
    return tuple(chosen)
