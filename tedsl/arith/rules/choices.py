"""Rules for Select and if_then_else. Both sides of a Select are evaluated; of an if_then_else one."""

from __future__ import annotations

from typing import Any

from tedsl.arith.bounds import Bounds
from tedsl.ir import build
from tedsl.ir.dtype import BOOL
from tedsl.ir.expr import EQ, NE, Add, BinaryOp, Call, Expr, IntImm, Max, Min, Mul, Not, Select, Sub
from tedsl.ir.ops import IF_THEN_ELSE, LIKELY

Sides = tuple[Expr, Expr, Expr]  # condition, value where it holds, value where it does not
TWO_CHOICES = frozenset((Add, Sub, Mul, Min, Max))  # operators that are applied to the sides of two choices


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
    a, b = e.a, e.b
    if not isinstance(a, Select) or not isinstance(b, Select):
        return None
    if not known.same(a.condition, b.condition):
        return None
    return Select(a.condition, build.binary(type(e), a.true_value, b.true_value),
                  build.binary(type(e), a.false_value, b.false_value))
