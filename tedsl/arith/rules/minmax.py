"""Rules for Min and Max of scalar integers whose order is known. Floats: only of an operand with itself."""

from __future__ import annotations

from math import gcd

from tedsl.arith.affine import Sum
from tedsl.arith.bounds import Bounds
from tedsl.arith.inequality import nonnegative
from tedsl.ir import build
from tedsl.ir.expr import Div, Expr, FloorDiv, IntImm, Max, Min


def fold_minmax(e: Min | Max, known: Bounds) -> Expr | None:
    """Returns a simpler form of `e`, or None."""
    kind = type(e)
    if not e.dtype.is_integer or e.dtype.lanes != 1:
        return e.b if known.same(e.a, e.b) else build.fold(kind, e.a, e.b)        # of a NaN with itself: NaN
    first = smaller(known, e.a, e.b)
    if first is not None:                                                         # min(a, b) → a if a <= b
        return first if kind is Min else (e.b if first is e.a else e.a)
    if isinstance(e.a, IntImm):                                                   # constants to the right
        return kind(e.b, e.a)
    for nested, other in ((e.a, e.b), (e.b, e.a)):
        if type(nested) is kind:
            folded = _through(kind, nested, other, known)
            if folded is not None:
                return folded
    folded = _distributed(e, known)
    folded = _of_quotients(e) if folded is None else folded
    return _common_part(e, known) if folded is None else folded


def _distributed(e: Min | Max, known: Bounds) -> Expr | None:
    """Simplifies min(max(x, y), max(x, z)) → max(min(y, z), x), and the same with min and max exchanged."""
    kind, other = type(e), Max if type(e) is Min else Min
    if not (type(e.a) is other and type(e.b) is other):
        return None
    for x, y in ((e.a.a, e.a.b), (e.a.b, e.a.a)):
        for same, z in ((e.b.a, e.b.b), (e.b.b, e.b.a)):
            if known.same(x, same):
                return other(kind(y, z), x)
    return None


def _of_quotients(e: Min | Max) -> Expr | None:
    """Simplifies min(x // d, y // d) → min(x, y) // d for d > 0, → max(x, y) // d for d < 0, and / likewise."""
    a, b = e.a, e.b
    if type(a) is not type(b) or not isinstance(a, (FloorDiv, Div)) or not isinstance(b, (FloorDiv, Div)):
        return None
    if not isinstance(a.b, IntImm) or not isinstance(b.b, IntImm) or a.b.value != b.b.value or abs(a.b.value) < 2:
        return None  # MIN // -1 of data wraps
    kind = type(e) if a.b.value > 0 else Max if type(e) is Min else Min
    return type(a)(kind(a.a, b.a), a.b)


def _common_part(e: Min | Max, known: Bounds) -> Expr | None:
    """Simplifies min(x + y, x + z) → min(y, z) + x, min(x + 1, y + 1) → min(x, y) + 1, min(x*4, y*4) → min(x, y)*4 and
    min(x*4, 8) → min(x, 2)*4 of index arithmetic.
    """
    a, b = known.sum(e.a), known.sum(e.b)
    if not (a.terms and known.is_index(a) and known.is_index(b)):
        return None
    if not b.terms:
        return _scaled(e, a, b.const, known)
    shared = Sum({t: c for t, c in a.terms.items() if b.terms.get(t) == c}, a.const if a.const == b.const else 0)
    factor = 1 if shared.terms or shared.const else gcd(*a.terms.values(), *b.terms.values(), a.const, b.const)
    if not shared.terms and not shared.const and factor == 1:
        return None
    kind, sums = type(e), [s.plus(shared, -1).divided(factor) for s in (a, b)]
    if all(s.const <= 0 and all(c < 0 for c in s.terms.values()) for s in sums):   # min(x - y, x - z) → x - max(y, z)
        kind, factor, sums = (Max if kind is Min else Min), -factor, [s.times(-1) for s in sums]
    first, second = (known.build(s, e.dtype) for s in sums)
    if first is None or second is None:
        return None
    return known.build(known.sum(kind(first, second)).times(factor).plus(shared), e.dtype)


def _scaled(e: Min | Max, a: Sum, constant: int, known: Bounds) -> Expr | None:
    """Simplifies min(x*c, d) → min(x, d/c)*c, and → max(x, d/c)*c for c < 0, where a constant c divides d."""
    (term, c), *others = a.terms.items()
    if others or a.const or abs(c) == 1 or constant % c:
        return None
    kind, other = type(e), Max if type(e) is Min else Min
    inner = (kind if c > 0 else other)(build.cast(e.dtype, term), IntImm(e.dtype, constant // c))
    return known.build(known.sum(inner).times(c), e.dtype)


def _through(kind: type[Min] | type[Max], nested: Min | Max, other: Expr, known: Bounds) -> Expr | None:
    """Simplifies min(min(x, y), z) → min(x, z) if z <= y."""
    for kept, dropped in ((nested.a, nested.b), (nested.b, nested.a)):
        first = smaller(known, other, dropped)
        if first is (other if kind is Min else dropped):
            return kind(kept, other)
    return None


def smaller(known: Bounds, a: Expr, b: Expr) -> Expr | None:
    """Returns the one of two integers that is proved to be at most the other, or None."""
    gap = known.sum(b).plus(known.sum(a), -1)
    if nonnegative(known, gap):
        return a
    return b if nonnegative(known, gap.times(-1)) else None
