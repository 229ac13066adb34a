"""Rules for Select and if_then_else. Both sides of a Select are evaluated; of an if_then_else one."""

from __future__ import annotations

from typing import Any

from tedsl.arith.bounds import Bounds
from tedsl.ir import build
from tedsl.ir.dtype import BOOL
from tedsl.ir.expr import EQ, LT, NE, Add, BinaryOp, Call, CompareOp, Expr, IntImm, Max, Min, Mul, Not, Select, Sub
from tedsl.ir.ops import IF_THEN_ELSE, LIKELY

Sides = tuple[Expr, Expr, Expr]  # condition, value where it holds, value where it does not
TWO_CHOICES = (Add, Sub, Mul, Min, Max)  # operators that are applied to the sides of two choices


def fold_select(e: Select, known: Bounds) -> Expr | None:
    """Returns a simpler form of a Select, or None."""
    folded = _decided((e.condition, e.true_value, e.false_value), known)
    if folded is not None:
        return folded
    merged = _merged((e.condition, e.true_value, e.false_value), known, _sides_of_select)
    return None if merged is None else Select(*merged)


def fold_call(e: Call, known: Bounds) -> Expr | None:
    """Simplifies if_then_else as Select, and removes likely around a constant or a likely condition."""
    if e.op is IF_THEN_ELSE:
        sides = e.args[0], e.args[1], e.args[2]
        folded = _decided(sides, known)
        if folded is not None:
            return folded
        merged = _merged(sides, known, _sides_of_choice)
        return None if merged is None else Call(e.dtype, e.op, merged)
    if e.op is LIKELY:
        inner = e.args[0]
        if isinstance(inner, IntImm) or (isinstance(inner, Call) and inner.op is e.op):
            return inner
    return None


def _decided(sides: Sides, known: Bounds) -> Expr | None:
    """Simplifies true ? x : y → x;  c ? x : x → x;  p ? true : false → p;  x == y ? x : y → y."""
    c, x, y = sides
    if isinstance(c, IntImm):
        return x if c.value else y
    if known.same(x, y):
        return x
    if c.dtype is BOOL and isinstance(x, IntImm) and isinstance(y, IntImm) and x.dtype is BOOL:
        return c if x.value else build.logical_not(c)  # x and y differ
    if isinstance(c, (EQ, NE)) and c.a.dtype.is_integer and x.dtype is c.a.dtype:
        same = (known.same(x, c.a) and known.same(y, c.b)) or (known.same(x, c.b) and known.same(y, c.a))
        return (y if isinstance(c, EQ) else x) if same else None
    return None


def _sides_of_select(e: Expr) -> Sides | None:
    return (e.condition, e.true_value, e.false_value) if isinstance(e, Select) else None


def _sides_of_choice(e: Expr) -> Sides | None:
    return (e.args[0], e.args[1], e.args[2]) if isinstance(e, Call) and e.op is IF_THEN_ELSE else None


def _merged(sides: Sides, known: Bounds, sides_of: Any) -> Sides | None:
    """Merges choices of one kind, one in a side of the other:

        !c ? x : y           →  c ? y : x          c ? (d ? x : y) : y  →  c && d ? x : y
        c ? (c ? x : y) : z  →  c ? x : z          c ? x : (d ? x : y)  →  c || d ? x : y
    """
    c, x, y = sides
    if isinstance(c, Not):
        return c.a, y, x
    above, below = sides_of(x), sides_of(y)
    if above is not None and known.same(above[0], c):
        return c, above[1], y
    if below is not None and known.same(below[0], c):
        return c, x, below[2]
    if above is not None and known.same(above[2], y) and _anywhere(c, above[0], known):
        return build.logical_and(c, above[0]), above[1], y
    if below is not None and known.same(below[1], x) and _anywhere(c, below[0], known):
        return build.logical_or(c, below[0]), x, below[2]
    return None


def _anywhere(c: Expr, d: Expr, known: Bounds) -> bool:
    """Tells whether d may be evaluated wherever c is: it reads no memory that c guards."""
    return c.dtype is d.dtype and not known.reads_memory(d)


def fold_two_choices(e: BinaryOp, known: Bounds) -> Expr | None:
    """Simplifies (c ? x : y) + (c ? z : w) → c ? x + z : y + w, for the operators of TWO_CHOICES."""
    for kind, sides_of in ((Select, _sides_of_select), (Call, _sides_of_choice)):
        a, b = sides_of(e.a), sides_of(e.b)
        if a is None or b is None:
            continue
        if not known.same(a[0], b[0]):
            return None
        x, y = (build.binary(type(e), first, second) for first, second in zip(a[1:], b[1:]))
        return Select(a[0], x, y) if kind is Select else Call(e.dtype, IF_THEN_ELSE, (a[0], x, y))
    return None


def compare_choices(e: CompareOp, known: Bounds) -> Expr | None:
    """Simplifies (c ? 1 : 0) == 1 → c and (c ? x : y) < (c ? x + 1 : y + 1) → true, decided on each side."""
    a, b = _sides_of_any(e.a), _sides_of_any(e.b)
    sides = a or b
    if sides is None or (a is not None and b is not None and not known.same(a[0], b[0])):
        return None
    condition = sides[0]
    if condition.dtype is not BOOL:
        return None
    first, second = (_holds(type(e), e.a if a is None else a[side], e.b if b is None else b[side], known) for side in (1, 2))
    if first is None or second is None:
        return None
    if first == second:
        return IntImm(BOOL, int(first))
    return condition if first else build.logical_not(condition)


def _sides_of_any(e: Expr) -> Sides | None:
    return _sides_of_select(e) or _sides_of_choice(e)


def _holds(kind: type[CompareOp], a: Expr, b: Expr, known: Bounds) -> bool | None:
    """Decides an integer comparison by the range of the difference, or returns None."""
    low, high = known.range_of(known.sum(b).plus(known.sum(a), -1))
    if kind is EQ or kind is NE:
        if low == high == 0:
            return kind is EQ
        return kind is NE if (low is not None and low > 0) or (high is not None and high < 0) else None
    least = 1 if kind is LT else 0
    if low is not None and low >= least:
        return True
    return False if high is not None and high < least else None
