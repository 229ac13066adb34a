"""Proofs that a sum is at least 0: by ranges, then by putting the ends of symbolic ranges in place of variables.

`n - 1 - io*f - ii` with io <= n//f - 1 and ii <= f - 1 is at least n - (n//f)*f = n % f, so at least 0 for f > 0.
Every step replaces the sum by a lower bound of it (or by a multiple), so that the end proves the beginning.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tedsl.arith.affine import Sum
from tedsl.arith.bounds import Bounds
from tedsl.ir.dtype import INT32, INT64
from tedsl.ir.expr import Call, Expr, FloorDiv, FloorMod, IntImm, Max, Min, Mul, Select, Var

STEPS = 48  # sums looked at per question: a question costs tens of microseconds, never more than a few milliseconds


def nonnegative(known: Bounds, s: Sum) -> bool:
    """Whether s >= 0 is proved."""
    low, high = known.range_of(s)
    if low is not None and low >= 0:
        return True
    if (high is not None and high < 0) or not s.terms:
        return False
    return _Proof(known).holds(s)


def positive(known: Bounds, expr: Expr) -> bool:
    """Whether expr > 0 is proved."""
    return nonnegative(known, known.sum(expr).shifted(-1))


class _Proof:
    """A search among lower bounds of a sum, breadth limited by STEPS."""

    def __init__(self, known: Bounds) -> None:
        self.known = known
        self.left = STEPS

    def holds(self, s: Sum, depth: int = 0) -> bool:
        """Whether s >= 0; at most 12 replacements deep."""
        self.left -= 1
        s = expand(self.known, s)
        low, high = self.known.range_of(s)
        if low is not None and low >= 0:
            return True
        if (high is not None and high < 0) or self.left <= 0 or depth > 12:
            return False
        return any(all(self.holds(part, depth + 1) for part in parts) for parts in self.reductions(s))

    def reductions(self, s: Sum) -> Iterator[tuple[Sum, ...]]:
        """Ways to prove s >= 0: each is a tuple of sums that must all be at least 0."""
        choices = self._min_max(s)
        if choices is not None:
            yield from choices
            return
        yield from self._by_facts(s)
        yield from self._by_ends(s)
        yield from self._by_quotients(s)

    def _min_max(self, s: Sum) -> list[tuple[Sum, ...]] | None:
        """One min, max or select: both sides must do, or one of them."""
        for term, c in s.terms.items():
            kind = type(term)
            if kind is Min or kind is Max:
                rest = s.without(term)
                sides = [rest.plus(self.known.sum(side), c) for side in (term.a, term.b)]  # type: ignore[attr-defined]
                if (kind is Min) == (c > 0):
                    return [(sides[0], sides[1])]
                return [(sides[0],), (sides[1],)]
            if kind is Select or (kind is Call and term.op.name == "tir.if_then_else"):  # type: ignore[attr-defined]
                rest = s.without(term)
                args: Any = term
                pair = (args.true_value, args.false_value) if kind is Select else args.args[1:]
                return [tuple(rest.plus(self.known.sum(side), c) for side in pair)]
        return None

    def _by_facts(self, s: Sum) -> Iterator[tuple[Sum, ...]]:
        """s = k * fact + rest: the rest over the fact's end."""
        for terms, (low, high) in self.known.facts.items():
            if len(terms) < 2:
                continue
            fact = Sum(dict(terms))
            term, c = next(iter(terms))
            mine = s.terms.get(term, 0)
            k, remainder = divmod(mine, c)
            if mine == 0 or remainder:
                continue
            end = low if k > 0 else high
            if end is not None:
                yield (s.plus(fact, -k).shifted(k * end),)

    def _by_ends(self, s: Sum) -> Iterator[tuple[Sum, ...]]:
        """The variable bound last, alone or in products, replaced by the end of its range that makes the sum least."""
        symbolic = self.known.symbolic
        if not symbolic:
            return
        inside: dict[Var, list[tuple[Expr, int, list[Expr]]]] = {}
        for term, c in s.terms.items():
            product = factors(term)
            for factor in product:
                if factor in symbolic:
                    others = list(product)
                    others.remove(factor)  # identity: comparing expressions in a list falls back on it
                    inside.setdefault(factor, []).append((term, c, others))  # type: ignore[arg-type]
        for var in sorted(inside, key=list(symbolic).index, reverse=True):
            replaced = self._replace(s, var, inside[var])
            if replaced is not None:
                yield (replaced,)
                return

    def _replace(self, s: Sum, var: Var, uses: list[tuple[Expr, int, list[Expr]]]) -> Sum | None:
        """`s` with `var` at its least favourable end, if all its multiples have one sign that is known."""
        if any(factor is var for _, _, others in uses for factor in others):
            return None
        slope = Sum({})
        for term, c, others in uses:
            s = s.without(term)
            slope = slope.plus(self.known.sum(_product(others, var.dtype)), c)
        low, high = self.known.symbolic[var]
        bottom, top = self.known.range_of(slope)
        if bottom is None or bottom < 0:
            if top is None or top > 0:
                return None
            low = high  # the slope is not positive: the highest value makes the sum least
        if low is None:
            return None
        return s.plus(multiply(self.known, slope, self.known.sum(low), var))

    def _by_quotients(self, s: Sum) -> Iterator[tuple[Sum, ...]]:
        """x // d lies in [(x - d + 1) / d, x / d] and the sum is whole: d*s + d - 1 >= 0 is enough."""
        for term, c in s.terms.items():
            if type(term) is FloorDiv and type(term.b) is IntImm and term.b.value > 0:
                d = term.b.value
                x = self.known.sum(term.a)
                bound = x if c < 0 else x.shifted(1 - d)
                yield (s.without(term).times(d).plus(bound, c).shifted(d - 1),)
            elif type(term) is FloorMod and type(term.b) is IntImm and term.b.value > 0 and c < 0 \
                    and self.known.within(term.a, 0, None):
                yield (s.without(term).plus(self.known.sum(term.a), c),)  # x % d <= x for x >= 0


