"""Proves that a sum is at least 0: by ranges, then with symbolic ends of ranges in place of variables.

`n - 1 - io*f - ii` with io <= n//f - 1 and ii <= f - 1 is at least n - (n//f)*f = n % f, so at least 0 for f > 0.
Every step replaces the sum by a lower bound of it (or by a multiple), so that the end proves the beginning.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import permutations
from typing import Any

from tedsl.arith.affine import Sum
from tedsl.arith.bounds import Bounds
from tedsl.ir import build
from tedsl.ir.dtype import INT32, INT64, DType
from tedsl.ir.expr import Call, Div, Expr, FloorDiv, FloorMod, IntImm, Max, Min, Mod, Mul, Select, Var
from tedsl.ir.ops import IF_THEN_ELSE

STEPS = 48  # sums looked at per question: a question costs tens of microseconds, never more than a few milliseconds
# Steps of failed proofs in one pass: under a second, and programs of hundreds of lines spend some hundred. Unrolled tiles of
# tiles over symbolic extents reach it: from there on ranges alone decide, some guards stay, and they still compile.
PATIENCE = 10_000


def nonnegative(known: Bounds, s: Sum) -> bool:
    """Tells whether s >= 0 is proved."""
    low, high = known.range_of(s)
    if low is not None and low >= 0:
        return True
    if (high is not None and high < 0) or not s.terms:
        return False
    answer = known.answers.get(s.key)
    if answer is None:
        answer = known.answers[s.key] = _proved(known, s)
    return answer


def _proved(known: Bounds, s: Sum) -> bool:
    """Proves s >= 0 by a search."""
    if known.spent >= PATIENCE:
        return False
    proof = _Proof(known)
    if proof.holds(s):
        return True
    known.spent += STEPS - proof.left
    return False


_REDUCIBLE = frozenset((Min, Max, Select, Call, FloorDiv, FloorMod, Div, Mod, Mul))


def worth_a_proof(known: Bounds, s: Sum) -> bool:
    """Tells whether any step of a proof could apply; answers most undecided questions without a search."""
    if known.facts:
        return True
    symbolic = known.symbolic
    for term in s.terms:  # noqa: SIM110 - half the time of any()
        if type(term) in _REDUCIBLE or term in symbolic:
            return True
    return False


class _Proof:
    """A search among lower bounds of a sum, its breadth limited by STEPS."""

    def __init__(self, known: Bounds) -> None:
        self.known = known
        self.left = STEPS

    def holds(self, s: Sum, depth: int = 0) -> bool:
        """Tells whether s >= 0 is proved with at most 12 nested replacements."""
        self.left -= 1
        s = expand(self.known, s)
        low, high = self.known.range_of(s)
        if low is not None and low >= 0:
            return True
        if (high is not None and high < 0) or self.left <= 0 or depth > 12:
            return False
        return any(all(self.holds(part, depth + 1) for part in parts) for parts in self.reductions(s))

    def reductions(self, s: Sum) -> Iterator[tuple[Sum, ...]]:
        """Iterates over ways to prove s >= 0: each is a tuple of sums that must all be at least 0."""
        choices: list[tuple[Sum, ...]] = []
        for term, c in s.terms.items():
            sides = _sides(term)
            if sides is None:
                continue
            rest = s.without(term)
            first, second = (rest.plus(self.known.sum(side), c) for side in sides)
            if type(term) is (Min if c < 0 else Max):
                choices += [(first,), (second,)]  # one side is enough
            else:
                yield first, second  # both sides are needed, and nothing is lost
                return
        yield from choices
        yield from self._by_facts(s)
        yield from self._by_ends(s)
        yield from self._by_differences(s)
        yield from self._by_quotients(s)

    def _by_facts(self, s: Sum) -> Iterator[tuple[Sum, ...]]:
        """Yields, for s = k * fact + rest, the rest plus k times the bound of the fact."""
        for terms, (low, high) in self.known.facts.items():
            if len(terms) < 2:
                continue
            fact = self.known.combinations[terms]
            term, c = next(iter(fact.terms.items()))
            mine = s.terms.get(term, 0)
            k, remainder = divmod(mine, c)
            if mine == 0 or remainder:
                continue
            end = low if k > 0 else high
            if end is not None:
                yield (s.plus(fact, -k).shifted(k * end),)

    def _by_ends(self, s: Sum) -> Iterator[tuple[Sum, ...]]:
        """Yields the sum with the variable that was bound last replaced, alone or in products, by the end of its range that
        minimises it.
        """
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
        for var in sorted(inside, key=self.known.rank.__getitem__, reverse=True):
            replaced = self._replace(s, var, inside[var])
            if replaced is not None:
                yield (replaced,)
                return

    def _replace(self, s: Sum, var: Var, uses: list[tuple[Expr, int, list[Expr]]]) -> Sum | None:
        """Returns `s` with `var` at the end that minimises it; None unless the signs of all its multiples are known and equal.
        """
        if any(factor is var for _, _, others in uses for factor in others):
            return None
        slope = Sum({})
        for term, c, others in uses:
            s = s.without(term)
            slope = slope.plus(self.known.sum(product_of(others, var.dtype)), c)
        low, high = self.known.symbolic[var]
        bottom, top = self.known.range_of(slope)
        if bottom is None or bottom < 0:
            if top is None or top > 0:
                return None
            low = high  # the slope is not positive: the highest value makes the sum least
        if low is None:
            return None
        return s.plus(multiply(self.known, slope, self.known.sum(low), var))

    def _by_differences(self, s: Sum) -> Iterator[tuple[Sum, ...]]:
        """Yields the sum with x // d - y // d replaced by (x - y) // d, which is never larger, whatever d is: x // 0 is 0."""
        quotients = [(term, c) for term, c in s.terms.items() if type(term) is FloorDiv]
        for (left, c), (right, d) in permutations(quotients, 2):
            if not (c > 0 > d and self.known.same(left.b, right.b)):
                continue
            difference = self.known.build(self.known.sum(left.a).plus(self.known.sum(right.a), -1), left.dtype)
            if difference is None or not all(self.known.is_index(self.known.sum(part)) for part in (left, right, left.b)):
                continue
            count = min(c, -d)
            both = self.known.sum(left).plus(self.known.sum(right), -1)
            yield (s.plus(both, -count).plus(self.known.sum(FloorDiv(difference, left.b)), count),)

    def _by_quotients(self, s: Sum) -> Iterator[tuple[Sum, ...]]:
        """Yields the sum with x // d replaced by a bound: it lies in [(x - d + 1) / d, x / d], so that d*s + d - 1 >= 0
        suffices for d > 0.
        """
        for term, c in s.terms.items():
            kind = type(term)
            if isinstance(term, (Div, Mod)):  # of x >= 0 they are // and %
                if not self.known.within(term.a, 0, None):
                    continue
                kind = FloorDiv if kind is Div else FloorMod
            if (kind is not FloorDiv and kind is not FloorMod) or not self._divides(term):  # type: ignore[arg-type]
                continue
            x, d, rest = self.known.sum(term.a), self.known.sum(term.b), s.without(term)  # type: ignore[attr-defined]
            if kind is FloorDiv:
                bound = x if c < 0 else x.plus(d, -1).shifted(1)
                yield (multiply(self.known, rest, d, term).plus(bound, c).plus(d).shifted(-1),)
            elif c < 0:
                yield (rest.plus(d, c).shifted(-c),)  # x % d <= d - 1
                if self.known.within(term.a, 0, None):  # type: ignore[attr-defined]
                    yield (rest.plus(x, c),)  # x % d <= x for x >= 0

    def _divides(self, term: FloorDiv | FloorMod | Div | Mod) -> bool:
        """Tells whether the divisor of `term` is index arithmetic and positive."""
        low, _ = self.known.range(term.b)
        if low is not None and low > 0:
            return self.known.is_index(self.known.sum(term.b))
        return low == 0 and is_factor_of_running_loop(self.known, term.b, self.known.sum(term.a))


