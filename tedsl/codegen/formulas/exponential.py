"""exp, exp2, exp10, expm1 and functions computed from them: sigmoid, tanh, sinh, cosh.

Method (Cody and Waite 1980): x = n * ln2 + r with |r| <= ln2 / 2, exp(x) = 2**n * exp(r). The polynomials interpolate at
Chebyshev nodes of the reduced interval; the error of each is stated beside it. The result is multiplied by 2**n in two
factors, so that results overflow and become denormal with one rounding.
"""

from __future__ import annotations

from tedsl.codegen.formulas.language import FunctionBody, Value

# (exp(r) - 1 - r) / r**2 on [-ln2/2, ln2/2]: errors 6.5e-8 and 1.4e-18
EXP = {
    32: (0.5, 0.16666577756404877, 0.041666556149721146, 0.008363173343241215, 0.0013926175888627768),
    64: (0.5, 0.1666666666666667, 0.04166666666666667, 0.008333333333326141, 0.0013888888888883752, 0.00019841269874800493,
         2.4801587325533363e-05, 2.7557255425746435e-06, 2.7557273661348637e-07, 2.510520637395701e-08,
         2.0914679376583935e-09),
}
# (tanh(x) / x - 1) / x**2 as a polynomial in x**2, on |x| < 0.625 and |x| < 0.55: errors 4.3e-8 and 2.2e-19
TANH = {
    32: (-0.333333283662796, 0.1333276927471161, -0.05385090783238411, 0.020997179672122, -0.006096714176237583),
    64: (-0.3333333333333333, 0.1333333333333331, -0.05396825396822037, 0.021869488534073906, -0.0088632354631468,
         0.0035921267699626346, -0.001455819097151351, 0.0005899052969492733, -0.0002384727248015252,
         9.455133052924858e-05, -3.372080112046316e-05, 7.874274345344419e-06),
}
# (sinh(x) / x - 1) / x**2 in x**2 on |x| < 1, float64: error 2.6e-22
SINH = (0.16666666666666666, 0.008333333333333333, 0.00019841269841269773, 2.755731922404034e-06, 2.505210836405804e-08,
        1.6059048396350562e-10, 7.646625361656657e-13, 2.8445264169895285e-15)
TANH_SMALL = {32: 0.625, 64: 0.55}
LN2 = {32: (0.693115234375, 3.1946184945309415e-05), 64: (0.6931471803691238, 1.9082149292705877e-10)}  # high, low
LOG10_2 = {32: (0.301025390625, 4.605038981195214e-06), 64: (0.3010299955494702, 1.1451100898021838e-10)}
LOG2_E, LN_2, LN_10, LOG2_10 = 1.4426950408889634, 0.6931471805599453, 2.302585092994046, 3.321928094887362
UP = 64  # exponents by which a small result is computed too large, so that only its last rounding can be of a denormal
# Beyond these bounds the result is 0 or inf whatever the argument: it is clamped there, so that n stays small.
RANGE = {"exp": {32: (-104.0, 89.0), 64: (-746.0, 710.0)}, "exp2": {32: (-150.0, 129.0), 64: (-1076.0, 1025.0)},
         "exp10": {32: (-46.0, 39.0), 64: (-324.0, 309.0)}}


def clamp(x: Value, low: float, high: float) -> Value:
    """x within [low, high]; NaN stays."""
    x = (x > high).choose(high, x)
    return (x < low).choose(low, x)


def scale(value: Value, n: Value) -> Value:
    """value * 2**n for integers n in twice the range of the exponent."""
    first = n >> 1
    return value * power_of_two(first) * power_of_two(n - first)


def power_of_two(n: Value) -> Value:
    """2**n for an integer n within the range of normal exponents."""
    bias, shift = (127, 23) if n.bits == 32 else (1023, 52)
    return ((n + bias) << shift).as_float()


def exp_minus_one(out: FunctionBody, r: Value) -> Value:
    """exp(r) - 1 for |r| <= ln2 / 2 (and a little beyond), accurate only where it is added to 1."""
    return out.fma(out.horner(r, EXP[r.bits]) * r, r, r)


def reduced_exp(out: FunctionBody, r: Value) -> Value:
    """exp(r) for |r| <= ln2 / 2 (and a little beyond)."""
    return exp_minus_one(out, r) + 1.0


