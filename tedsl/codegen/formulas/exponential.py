"""exp, exp2, exp10, expm1 and functions computed from them: sigmoid, tanh, sinh, cosh.

Method (Cody and Waite 1980): x = n * ln2 + r with |r| <= ln2 / 2, exp(x) = 2**n * exp(r). The polynomials interpolate at
Chebyshev nodes of the reduced interval; the error of each is stated beside it. The result is multiplied by 2**n in two
factors, so that results overflow and become denormal with one rounding.
"""

from __future__ import annotations

from tedsl.codegen.formulas.intervals import odd_function, tanh_intervals
from tedsl.codegen.formulas.language import BIAS, MANTISSA, FunctionBody, Value

# (exp(r) - 1 - r) / r**2 on [-ln2/2, ln2/2]: errors 6.5e-8 and 1.4e-18
EXP = {
    32: (0.5, 0.16666577756404877, 0.041666556149721146, 0.008363173343241215, 0.0013926175888627768),
    64: (0.5, 0.1666666666666667, 0.04166666666666667, 0.008333333333326141, 0.0013888888888883752, 0.00019841269874800493,
         2.4801587325533363e-05, 2.7557255425746435e-06, 2.7557273661348637e-07, 2.510520637395701e-08,
         2.0914679376583935e-09),
}
# (2**r - 1) / r on [-1/2, 1/2], float32: error 3.0e-9
EXP2 = (0.6931471824645996, 0.24022647738456726, 0.05550359562039375, 0.00961849931627512, 0.0013390969252213836,
        0.0001532926398795098)
# (sinh(x) / x - 1) / x**2 in x**2 on |x| < 1, float64: error 2.6e-22
SINH = (0.16666666666666666, 0.008333333333333333, 0.00019841269841269773, 2.755731922404034e-06, 2.505210836405804e-08,
        1.6059048396350562e-10, 7.646625361656657e-13, 2.8445264169895285e-15)
# (tanh(r) / r - 1) / r**2 in r**2 on [0, ln2/2]: errors of tanh(r) 3.8e-8 and 8.7e-18
TANH = {
    32: (-0.33332695777061633, 0.13300919098667435, -0.049226531645622316),
    64: (-0.3333333333333262, 0.13333333333140987, -0.053968253790641754, 0.021869480590422707, -0.00886303835951098,
         0.0035892642450681025, -0.0014314959209910927, 0.000476418507334135),
}
# (sinh(r) / r - 1) / r**2 and (cosh(r) - 1) / r**2 in r**2 on [0, ln2], float32: errors 1.5e-9 and 1e-10 of the functions
SINH_SINGLE = (0.16666671633720398, 0.008332660421729088, 0.00020091426267754287)
COSH_SINGLE = (0.5, 0.041666675359010696, 0.0013887995155528188, 2.5082228603423573e-05)
HALF_LN2 = 0.3464  # a little less, so that 0 is no less than the nearest multiple
TANH_TOP = {32: 10.0, 64: 20.0}  # an argument whose tanh is 1 after rounding
QUARTER_LN2 = 0.1732  # a little less, so that 0 is no less than the nearest multiple
LN2 = {32: (0.693115234375, 3.1946184945309415e-05), 64: (0.6931471803691238, 1.9082149292705877e-10)}  # high, low
LOG10_2 = {32: (0.301025390625, 4.605038981195214e-06), 64: (0.3010299955494702, 1.1451100898021838e-10)}
LOG2_E, LN_2, LN_10, LOG2_10 = 1.4426950408889634, 0.6931471805599453, 2.302585092994046, 3.321928094887362
UP = 64  # exponents by which a sum and its numerator are smaller, so that the sum is finite where the quotient is denormal
EXP_BOUND = 40.0  # of an argument whose exp times 2**UP is finite
# Beyond these bounds the result is 0, 1 or inf whatever the argument: it is clamped there, so that n stays small.
RANGE = {"exp": {32: (-104.0, 89.0), 64: (-746.0, 710.0)}, "exp2": {32: (-150.0, 129.0), 64: (-1076.0, 1025.0)},
         "exp10": {32: (-46.0, 39.0), 64: (-324.0, 309.0)}, "sigmoid": {32: (-105.0, 20.0), 64: (-747.0, 40.0)}}


