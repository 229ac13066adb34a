"""pow and hypot.

pow(x, y) = 2**(y * log2 |x|) with the sign and the special cases of C. The logarithm is an unevaluated sum of two floats
(about 68 bits of float64, 36 of float32, which has tables for it), for y multiplies its error by up to 745 or 104.
"""

from __future__ import annotations

import math

from tedsl.codegen.formulas.exponential import LN2, LOG2_E, clamp, reduced_exp
from tedsl.codegen.formulas.language import INFINITY, FunctionBody, Table, Value
from tedsl.codegen.formulas.logarithm import split

# (2 atanh(s) / s - 2 - 2/3 s**2) / s**4 in s**2 on s**2 < 0.0295: error 1.3e-20
ATANH_TAIL = (0.4, 0.28571428571428564, 0.22222222222228424, 0.18181818179658246, 0.15384615760977463, 0.13333296549572363,
              0.11766812466114947, 0.10456341945425285, 0.10762291418628644)
TWO_THIRDS = (0.6666666666666666, 3.700743415417188e-17)
LN_2 = (0.6931471803691238, 1.9082149292705877e-10)  # the first of 32 bits: its product with an exponent is exact
# float32: 1 / c to 5 bits for a c in each 32nd of [1, 3/2) and [3/4, 1), so that m / c - 1 is exact; 1 in those that touch 1.
# log(c), of 2 c in the latter, in two parts: sums of the first with n times that of ln2 are exact.
RECIPROCALS = tuple(k / 32 for k in (32, *(round(32 / (1 + (2 * k + 1) / 64)) for k in range(1, 16)),
                                     *(round(64 / (1 + (2 * k + 1) / 64)) for k in range(16, 31)), 32))
LN_2_SINGLE = (90852 / 2**17, 1.42860677e-06)
LOGS = tuple((k >= 16) * math.log(2.0) - math.log(c) for k, c in enumerate(RECIPROCALS))
LOGS_HIGH = tuple(round(value * 2**17) / 2**17 for value in LOGS)
ONE_BY_C = Table("tedsl.reciprocal", 32, RECIPROCALS)
LOG_C = Table("tedsl.log_high", 32, LOGS_HIGH)
LOG_C_LOW = Table("tedsl.log_low", 32, tuple(a - b for a, b in zip(LOGS, LOGS_HIGH)))
# (log(1 + r) - r + r**2 / 2) / r**3 on |r| < 0.0357 (beside 1 up to 1/32): error 1.3e-11 of r
CUBIC = (0.33333322405815125, -0.2499999701976776, 0.20026512444019318, -0.16681897640228271)
EXP_TOP = 150.0  # exp of float32 is inf there, and 0 at -EXP_TOP
LARGEST_EVEN = 2147483520.0  # beyond this |y| the power of a float32 is 0, 1 or inf, and y is even


def log_pair(out: FunctionBody, x: Value) -> tuple[Value, Value]:
    """log(x) for finite x > 0 as high + low: 2 atanh(s), s = (m - 1) / (m + 1), in double-double up to the cubic term."""
    e, m = split(x)
    f, d = m - 1.0, m + 1.0  # f is exact (Sterbenz)
    d_low = m - (d - 1.0)
    s = f / d
    p, p_low = out.product(s, d)
    s_low = (((f - p) - p_low) - s * d_low) / d
    z, z_low = out.product(s, s)
    z_low = z_low + 2.0 * s * s_low
    # s * z * (2/3 + z * tail): the factor 2/3 in two parts, the tail in one
    q = out.horner(z, ATANH_TAIL) * z
    k, k_low = out.quick_total(out.real(TWO_THIRDS[0], 64), q)
    k_low = k_low + TWO_THIRDS[1]
    c, c_low = out.product(s, z)
    c_low = c_low + (s * z_low + s_low * z)
    t, t_low = out.product(c, k)
    t_low = t_low + (c * k_low + c_low * k)
    two_s, two_s_low = s * 2.0, s_low * 2.0
    a, a_low = out.quick_total(two_s, t)
    a_low = a_low + (t_low + two_s_low)
    b, b_low = out.total(e * LN_2[0], a)
    return out.quick_total(b, b_low + (a_low + e * LN_2[1]))