def exp(out: FunctionBody, x: Value, *, halved: bool = False) -> Value:
    """exp(x), or exp(x) / 2, which overflows later."""
    low, top = RANGE["exp"][x.bits]
    x = clamp(x, low, top + 1.0 if halved else top)
    n, integer = (x * LOG2_E).nearest()
    ln2_high, ln2_low = LN2[x.bits]
    r = out.fma(n, -ln2_low, out.fma(n, -ln2_high, x))
    return scale(reduced_exp(out, r), integer - 1 if halved else integer)


def exp2(out: FunctionBody, x: Value) -> Value:
    x = clamp(x, *RANGE["exp2"][x.bits])
    n, integer = x.nearest()
    return scale(reduced_exp(out, (x - n) * LN_2), integer)


def exp10(out: FunctionBody, x: Value) -> Value:
    x = clamp(x, *RANGE["exp10"][x.bits])
    n, integer = (x * LOG2_10).nearest()
    high, low = LOG10_2[x.bits]
    r = out.fma(n, -low, out.fma(n, -high, x))
    return scale(reduced_exp(out, r * LN_10), integer)


def exp_below_one(out: FunctionBody, x: Value) -> Value:
    """exp(x) for x <= 0, with fewer instructions: no overflow, and one factor for results that become denormal.

    n is rounded by a constant that has the bias of the exponent in its low bits: shifted up, the sum is 2**(n + UP).
    """
    bias, shift = (127, 23) if x.bits == 32 else (1023, 52)
    low = RANGE["exp"][x.bits][0]
    x = (x < low).choose(low, x)
    magic = 1.5 * 2.0**shift + bias + UP
    shifted = out.fma(x, LOG2_E, magic)
    n = shifted - magic
    ln2_high, ln2_low = LN2[x.bits]
    r = out.fma(n, -ln2_low, out.fma(n, -ln2_high, x))
    power = (shifted.as_bits() << shift).as_float()
    return out.fma(exp_minus_one(out, r), power, power) * 2.0**-UP  # rounded as exp(r) is, and by the last factor if denormal


def sigmoid(out: FunctionBody, x: Value) -> Value:
    """1 / (1 + exp(-x)), computed with the exponential of -|x|: no overflow, denormal results kept.

    For negative x it is e / (1 + e); the rounding error of 1 + e is removed from the quotient: it is multiplied by
    1 / (1 + e), which is 1 - e / (1 + e). One division serves both signs.
    """
    e = exp_below_one(out, -x.abs())
    d = 1.0 + e
    lost = e - (d - 1.0)
    positive = x >= 0.0
    quotient = positive.choose(1.0, e) / d
    return positive.choose(quotient, out.fma(-(quotient * lost), 1.0 - quotient, quotient))


def tanh(out: FunctionBody, x: Value) -> Value:
    """x + x**3 * P(x**2) near 0, else 1 - 2 / (exp(2 |x|) + 1) with the sign of x."""
    magnitude = x.abs()
    square = x * x
    near = out.fma(out.horner(square, TANH[x.bits]) * square, x, x)
    far = 1.0 - 2.0 / (exp(out, magnitude + magnitude) + 1.0)
    return (magnitude < TANH_SMALL[x.bits]).choose(near, far).with_sign_of(x)  # near of -0 is +0: P is negative


def sinh(out: FunctionBody, x: Value) -> Value:
    """x + x**3 * P(x**2) for |x| < 1, else (e - 1 / e) / 2 for e = exp(|x|); beyond 22 exp(|x|) / 2."""
    magnitude = x.abs()
    square = x * x
    near = out.fma(out.horner(square, SINH) * square, x, x)
    e = exp(out, magnitude)
    far = (magnitude < 22.0).choose(0.5 * e - 0.5 / e, exp(out, magnitude, halved=True))
    return (magnitude < 1.0).choose(near, far.with_sign_of(x))


def cosh(out: FunctionBody, x: Value) -> Value:
    """(e + 1 / e) / 2 for e = exp(|x|); beyond 22 exp(|x|) / 2."""
    magnitude = x.abs()
    e = exp(out, magnitude)
    return (magnitude < 22.0).choose(0.5 * e + 0.5 / e, exp(out, magnitude, halved=True))