def is_factor_of_running_loop(known: Bounds, by: Expr, used_in: Sum) -> bool:
    """Tells whether `by` is proved not to be 0: `used_in` has a variable of a loop whose extent is a multiple of `by`, and
    which runs.
    """
    for term in used_in.terms:
        for var in factors(term):
            extent = known.extents.get(var)
            if extent is not None and any(known.same(part, by) for part in factors(extent)):
                return True
    return False


def _sides(term: Any) -> tuple[Expr, Expr] | None:
    """Returns the two possible values of a min, max or choice; None for any other term."""
    kind = type(term)
    if kind is Min or kind is Max:
        return term.a, term.b
    if kind is Select:
        return term.true_value, term.false_value
    if kind is Call and term.op is IF_THEN_ELSE:
        return term.args[1], term.args[2]
    return None


# --- products -----------------------------------------------------------------------------------------------------------

def factors(term: Expr) -> tuple[Expr, ...]:
    """Returns the factors of a product of index terms; for any other term the term itself."""
    if type(term) is not Mul or (term.dtype is not INT32 and term.dtype is not INT64):
        return (term,)
    parts: list[Expr] = []
    stack: list[Expr] = [term]
    while stack:
        node = stack.pop()
        if type(node) is Mul and len(parts) + len(stack) < 8:
            stack += [node.b, node.a]
        else:
            parts.append(node)
    return tuple(parts)


def product_of(parts: Sequence[Expr], dtype: DType) -> Expr:
    """Returns the product of the parts, each cast to `dtype`; 1 for no parts."""
    result: Expr | None = None
    for part in parts:
        part = part if part.dtype is dtype else build.cast(dtype, part)
        result = part if result is None else Mul(result, part)
    return IntImm(dtype, 1) if result is None else result


def multiply(known: Bounds, a: Sum, b: Sum, like: Expr) -> Sum:
    """Returns a * b, multiplied out."""
    result = Sum({}, a.const * b.const).plus(Sum(a.terms), b.const).plus(Sum(b.terms), a.const)
    for x, c in a.terms.items():
        for y, d in b.terms.items():
            parts = sorted(factors(x) + factors(y), key=known.order)
            result = result.plus(known.sum(product_of(parts, like.dtype)), c * d)
    return result


def expand(known: Bounds, s: Sum) -> Sum:
    """Returns `s` with products of sums multiplied out, factors in one order, and (x//y)*y replaced by x - x%y where y is not
    0.
    """
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
    """Returns the product as a sum of ordered products; None if it is one already."""
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
    ordered = product_of(sorted(parts, key=known.order), term.dtype)
    opened = known.sum(ordered)
    return opened if opened.single is not term else None
