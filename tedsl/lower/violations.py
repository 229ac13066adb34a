"""An iteration at which an index leaves its dimension, found by trying: what an error shows to the user."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from tedsl.ir.expr import Expr, Var
from tedsl.ir.iters import IterVar
from tedsl.ir.walk.visitor import variables
from tedsl.lang.operation import extent_of

TRIED = 4096  # iterations looked at; a domain of at most that many is decided
SIZES = (1, 2, 3, 8)  # values tried for the symbols of shapes


@dataclass(frozen=True, eq=False)
class Violation:
    """What the search found: `at` (names and values) with the index reached there, or None.

    complete: every iteration was looked at.
    """

    at: tuple[tuple[str, int], ...] | None
    reached: int
    complete: bool

    def describe(self) -> str:
        assert self.at is not None
        return f"it is {self.reached} at {', '.join(f'{name} = {value}' for name, value in self.at)}" \
            if self.at else f"it is {self.reached}"


def free_symbols(index: Expr, extent: Expr, conditions: Sequence[Expr], axes: Sequence[IterVar]) -> list[Var]:
    """The variables that are not axes: what only a call decides."""
    own = {axis.var for axis in axes}
    ranges = [e for axis in axes if axis.dom is not None for e in (axis.dom.min, extent_of(axis))]
    return list(dict.fromkeys(v for e in (index, extent, *conditions, *ranges) for v in variables(e) if v not in own))


def find_violation(index: Expr, extent: Expr, conditions: Sequence[Expr], axes: Sequence[IterVar]) -> Violation:
    """Look for values of `axes` that satisfy `conditions` and send `index` outside of 0 .. extent - 1.

    None of the expressions reads a tensor.
    """
    from tedsl.ir.evaluate import evaluate  # the interpreter is loaded for errors only

    symbols = free_symbols(index, extent, conditions, axes)
    complete = True
    for sizes in itertools.product(SIZES, repeat=len(symbols)) if len(symbols) <= 3 else [(8,) * len(symbols)]:
        known = dict(zip(symbols, sizes))
        points, all_of_them = _points(axes, known, evaluate)
        complete = complete and all_of_them
        for point in points:
            values: dict[Var, int] = {**known, **point}
            if not all(evaluate(c, values) for c in conditions):
                continue
            reached = int(evaluate(index, values))
            if not 0 <= reached < int(evaluate(extent, values)):
                names = [(axis.name, point[axis.var]) for axis in axes] + [(v.name, known[v]) for v in symbols]
                return Violation(tuple(names), reached, all_of_them)
    return Violation(None, 0, complete)


def _points(axes: Sequence[IterVar], known: dict[Var, int],
            evaluate: Callable[[Expr, dict[Var, int]], Any]) -> tuple[Iterator[dict[Var, int]], bool]:
    """Iterations to try, corners first, and whether these are all."""
    spans = []
    for axis in axes:
        assert axis.dom is not None
        first = int(evaluate(axis.dom.min, known))
        spans.append(range(first, first + int(evaluate(extent_of(axis), known))))
    count = 1
    for span in spans:
        count *= len(span)
    corners = itertools.product(*[dict.fromkeys((span[0], span[-1])) if span else () for span in spans])
    rest = itertools.islice(itertools.product(*[span[:TRIED] for span in spans]), TRIED)  # product keeps what it is given
    names = [axis.var for axis in axes]
    return (dict(zip(names, point)) for point in itertools.chain(itertools.islice(corners, TRIED), rest)), count <= TRIED