def clamp(x: Value, low: float, high: float) -> Value:
    """x within [low, high]; NaN stays."""
    x = (x > high).choose(high, x)
    return (x < low).choose(low, x)


def exp_minus_one(out: FunctionBody, r: Value) -> Value:
    """exp(r) - 1 for |r| <= ln2 / 2 (and a little beyond)."""
    return out.fma(out.horner(r, EXP[r.bits]), r * r, r)


def reduced_exp(out: FunctionBody, r: Value) -> Value:
    """exp(r) for |r| <= ln2 / 2 (and a little beyond). Rounding each product, what is added to 1 must be good to a bit."""
    return out.horner(r, (1.0, 1.0, *EXP[r.bits])) if out.has_fma else exp_minus_one(out, r) + 1.0


def reduced(out: FunctionBody, x: Value, n: Value) -> Value:
    """x - n * ln2, the product as exact as needed."""
    high, low = LN2[x.bits]
    return out.fma(n, -low, out.fma(n, -high, x))


def exp(out: FunctionBody, x: Value, *, halved: bool = False) -> Value:
    """exp(x), or exp(x) / 2, which overflows later."""
    low, top = RANGE["exp"][x.bits]
    x = clamp(x, low, top + 1.0 if halved else top)
    n, biased = x.nearest_exponent(LOG2_E)
    value = reduced_exp(out, reduced(out, x, n))
    return out.scaled(value, n - 1.0, biased - 1) if halved else out.scaled(value, n, biased)


def exp_bounded(out: FunctionBody, x: Value) -> Value:
    """exp(x) for x <= EXP_BOUND or NaN, with the bits of `exp`: 2**n, which is not too large, as one factor that is never too
    small, and another one that is the same for all x.
    """
    low, shift = RANGE["exp"][x.bits][0], MANTISSA[x.bits]
    x = (x < low).choose(low, x)
    if out.scales:
        n, biased = x.nearest_exponent(LOG2_E)
        return out.scaled(reduced_exp(out, reduced(out, x, n)), n, biased)
    magic = 1.5 * 2.0**shift + BIAS[x.bits] + UP
    shifted = out.fma(x, LOG2_E, magic)
    value = reduced_exp(out, reduced(out, x, shifted - magic))
    return value * (shifted.as_bits() << shift).as_float() * 2.0**-UP


def exp2(out: FunctionBody, x: Value) -> Value:
    x = clamp(x, *RANGE["exp2"][x.bits])
    n, biased = x.nearest_exponent(1.0)
    r = x - n
    value = out.horner(r, (1.0, *EXP2)) if x.bits == 32 else reduced_exp(out, r * LN_2)
    return out.scaled(value, n, biased)


def exp10(out: FunctionBody, x: Value) -> Value:
    x = clamp(x, *RANGE["exp10"][x.bits])
    n, biased = x.nearest_exponent(LOG2_10)
    high, low = LOG10_2[x.bits]
    r = out.fma(n, -low, out.fma(n, -high, x))
    return out.scaled(reduced_exp(out, r * LN_10), n, biased)


def sigmoid(out: FunctionBody, x: Value) -> Value:
    """1 / (1 + exp(-x)) as u / (i * exp(r) + u) for -x = n * ln2 + r, i = 2**n * u and u = 2**-UP: the sum does not overflow,
    and the division is the one rounding of denormals.

    n is rounded by a constant that has the bias of the exponent in its low bits: shifted up, the sum is i. What the sum i + u
    loses is added to i * (exp(r) - 1).
    """
    shift = MANTISSA[x.bits]
    x = clamp(x, *RANGE["sigmoid"][x.bits])
    magic = 1.5 * 2.0**shift + BIAS[x.bits] - UP
    shifted = out.fma(x, -LOG2_E, magic)
    less = exp_minus_one(out, reduced(out, -x, shifted - magic))
    i = (shifted.as_bits() << shift).as_float()
    unit = 2.0**-UP
    whole = i + unit
    lost = unit - (whole - i)
    return unit / (whole + out.fma(i, less, lost))