def exp_pair(out: FunctionBody, high: Value, low: Value) -> Value:
    """exp(high + low)."""
    clamped = (high > 710.0).choose(710.0, high)
    clamped = (clamped < -746.0).choose(-746.0, clamped)
    low = (high.abs() < 746.0).choose(low, 0.0)
    n, biased = clamped.nearest_exponent(LOG2_E)
    r = out.fma(n, -LN2[64][0], clamped)
    r = r + out.fma(n, -LN2[64][1], low)
    return out.scaled(reduced_exp(out, r), n, biased)


def power(out: FunctionBody, x: Value, y: Value) -> Value:
    """pow of float64, special cases as in C99 annex F."""
    a = x.abs()
    ordinary = (a > 0.0).choose(a, 1.0)
    finite = a.equals(INFINITY).choose(1.0, ordinary)
    high, low = log_pair(out, finite)
    bounded = clamp_magnitude(y, 2.0**70)
    p, p_low = out.product(bounded, high)
    magnitude = exp_pair(out, p, p_low + bounded * low)
    return special_cases(out, x, y, a, magnitude)


def log_pair_single(out: FunctionBody, x: Value) -> tuple[Value, Value]:
    """log(x) of float32 as high + low, for x >= 0: log(c) + r - r**2 / 2 + r**3 * P(r) for r = m / c - 1.

    All terms but the last are exact pairs. For 0 and inf the first part is infinite, and the second NaN.
    """
    e, m = out.parts(x)
    index = m.as_bits() >> 18
    r = product_less_one(out, m, out.lookup(ONE_BY_C, index))
    whole = out.fma(e, LN_2_SINGLE[0], out.lookup(LOG_C, index))
    rest = out.fma(e, LN_2_SINGLE[1], out.lookup(LOG_C_LOW, index))
    near, near_low = less_half_square(out, r)
    low = out.fma((r * r) * r, out.horner(r, CUBIC), near_low) + rest
    high = whole + near
    return high, low + ((whole - high) + near)


def product_less_one(out: FunctionBody, a: Value, b: Value) -> Value:
    """a * b - 1 where that is exact."""
    if out.has_fma:
        return out.fma(a, b, -1.0)
    high, low = out.product(a, b)
    return (high - 1.0) + low


def less_half_square(out: FunctionBody, r: Value) -> tuple[Value, Value]:
    """r - r**2 / 2 as an unevaluated sum of two floats, for small r."""
    half = r * -0.5
    if out.has_fma:
        near = out.fma(half, r, r)
        return near, out.fma(half, r, r - near)
    square, low = out.product(half, r)
    near, lost = out.quick_total(r, square)
    return near, lost + low


def power_single(out: FunctionBody, x: Value, y: Value) -> Value:
    """pow of float32, in pairs of floats up to the exponential."""
    exponent = (y > -LARGEST_EVEN).choose(y, -LARGEST_EVEN)  # also for NaN
    exponent = (exponent < LARGEST_EVEN).choose(exponent, LARGEST_EVEN)
    high, low = log_pair_single(out, x.abs())
    p, p_low = out.product(exponent, high)
    p_low = (p.abs() < EXP_TOP).choose(out.fma(exponent, low, p_low), 0.0)
    p = clamp(p, -EXP_TOP, EXP_TOP)
    n, biased = p.nearest_exponent(LOG2_E)
    ln2_high, ln2_low = LN2[32]
    magnitude = out.scaled(reduced_exp(out, out.fma(n, -ln2_high, p) + out.fma(n, -ln2_low, p_low)), n, biased)
    return special_cases_single(out, x, y, exponent, magnitude)


