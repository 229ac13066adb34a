"""Rules for vectors: operations on broadcasts and ramps are done once, on scalars."""

from __future__ import annotations

from typing import Any

from tedsl.arith.affine import Sum
from tedsl.arith.bounds import Bounds
from tedsl.arith.inequality import nonnegative
from tedsl.arith.modular import residue_of
from tedsl.arith.rules.floordiv import safe_build
from tedsl.ir import build
from tedsl.ir.dtype import INT32, INT64
from tedsl.ir.expr import (
    LE,
    LT,
    Add,
    Broadcast,
    Cast,
    Div,
    Expr,
    FloorDiv,
    FloorMod,
    IntImm,
    Max,
    Min,
    Mod,
    Mul,
    Not,
    Ramp,
    Select,
    Sub,
)


def fold_vector(e: Any, known: Bounds) -> Expr | None:
    """Returns a simpler form of a binary operator on vectors, or None."""
    a, b, kind = e.a, e.b, type(e)
    if isinstance(a, Broadcast) and isinstance(b, Broadcast):                     # lane by lane the same operation
        return Broadcast(build.binary(kind, a.value, b.value), a.lanes)
    if not a.dtype.is_integer:
        return None
    if kind in (Add, Sub, Mul):
        return _linear(kind, a, b)
    if kind is Min or kind is Max:
        return _chosen(e, known)
    if kind in (Div, Mod):
        return _truncated(e, known)
    if kind in (FloorDiv, FloorMod) and isinstance(a, Ramp) and isinstance(b, Broadcast) and isinstance(b.value, IntImm):
        return _split(kind, a, b.value.value, known)
    if kind is LT or kind is LE:
        return _compare(e, known)
    return None


def fold_lanes(e: Select | Cast | Not, known: Bounds) -> Expr | None:
    """Returns a choice, a cast or a negation of vectors with the same value in every lane, or a cast ramp, done on scalars."""
    if isinstance(e, Select):
        x, y, c = e.true_value, e.false_value, e.condition
        if isinstance(x, Broadcast) and isinstance(y, Broadcast) and (isinstance(c, Broadcast) or c.dtype.lanes == 1):
            return Broadcast(Select(c.value if isinstance(c, Broadcast) else c, x.value, y.value), x.lanes)
        return None
    if isinstance(e, Not):
        return Broadcast(build.logical_not(e.a.value), e.a.lanes) if isinstance(e.a, Broadcast) else None
    if isinstance(e.value, Broadcast):
        return Broadcast(build.cast(e.dtype.element, e.value.value), e.value.lanes)
    if isinstance(e.value, Ramp) and e.dtype.element is INT64 and _lanes_of(e.value, known) is not None:
        return Ramp(build.cast(INT64, e.value.base), build.cast(INT64, e.value.stride), e.value.lanes)
    return None                                                                   # lanes of data wrap before they are cast


def _truncated(e: Div | Mod, known: Bounds) -> Expr | None:
    """Simplifies the lanes of a ramp of nonnegative integers under / d and mod d, d > 0, which are // d and % d."""
    lanes = _lanes_of(e.a, known)
    if lanes is None or not isinstance(e.a, Ramp) or not isinstance(e.b, Broadcast) or not isinstance(e.b.value, IntImm):
        return None
    base, stride = lanes
    if not nonnegative(known, base.shifted(min(stride * (e.a.lanes - 1), 0))):
        return None
    return _split(FloorDiv if isinstance(e, Div) else FloorMod, e.a, e.b.value.value, known)


def _chosen(e: Min | Max, known: Bounds) -> Expr | None:
    """Returns the operand of a min or max that is chosen in every lane."""
    left, right = _lanes_of(e.a, known), _lanes_of(e.b, known)
    if left is None or right is None:
        return None
    gap, step = right[0].plus(left[0], -1), (right[1] - left[1]) * (e.a.dtype.lanes - 1)
    if nonnegative(known, gap.shifted(min(step, 0))):                             # left <= right in every lane
        return e.a if isinstance(e, Min) else e.b
    if nonnegative(known, gap.shifted(max(step, 0)).times(-1)):
        return e.b if isinstance(e, Min) else e.a
    return None


