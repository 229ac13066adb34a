"""The least time that any placement takes: chains by dynamic programming, other networks by an integer program (scipy's milp).

The integer program chooses the order of parts on a device too. x[p, d] in {0, 1}: part p is on device d; t[p] its begin;
y[e, a, b] >= x[p, a] + x[q, b] - 1 for an edge e from p to q; o[p, q] in {0, 1} the order of two parts of which neither needs
the other. Least C with, for all parts, edges and pairs of parts (M: a bound of the whole):

    t[p] + sum_d x[p, d] s[p, d] <= C            t[q] >= t[p] + sum_d x[p, d] s[p, d] + sum_ab y[e, a, b] sent(e, a, b)
    t[q] >= t[p] + s[p, d] - M (3 - x[p, d] - x[q, d] - o[p, q])      and with p and q exchanged, 1 - o for o
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from typing import Any

from tedsl.errors import ArgumentError
from tedsl.graph.placement.problem import Assignment, Edge, Order, Problem


def optimal(problem: Problem) -> tuple[Assignment, Order]:
    """The assignment of the least makespan, and the order in which its parts are begun.

    Raises ArgumentError if scipy is not installed, which networks with branches need.
    """
    if len(problem.devices) == 1:
        return (0,) * len(problem.parts), problem.order
    return (_of_chain(problem), problem.order) if is_chain(problem) else _by_milp(problem)


def is_chain(problem: Problem) -> bool:
    """Tells whether each part but the first needs the one before it, and no other."""
    return all([edge.source for edge in edges] == ([part - 1] if part else []) for part, edges in enumerate(problem.into))


def _of_chain(problem: Problem) -> Assignment:
    devices = range(len(problem.devices))
    best: list[tuple[float, Assignment]] = [(problem.seconds[0][device], (device,)) for device in devices]
    for part in range(1, len(problem.parts)):
        (edge,) = problem.into[part]
        best = [min((time + problem.transfers.time(edge.bytes, chosen[-1], device) + problem.seconds[part][device],
                     (*chosen, device)) for time, chosen in best) for device in devices]
    return min(best)[1]


def _needs(problem: Problem) -> list[set[int]]:
    """The parts that each part needs, directly or not."""
    needed: list[set[int]] = []
    for edges in problem.into:
        needed.append({other for edge in edges for other in (edge.source, *needed[edge.source])})
    return needed


class _Rows:
    """Linear constraints row by row: sum(coefficients * variables) >= least."""

    def __init__(self) -> None:
        self.rows: list[dict[int, float]] = []
        self.least: list[float] = []

    def add(self, least: float, *terms: tuple[int, float]) -> None:
        row: dict[int, float] = {}
        for variable, coefficient in terms:
            row[variable] = row.get(variable, 0.0) + coefficient
        self.rows.append(row)
        self.least.append(least)


def _by_milp(problem: Problem) -> tuple[Assignment, Order]:
    try:
        from scipy.optimize import Bounds, LinearConstraint, milp
        from scipy.sparse import csr_array
    except ImportError:
        raise ArgumentError('place: the method "optimal" of a network with branches needs scipy, which is not installed',
                            hint='pip install scipy, or choose method="moves"') from None
    parts, devices = len(problem.parts), len(problem.devices)
    unit = max(max(row) for row in problem.seconds) or 1.0  # so that numbers are of order 1
    seconds = [[time / unit for time in row] for row in problem.seconds]
    bound = sum(max(row) for row in seconds) + sum(_longest(problem, edge) for edge in problem.edges) / unit
    needed = _needs(problem)
    apart = [(p, q) for q in range(parts) for p in range(q) if p not in needed[q]]
    pairs = [(a, b) for a in range(devices) for b in range(devices) if a != b]
    x, t, y = 0, parts * devices, parts * devices + parts
    o = y + len(problem.edges) * len(pairs)
    last = o + len(apart)
    rows = _Rows()
    for p in range(parts):
        own = [(x + p * devices + d, seconds[p][d]) for d in range(devices)]
        rows.add(1, *[(x + p * devices + d, 1.0) for d in range(devices)])
        rows.add(-1, *[(x + p * devices + d, -1.0) for d in range(devices)])
        rows.add(0, (last, 1.0), (t + p, -1.0), *[(variable, -time) for variable, time in own])
    for e, edge in enumerate(problem.edges):
        sent = []
        for k, (a, b) in enumerate(pairs):
            variable = y + e * len(pairs) + k
            sent.append((variable, -problem.transfers.time(edge.bytes, a, b) / unit))
            rows.add(-1, (variable, 1.0), (x + edge.source * devices + a, -1.0), (x + edge.target * devices + b, -1.0))
        own = [(x + edge.source * devices + d, -seconds[edge.source][d]) for d in range(devices)]
        rows.add(0, (t + edge.target, 1.0), (t + edge.source, -1.0), *own, *sent)
    for k, (p, q) in enumerate(apart):
        for d in range(devices):
            both = [(x + p * devices + d, -bound), (x + q * devices + d, -bound)]
            rows.add(seconds[p][d] - 3 * bound, (t + q, 1.0), (t + p, -1.0), *both, (o + k, -bound))
            rows.add(seconds[q][d] - 2 * bound, (t + p, 1.0), (t + q, -1.0), *both, (o + k, bound))
    places = [(r, c, v) for r, row in enumerate(rows.rows) for c, v in row.items()]
    matrix = csr_array(([v for _, _, v in places], ([r for r, _, _ in places], [c for _, c, _ in places])),
                       shape=(len(rows.rows), last + 1))
    whole = [1] * t + [0] * parts + [0] * (o - y) + [1] * len(apart) + [0]
    most = [1.0] * t + [bound] * parts + [1.0] * (last - y) + [bound]
    found: Any = milp([0.0] * last + [1.0], constraints=LinearConstraint(matrix, rows.least), integrality=whole,
                      bounds=Bounds([0.0] * (last + 1), most), options={"mip_rel_gap": 0.0})
    if found.x is None:
        raise ArgumentError(f"place: scipy's milp found no placement: {found.message}", hint='choose method="moves"')
    chosen = tuple([max(range(devices), key=lambda d: found.x[x + p * devices + d]) for p in range(parts)])
    return chosen, _by_begin(problem, found.x[t:y])


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


def _longest(problem: Problem, edge: Edge) -> float:
    devices = range(len(problem.devices))
    return max(problem.transfers.time(edge.bytes, a, b) for a in devices for b in devices)
