"""Rules for sums of which one term takes up others: a min, a choice, a product, a quotient. Index arithmetic only."""

from __future__ import annotations

from math import gcd
from typing import Any

from tedsl.arith.affine import Sum
from tedsl.arith.bounds import Bounds
from tedsl.arith.inequality import expand, factors, product_of
from tedsl.ir.dtype import INT32, INT64, DType
from tedsl.ir.expr import Call, Div, Expr, FloorDiv, FloorMod, IntImm, Max, Min, Mod, Mul, Select
from tedsl.ir.ops import IF_THEN_ELSE

_TAKE_UP = frozenset((Min, Max, Select, Call, Mul, Div, FloorDiv))  # kinds of terms that other terms may go into


def take_up(s: Sum, known: Bounds, dtype: DType) -> Expr | None:
    """Returns a shorter expression of a sum, of which one term takes up others or the constant; None if none does."""
    kinds = _TAKE_UP.intersection(map(type, s.terms))
    if not kinds or not known.is_index(s) or (dtype is not INT32 and dtype is not INT64):
        return None
    if len(s.terms) == 1:
        return _into_sides(s, known, dtype)
    if not kinds.isdisjoint(_SIDED):
        moved = _into_sides(s, known, dtype)
        if moved is not None:
            return moved
        apart = _difference_of_sides(s, known)
        if apart is not None:
            return known.build(apart, dtype)
    if Mul in kinds:
        expanded = expand(known, s)                                               # (x + y)*z - x*z → y*z
        if len(expanded.terms) < len(s.terms):
            return known.build(expanded, dtype)
        common = _common_factor(s, known)
        if common is not None:
            return known.build(common, dtype)
    merged = _merge_truncated(s, known) if Div in kinds else None
    if merged is None and (FloorDiv in kinds or Div in kinds):
        merged = _difference_of_quotients(s, known, dtype)
    return None if merged is None else known.build(merged, dtype)


# --- sides ----------------------------------------------------------------------------------------------------------------

_SIDED = frozenset((Min, Max, Select, Call))


def _sides(term: Any) -> tuple[Expr, Expr] | None:
    kind = type(term)
    if kind is Min or kind is Max:
        return term.a, term.b
    if kind is Select:
        return term.true_value, term.false_value
    return (term.args[1], term.args[2]) if kind is Call and term.op is IF_THEN_ELSE else None


def _into_sides(s: Sum, known: Bounds, dtype: DType) -> Expr | None:
    """Simplifies min(x, y) - x → min(y - x, 0), x - min(x, y) → max(x - y, 0), max(x - z, y) + z → max(x, y + z),
    min(x, y - 10) + 10 → min(x + 10, y) and (c ? x : y) - x → c ? 0 : y - x, where fewer terms, or constants, are left.
    """
    for term, c in s.terms.items():
        sides = _sides(term)
        if sides is None or (c != 1 and c != -1):
            continue
        rest, of_sides = s.without(term), [known.sum(side) for side in sides]
        arms = [side.times(c).plus(rest) for side in of_sides]
        size = (lambda part: len(part.terms)) if rest.terms else _length
        if sum(map(size, arms)) >= sum(map(size, (*of_sides, rest))):
            continue
        first, second = (known.build(arm, dtype) for arm in arms)
        if first is not None and second is not None:
            return _with_sides(term, c, first, second)
    return None


def _length(s: Sum) -> int:
    """Returns the number of terms, with the constant."""
    return len(s.terms) + (s.const != 0)


def _difference_of_sides(s: Sum, known: Bounds) -> Sum | None:
    """Simplifies min(x + 3, y + 3) - min(y, x) → 3: the sides of two terms that differ by one constant."""
    pairs = [(one, other, c) for one, c in s.terms.items() if c > 0 for other, d in s.terms.items() if d == -c]
    for one, other, c in pairs:
        kind, first, second = type(one), _sides(one), _sides(other)
        if kind is not type(other) or first is None or second is None or (kind not in (Min, Max) and not _one_condition(
                one, other, known)):
            continue
        ways = (second, second[::-1]) if kind in (Min, Max) else (second,)
        for way in ways:
            gaps = [known.sum(a).plus(known.sum(b), -1) for a, b in zip(first, way)]
            if not gaps[0].terms and not gaps[1].terms and gaps[0].const == gaps[1].const:
                return s.without(one).without(other).shifted(c * gaps[0].const)
    return None


