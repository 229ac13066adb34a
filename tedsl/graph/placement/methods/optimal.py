"""The least time that any placement takes: by dynamic programming from waist to waist, between them by an integer program.

A waist is a part at which nothing else may run: each other part needs it or is needed by it, and no edge leads past it. Every
part of a chain is one, and so is what joins the branches of a block. Given the devices of two waists, the parts between them
are a problem of their own. Where those have branches, scipy's milp solves it, and chooses the order of parts on a device too.

x[p, d] in {0, 1}: part p is on device d; t[p] its begin;
y[e, a, b] >= x[p, a] + x[q, b] - 1 for an edge e from p to q; o[p, q] in {0, 1} the order of two parts of which neither needs
the other. Least C with, for all parts, edges and pairs of parts:

    t[p] + sum_d x[p, d] s[p, d] <= C            t[q] >= t[p] + sum_d x[p, d] s[p, d] + sum_ab y[e, a, b] sent(e, a, b)
    t[q] >= t[p] + s[p, d] - M (3 - x[p, d] - x[q, d] - o[p, q])      and with p and q exchanged, 1 - o for o
    sum_p x[p, d] s[p, d] <= C                   which follows, and says much to who solves it

What the heuristics find bounds C. So each part begins in a window, between what it needs and what needs it; M is the least that
the windows of p and q allow, and parts whose windows do not meet have no order.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tedsl.errors import ArgumentError
from tedsl.graph.placement.methods.critical_path import moves
from tedsl.graph.placement.methods.heft import heft
from tedsl.graph.placement.problem import Assignment, Edge, Order, Problem, makespan
from tedsl.record import record

_ROOM = 1e-3  # by which bounds are wider than they need be: the numbers of the solver are not exact


def optimal(problem: Problem) -> tuple[Assignment, Order]:
    """The assignment of the least makespan, and the order in which its parts are begun.

    Raises ArgumentError if scipy is not installed, which networks with branches need.
    """
    devices = range(len(problem.devices))
    if len(devices) == 1:
        return (0,) * len(problem.parts), problem.order
    ends = _waists(problem)
    if not ends or ends[-1] != len(problem.parts) - 1:
        ends.append(len(problem.parts))  # the last parts, which end together in none
    best: dict[int | None, _Found] = {None: _Found(0.0, (), ())}  # by the device of the waist before
    begin = 0
    for end in ends:
        stop = min(end + 1, len(problem.parts))
        after: dict[int | None, _Found] = {}
        for last in devices if end < stop else (None,):
            ways = [found.then(_section(problem, begin, stop, device, last)) for device, found in best.items()]
            after[last] = min(ways, key=lambda way: way.seconds)
        best, begin = after, stop
    least = min(best.values(), key=lambda found: found.seconds)
    return least.assignment, least.order


@record
class _Found:
    """The least seconds of the first parts, and how."""

    seconds: float
    assignment: Assignment
    order: Order

    def then(self, more: _Found) -> _Found:
        """With the parts after these, which begin when all of these have ended."""
        count = len(self.assignment)
        return _Found(self.seconds + more.seconds, self.assignment + more.assignment,
                      self.order + tuple([count + part for part in more.order]))


def _waists(problem: Problem) -> list[int]:
    needed, parts = _needs(problem), range(len(problem.parts))
    passed = {part for edge in problem.edges for part in range(edge.source + 1, edge.target)}
    return [part for part in parts if part not in passed and len(needed[part]) == part
            and all(part in needed[later] for later in parts[part + 1:])]


def _section(problem: Problem, begin: int, stop: int, before: int | None, last: int | None) -> _Found:
    """The best for the parts from `begin` to before `stop`, where the waist before them is on the device `before` and the last
    of them on the device `last`; None: where there is no such waist, or any device will do.
    """
    first = begin if before is None else begin - 1  # the waist takes no time here: it has ended
    seconds = problem.seconds[begin:stop] if before is None else ((0.0,) * len(problem.devices), *problem.seconds[begin:stop])
    edges = tuple([Edge(edge.source - first, edge.target - first, edge.bytes) for part in range(begin, stop)
                   for edge in problem.into[part]])
    section = Problem(problem.parts[first:stop], problem.devices, seconds, edges, problem.transfers)
    fixed = {at: device for at, device in ((0, before), (stop - first - 1, last)) if device is not None}
    known = min(_known(section, fixed), key=lambda one: makespan(section, one))
    free = len(section.parts) - len(fixed)
    assignment, order_there = _by_milp(section, fixed, known) if free else (known, section.order)
    here = begin - first
    order = tuple([part - here for part in order_there if part >= here])
    return _Found(makespan(section, assignment, order_there), assignment[here:], order)


def _known(problem: Problem, fixed: Mapping[int, int]) -> Iterator[Assignment]:
    """Assignments that are easily found, with some parts on fixed devices."""
    everywhere = [(device,) * len(problem.parts) for device in range(len(problem.devices))]
    for one in (*everywhere, moves(problem), heft(problem)):
        yield tuple([fixed.get(part, device) for part, device in enumerate(one)])


def _needs(problem: Problem) -> list[set[int]]:
    """The parts that each part needs, directly or not."""
    needed: list[set[int]] = []
    for edges in problem.into:
        needed.append({other for edge in edges for other in (edge.source, *needed[edge.source])})
    return needed


class _Rows:
    """Linear constraints row by row: least <= sum(coefficients * variables) <= most."""

    def __init__(self) -> None:
        self.rows: list[dict[int, float]] = []
        self.least: list[float] = []
        self.most: list[float] = []

    def add(self, least: float, *terms: tuple[int, float], most: float = math.inf) -> None:
        row: dict[int, float] = {}
        for variable, coefficient in terms:
            row[variable] = row.get(variable, 0.0) + coefficient
        self.rows.append(row)
        self.least.append(least)
        self.most.append(most)


class _Windows:
    """Between which times each part begins in a placement that takes at most `most`; all times are divided by `unit`.

    unit: so that numbers are of order 1.
    """

    def __init__(self, problem: Problem, most: float) -> None:
        self.unit = max(max(row) for row in problem.seconds) or 1.0
        self.most = most / self.unit * (1 + _ROOM) + _ROOM
        self.seconds = [[time / self.unit for time in row] for row in problem.seconds]
        parts = range(len(problem.parts))
        least = [min(row) for row in self.seconds]
        self.first, to_end = [0.0] * len(parts), list(least)
        for part in parts:
            self.first[part] = max([self.first[edge.source] + least[edge.source] for edge in problem.into[part]], default=0.0)
        for part in reversed(parts):
            to_end[part] += max([to_end[edge.target] for edge in problem.out_of[part]], default=0.0)
        self.last = [max(self.most - length, first) for length, first in zip(to_end, self.first)]

    def reach(self, p: int, q: int, device: int) -> float:
        """How far p, begun last on `device`, reaches beyond the first begin of q."""
        return self.last[p] + self.seconds[p][device] - self.first[q]

    def may_meet(self, p: int, q: int) -> bool:
        devices = range(len(self.seconds[0]))
        return all(any(self.reach(one, other, device) > 0 for device in devices) for one, other in ((p, q), (q, p)))


def _by_milp(problem: Problem, fixed: Mapping[int, int], known: Assignment) -> tuple[Assignment, Order]:
    """The best with some parts on fixed devices; known: an assignment with these that bounds it."""
    try:
        from scipy.optimize import Bounds, LinearConstraint, milp
        from scipy.sparse import csr_array
    except ImportError:
        raise ArgumentError('place: the method "optimal" of a network with branches needs scipy, which is not installed',
                            hint='pip install scipy, or choose method="moves"') from None
    windows = _Windows(problem, makespan(problem, known))
    parts, devices, seconds = len(problem.parts), len(problem.devices), windows.seconds
    needed = _needs(problem)
    apart = [(p, q) for q in range(parts) for p in range(q) if p not in needed[q] and windows.may_meet(p, q)]
    pairs = [(a, b) for a in range(devices) for b in range(devices) if a != b]
    x, t, y = 0, parts * devices, parts * devices + parts
    o = y + len(problem.edges) * len(pairs)
    last = o + len(apart)
    rows = _Rows()
    for p in range(parts):
        own = [(x + p * devices + d, seconds[p][d]) for d in range(devices)]
        rows.add(1, *[(x + p * devices + d, 1.0) for d in range(devices)], most=1)
        rows.add(0, (last, 1.0), (t + p, -1.0), *[(variable, -time) for variable, time in own])
    for d in range(devices):
        rows.add(0, (last, 1.0), *[(x + p * devices + d, -seconds[p][d]) for p in range(parts)])
    for e, edge in enumerate(problem.edges):
        sent = []
        for k, (a, b) in enumerate(pairs):
            variable = y + e * len(pairs) + k
            sent.append((variable, -problem.transfers.time(edge.bytes, a, b) / windows.unit))
            rows.add(-1, (variable, 1.0), (x + edge.source * devices + a, -1.0), (x + edge.target * devices + b, -1.0))
        own = [(x + edge.source * devices + d, -seconds[edge.source][d]) for d in range(devices)]
        rows.add(0, (t + edge.target, 1.0), (t + edge.source, -1.0), *own, *sent)
    for k, (p, q) in enumerate(apart):
        for d in range(devices):
            m, n = max(windows.reach(p, q, d), _ROOM), max(windows.reach(q, p, d), _ROOM)
            on_p, on_q = x + p * devices + d, x + q * devices + d
            rows.add(seconds[p][d] - 3 * m, (t + q, 1.0), (t + p, -1.0), (on_p, -m), (on_q, -m), (o + k, -m))
            rows.add(seconds[q][d] - 2 * n, (t + p, 1.0), (t + q, -1.0), (on_p, -n), (on_q, -n), (o + k, n))
    places = [(r, c, v) for r, row in enumerate(rows.rows) for c, v in row.items()]
    matrix = csr_array(([v for _, _, v in places], ([r for r, _, _ in places], [c for _, c, _ in places])),
                       shape=(len(rows.rows), last + 1))
    whole = [1] * t + [0] * parts + [0] * (o - y) + [1] * len(apart) + [0]
    least = [0.0] * t + windows.first + [0.0] * (last + 1 - y)
    most = [1.0] * t + windows.last + [1.0] * (last - y) + [windows.most]
    for p, device in fixed.items():
        least[x + p * devices + device] = 1.0
    for presolve in (True, False):  # HiGHS fails now and then on what its presolve makes, not on the same problem without
        found: Any = milp([0.0] * last + [1.0], constraints=LinearConstraint(matrix, rows.least, rows.most), integrality=whole,
                          bounds=Bounds(least, most), options={"mip_rel_gap": 0.0, "presolve": presolve})
        if found.x is not None:
            break
    else:
        raise ArgumentError(f"place: scipy's milp found no placement: {found.message}", hint='choose method="moves"')
    chosen = tuple([max(range(devices), key=lambda d: found.x[x + p * devices + d]) for p in range(parts)])
    order = _by_begin(problem, found.x[t:y])
    return (chosen, order) if makespan(problem, chosen, order) <= makespan(problem, known) else (known, problem.order)


def _by_begin(problem: Problem, begin: Sequence[float]) -> Order:
    """The parts by the time at which they begin; sources first where times are equal but for rounding."""
    missing = [len(edges) for edges in problem.into]
    ready = [(begin[part], part) for part, count in enumerate(missing) if not count]
    heapq.heapify(ready)
    order: list[int] = []
    while ready:
        _, part = heapq.heappop(ready)
        order.append(part)
        for edge in problem.out_of[part]:
            missing[edge.target] -= 1
            if not missing[edge.target]:
                heapq.heappush(ready, (begin[edge.target], edge.target))
    return tuple(order)
