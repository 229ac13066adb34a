"""sin, cos, tan of an argument that is reduced to [-pi/4, pi/4]: x = n * pi/2 + r.

Up to 2**20 * pi/2 by Cody and Waite with pi/2 in four parts, three of 33 bits, so that their products with n are exact, or in
three with fused multiply-add; beyond, backends multiply the mantissa with a window of 192 bits of 2/pi (Payne and Hanek 1983).
float32 reduces in float64; up to 2**11 * pi/2 in float32, where there is fused multiply-add.
"""

from __future__ import annotations

from typing import TypeAlias

from tedsl.codegen.formulas.language import FunctionBody, Value

Reduced: TypeAlias = tuple[Value, Value, Value]  # n mod 4 in the low bits of an integer, high, low: x = n * pi/2 + high + low

# (sin(x) / x - 1) / x**2 and (cos(x) - 1 + x**2 / 2) / x**4 in x**2 on |x| < 0.79: errors below 2.1e-8 and 2.2e-17
SIN = {32: (-0.166666641831398, 0.008332736790180206, -0.0001958537322934717),
       64: (-0.16666666666666666, 0.008333333333330827, -0.0001984126983657571, 2.755731600817155e-06,
            -2.5051112272573243e-08, 1.5916726193889336e-10)}
COS = {32: (0.0416666641831398, -0.0013888290850445628, 2.454541936458554e-05),
       64: (0.041666666666666664, -0.0013888888888887322, 2.4801587298651292e-05, -2.755731721268659e-07,
            2.0876134024090145e-09, -1.1381754653662937e-11)}
# (tan(x) / x - 1) / x**2 in x**2 on |x| < 0.79, float32: error 1.3e-9 of tan(x)
TAN_SINGLE = (0.33333349227905273, 0.13332675397396088, 0.05405891686677933, 0.021286165341734886, 0.010827616788446903,
              9.795054938877001e-05, 0.00437287800014019)
HALF_PI = (1.5707963267341256, 6.077100506303966e-11, 2.0222662487111665e-21, 8.4784276603689e-32)
HALF_PI_FUSED = {32: (1.5707963705062866, -4.371395334601402e-08, 2.5633440682570896e-12),
                 64: (1.5707963267948966, 6.12323399538461e-17, 3.5215598651832e-27)}
TWO_OVER_PI = 0.6366197723675814
LIMIT = 1647099.0  # below 2**20 * pi/2
NEAR = 3216.0  # below 2**11 * pi/2

# The first 1280 bits of 2/pi, most significant first (computed with mpmath), after one zero word.
TWO_OVER_PI_WORDS = (
    0x0000000000000000,
    0xA2F9836E4E441529, 0xFC2757D1F534DDC0, 0xDB6295993C439041, 0xFE5163ABDEBBC561, 0xB7246E3A424DD2E0,
    0x06492EEA09D1921C, 0xFE1DEB1CB129A73E, 0xE88235F52EBB4484, 0xE99C7026B45F7E41, 0x3991D639835339F4,
    0x9C845F8BBDF9283B, 0x1FF897FFDE05980F, 0xEF2F118B5A0A6D1F, 0x6D367ECF27CB09B7, 0x4F463F669E5FEA2D,
    0x7527BAC7EBE5F17B, 0x3D0739F78A5292EA, 0x6BFB5FB11F8D5D08, 0x56033046FC7B6BAB, 0xF0CFBC209AF4361D,
)


def reduce(out: FunctionBody, x: Value) -> Reduced:
    """Reduces |x| < LIMIT in float64."""
    if out.has_fma:
        return reduce_fused(out, x)
    n, integer = (x * TWO_OVER_PI).nearest()
    a = x - n * HALF_PI[0]
    b = n * HALF_PI[1]
    r1 = a - b
    e1 = (a - r1) - b
    c = n * HALF_PI[2]
    r2 = r1 - c
    e2 = (r1 - r2) - c
    rest = (e1 + e2) - n * HALF_PI[3]
    high = r2 + rest
    return integer, high, (r2 - high) + rest


def reduce_single(out: FunctionBody, x: Value) -> Reduced:
    """Reduces |x| < LIMIT, in float64, to floats of 32 bits."""
    n, integer = (x * TWO_OVER_PI).nearest()
    for part in HALF_PI[:3]:
        x = out.fma(n, -part, x)
    return in_singles(integer, x)


