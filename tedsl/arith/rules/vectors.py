"""Rules for vectors: operations on broadcasts and ramps are done once, on scalars."""

from __future__ import annotations

from typing import Any

from tedsl.arith.affine import Sum
from tedsl.arith.bounds import Bounds
from tedsl.arith.inequality import nonnegative
from tedsl.arith.modular import residue_of
from tedsl.ir import build
from tedsl.ir.dtype import INT32, INT64
from tedsl.ir.expr import LE, LT, Add, Broadcast, Expr, FloorDiv, FloorMod, IntImm, Mul, Ramp, Sub


def fold_vector(e: Any, known: Bounds) -> Expr | None:
    """Returns a simpler form of a binary operator on vectors, or None."""
    a, b, kind = e.a, e.b, type(e)
    if isinstance(a, Broadcast) and isinstance(b, Broadcast):                     # lane by lane the same operation
        return Broadcast(build.binary(kind, a.value, b.value), a.lanes)
    if not a.dtype.is_integer:
        return None
    if kind in (Add, Sub, Mul):
        return _linear(kind, a, b)
    if kind in (FloorDiv, FloorMod) and isinstance(a, Ramp) and isinstance(b, Broadcast) and isinstance(b.value, IntImm):
        return _split(kind, a, b.value.value, known)
    if kind is LT or kind is LE:
        return _compare(e, known)
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
    """Decides a comparison that has the same result in every lane."""
    left, right = _lanes_of(e.a, known), _lanes_of(e.b, known)
    if left is None or right is None:
        return None
    gap, step = right[0].plus(left[0], -1), (right[1] - left[1]) * (e.a.dtype.lanes - 1)
    gap = gap.shifted(-1) if isinstance(e, LT) else gap                           # a lane holds if gap + k*step >= 0
    if nonnegative(known, gap.shifted(min(step, 0))):
        return Broadcast(build.const(True), e.a.dtype.lanes)
    if nonnegative(known, gap.shifted(max(step, 0)).times(-1).shifted(-1)):
        return Broadcast(build.const(False), e.a.dtype.lanes)
    return None
