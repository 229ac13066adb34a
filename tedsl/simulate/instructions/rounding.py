"""Floating-point results as hardware rounds them: exactly computed, rounded once.

A sum of two doubles is "rounded to odd" where the nearest double below or above it with an odd last bit stands for all inexact
values between its neighbours. Such a double, rounded again to a type of at most 51 bits, gives what one rounding of the exact
sum gives (Boldo and Melquiond, 2008).
"""

from __future__ import annotations

from fractions import Fraction
from typing import cast

import numpy as np

from tedsl.simulate.instructions.operation import Array

NEAREST, ZERO, DOWN, UP = "rn", "rz", "rm", "rp"
MODES = frozenset((NEAREST, ZERO, DOWN, UP))
_SMALLEST = np.float64(2.0 ** -126)
_LOW, _HALF = np.int64((1 << 29) - 1), np.int64(1 << 28)  # the bits of a double behind those of a float, half of a last place
_SPLIT = np.float64(2.0 ** 27 + 1)


def sum_and_error(a: Array, b: Array) -> tuple[Array, Array]:
    """Returns a + b, rounded, and what the rounding took away, exactly."""
    total = a + b
    part = total - a
    return total, (a - (total - part)) + (b - part)


def odd_sum(a: Array, b: Array) -> Array:
    """Returns the sum of doubles, rounded to odd."""
    total, error = sum_and_error(a, b)
    total = np.array(total, ndmin=1)
    bits = total.view(np.int64)
    step = np.where((error > 0) == (total > 0), 1, -1)
    inexact = np.isfinite(total) & (error != 0) & ((bits & 1) == 0)
    return cast(Array, (bits + np.where(inexact, step, 0)).view(np.float64))


def narrowed(exact: Array, to: str, mode: str = NEAREST) -> Array:
    """Returns doubles (exact, or rounded to odd) rounded to f32 or f16; f64 are returned."""
    kind = {"f32": np.float32, "f16": np.float16, "f64": np.float64}[to]
    near = exact.astype(kind)
    if mode == NEAREST or to == "f64":
        return near
    back = near.astype(np.float64)
    bound = np.array([0.0 if mode == ZERO else -np.inf if mode == DOWN else np.inf], kind)
    wrong = np.abs(back) > np.abs(exact) if mode == ZERO else back > exact if mode == DOWN else back < exact
    return np.where(wrong, np.nextafter(near, bound), near)


def fused32(a: Array, b: Array, c: Array) -> Array:
    """Returns a * b + c of floats, rounded once to the nearest.

    The product is exact in doubles. Their sum is rounded to a double and then to a float, which differs from one rounding only
    where the double stands in the middle between two floats, or below the normal numbers: there it is rounded to odd.
    """
    product, added = np.multiply(a, b, dtype=np.float64), c.astype(np.float64)
    total = product + added
    low = total.view(np.int64) & _LOW
    doubtful = low == _HALF
    tiny = np.abs(total) < _SMALLEST
    result = total.astype(np.float32)
    if doubtful.any() or tiny.any():
        doubtful |= tiny & (total != 0)
        at = np.flatnonzero(doubtful)
        if at.size:
            product, added = np.broadcast_arrays(product, added)
            result[at] = odd_sum(product[at], added[at]).astype(np.float32)
    return cast(Array, result)


def product_and_error(a: Array, b: Array) -> tuple[Array, Array]:
    """Returns a * b of doubles, rounded, and what the rounding took away, where nothing overflows or underflows (Dekker)."""
    product = a * b
    a_high, b_high = a * _SPLIT, b * _SPLIT
    a_high, b_high = a_high - (a_high - a), b_high - (b_high - b)
    a_low, b_low = a - a_high, b - b_high
    return product, a_low * b_low - (((product - a_high * b_high) - a_low * b_high) - a_high * b_low)


def fused64(a: Array, b: Array, c: Array) -> Array:
    """Returns a * b + c of doubles, rounded once to the nearest."""
    a, b, c = np.broadcast_arrays(a, b, c)
    high, low = product_and_error(a, b)
    inner, inner_error = sum_and_error(c, low)
    outer, outer_error = sum_and_error(high, inner)
    result: Array = outer + odd_sum(inner_error, outer_error)
    plain = ~(np.isfinite(a) & np.isfinite(b) & np.isfinite(c)) | (a == 0) | (b == 0)
    if plain.any():
        kept = np.isfinite(a) & np.isfinite(b) & ~np.isfinite(c)
        result = np.where(plain, np.where(kept, c, a * b + c), result)
    sizes = np.abs(high)
    extreme = ~plain & ((sizes < 2.0 ** -900) | (sizes > 2.0 ** 1000) | (np.abs(a) > 2.0 ** 980) | (np.abs(b) > 2.0 ** 980)
                        | (np.abs(c) > 2.0 ** 1000) | (np.abs(result) < 2.0 ** -900))
    for at in np.flatnonzero(extreme):
        result[at] = _fused(float(a[at]), float(b[at]), float(c[at]))
    return result


def _fused(a: float, b: float, c: float) -> float:
    exact = Fraction(a) * Fraction(b) + Fraction(c)
    if exact == 0:
        return a * b + c if c == 0 else 0.0
    try:
        return float(exact)
    except OverflowError:
        return float("inf") if exact > 0 else float("-inf")


def flushed(values: Array) -> Array:
    """Returns floats with zeros of their sign for those below the normal numbers."""
    return np.where(np.abs(values) < np.float32(2.0 ** -126), np.copysign(np.float32(0), values), values)


def bfloat(values: Array) -> Array:
    """Returns floats (exact, or rounded to odd) as the bits of the nearest bfloat16; NaN is 0x7fff."""
    bits = values.view(np.uint32)
    rounded = (bits + np.uint32(0x7FFF) + ((bits >> np.uint32(16)) & np.uint32(1))) >> np.uint32(16)
    return np.where(np.isnan(values), np.uint32(0x7FFF), rounded).astype(np.uint16)


def bfloat_values(bits: Array) -> Array:
    """Returns the bits of bfloat16 numbers as floats."""
    return cast(Array, (bits.astype(np.uint32) << np.uint32(16)).view(np.float32))


def odd_floats(values: Array) -> Array:
    """Returns doubles (exact, or rounded to odd) as floats rounded to odd."""
    near = values.astype(np.float32)
    back = near.astype(np.float64)
    bits = near.view(np.int32)
    wrong = np.isfinite(near) & (back != values) & ((bits & 1) == 0)
    step = np.where(np.abs(back) < np.abs(values), 1, -1)
    return cast(Array, (bits + np.where(wrong, step, 0).astype(np.int32)).view(np.float32))