def _linear(kind: Any, a: Expr, b: Expr) -> Expr | None:
    """Simplifies ramp(b, s) + broadcast(x) → ramp(b + x, s), ramp + ramp, ramp * broadcast: right for wrapping integers too."""
    left, right = _base_and_stride(a), _base_and_stride(b)
    if left is None or right is None:
        return None
    lanes = a.dtype.lanes
    if kind is Mul:
        if isinstance(a, Ramp) and isinstance(b, Ramp):
            return None
        ramp, factor = (left, right[0]) if isinstance(a, Ramp) else (right, left[0])
        base, stride = build.mul(ramp[0], factor), build.mul(ramp[1], factor)
    else:
        base, stride = build.binary(kind, left[0], right[0]), build.binary(kind, left[1], right[1])
    return Broadcast(base, lanes) if build.as_int(stride) == 0 else Ramp(base, stride, lanes)


def _base_and_stride(e: Expr) -> tuple[Expr, Expr] | None:
    if isinstance(e, Ramp):
        return e.base, e.stride
    return (e.value, IntImm(e.dtype.element, 0)) if isinstance(e, Broadcast) else None


def _lanes_of(e: Expr, known: Bounds) -> tuple[Sum, int] | None:
    """Returns the base and the constant stride of a vector whose lanes are ideal integers; None for any other."""
    lanes = _base_and_stride(e)
    stride = None if lanes is None else build.as_int(lanes[1])
    if lanes is None or stride is None or (e.dtype.element is not INT32 and e.dtype.element is not INT64):
        return None
    base = known.sum(lanes[0])
    return (base, stride) if known.is_index(base) else None


def _split(kind: Any, a: Ramp, d: int, known: Bounds) -> Expr | None:
    """Simplifies the lanes of a ramp under // d and % d, d > 0."""
    lanes = _lanes_of(a, known)
    if lanes is None or d <= 0:
        return None
    base, stride = lanes
    by = IntImm(a.base.dtype, d)
    if stride % d == 0:                                                           # whole steps: every lane has one remainder
        if kind is FloorMod:
            return Broadcast(build.floormod(a.base, by), a.lanes)
        return Ramp(build.floordiv(a.base, by), IntImm(a.base.dtype, stride // d), a.lanes)
    coeff, first = residue_of(known, base)
    if coeff % d == 0 and (first % d + stride * (a.lanes - 1)) // d == 0:         # all lanes in one block of d
        if kind is FloorDiv:
            return Broadcast(build.floordiv(a.base, by), a.lanes)
        return Ramp(build.floormod(a.base, by), a.stride, a.lanes)
    return None


def _compare(e: LT | LE, known: Bounds) -> Expr | None:
    """Decides a comparison that has the same result in every lane, or compares what quotients are made of."""
    left, right = _lanes_of(e.a, known), _lanes_of(e.b, known)
    if left is None or right is None:
        return _compare_quotients(e, known)
    gap, step = right[0].plus(left[0], -1), (right[1] - left[1]) * (e.a.dtype.lanes - 1)
    gap = gap.shifted(-1) if isinstance(e, LT) else gap                           # a lane holds if gap + k*step >= 0
    if nonnegative(known, gap.shifted(min(step, 0))):
        return Broadcast(build.const(True), e.a.dtype.lanes)
    if nonnegative(known, gap.shifted(max(step, 0)).times(-1).shifted(-1)):
        return Broadcast(build.const(False), e.a.dtype.lanes)
    return None


def _compare_quotients(e: LT | LE, known: Bounds) -> Expr | None:
    """Simplifies broadcast(x) + ramp(b, s) // d < broadcast(n) → ramp(b + x*d, s) < broadcast(n*d) for a constant d > 0, and
    the same with <=: the mask of the first groups of lanes is that of the first lanes.
    """
    quotient: Any = e.a
    moved = Sum({})
    while isinstance(quotient, Add) and isinstance(quotient.a, Broadcast):
        quotient, moved = quotient.b, moved.plus(known.sum(quotient.a.value))
    if not isinstance(e.b, Broadcast) or not isinstance(quotient, FloorDiv) or not isinstance(quotient.b, Broadcast):
        return None
    if not isinstance(quotient.a, Ramp):
        return None
    lanes, d, dtype = _lanes_of(quotient.a, known), build.as_int(quotient.b.value), e.b.value.dtype
    limit = known.sum(e.b.value).shifted(isinstance(e, LE))
    if lanes is None or d is None or d < 1 or not known.is_index(moved) or not known.is_index(limit):
        return None
    first = lanes[0].plus(moved.times(d))
    base, bound = safe_build(known, first, dtype), safe_build(known, limit.times(d), dtype)
    last = safe_build(known, first.shifted(lanes[1] * (quotient.a.lanes - 1)), dtype)
    if base is None or bound is None or last is None:
        return None
    return LT(Ramp(base, quotient.a.stride, quotient.a.lanes), Broadcast(bound, quotient.a.lanes))
