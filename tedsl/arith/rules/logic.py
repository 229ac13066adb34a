"""Rules for And, Or, Not, Select, if_then_else and likely."""

from __future__ import annotations

from typing import Any

from tedsl.arith.affine import Sum
from tedsl.arith.bounds import Bounds
from tedsl.ir import build
from tedsl.ir.dtype import BOOL
from tedsl.ir.expr import EQ, GE, GT, LE, LT, NE, And, Call, CompareOp, Expr, IntImm, Not, Or, Select
from tedsl.ir.ops import IF_THEN_ELSE, LIKELY

_OPPOSITE: dict[type[CompareOp], Any] = {EQ: NE, NE: EQ, LT: GE, GE: LT, LE: GT, GT: LE}


def fold_logical(e: And | Or, known: Bounds) -> Expr | None:
    """Returns a simpler form of a conjunction or disjunction, or None."""
    folded = build.fold(type(e), e.a, e.b)
    if folded is not None:
        return folded
    if known.same(e.a, e.b):                                                      # x && x → x
        return e.a
    if known.same(e.a, negated(e.b)) or known.same(e.b, negated(e.a)):            # x && !x → false
        return build.const(type(e) is Or, e.dtype)
    return _two_bounds(e, known)


def _two_bounds(e: And | Or, known: Bounds) -> Expr | None:
    """Merges two bounds: x < 3 && x < 5 → x < 3;  x < 3 && 5 <= x → false;  x < 5 || 3 <= x → true."""
    left, right = at_least_zero(known, e.a), at_least_zero(known, e.b)
    if left is None or right is None:
        return None
    both = type(e) is And
    if left.key[0] == right.key[0]:                                               # the smaller constant is the stronger
        return e.a if (left.const <= right.const) == both else e.b
    if left.key[0] == right.times(-1).key[0]:                                     # -left <= t <= right
        room = left.const + right.const
        if both and room < 0:
            return IntImm(BOOL, 0)
        if not both and room >= -1:
            return IntImm(BOOL, 1)
    return None


def at_least_zero(known: Bounds, condition: Expr) -> Sum | None:
    """Returns the sum, without a common factor, that is at least 0 exactly if the comparison of scalar integers holds; or None.
    """
    if not isinstance(condition, (LT, LE, GT, GE)) or not condition.a.dtype.is_integer or condition.a.dtype.lanes != 1:
        return None
    a, b = known.sum(condition.a), known.sum(condition.b)
    gap = b.plus(a, -1) if isinstance(condition, (LT, LE)) else a.plus(b, -1)
    if isinstance(condition, (LT, GT)):
        gap = gap.shifted(-1)
    g = gap.common_factor()
    return Sum({t: c // g for t, c in gap.terms.items()}, gap.const // g) if g > 1 else gap


def negated(condition: Expr) -> Expr:
    """Returns the negation, without a Not where possible: integer comparisons are inverted (those of floats are not: NaN)."""
    if isinstance(condition, Not):
        return condition.a
    if isinstance(condition, CompareOp) and (not condition.a.dtype.is_float or isinstance(condition, (EQ, NE))):
        opposite = _OPPOSITE[type(condition)]
        if opposite is GT or opposite is GE:
            return (LT if opposite is GT else LE)(condition.b, condition.a)
        return opposite(condition.a, condition.b)  # type: ignore[no-any-return]
    return build.logical_not(condition)


def fold_not(e: Not, known: Bounds) -> Expr | None:
    """Simplifies !!x → x, !(a < b) → b <= a for integers, !(a && b) → !a || !b where that leaves no Not."""
    if isinstance(e.a, IntImm):
        return build.logical_not(e.a)
    if isinstance(e.a, (Not, CompareOp)):
        turned = negated(e.a)
        return turned if not isinstance(turned, Not) else None
    if isinstance(e.a, (And, Or)):
        sides = negated(e.a.a), negated(e.a.b)
        if not any(isinstance(side, Not) for side in sides):
            other: Any = Or if isinstance(e.a, And) else And
            return other(*sides)  # type: ignore[no-any-return]
    return None


def fold_select(e: Select, known: Bounds) -> Expr | None:
    """Simplifies select(true, x, y) → x, select(c, x, x) → x, select(!c, x, y) → select(c, y, x)."""
    c = e.condition
    if isinstance(c, IntImm):
        return e.true_value if c.value else e.false_value
    if known.same(e.true_value, e.false_value):
        return e.true_value
    return Select(c.a, e.false_value, e.true_value) if isinstance(c, Not) else None


def fold_call(e: Call, known: Bounds) -> Expr | None:
    """Simplifies if_then_else as select, and removes likely around a constant or a likely condition."""
    if e.op is IF_THEN_ELSE:
        c, x, y = e.args
        if isinstance(c, IntImm):
            return x if c.value else y
        return x if known.same(x, y) else None
    if e.op is LIKELY:
        inner = e.args[0]
        if isinstance(inner, IntImm) or (isinstance(inner, Call) and inner.op is e.op):
            return inner
    return None
