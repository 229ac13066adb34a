"""Rules for comparisons. Integers are decided by the range of the difference; floats only if they are constants."""

from __future__ import annotations

from typing import Any

from tedsl.arith.affine import Sum
from tedsl.arith.bounds import Bounds
from tedsl.arith.inequality import expand, nonnegative, worth_a_proof
from tedsl.arith.rules.casts import compare_number_of_bool
from tedsl.arith.rules.choices import compare_choices
from tedsl.arith.rules.floordiv import constant, safe_build, same_block
from tedsl.arith.splits import merge_splits
from tedsl.ir import build
from tedsl.ir.dtype import BOOL, DType
from tedsl.ir.expr import EQ, GE, GT, LE, LT, NE, Call, Cast, CompareOp, Div, Expr, FloorDiv, IntImm, Max, Min, Select


def fold_less(e: LT | LE, known: Bounds) -> Expr | None:
    """Decides a < b and a <= b of scalar integers, or moves constants and common terms together."""
    a, b = known.sum(e.a), known.sum(e.b)
    strict = type(e) is LT
    gap = b.plus(a, -1)                                                           # a < b is gap > 0, a <= b is gap >= 0
    least = 1 if strict else 0
    low, high = known.range_of(gap)
    if low is not None and low >= least:
        return IntImm(BOOL, 1)
    if high is not None and high < least:
        return IntImm(BOOL, 0)
    if worth_a_proof(known, gap):
        if nonnegative(known, gap.shifted(-least)):
            return IntImm(BOOL, 1)
        if nonnegative(known, gap.times(-1).shifted(least - 1)):
            return IntImm(BOOL, 0)
    quotient = _compare_quotient(e, a, b)
    if quotient is not None:
        return quotient
    gap = _without_small_terms(_merged(gap, known), least, known)
    return _rewrite(type(e), a, b, gap, known, e.a.dtype)


def _merged(gap: Sum, known: Bounds) -> Sum:
    """Merges the parts of an index in a difference: (x // 4)*4 < x → 0 < x % 4."""
    if len(gap.terms) < 2 or not gap.splits or not known.is_index(gap):
        return gap
    merged = merge_splits(gap, known)
    return merged if len(merged.terms) < len(gap.terms) else gap


def _without_small_terms(gap: Sum, least: int, known: Bounds) -> Sum:
    """Leaves out terms that decide nothing beside multiples of g: x*4 + y < z*4 → x < z if 0 <= y < 4. `gap` must be at least
    `least`: of g*t + r >= 0 with k*g <= r < (k + 1)*g, t + k >= 0 is left.
    """
    if len(gap.terms) < 2 or not known.is_index(gap):
        return gap
    for g in sorted({abs(c) for c in gap.terms.values()} - {1}, reverse=True):
        small = Sum({t: c for t, c in gap.terms.items() if c % g}, gap.const - least)
        if not small.terms or len(small.terms) == len(gap.terms):
            continue
        block = same_block(known, small, g)
        if block is not None:
            return Sum({t: c for t, c in gap.terms.items() if c % g == 0}, block * g + least)
    return gap


def _compare_quotient(e: LT | LE, a: Sum, b: Sum) -> Expr | None:
    """Simplifies x // d < c → x < c*d, c < x // d → (c + 1)*d <= x, and the same with <=, for constants c and d > 0. Of
    quotients that are rounded towards 0, those of numbers below 0 are one less steep: x / d < c → x <= (c - 1)*d if c <= 0.
    """
    quotient, c = (a.single, b) if not b.terms else (b.single, a)
    if c.terms or not isinstance(quotient, (FloorDiv, Div)) or not isinstance(quotient.b, IntImm) or quotient.b.value < 1:
        return None
    above = (quotient is b.single) == isinstance(e, LT)  # the bound is the first x whose quotient is greater than c
    first = c.const + above
    low = isinstance(quotient, Div) and first <= 0
    bound = constant((first - low) * quotient.b.value + low, quotient.dtype)
    if bound is None:
        return None
    return LE(bound, quotient.a) if quotient is b.single else LT(quotient.a, bound)


