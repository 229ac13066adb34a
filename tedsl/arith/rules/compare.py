"""Rules for comparisons. Integers are decided by the range of the difference; floats only if they are constants."""

from __future__ import annotations

from typing import Any

from tedsl.arith.affine import Sum
from tedsl.arith.bounds import Bounds
from tedsl.arith.inequality import expand, nonnegative, worth_a_proof
from tedsl.arith.rules.floordiv import safe_build
from tedsl.ir import build
from tedsl.ir.dtype import BOOL, DType
from tedsl.ir.expr import EQ, GE, GT, LE, LT, NE, CompareOp, Expr, IntImm


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
    return _rewrite(type(e), a, b, gap, known, e.a.dtype)


def _rewrite(kind: type[CompareOp], a: Sum, b: Sum, gap: Sum, known: Bounds, dtype: DType) -> Expr | None:
    """Rewrites a comparison: x + 1 < y + 3 → x < y + 2;  x*4 < 10 → x < 3;  x + y < x + z → y < z."""
    node_type: Any = kind
    g = gap.common_factor()
    cancelled = len(gap.terms) < len(a.terms) + len(b.terms)
    movable = (a.const and b.const) or (a.const and not b.terms) or (b.const and not a.terms)
    if not (cancelled or movable or g > 1):
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
    return _rewrite(type(e), a, b, gap, known, e.a.dtype)


def fold_comparison(e: CompareOp, known: Bounds) -> Expr | None:
    """Simplifies any comparison. a > b → b < a, a >= b → b <= a (floats and vectors too: NaN compares false both ways)."""
    kind = type(e)
    if kind is GT:
        return LT(e.b, e.a)
    if kind is GE:
        return LE(e.b, e.a)
    if e.a.dtype.is_integer and e.a.dtype.lanes == 1:
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
