"""The lanes of a vector combined to one element: sum_lanes, prod_lanes, max_lanes, min_lanes."""

from __future__ import annotations

import math
from collections.abc import Callable

from tedsl.ir import build
from tedsl.ir.dtype import INT32, UINT64, DType
from tedsl.ir.expr import GT, LT, NE, Add, BinaryOp, Call, Expr, FloatImm, IntImm, Let, Max, Min, Mul, Select, Shuffle, Var
from tedsl.ir.ops import ISNAN, LANE_MASK, MAX_LANES, MIN_LANES, PROD_LANES, SUM_LANES, Op

OF_KIND: dict[type[Expr], Op] = {Add: SUM_LANES, Mul: PROD_LANES, Max: MAX_LANES, Min: MIN_LANES}
_KINDS: dict[Op, type[BinaryOp]] = {SUM_LANES: Add, PROD_LANES: Mul, MAX_LANES: Max, MIN_LANES: Min}
_MOST = 64  # lanes of a mask

Join = Callable[[Expr, Expr], Expr]


def in_halves(call: Call, *, without_nan: bool = False) -> Expr:
    """Returns what `call`, one of COMBINE_LANES, stands for: lane k is combined with lane k + n/2, until one is left.

        sum_lanes(v), 4 lanes   →   let a = v[0, 1] + v[2, 3] in a[0] + a[1]

    A number of lanes that is no power of two is parted into the largest power below it and the rest, combined last. The
    largest (smallest) of floats is NaN if one of them is, which is looked for once. without_nan: none of them is.
    """
    kind, (vector,), of = _KINDS[call.op], call.args, call.dtype
    if not of.is_float or kind not in (Max, Min):
        return _held(vector, lambda v: _combined(kind, v))
    better: Join = _greater if kind is Max else _less
    if without_nan:
        return _held(vector, lambda v: _combined(better, v))
    if vector.dtype.lanes > _MOST:
        return _held(vector, lambda v: kind(*(in_halves(Call(of, call.op, (part,))) for part in _halves(v))))
    return _held(vector, lambda v: Select(_any_nan(v), FloatImm(of, math.nan), _combined(better, v)))


def neutral(op: Op, of: DType) -> Expr:
    """Returns the element of dtype `of` that changes nothing when `op`, one of COMBINE_LANES, combines it with others."""
    if op in (SUM_LANES, PROD_LANES):
        return build.const(0 if op is SUM_LANES else 1, of)
    if of.is_float:
        return build.const(-math.inf if op is MAX_LANES else math.inf, of)
    low, high = (-1 << of.bits - 1, (1 << of.bits - 1) - 1) if of.is_int else (0, (1 << of.bits) - 1)
    return build.const(low if op is MAX_LANES else high, of)


def _combined(join: Join, vector: Expr) -> Expr:
    lanes = vector.dtype.lanes
    if lanes == 1:
        return vector
    low, high = _halves(vector)
    if low.dtype is high.dtype:
        return _held(join(low, high), lambda v: _combined(join, v))
    return _held(low, lambda a: _held(high, lambda b: join(_combined(join, a), _combined(join, b))))


def _held(value: Expr, body: Callable[[Expr], Expr]) -> Expr:
    """Returns `body` of a variable that holds `value`, of `value` itself if that is a variable or a scalar."""
    if isinstance(value, Var) or value.dtype.lanes == 1:
        return body(value)
    held = Var("lanes", value.dtype)
    return Let(held, value, body(held))


def _halves(vector: Expr) -> tuple[Expr, Expr]:
    lanes = vector.dtype.lanes
    half = 1 << (lanes - 1).bit_length() - 1
    return _some(vector, 0, half), _some(vector, half, lanes)


def _some(vector: Expr, begin: int, end: int) -> Expr:
    return Shuffle((vector,), tuple([build.int_imm(INT32, k) for k in range(begin, end)]))


def _greater(a: Expr, b: Expr) -> Expr:
    return _held(a, lambda x: _held(b, lambda y: Select(GT(x, y), x, y)))


def _less(a: Expr, b: Expr) -> Expr:
    return _held(a, lambda x: _held(b, lambda y: Select(LT(x, y), x, y)))


def _any_nan(vector: Expr) -> Expr:
    lanes = Call(build.true().dtype.with_lanes(vector.dtype.lanes), ISNAN, (vector,))
    return NE(Call(UINT64, LANE_MASK, (lanes,)), IntImm(UINT64, 0))
