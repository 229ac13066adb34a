"""The iteration at which a hand-written access leaves its buffer: found by trying, shown in the error."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from tedsl.ir.expr import Expr, Var
from tedsl.ir.walk.visitor import variables

TRIED = 4096  # iterations looked at; loops of at most that many are decided
SIZES = (1, 2, 3, 8)  # values tried for the symbols of shapes


@dataclass(frozen=True, eq=False)
class Loop:
    """`var` runs from `min` on, `extent` values."""

    var: Var
    min: Expr
    extent: Expr


Scope: TypeAlias = "Loop | Expr"  # what stands around an access, outermost first: loops and conditions


@dataclass(frozen=True, eq=False)
class Found:
    """An iteration with an index outside, as names and values; `complete`: every iteration was looked at."""

    at: tuple[tuple[str, int], ...] | None
    reached: int
    complete: bool

    def describe(self) -> str:
        at = ", ".join(f"{name} = {value}" for name, value in self.at or ())
        return f"it is {self.reached}" + (f" at {at}" if at else "")


def relevant(scopes: Sequence[Scope], *exprs: Expr) -> list[Scope]:
    """All conditions, and the loops whose variables matter: for them, for `exprs`, or for the range of a loop that does."""
    used = {v for e in (*exprs, *(s for s in scopes if not isinstance(s, Loop))) for v in variables(e)}
    kept: list[Scope] = []
    for scope in reversed(scopes):
        if not isinstance(scope, Loop):
            kept.append(scope)
        elif scope.var in used:
            used |= {*variables(scope.min), *variables(scope.extent)}
            kept.append(scope)
    return kept[::-1]


def free_symbols(scopes: Sequence[Scope], *exprs: Expr) -> list[Var]:
    """The variables that no loop gives a value: what only a call decides."""
    own = {s.var for s in scopes if isinstance(s, Loop)}
    parts = [e for s in scopes for e in ((s.min, s.extent) if isinstance(s, Loop) else (s,))]
    return list(dict.fromkeys(v for e in (*exprs, *parts) for v in variables(e) if v not in own))


def find_outside(index: Expr, low: Expr, extent: Expr, scopes: Sequence[Scope]) -> Found:
    """Look for an iteration of the loops in `scopes`, under its conditions, whose index is not in low .. low + extent - 1."""
    from tedsl.ir.evaluate import evaluate  # the interpreter is loaded for errors only

    symbols = free_symbols(scopes, index, low, extent)
    loops = [s for s in scopes if isinstance(s, Loop)]
    complete = True
    for sizes in itertools.product(SIZES, repeat=len(symbols)) if len(symbols) <= 3 else [(8,) * len(symbols)]:
        known: dict[Var, int] = dict(zip(symbols, sizes))
        search = _Search(scopes, known)
        for point in search:
            reached, first = int(evaluate(index, point)), int(evaluate(low, point))
            if not first <= reached < first + int(evaluate(extent, point)):
                at = [(loop.var.name, point[loop.var]) for loop in loops] + [(v.name, known[v]) for v in symbols]
                return Found(tuple(at), reached, False)
        complete = complete and search.complete
    return Found(None, 0, complete)


class _Search:
    """Iterations to try, corners first. `complete` afterwards: these were all."""

    def __init__(self, scopes: Sequence[Scope], known: dict[Var, int]) -> None:
        self.scopes, self.known = scopes, known
        self.complete = True
        self.left = 0

    def __iter__(self) -> Iterator[dict[Var, int]]:
        for corners in (True, False):
            self.left, self.complete = TRIED, True
            yield from self.points(0, self.known, corners)

    def points(self, at: int, known: dict[Var, int], corners: bool) -> Iterator[dict[Var, int]]:
        from tedsl.ir.evaluate import evaluate

        if at == len(self.scopes):
            self.left -= 1
            yield known
            return
        scope = self.scopes[at]
        if not isinstance(scope, Loop):
            if evaluate(scope, known):
                yield from self.points(at + 1, known, corners)
            return
        first, count = int(evaluate(scope.min, known)), int(evaluate(scope.extent, known))
        span = range(first, first + count)
        for value in dict.fromkeys((span[0], span[-1])) if corners and count > 0 else span:
            if self.left <= 0:
                self.complete = False
                return
            yield from self.points(at + 1, {**known, scope.var: value}, corners)
            self.left -= 1  # loops whose conditions never hold count too