def _one_condition(one: Any, other: Any, known: Bounds) -> bool:
    """Tells whether two choices of one kind have the same condition."""
    first, second = (e.condition if isinstance(e, Select) else e.args[0] for e in (one, other))
    return known.same(first, second)


def _with_sides(term: Any, sign: int, first: Expr, second: Expr) -> Expr:
    """Returns `term`, or for sign -1 its negation, with other sides."""
    if isinstance(term, Select):
        return Select(term.condition, first, second)
    if isinstance(term, Call):
        return Call(term.dtype, term.op, (term.args[0], first, second))
    kind: Any = type(term) if sign == 1 else Max if type(term) is Min else Min
    return kind(first, second)  # type: ignore[no-any-return]


# --- products -------------------------------------------------------------------------------------------------------------

def _common_factor(s: Sum, known: Bounds) -> Sum | None:
    """Simplifies x*y + x*z → x*(y + z) and x*y + x*3 → x*(y + 3), terms that share a factor: the first that most have."""
    shared: dict[Expr, list[Expr]] = {}
    for term in s.terms:
        if type(term) is Mul:
            for factor in dict.fromkeys(factors(term)):
                shared.setdefault(factor, [factor] if factor in s.terms else []).append(term)
    by, terms = max(shared.items(), key=lambda item: len(item[1]))
    if len(terms) < 2:
        return None
    rest, inner = s, Sum({})
    for term in terms:
        others = list(factors(term)) if term is not by else [term]
        del others[next(i for i, factor in enumerate(others) if factor is by)]
        rest = rest.without(term)
        inner = inner.plus(known.sum(product_of(others, term.dtype)), s.terms[term])
    common = gcd(inner.common_factor(), inner.const)  # (2*i + 2*n - 1)*x has a constant that 2 does not divide
    sum_of_others = known.build(inner.divided(common), by.dtype) if common else None
    return None if sum_of_others is None else rest.plus(known.sum(Mul(by, sum_of_others)), common)


# --- quotients ------------------------------------------------------------------------------------------------------------

def _merge_truncated(s: Sum, known: Bounds) -> Sum | None:
    """Simplifies (x / d)*d + x mod d → x and x - (x / d)*d → x mod d, for constants d."""
    for quotient, c in s.terms.items():
        if type(quotient) is not Div or not isinstance(quotient.b, IntImm) or not quotient.b.value:
            continue
        d, x = quotient.b.value, known.sum(quotient.a)
        remainder = known.sum(Mod(quotient.a, quotient.b))
        times, rest = divmod(c, d)
        if rest or remainder.single is None or not known.is_index(x):
            continue
        if s.terms.get(remainder.single) == times:
            return s.without(quotient).without(remainder.single).plus(x, times)
        if x.terms and all(s.terms.get(t) == -times * k for t, k in x.terms.items()):
            return s.without(quotient).plus(x, times).plus(remainder, -times)
    return None


def _difference_of_quotients(s: Sum, known: Bounds, dtype: DType) -> Sum | None:
    """Simplifies (x + k) // d - x // d → (x % d + k) // d, d > 0; and with x / d and x mod d where k >= 0 and x >= 0."""
    quotients = [(term, c) for term, c in s.terms.items() if type(term) in (FloorDiv, Div)]
    for upper, c in quotients:
        for lower, negative in quotients:
            if negative != -c or type(lower) is not type(upper):
                continue
            merged = _merged_quotients(upper, lower, known, dtype)
            if merged is not None:
                return s.without(upper).without(lower).plus(known.sum(merged), c)
    return None


def _merged_quotients(upper: Any, lower: Any, known: Bounds, dtype: DType) -> Expr | None:
    """Returns `upper` - `lower` as one quotient."""
    if not isinstance(upper.b, IntImm) or not isinstance(lower.b, IntImm) or not 0 < upper.b.value == lower.b.value:
        return None
    x = known.sum(lower.a)
    gap = known.sum(upper.a).plus(x, -1)
    if gap.terms or gap.const < 0 or not x.terms or not known.is_index(x):
        return None
    if type(upper) is Div and not known.within(lower.a, 0, None):
        return None
    remainder = (FloorMod if type(upper) is FloorDiv else Mod)(lower.a, lower.b)
    numerator = known.build(known.sum(remainder).plus(gap), dtype)
    return None if numerator is None else type(upper)(numerator, upper.b)
