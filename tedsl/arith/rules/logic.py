"""Rules for And, Or and Not."""

from __future__ import annotations

import functools
from typing import Any

from tedsl.arith.affine import Sum
from tedsl.arith.bounds import Bounds
from tedsl.ir import build
from tedsl.ir.dtype import BOOL, INT32, INT64
from tedsl.ir.expr import EQ, GE, GT, LE, LT, NE, And, CompareOp, Expr, IntImm, Not, Or

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
    for rule in (_absorbed, _two_bounds, _with_equality):
        folded = rule(e, known)
        if folded is not None:
            return folded
    return _in_a_chain(e, known) if type(e.a) is type(e) else None


MAX_CHAIN = 8  # operands that the last one of a chain is compared with


def _in_a_chain(e: And | Or, known: Bounds) -> Expr | None:
    """Simplifies (x < 3 && y < 2) && x < 5 → x < 3 && y < 2: the last operand of a chain with one before it."""
    kind = type(e)
    parts, chain = [e.b], e.a
    while isinstance(chain, kind) and len(parts) < MAX_CHAIN:
        parts.append(chain.b)
        chain = chain.a
    parts.append(chain)
    last, *before = parts
    for at, part in enumerate(before):
        folded = part if known.same(part, last) else None
        for rule in (_two_bounds, _with_equality):
            folded = rule(kind(part, last), known) if folded is None else folded
        if folded is None or known.reads_memory(part) or known.reads_memory(last):
            continue
        if isinstance(folded, IntImm) or folded is part:
            return folded if folded is not part else e.a
        kept = [folded if i == at else other for i, other in enumerate(before)]
        return functools.reduce(kind, reversed(kept))
    return None


def _absorbed(e: And | Or, known: Bounds) -> Expr | None:
    """Simplifies p && (p || q) → p;  p || (p && q) → p;  p && (q && p) → q && p."""
    for p, nested in ((e.a, e.b), (e.b, e.a)):
        if isinstance(nested, (And, Or)) and (known.same(p, nested.a) or known.same(p, nested.b)):
            return nested if type(nested) is type(e) else p
    return None


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
        if both and room == 0:                                                    # x <= y && y <= x → x == y
            return _compared(EQ, left.times(-1), e.a, known)
        if not both and room == -2:                                               # x < y || y < x → x != y
            return _compared(NE, left.shifted(1).times(-1), e.a, known)
    return None


def _compared(kind: type[EQ] | type[NE], gap: Sum, like: Expr, known: Bounds) -> Expr | None:
    """Returns gap == 0 or gap != 0 as a comparison of the sides that `like` compares."""
    if not isinstance(like, CompareOp):
        return None
    if like.a.dtype not in (INT32, INT64) or not known.is_index(gap):
        return None
    left, right = (known.build(Sum({t: c * sign for t, c in gap.terms.items() if c * sign > 0}), like.a.dtype)
                   for sign in (1, -1))
    const = IntImm(like.a.dtype, -gap.const)
    if left is None or right is None:
        return None
    if not any(c < 0 for c in gap.terms.values()):
        return kind(left, const)
    if not any(c > 0 for c in gap.terms.values()):
        return kind(right, IntImm(like.a.dtype, gap.const))
    return kind(left, right) if gap.const == 0 else kind(left, build.sub(right, gap.const))


def _with_equality(e: And | Or, known: Bounds) -> Expr | None:
    """Decides a bound, or another equality, where an equality of the same values holds or fails.

        x == 3 && x < 5 → x == 3      x < y && x != y → x < y      x <= y && x != y → x < y      x < y || x == y → x <= y
    """
    for equality, other in ((e.a, e.b), (e.b, e.a)):
        gap = _zero(known, equality)
        if gap is None:
            continue
        if isinstance(other, (EQ, NE)):
            return _two_equalities(e, gap, equality, other, known)
        bound = at_least_zero(known, other)
        here = None if bound is None else _value_where_zero(gap, bound)
        if here is not None:
            return _bound_and_equality(e, equality, other, here)
    return None


def _zero(known: Bounds, condition: Expr) -> Sum | None:
    """Returns the sum, without a common factor, that is 0 exactly where the two sides of == or != are equal; or None."""
    if not isinstance(condition, (EQ, NE)) or not condition.a.dtype.is_integer or condition.a.dtype.lanes != 1:
        return None
    gap = known.sum(condition.a).plus(known.sum(condition.b), -1)
    g = gap.common_factor()
    return None if not g or gap.const % g else gap.divided(g)


def _value_where_zero(gap: Sum, bound: Sum) -> int | None:
    """Returns the value of `bound`, which is gap + c or c - gap, where gap is 0; else None."""
    if bound.key[0] == gap.key[0]:
        return bound.const - gap.const
    return bound.const + gap.const if bound.key[0] == gap.times(-1).key[0] else None


def _bound_and_equality(e: And | Or, equality: Expr, bound: Expr, here: int) -> Expr | None:
    """Returns `equality` and or or `bound`, a sum that must be at least 0 and is `here` where the sides are equal."""
    both, equal = type(e) is And, isinstance(equality, EQ)
    holds = here >= 0
    if equal:
        if both:
            return equality if holds else IntImm(BOOL, 0)
        return bound if holds else _moved(bound, LT, LE) if here == -1 else None
    if both:
        return bound if not holds else _moved(bound, LE, LT) if here == 0 else None
    return IntImm(BOOL, 1) if holds else equality


def _moved(bound: Expr, before: type[Expr], after: Any) -> Expr | None:
    """Returns a < b as a <= b, or the other way round."""
    moved: Expr | None = after(bound.a, bound.b) if isinstance(bound, CompareOp) and type(bound) is before else None
    return moved


def _two_equalities(e: And | Or, gap: Sum, first: Expr, second: Expr, known: Bounds) -> Expr | None:
    """Simplifies x == 1 && x == 2 → false;  x != 1 || x != 2 → true;  x == 1 && x != 2 → x == 1;  x == 1 || x != 2 → x != 2."""
    other = _zero(known, second)
    if other is None or (other.key != gap.key and _value_where_zero(gap, other) in (None, 0)):
        return None
    if other.key == gap.key:
        return None  # the same or opposite conditions
    both = type(e) is And
    if type(first) is type(second):
        return IntImm(BOOL, int(not both)) if isinstance(first, EQ) == both else None
    return (first if isinstance(first, EQ) else second) if both else (first if isinstance(first, NE) else second)




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
    if isinstance(condition, CompareOp) and not condition.a.dtype.is_custom and (
            not condition.a.dtype.is_float or isinstance(condition, (EQ, NE))):
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
