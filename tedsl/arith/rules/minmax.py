"""Rules for Min and Max of scalar integers whose order is known. Floats: only of an operand with itself."""

from __future__ import annotations

from tedsl.arith.bounds import Bounds
from tedsl.arith.inequality import nonnegative
from tedsl.ir import build
from tedsl.ir.expr import Expr, IntImm, Max, Min


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
    return None


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
