"""The fastest device for each part, then corrections where they count: on the critical path, or anywhere.

Source: the adaptive partition of the package's docstring. A part that is not on the path cannot shorten the whole by itself;
what sends much to its neighbour is better moved together with it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from tedsl.graph.placement.methods.measuring import Measure, measured_by
from tedsl.graph.placement.methods.simple import fastest, single
from tedsl.graph.placement.problem import Assignment, Problem, schedule_of

Neighbours = Callable[[Problem, Assignment], Iterator[Assignment]]


def critical_path(problem: Problem, measure: Measure | None = None, rounds: int = 3) -> Assignment:
    """The fastest each, then parts of the critical path moved to other devices while the whole takes less time.

    rounds: a change that gains nothing is kept for so many rounds, as it may make room for one that does.
    """
    return _improved(problem, fastest(problem), _on_the_path, measured_by(problem, measure), rounds)


def moves(problem: Problem, measure: Measure | None = None, rounds: int = 3) -> Assignment:
    """As `critical_path`, then any part, and any two neighbours together, are moved; from the best single device too."""
    time = measured_by(problem, measure)
    starts = (critical_path(problem, time, rounds), single(problem, time))
    return min([_improved(problem, start, _anywhere, time, rounds) for start in starts], key=time)


def _improved(problem: Problem, start: Assignment, neighbours: Neighbours, time: Measure, rounds: int) -> Assignment:
    """The best assignment on a walk from neighbour to best neighbour, none of them twice."""
    best = here = start
    seen, idle = {start}, 0
    while idle < rounds:
        candidates = [one for one in dict.fromkeys(neighbours(problem, here)) if one not in seen]
        if not candidates:
            break
        here = min(candidates, key=time)
        seen.add(here)
        idle = 0 if time(here) < time(best) else idle + 1
        best = min(best, here, key=time)
    return best


def _on_the_path(problem: Problem, here: Assignment) -> Iterator[Assignment]:
    for part in schedule_of(problem, here).critical_path:
        yield from _moved(problem, here, (part,))


def _anywhere(problem: Problem, here: Assignment) -> Iterator[Assignment]:
    for part in range(len(here)):
        yield from _moved(problem, here, (part,))
    for edge in problem.edges:
        yield from _moved(problem, here, (edge.source, edge.target))


def _moved(problem: Problem, here: Assignment, parts: tuple[int, ...]) -> Iterator[Assignment]:
    """The assignments with these parts on one other device each."""
    for device in range(len(problem.devices)):
        made = tuple([device if part in parts else of for part, of in enumerate(here)])
        if made != here:
            yield made
