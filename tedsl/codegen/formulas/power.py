"""pow and hypot.

pow(x, y) = 2**(y * log2 |x|) with the sign and the special cases of C. float32 computes the logarithm and the power of 2 in
float64, with tables; float64 computes the logarithm as an unevaluated sum of two doubles (about 68 bits), for y multiplies its
error by up to 745.
"""

from __future__ import annotations

import math
import struct

from tedsl.codegen.formulas.exponential import LN2, LOG2_E, reduced_exp
from tedsl.codegen.formulas.language import INFINITY, FunctionBody, Table, Value
from tedsl.codegen.formulas.logarithm import split

# (2 atanh(s) / s - 2 - 2/3 s**2) / s**4 in s**2 on s**2 < 0.0295: error 1.3e-20
ATANH_TAIL = (0.4, 0.28571428571428564, 0.22222222222228424, 0.18181818179658246, 0.15384615760977463, 0.13333296549572363,
              0.11766812466114947, 0.10456341945425285, 0.10762291418628644)
TWO_THIRDS = (0.6666666666666666, 3.700743415417188e-17)
LN_2 = (0.6931471803691238, 1.9082149292705877e-10)  # the first of 32 bits: its product with an exponent is exact
STEPS = 16  # of the powers of 2 that are looked up, in an octave
# log2(c) and 1 / c for a c in each 16th of [1, 3/2) and [3/4, 1), doubled there; 1 and 2 in those that touch 1. The logarithms
# are multiples of 2**-12, so that their sums with exponents are exact in float32; 1 / c is that of the rounded ones.
CENTRES = (1.0, *(1.0 + (2 * k + 1) / 32 for k in range(1, 15)), 2.0)
LOG2_C = Table("tedsl.log2", 32, tuple(round(math.log2(c) * 4096) / 4096 for c in CENTRES))
ONE_BY_C = Table("tedsl.reciprocal", 64, tuple(2.0 ** ((k >= 8) - value) for k, value in enumerate(LOG2_C.values)))
# log2(1 + r) / r on [-0.0325, 0.0635]: error 5.0e-11
LOG2 = (1.4426950408617312, -0.7213475115522823, 0.4808985468356673, -0.36070055174939736, 0.2885405260148775,
        -0.2227989879275983)
# (2**f - 1) / f on [-1/32, 1/32]: error 1.6e-9 of f
EXP2 = (0.6931471800332945, 0.24023428827306353, 0.05550594978960959)
# 2**(k/16), with k subtracted from the bits where the fraction begins: adding 16 n + k there multiplies by 2**n.
ROOTS = Table("tedsl.roots", 64, tuple(
    struct.unpack("<d", struct.pack("<q", struct.unpack("<q", struct.pack("<d", 2.0 ** (k / STEPS)))[0] - (k << 48)))[0]
    for k in range(STEPS)))
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
    n, integer = clamped.nearest_multiple(LOG2_E)
    r = out.fma(n, -LN2[64][0], clamped)
    r = r + out.fma(n, -LN2[64][1], low)
    return out.scaled(reduced_exp(out, r), n, integer)


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


def power_single(out: FunctionBody, x: Value, y: Value) -> Value:
    """pow of float32: 0.5 ulp and little more."""
    a = x.abs()
    e, m = out.parts(a)
    index = m.as_bits() >> 19
    k = (e + out.lookup(LOG2_C, index)).widen()
    r = out.fma(m.widen(), out.lookup(ONE_BY_C, index.widen()), -1.0)
    logarithm = out.fma(out.horner(r, LOG2), r, k)
    exponent = (y > -LARGEST_EVEN).choose(y, -LARGEST_EVEN)  # also for NaN
    exponent = (exponent < LARGEST_EVEN).choose(exponent, LARGEST_EVEN)
    magnitude = exp2_in_steps(out, exponent.widen() * logarithm).narrow()
    integer = exponent.to_integer()
    odd = ((integer << 31) & x.as_bits()) & out.integer(1 << 31, 32)
    result = (magnitude.as_bits() ^ odd).as_float()
    fraction = integer.small_to_float().equals(exponent).invert()
    below = x.as_bits() - ((1 << 31) - (1 << 32) + 1)  # of negative numbers that are finite: from 0 up, less than those of inf
    complex_result = ((below >= 0) & (below < (255 << 23) - 1)) & fraction
    unordered = y.is_nan() & x.equals(1.0).invert()
    result = (complex_result | unordered).choose(float("nan"), result)
    return y.equals(0.0).choose(1.0, result)


def exp2_in_steps(out: FunctionBody, t: Value) -> Value:
    """2**t of float64 with an error of 5e-11, and more than float32 can hold beyond."""
    t = (t > 300.0).choose(300.0, t)
    t = (t < -300.0).choose(-300.0, t)
    magic = 1.5 * 2.0**52 / STEPS
    shifted = t + magic
    f = t - (shifted - magic)
    bits = shifted.as_bits()
    root = (out.lookup(ROOTS, bits).as_bits() + (bits << 48)).as_float()
    return out.fma(out.horner(f, EXP2), root * f, root)


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


def hypot(out: FunctionBody, x: Value, y: Value) -> Value:
    """sqrt(x*x + y*y) in float64 for operands converted from float32: the squares neither overflow nor underflow."""
    total = (x * x + y * y).sqrt()
    infinite = x.abs().equals(INFINITY).choose(INFINITY, total)
    return y.abs().equals(INFINITY).choose(INFINITY, infinite)