def _rewrite(kind: type[CompareOp], a: Sum, b: Sum, gap: Sum, known: Bounds, dtype: DType) -> Expr | None:
    """Rewrites a comparison: x + 1 < y + 3 → x < y + 2;  x*4 < 10 → x < 3;  x + y < x + z → y < z."""
    node_type: Any = kind
    if not gap.terms:
        holds = gap.const > 0 if kind is LT else gap.const >= 0 if kind is LE else (gap.const == 0) == (kind is EQ)
        return IntImm(BOOL, int(holds))
    g = gap.common_factor()
    cancelled = len(gap.terms) < len(a.terms) + len(b.terms)
    movable = (a.const and b.const) or (a.const and not b.terms) or (b.const and not a.terms)
    opposite = not (a.terms and b.terms) and min(gap.terms.values()) < 0 < max(gap.terms.values())
    if not (cancelled or movable or opposite or g > 1):                           # x - y == 0 → x == y, 0 < x - y → y < x
        return None
    if kind is EQ or kind is NE:
        if gap.const % g:
            return IntImm(BOOL, int(kind is NE))                                  # g*x == c: no solution unless g divides c
        const = gap.const // g
    else:
        const = -(-gap.const // g) if kind is LT else gap.const // g              # g*t + c > 0 is t + ceil(c/g) > 0
    left = Sum({t: -c // g for t, c in gap.terms.items() if c < 0})
    right = Sum({t: c // g for t, c in gap.terms.items() if c > 0})
    if const and (not left.terms or (right.terms and const < 0)):
        left = left.shifted(-const)
    else:
        right = right.shifted(const)
    if (kind is EQ or kind is NE) and not left.terms:
        left, right = right, left
    sides = safe_build(known, left, dtype), safe_build(known, right, dtype)
    if sides[0] is None or sides[1] is None or (left.key == a.key and right.key == b.key):
        return None
    rebuilt: Expr = node_type(sides[0], sides[1])
    return rebuilt


def fold_equal(e: EQ | NE, known: Bounds) -> Expr | None:
    """Decides or simplifies a == b and a != b of scalar integers."""
    a, b = known.sum(e.a), known.sum(e.b)
    yes = type(e) is EQ
    gap = b.plus(a, -1)
    if not gap.terms:
        return IntImm(BOOL, int((gap.const == 0) == yes))
    low, high = known.range_of(gap)
    if (low is not None and low > 0) or (high is not None and high < 0):
        return IntImm(BOOL, int(not yes))
    if low == 0 and high == 0:
        return IntImm(BOOL, int(yes))
    if worth_a_proof(known, gap):
        if nonnegative(known, gap.shifted(-1)) or nonnegative(known, gap.times(-1).shifted(-1)):
            return IntImm(BOOL, int(not yes))
        expanded = expand(known, gap)
        if (not expanded.terms and expanded.const == 0) or (nonnegative(known, gap) and nonnegative(known, gap.times(-1))):
            return IntImm(BOOL, int(yes))
    return _rewrite(type(e), a, b, _merged(gap, known), known, e.a.dtype)


def compare_minmax(e: CompareOp, known: Bounds) -> Expr | None:
    """Compares a min or max by its operands, where one of the two comparisons is decided or they are the same.

        min(x, 5) < 3 → x < 3      x < max(x, y) → x < y      max(x, y) == x → y <= x
    """
    for nested, other, first in ((e.a, e.b, True), (e.b, e.a, False)):
        if isinstance(nested, (Min, Max)):
            ends = _both_ends(e, nested, other, first, known)
            if ends is not None:
                return ends
            if isinstance(e, (EQ, NE)):
                return _equals_operand(e, nested, other, known)
            return _by_operands(e, nested, other, first, known)
    return None


def _both_ends(e: CompareOp, nested: Min | Max, other: Expr, first: bool, known: Bounds) -> Expr | None:
    """Simplifies min(x, y) < max(x, y) → x != y, min(x, y) == max(x, y) → x == y, max(x, y) <= min(x, y) → x == y."""
    if not isinstance(other, (Min, Max)) or type(other) is type(nested):
        return None
    if not any(known.same(nested.a, x) and known.same(nested.b, y) for x, y in ((other.a, other.b), (other.b, other.a))):
        return None
    if isinstance(e, (EQ, NE)):
        return type(e)(nested.a, nested.b)
    if (type(nested) is Min) == first:
        return NE(nested.a, nested.b) if type(e) is LT else IntImm(BOOL, 1)
    return IntImm(BOOL, 0) if type(e) is LT else EQ(nested.a, nested.b)


def _equals_operand(e: EQ | NE, nested: Min | Max, other: Expr, known: Bounds) -> Expr | None:
    """Simplifies min(x, y) == x → x <= y;  max(x, y) != x → x < y."""
    for x, y in ((nested.a, nested.b), (nested.b, nested.a)):
        if known.same(other, x):
            low, high = (x, y) if type(nested) is Min else (y, x)
            return LE(low, high) if type(e) is EQ else LT(high, low)
    return None


def _by_operands(e: CompareOp, nested: Min | Max, other: Expr, first: bool, known: Bounds) -> Expr | None:
    """Both operands are compared where the greater stands to the left or the smaller to the right, otherwise one of them is."""
    kind: Any = type(e)
    both = (type(nested) is Max) == first
    parts = [kind(x, other) if first else kind(other, x) for x in (nested.a, nested.b)]
    for part, rest in ((parts[0], parts[1]), (parts[1], parts[0])):
        gap = known.sum(part.b).plus(known.sum(part.a), -1).shifted(-1 if kind is LT else 0)  # at least 0 where it holds
        low, high = known.range_of(gap)
        if low is not None and low >= 0:
            return rest if both else IntImm(BOOL, 1)
        if high is not None and high < 0:
            return IntImm(BOOL, 0) if both else rest
    return None


_BY_PARTS = frozenset((Min, Max, Cast, Select, Call))  # operands of which the parts are compared


def fold_comparison(e: CompareOp, known: Bounds) -> Expr | None:
    """Simplifies any comparison. a > b → b < a, a >= b → b <= a (floats and vectors too: NaN compares false both ways)."""
    kind = type(e)
    if kind is GT:
        return LT(e.b, e.a)
    if kind is GE:
        return LE(e.b, e.a)
    if e.a.dtype.is_integer and e.a.dtype.lanes == 1:
        if type(e.a) in _BY_PARTS or type(e.b) in _BY_PARTS:
            simpler = compare_minmax(e, known)
            simpler = compare_number_of_bool(e) if simpler is None else simpler
            simpler = compare_choices(e, known) if simpler is None else simpler
            if simpler is not None:
                return simpler
        return fold_equal(e, known) if isinstance(e, (EQ, NE)) else fold_less(e, known)  # type: ignore[arg-type]
    folded = build.fold(kind, e.a, e.b)
    if folded is not None:
        return folded
    if kind is LT and known.same(e.a, e.b):                                       # x < x is false, NaN included
        return build.const(False, e.dtype)
    if e.a.dtype is BOOL and isinstance(e, (EQ, NE)):
        return _equal_bools(e)
    return None


def _equal_bools(e: EQ | NE) -> Expr | None:
    """Simplifies x == true → x, x == false → !x."""
    constant, other = (e.a, e.b) if isinstance(e.a, IntImm) else (e.b, e.a)
    if isinstance(constant, IntImm):
        return other if (constant.value == 1) == (type(e) is EQ) else build.logical_not(other)
    return None
