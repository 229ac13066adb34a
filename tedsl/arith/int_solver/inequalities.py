"""Ranges of variables from linear inequalities, by Fourier-Motzkin elimination.

0 <= h - 2*y <= 2   ->   y = h//2 - 1 + t, t in [0, 2)

A bound `coef*var >= value` is exact for integers with the quotient rounded up. What follows for the other variables once one
is eliminated is true of all solutions, and may be true of others: the inequalities themselves still have to be asked.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import lcm
from typing import Any

from tedsl.arith.affine import Key, Sum
from tedsl.arith.analyzer import Analyzer
from tedsl.arith.bounds import Bounds
from tedsl.arith.inequality import expand, factors, multiply, nonnegative
from tedsl.arith.int_solver.linear import expression, floordiv, slope
from tedsl.arith.interval import relax
from tedsl.ir import build
from tedsl.ir.expr import Expr, Var
from tedsl.ir.walk.visitor import uses
from tedsl.record import record

MOST_GAPS = 64  # inequalities that elimination may derive: those beyond are dropped, which loosens the ranges


@record(eq=False)
class Bound:
    """coef * var >= value (of a list of lower bounds), or coef * var <= value (of upper ones); coef is positive."""

    coef: Sum
    value: Sum


@record(eq=False)
class Found:
    """The values first, ..., first + extent - 1 of a variable, in terms of symbols and of variables that are found after it."""

    var: Var
    first: Expr
    extent: Expr


def bounds_of(known: Bounds, gaps: Iterable[Sum], var: Var) -> tuple[list[Bound], list[Bound], list[Sum]]:
    """Returns the lower and upper bounds of `var` that follow from gap >= 0 for all `gaps`, and the gaps without it.

    A gap that is not linear in `var`, or with a coefficient of unknown sign, is left out.
    """
    lower: list[Bound] = []
    upper: list[Bound] = []
    others: list[Sum] = []
    for gap in gaps:
        linear = slope(known, gap, var)
        if linear is None:
            continue
        coef, rest = linear
        if not coef.terms and coef.const == 0:
            others.append(gap)
        elif nonnegative(known, coef.shifted(-1)):
            lower.append(Bound(coef, rest.times(-1)))
        elif nonnegative(known, coef.times(-1).shifted(-1)):
            upper.append(Bound(coef.times(-1), rest))
    return lower, upper, others


def eliminated(known: Bounds, gaps: Sequence[Sum], var: Var) -> list[Sum]:
    """Returns gaps without `var` that are at least 0 wherever all of `gaps` are."""
    lower, upper, result = bounds_of(known, gaps, var)
    seen: set[Key] = {gap.key for gap in result}
    for low in lower:
        for high in upper:
            gap = tightened(_times(known, high.value, low.coef, var).plus(_times(known, low.value, high.coef, var), -1))
            if gap.terms and gap.key not in seen and len(result) < MOST_GAPS:
                seen.add(gap.key)
                result.append(gap)
    return result


def tightened(gap: Sum) -> Sum:
    """Returns the gap divided by its common factor, its constant rounded down: the same for integers."""
    g = gap.common_factor()
    return Sum({t: c // g for t, c in gap.terms.items()}, gap.const // g) if g > 1 else gap


def _times(known: Bounds, a: Sum, b: Sum, like: Expr) -> Sum:
    return a.times(b.const) if not b.terms else expand(known, multiply(known, a, b, like))


@record(eq=False)
class Choice:
    """The range of a variable with bottom <= coef * var <= top; of several the one with the least rank is taken.

    rank: whether the extent is symbolic, the extent, how many ends are, the size of the coefficient (of the digits of an index
    the last one is found first, those before it are what is left), the length of the range's begin.
    """

    rank: tuple[bool, int, int, tuple[int, int], int]
    coef: Sum
    bottom: Sum
    top: Sum
    extent: Expr


@record(eq=False)
class Step:
    """The bounds of a variable when it is eliminated, and the best range that they give."""

    var: Var
    lower: list[Bound]
    upper: list[Bound]
    choice: Choice | None

    @property
    def rank(self) -> Any:
        assert self.choice is not None
        return self.choice.rank


def _size(coef: Sum) -> tuple[int, int]:
    """Returns a key that orders positive coefficients: by the number of symbols in a product, then by their constants."""
    return max((len(factors(term)), c) for term, c in coef.terms.items()) if coef.terms else (0, coef.const)


class Ranges:
    """Finds the ranges of variables, one after the other, smallest first: the range of one may depend on those after it.

    ends: the least and greatest value of each variable and symbol over which the number of values is maximised; those of the
    variables that are found are added.
    """

    def __init__(self, analyzer: Analyzer, gaps: Iterable[Sum], ends: dict[Var, tuple[Expr, Expr]]) -> None:
        self.analyzer = analyzer
        self.known = analyzer.known
        self.gaps = [tightened(gap) for gap in gaps]
        self.ends: dict[Var, tuple[Expr, Expr]] = {}
        self.numbers: dict[Expr, tuple[int, int]] = {}  # the ends that are constants
        for var, (low, high) in ends.items():
            self.set_ends(var, low, high)

    def set_ends(self, var: Var, low: Expr, high: Expr) -> None:
        self.ends[var] = low, high
        least, most = build.as_int(low), build.as_int(high)
        if least is not None and most is not None:
            self.numbers[var] = least, most
        else:
            self.numbers.pop(var, None)

    def find(self, variables: Sequence[Var]) -> list[Found] | None:
        """Returns the ranges of all variables, smallest first; None if one has no bounds."""
        left, steps = list(variables), []
        while left:
            candidates = [self.step(var) for var in left]
            step = min((one for one in candidates if one.choice is not None), key=lambda one: one.rank, default=None)
            if step is None:
                return None
            steps.append(step)
            left.remove(step.var)
            self.gaps = eliminated(self.known, self.gaps, step.var)
        return [one for one in self.from_last(steps) if one is not None]

    def in_order(self, variables: Sequence[Var]) -> list[Found | None]:
        """Returns the range of each variable, None for one without bounds; that of the first may depend on all others."""
        steps = []
        for var in variables:
            steps.append(self.step(var))
            self.gaps = eliminated(self.known, self.gaps, var)
        return self.from_last(steps)

    def step(self, var: Var) -> Step:
        """Returns the bounds that `var` has now, with the best range that two of them give."""
        lower, upper, _ = bounds_of(self.known, self.gaps, var)
        return Step(var, lower, upper, self.among(var, lower, upper))

    def from_last(self, steps: Sequence[Step]) -> list[Found | None]:
        """Returns what the steps found, looked for again where the ranges of later variables, found by now, may narrow it."""
        found: list[Found | None] = []
        for step in reversed(steps):
            choice, var = step.choice, step.var
            if choice is None or choice.rank[0] or choice.rank[2]:
                choice = self.among(var, step.lower, step.upper)
            found.append(None if choice is None else self.found(var, choice))
            if found[-1] is not None:
                self.note(found[-1])
        return found[::-1]

    def note(self, one: Found) -> None:
        """Makes what is known of the values of a variable the ends of its range, over those of other variables."""
        last = build.sub(build.add(one.first, one.extent), 1)
        low, high = relax(one.first, self.ends, self.analyzer)[0], relax(last, self.ends, self.analyzer)[1]
        if low is not None and high is not None:
            self.set_ends(one.var, low, high)

    def among(self, var: Var, lower: Sequence[Bound], upper: Sequence[Bound]) -> Choice | None:
        """Returns the range with the fewest values that one lower and one upper bound give; None without such a pair."""
        choices = [choice for low in lower for high in upper if (choice := self._between(var, low, high)) is not None]
        return min(choices, key=lambda choice: choice.rank, default=None)

    def _between(self, var: Var, low: Bound, high: Bound) -> Choice | None:
        """Returns the range between two bounds; None if the number of its values is not known."""
        scaled = self._of_one_coefficient(var, low, high)
        if scaled is None:
            return None
        coef, bottom, top = scaled
        number = self._count(top.plus(bottom, -1), coef, var)
        if number is None:
            return None
        skewed = any(term in self.ends for term in bottom.terms) + any(term in self.ends for term in top.terms)
        rank = (build.as_int(number) is None, build.as_int(number) or 0, skewed, _size(coef), len(bottom.terms))
        return Choice(rank, coef, bottom, top, number)

    def found(self, var: Var, choice: Choice) -> Found:
        """Returns the range of a choice with its begin."""
        coef, number = choice.coef, choice.extent
        if build.as_int(number) is None or (not coef.terms and coef.const == 1):
            first = floordiv(self.known, choice.bottom.plus(coef).shifted(-1), coef, var.dtype)
        else:  # reads better than the quotient rounded up, and is above it only where the range has values outside the bounds
            first = build.add(build.sub(floordiv(self.known, choice.top, coef, var.dtype), number), 1)
        return Found(var, self.analyzer.simplify(first), number)

    def _of_one_coefficient(self, var: Var, low: Bound, high: Bound) -> tuple[Sum, Sum, Sum] | None:
        """Returns c, bottom and top with bottom <= c * var <= top."""
        a, b = low.coef, high.coef
        if a.key == b.key:
            return a, low.value, high.value
        if not a.terms and not b.terms:
            c = lcm(a.const, b.const)
            return Sum({}, c), low.value.times(c // a.const), high.value.times(c // b.const)
        return _times(self.known, a, b, var), _times(self.known, low.value, b, var), _times(self.known, high.value, a, var)

    def _greatest(self, s: Sum, var: Var) -> Sum | None:
        """Returns the greatest value of `s` over the variables that have ends."""
        if all(term in self.numbers for term in s.terms):
            return Sum({}, s.const + sum(c * self.numbers[term][c > 0] for term, c in s.terms.items()))
        if not any(uses(term, self.ends) for term in s.terms):
            return s
        _, high = relax(expression(self.known, s, var.dtype), self.ends, self.analyzer)
        return None if high is None else self.known.sum(high)

    def _count(self, spread: Sum, coef: Sum, var: Var) -> Expr | None:
        """Returns how many multiples of `coef` there are at most in spread + 1 successive integers; None if that is unknown."""
        if nonnegative(self.known, coef.plus(spread, -1).shifted(-1)):
            return build.const(int(not (spread.const < 0 and not spread.terms)), var.dtype)
        greatest = self._greatest(spread, var)
        if greatest is None:
            return None
        if not coef.terms and not greatest.terms:
            return build.const(max(greatest.const // coef.const + 1, 0), var.dtype)
        return self.analyzer.simplify(build.add(floordiv(self.known, greatest, coef, var.dtype), 1))