def tanh(out: FunctionBody, x: Value) -> Value:
    """With the sign of x: B + i * ((2 + B) T - B) / (B T + 1 + i) for |x| = n * ln2/2 + r, r in [0, ln2/2), i = 2**-n,
    B = 1 - i and T = tanh(r).

    The addition theorem with tanh(n * ln2/2) = (1 - i) / (1 + i), of which the exact number B is taken away: what is rounded
    is a small part of the result, or T alone for n = 0. Near B it is 0; it grows where r < 0, so that n is rounded down.
    float32 is by intervals where a target looks coefficients up.
    """
    if out.looks_up and x.bits == 32:
        return odd_function(out, x, tanh_intervals())
    magnitude = x.abs()
    top = TANH_TOP[x.bits]
    y = (magnitude > top).choose(top, magnitude)
    magic = 1.5 * 2.0 ** MANTISSA[x.bits] + BIAS[x.bits]
    shifted = out.fma(y - QUARTER_LN2, -2.0 * LOG2_E, magic)
    i = (shifted.as_bits() << MANTISSA[x.bits]).as_float()
    n = shifted - magic  # negative
    high, low = LN2[x.bits]
    r = out.fma(n, 0.5 * LN_2, y) if out.has_fma else n * (0.5 * low) + (n * (0.5 * high) + y)
    square = r * r
    t = out.fma(out.horner(square, TANH[x.bits]), square * r, r)
    base = 1.0 - i
    quotient = out.fma(3.0 - i, t, -base) / out.fma(base, t, 1.0 + i)
    return out.fma(i, quotient, base).signed_as(x)


def sinh(out: FunctionBody, x: Value) -> Value:
    """x + x**3 * P(x**2) for |x| < 1, else (e - 1 / e) / 2 for e = exp(|x|); beyond 22 exp(|x|) / 2."""
    magnitude = x.abs()
    square = x * x
    near = out.fma(out.horner(square, SINH) * square, x, x)
    e = exp(out, magnitude)
    far = (magnitude < 22.0).choose(0.5 * e - 0.5 / e, exp(out, magnitude, halved=True))
    return (magnitude < 1.0).choose(near, far.with_sign_of(x))


def _sum_of_arguments(out: FunctionBody, a: Value, *, even: bool) -> Value:
    """cosh (even) or sinh of n * ln2 + r = a >= 0, r in [0, ln2), by those of n * ln2, sums of powers of two, and r; float32.

    All terms have one sign. n is at most 128, so that the powers are floats; beyond, r is large enough for the sum to be inf.
    """
    a = (a > 90.0).choose(90.0, a)
    shift, bias = MANTISSA[32], BIAS[32]
    magic = 1.5 * 2.0**shift + bias - 1
    shifted = out.fma(a - HALF_LN2, LOG2_E, magic)
    shifted = (shifted > magic + 128.0).choose(magic + 128.0, shifted)
    n, bits = shifted - magic, shifted.as_bits() << shift
    power = bits.as_float()
    inverse = (n < 60.0).choose((((2 * bias - 2) << shift) - bits).as_float(), 0.0)
    sinh_n, cosh_n = power - inverse, power + inverse  # cosh_n loses the inverse from n = 12 on
    high, low = LN2[32]
    less = out.fma(n, -high, a)  # exact
    r = out.fma(n, -low, less)
    r_low = out.fma(n, -low, less - r)
    square = r * r
    sinh_less = out.fma(out.horner(square, SINH_SINGLE), square * r, r_low)  # beside r
    cosh_less = out.horner(square, COSH_SINGLE) * square  # beside 1
    if even:
        return power + (inverse + out.fma(sinh_n, r, out.fma(sinh_n, sinh_less, cosh_n * cosh_less)))
    lost = inverse - (cosh_n - power)
    return sinh_n + out.fma(cosh_n, r, out.fma(lost, r, out.fma(cosh_n, sinh_less, sinh_n * cosh_less)))


def sinh_single(out: FunctionBody, x: Value) -> Value:
    return _sum_of_arguments(out, x.abs(), even=False).signed_as(x)


def cosh_single(out: FunctionBody, x: Value) -> Value:
    return _sum_of_arguments(out, x.abs(), even=True)


def cosh(out: FunctionBody, x: Value) -> Value:
    """(e + 1 / e) / 2 for e = exp(|x|); beyond 22 exp(|x|) / 2."""
    magnitude = x.abs()
    e = exp(out, magnitude)
    return (magnitude < 22.0).choose(0.5 * e + 0.5 / e, exp(out, magnitude, halved=True))