# --- products -----------------------------------------------------------------------------------------------------------

def factors(term: Expr) -> tuple[Expr, ...]:
    """The factors of a product of index terms; the term itself otherwise."""
    if type(term) is not Mul or (term.dtype is not INT32 and term.dtype is not INT64):
        return (term,)
    found: list[Expr] = []
    stack: list[Expr] = [term]
    while stack and len(found) < 8:
        node = stack.pop()
        if type(node) is Mul:
            stack += [node.b, node.a]
        else:
            found.append(node)
    return tuple(found)


def _product(parts: list[Expr], dtype: Any) -> Expr:
    result: Expr = IntImm(dtype, 1)
    for part in parts:
        result = part if isinstance(result, IntImm) else Mul(result, part)
    return result


def multiply(known: Bounds, a: Sum, b: Sum, like: Expr) -> Sum:
    """a * b term by term."""
    result = Sum({}, a.const * b.const).plus(Sum(a.terms), b.const).plus(Sum(b.terms), a.const)
    for x, c in a.terms.items():
        for y, d in b.terms.items():
            parts = sorted(factors(x) + factors(y), key=id)
            result = result.plus(known.sum(_product(parts, like.dtype)), c * d)
    return result


def expand(known: Bounds, s: Sum) -> Sum:
    """`s` with products of sums multiplied out, factors in one order, and (x//y)*y replaced by x - x%y where y is not 0."""
    for _ in range(4):
        for term, c in s.terms.items():
            if type(term) is Mul and term not in known.data:
                opened = _open(known, term)
                if opened is not None:
                    s = s.without(term).plus(opened, c)
                    break
        else:
            return s
    return s


def _open(known: Bounds, term: Mul) -> Sum | None:
    """The product as a sum of ordered products, or None if it is one already."""
    a, b = known.sum(term.a), known.sum(term.b)
    for quotient, by in ((term.a, term.b), (term.b, term.a)):
        if type(quotient) is FloorDiv and known.same(quotient.b, by) and known.nonzero(by):
            return known.sum(quotient.a).plus(known.sum(FloorMod(quotient.a, by)), -1)
    if a.single is None or b.single is None:
        if len(a.terms) * len(b.terms) <= 16:
            return multiply(known, a, b, term)
        return None
    if type(a.single) is not Mul and type(b.single) is not Mul:
        return None
    parts = factors(term)
    ordered = _product(sorted(parts, key=id), term.dtype)
    made = known.sum(ordered)
    return made if made.single is not term else None