def in_singles(quadrant: Value, r: Value) -> Reduced:
    """The quadrant in 32 bits, and r, in float64, as a sum of two floats of 32 bits."""
    high = r.narrow()
    return quadrant.narrow(), high, (r - high.widen()).narrow()


def reduce_fused(out: FunctionBody, x: Value) -> Reduced:
    """Reduces |x| < NEAR of float32 or |x| < LIMIT of float64 in their precision, for a target with fused multiply-add.

    x less n times the first part is a multiple of 2**-24 (2**-53) below 1, so it is exact. The second part has 13 (33) bits,
    the least 2**-37 (2**-86): its product with n has 24 (53), and what `high` leaves of the difference is exact, too.
    """
    n, integer = x.nearest_multiple(TWO_OVER_PI)
    first, second, third = HALF_PI_FUSED[x.bits]
    less = out.fma(n, -first, x)
    high = out.fma(n, -second, less)
    return integer, high, out.fma(n, -third, out.fma(n, -second, less - high))


def quadrant_sin(out: FunctionBody, quadrant: Value, high: Value, low: Value) -> Value:
    """sin(quadrant * pi/2 + high + low), the polynomials in the precision of `high`."""
    s, c = kernels(out, high, low)
    odd = (quadrant & 1).equals(1)
    result = odd.choose(c, s)
    shift = 62 if high.bits == 64 else 30
    return (result.as_bits() ^ ((quadrant & 2) << shift)).as_float()


def kernels(out: FunctionBody, high: Value, low: Value) -> tuple[Value, Value]:
    """(sin, cos) of high + low, |high| <= pi/4."""
    sine, cosine = kernel_parts(out, high, low)
    return sine[0] + sine[1], cosine[0] + cosine[1]


def kernel_parts(out: FunctionBody, high: Value, low: Value) -> tuple[tuple[Value, Value], tuple[Value, Value]]:
    """sin and cos of high + low, each as an exact large part and a small one to be added to it."""
    z = high * high
    half = z * 0.5
    w = 1.0 - half
    lost = (1.0 - w) - half
    cubic = z * high
    rest = out.fma(out.horner(z, COS[high.bits]) * z, z, lost)
    if out.has_fma or high.bits == 32:
        low_cosine = low if high.bits == 32 else out.fma(-half, low, low)
        return (high, out.fma(out.horner(z, SIN[high.bits]), cubic, low_cosine)), (w, out.fma(high, -low, rest))
    poly = out.horner(z, SIN[high.bits][1:])
    sine_rest = cubic * SIN[high.bits][0] - (z * (low * 0.5 - cubic * poly) - low)
    return (high, sine_rest), (w, rest - high * low)


def tan_of(out: FunctionBody, quadrant: Value, high: Value, low: Value) -> Value:
    """sin / cos, or -cos / sin in odd quadrants; the rounding errors of both are put back into the quotient."""
    (s_large, s_small), (c_large, c_small) = kernel_parts(out, high, low)
    s, s_low = out.quick_total(s_large, s_small)
    c, c_low = out.quick_total(c_large, c_small)
    odd = (quadrant & 1).equals(1)
    top, top_low = odd.choose(-c, s), odd.choose(-c_low, s_low)
    bottom, bottom_low = odd.choose(s, c), odd.choose(s_low, c_low)
    if out.has_fma:
        inverse = 1.0 / bottom
        quotient = top * inverse
        error = out.fma(-quotient, bottom, top) + out.fma(-quotient, bottom_low, top_low)
        return out.fma(error, inverse, quotient)
    quotient = top / bottom
    return quotient + (top_low - quotient * bottom_low) / bottom


def tan_single(out: FunctionBody, quadrant: Value, high: Value, low: Value) -> Value:
    """tan(high + low), or -1 / tan in odd quadrants, of float32."""
    z = high * high
    rest = out.fma(out.horner(z, TAN_SINGLE), z * high, out.fma(low, z, low))
    t, t_low = out.quick_total(high, rest)
    inverse = -1.0 / t
    product, product_low = out.product(inverse, t)
    error = ((-1.0 - product) - product_low) - inverse * t_low
    return (quadrant & 1).equals(1).choose(inverse - inverse * error, t)


def finish(out: FunctionBody, name: str, quadrant: Value, high: Value, low: Value) -> Value:
    """Returns sin, cos or tan of quadrant * pi/2 + high + low."""
    if name == "tan":
        return (tan_single if high.bits == 32 else tan_of)(out, quadrant, high, low)
    return quadrant_sin(out, quadrant + 1 if name == "cos" else quadrant, high, low)
