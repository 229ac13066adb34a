"""The search for an iteration at which an index is out of range: a proof for small domains, an example for errors.

    for (i: 0, 8) { if (i % 2 == 1) { B[i + 1] } }   with 8 elements in B:   i + 1 is 8 at i = 7
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import TypeAlias

from tedsl.ir.evaluate import evaluate
from tedsl.ir.expr import Expr, IntImm, Var
from tedsl.ir.walk.around import Loop
from tedsl.ir.walk.visitor import variables
from tedsl.record import record

TRIED = 4096  # iterations looked at; a domain of at most that many is decided
SIZES = (1, 2, 3, 8)  # values tried for each symbol of a shape, and the last one for all if there are more than MANY symbols
MANY = 3


Scope: TypeAlias = "Loop | Expr"  # what stands around an access: a loop, or a condition that holds


@record(eq=False)
class SearchResult:
    """The result of a search: an iteration whose index is out of range, as names and values; None if none was found.

    reached: the index there. complete: every iteration was tried, so that None is a proof.
    """

    at: tuple[tuple[str, int], ...] | None
    reached: int
    complete: bool

    def beside(self, index: Expr) -> str:
        """The iteration in words that follow those on `index`, "; it is 8 at i = 7"; "" where they say all."""
        if self.at is None or isinstance(index, IntImm):
            return ""
        at = ", ".join(f"{name} = {value}" for name, value in self.at)
        return f"; it is {self.reached}" + (f" at {at}" if at else "")


def relevant(scopes: Sequence[Scope], *exprs: Expr) -> list[Scope]:
    """The conditions of `scopes`, and the loops whose variables occur in them, in `exprs`, or in the range of such a loop."""
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
    """The free variables of `scopes` and `exprs`, whose values are known at the call only."""
    own = {s.var for s in scopes if isinstance(s, Loop)}
    parts = [e for s in scopes for e in ((s.min, s.extent) if isinstance(s, Loop) else (s,))]
    return list(dict.fromkeys(v for e in (*exprs, *parts) for v in variables(e) if v not in own))


def find_outside(index: Expr, low: Expr, extent: Expr, scopes: Sequence[Scope]) -> SearchResult:
    """Searches for an iteration of the loops in `scopes` (outermost first), under their conditions, at which `index` is not in
    low .. low + extent - 1. None of the expressions reads memory.
    """
    symbols = free_symbols(scopes, index, low, extent)
    loops = [scope for scope in scopes if isinstance(scope, Loop)]
    complete = True
    for sizes in itertools.product(SIZES, repeat=len(symbols)) if len(symbols) <= MANY else [SIZES[-1:] * len(symbols)]:
        known: dict[Var, int] = dict(zip(symbols, sizes))
        iterations = _Iterations(scopes, known)
        for point in iterations:
            reached, first = int(evaluate(index, point)), int(evaluate(low, point))
            if not first <= reached < first + int(evaluate(extent, point)):
                at = [(loop.var.name, point[loop.var]) for loop in loops] + [(v.name, known[v]) for v in symbols]
                return SearchResult(tuple(at), reached, False)
        complete = complete and iterations.complete
    return SearchResult(None, 0, complete)


class _Iterations:
    """The values of the loop variables in each iteration to try, corners first; `complete` is set if all were tried."""

    def __init__(self, scopes: Sequence[Scope], known: dict[Var, int]) -> None:
        self.known = known
        self.loops: list[Loop] = []
        self.conditions: list[list[Expr]] = [[]]  # those inside of so many loops
        self.complete = True
        self.left = 0
        for scope in scopes:
            if isinstance(scope, Loop):
                self.loops.append(scope)
                self.conditions.append([])
            else:
                self.conditions[-1].append(scope)

    def __iter__(self) -> Iterator[dict[Var, int]]:
        for corners in (True, False):
            self.left, self.complete = TRIED, True
            yield from self.points(0, self.known, corners)

    def points(self, depth: int, known: dict[Var, int], corners: bool) -> Iterator[dict[Var, int]]:
        """The iterations of the loops from number `depth` on, up to the limit; those whose conditions fail count too."""
        if not all(evaluate(condition, known) for condition in self.conditions[depth]):
            self.left -= 1
            return
        if depth == len(self.loops):
            self.left -= 1
            yield known
            return
        loop = self.loops[depth]
        first, count = int(evaluate(loop.min, known)), int(evaluate(loop.extent, known))
        span = range(first, first + count)
        if not span:
            self.left -= 1
        for value in dict.fromkeys((span[0], span[-1])) if corners and span else span:
            if self.left <= 0:
                self.complete = False
                return
            yield from self.points(depth + 1, {**known, loop.var: value}, corners)