def special_cases_single(out: FunctionBody, x: Value, y: Value, exponent: Value, magnitude: Value) -> Value:
    """pow(x, y) of float32 by pow(|x|, y): its sign, NaN, and 1 for y = 0. exponent: y within the range of i32, no NaN."""
    integer = exponent.to_integer()
    odd = ((integer << 31) & x.as_bits()) & out.integer(1 << 31, 32)
    fraction = integer.small_to_float().equals(exponent).invert()
    result = fraction.choose(magnitude, (magnitude.as_bits() ^ odd).as_float())
    below = x.as_bits() - (1 - 2**31)  # from 0 up for negative numbers, in their order
    complex_result = ((below >= 0) & (below < (255 << 23) - 1)) & fraction
    unordered = y.is_nan() & x.equals(1.0).invert()
    result = (complex_result | unordered).choose(float("nan"), result)
    return y.equals(0.0).choose(1.0, result)


def clamp_magnitude(y: Value, bound: float) -> Value:
    y = (y > bound).choose(bound, y)
    return (y < -bound).choose(-bound, y)


def special_cases(out: FunctionBody, x: Value, y: Value, a: Value, magnitude: Value) -> Value:
    """The value of pow(x, y) with the sign of odd powers and the special cases of zeros, infinities and NaN.

    a: |x|. magnitude: pow(|x|, y), valid for ordinary x and y.
    """
    ay = y.abs()
    whole = (ay >= 2.0**52) | nearest_below(ay).equals(ay)
    half = ay * 0.5
    odd = whole & (ay < 2.0**53) & nearest_below(half).equals(half).invert()
    rising, infinite_y, negative = y > 0.0, ay.equals(INFINITY), x.as_bits() < 0
    nothing, everything = out.real(0.0, 64), out.real(INFINITY, 64)
    grows = rising.choose(everything, nothing)  # of an infinite base
    shrinks = rising.choose(nothing, everything)  # of a zero base
    result = a.equals(0.0).choose(shrinks, a.equals(INFINITY).choose(grows, magnitude))
    limit = a.equals(1.0).choose(1.0, (a < 1.0).choose(shrinks, grows))
    result = infinite_y.choose(limit, result)
    result = (negative & odd).choose(-result, result)
    complex_result = (x < 0.0) & whole.invert() & a.equals(INFINITY).invert()
    unordered = x.is_unordered(y)
    result = (complex_result | unordered).choose(float("nan"), result)
    return (x.equals(1.0) | y.equals(0.0)).choose(1.0, result)


def nearest_below(a: Value) -> Value:
    """The integer nearest to a, for 0 <= a < 2**51 (beyond that a itself): equal to a only if a is an integer."""
    return (a < 2.0**51).choose(a.nearest()[0], (a + 2.0**52) - 2.0**52)


def hypot_single(out: FunctionBody, x: Value, y: Value) -> Value:
    """sqrt(x*x + y*y) in float64, in which the squares of float32 neither overflow nor underflow."""
    a, b = x.widen(), y.widen()
    return infinite_sides(x, y, (a * a + b * b).sqrt().narrow())


def hypot(out: FunctionBody, x: Value, y: Value) -> Value:
    """sqrt(x*x + y*y), whose rounding error is taken from the exact squares (Borges, An improved algorithm for hypot(a, b),
    2019).
    """
    a, b = x.abs(), y.abs()
    first = a > b
    high, low = first.choose(a, b), first.choose(b, a)
    large, small = high > 2.0**500, high < 2.0**-400  # whose squares overflow, or lose bits
    scale = large.choose(2.0**-600, small.choose(2.0**600, out.real(1.0, 64)))
    back = large.choose(2.0**600, small.choose(2.0**-600, out.real(1.0, 64)))
    high, low = high * scale, low * scale
    h, h_low = out.product(high, high)
    l, l_low = out.product(low, low)
    root = (h + l).sqrt()
    r, r_low = out.product(root, root)
    error = ((h - r) + l) + ((h_low - r_low) + l_low)
    total = high.equals(0.0).choose(root, root + error / (root * 2.0))
    return infinite_sides(x, y, total * back)


def infinite_sides(x: Value, y: Value, length: Value) -> Value:
    """The length of a vector with an infinite component is infinite, whatever the other one is; else NaN is NaN."""
    ordinary = x.is_unordered(y).choose(float("nan"), length)
    infinite = x.abs().equals(INFINITY) | y.abs().equals(INFINITY)
    return infinite.choose(INFINITY, ordinary)
