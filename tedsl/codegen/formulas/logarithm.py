"""log, log2, log10, log1p and the inverse hyperbolic functions made of them.

Method (as in Tang 1990 and the classic libm): x = 2**e * m, m in [sqrt(1/2), sqrt(2)), f = m - 1, s = f / (2 + f);
log(1 + f) = f - f*f/2 + s * (f*f/2 + R), R = s**2 * P(s**2): the large terms are exact or nearly so. float32 has formulas of
its own, without a division: e * log(2) + f + f**2 * P(f) with m in [3/4, 3/2); inverse hyperbolic functions are logarithms of
unevaluated sums of two floats.
"""

from __future__ import annotations

from tedsl.codegen.formulas import logarithm_intervals as intervals
from tedsl.codegen.formulas.exponential import LN2, LOG10_2
from tedsl.codegen.formulas.language import INFINITY, MANTISSA, SMALLEST_NORMAL, FunctionBody, Value

# (2 atanh(s) / s - 2) / s**2 as a polynomial in s**2 on s**2 < 0.0295: error 2.1e-18
LOG = (0.6666666666666666, 0.4000000000000088, 0.28571428570803614, 0.22222222391713917, 0.18181795640132906,
       0.15386239702814658, 0.13268773138656886, 0.13086626147840102)
# (log(1 + f) - f) / f**2 on [-1/4, 1/2], float32: error 4.9e-9 of log(1 + f)
LOG_SINGLE = (-0.5, 0.3333345055580139, -0.25000104308128357, 0.19990819692611694, -0.1664699912071228, 0.14478321373462677,
              -0.13163873553276062, 0.10468878597021103, -0.04511205479502678)
# the same of log2 and log10: errors 4.7e-9 and 5.5e-9 of the result
LOG2_SINGLE = (-0.7213475108146667, 0.4809000492095947, -0.3606771230697632, 0.2884092628955841, -0.24010638892650604,
               0.2087230682373047, -0.19033239781856537, 0.15282763540744781, -0.06667573004961014)
LOG10_SINGLE = (-0.21714723110198975, 0.14476534724235535, -0.10857518017292023, 0.08682020008563995, -0.07226656377315521,
                0.06280674785375595, -0.057374633848667145, 0.04628509283065796, -0.020295295864343643)
BY_LN_2 = (1.44269502, 1.9259629911e-08)  # 1 / ln2 as a sum of two floats
BY_LN_10 = (0.4342944920063019, -1.0103049952192578e-08)  # 1 / ln10
LARGE = 4096.0  # beyond it hyperbolic functions of float32 are exponentials of one sign
ROOT_HALF_BITS = {32: 0x3F3504F3, 64: 0x3FE6A09E667F3BCD}


def split(x: Value) -> tuple[Value, Value]:
    """(e as a float, m) with x = 2**e * m and m in [sqrt(1/2), sqrt(2)), for finite x > 0."""
    shift = MANTISSA[x.bits]
    tiny = x < SMALLEST_NORMAL[x.bits]
    bits = tiny.choose(x * 2.0 ** (shift + 2), x).as_bits()
    e = (bits - ROOT_HALF_BITS[x.bits]) >> shift
    m = (bits - (e << shift)).as_float()
    exponent = e.small_to_float()
    return tiny.choose(exponent - (shift + 2.0), exponent), m


def tail(out: FunctionBody, f: Value) -> tuple[Value, Value]:
    """(f*f/2, s * (f*f/2 + R)): log(1 + f) is f minus the first plus the second."""
    s = f / (f + 2.0)
    square = s * s
    half = (f * 0.5) * f
    return half, s * (half + out.horner(square, LOG) * square)


def with_special_cases(x: Value, result: Value) -> Value:
    """log's values at 0 (-inf), inf, negative numbers and NaN."""
    result = x.equals(INFINITY).choose(INFINITY, result)
    result = x.equals(0.0).choose(-INFINITY, result)
    result = (x < 0.0).choose(float("nan"), result)
    return x.is_nan().choose(x, result)


def log(out: FunctionBody, x: Value) -> Value:
    """log of float64."""
    if out.looks_up:
        return intervals.log(out, x, intervals.NATURAL)
    e, m = split(x)
    f = m - 1.0
    half, rest = tail(out, f)
    high, low = LN2[x.bits]
    return with_special_cases(x, out.fma(e, high, f - (half - out.fma(e, low, rest))))


def log_single(out: FunctionBody, x: Value) -> Value:
    """log of float32: e * ln2 + f + f**2 * P(f) for f = m - 1 within [-1/4, 1/2), without a division."""
    return log_of_parts(out, *parts_single(out, x))


def parts_single(out: FunctionBody, x: Value) -> tuple[Value, Value]:
    """(e, f) for x = 2**e * (1 + f), f within [-1/4, 1/2); e is -inf for 0, inf for inf and NaN for negative numbers."""
    e, m = out.parts(x)
    return (m < 1.0).choose(e + 1.0, e), m - 1.0


def log_of_parts(out: FunctionBody, e: Value, f: Value, f_low: Value | None = None) -> Value:
    """e * ln2 + log(1 + f + f_low) of float32."""
    high, low = LN2[32]
    rest = out.fma(e, low, f_low) if f_low is not None else e * low
    return out.fma(e, high, f + out.fma(out.horner(f, LOG_SINGLE), f * f, rest))


def log2_single(out: FunctionBody, x: Value) -> Value:
    """e + f / ln2 + f**2 * P(f), the quotient in two parts: e + f / ln2 is exact where the result is a small rest of both."""
    e, f = parts_single(out, x)
    high, low = out.product(f, f.lift(BY_LN_2[0]))
    rest = out.fma(out.horner(f, LOG2_SINGLE), f * f, out.fma(f, BY_LN_2[1], low))
    return (e + high) + rest


def log10_single(out: FunctionBody, x: Value) -> Value:
    """e * log10(2) + f / ln10 + f**2 * P(f), both products in two parts."""
    e, f = parts_single(out, x)
    high, low = LOG10_2[32]
    rest = out.fma(out.horner(f, LOG10_SINGLE), f * f, out.fma(e, low, f * BY_LN_10[1]))
    if out.has_fma:
        return out.fma(e, high, out.fma(f, BY_LN_10[0], rest))
    part, part_low = out.product(f, f.lift(BY_LN_10[0]))
    return (e * high + part) + (part_low + rest)


def log1p_single(out: FunctionBody, x: Value) -> Value:
    """log(1 + x), of the sum in two parts; of x alone where 1 is nothing beside it. float32."""
    large = x > 2.0**30
    u = large.choose(x, x + 1.0)
    return _log_of_sum(out, u, x - (u - 1.0), large).with_sign_of(x)


def asinh_single(out: FunctionBody, x: Value) -> Value:
    """log(a + sqrt(1 + a**2)) for a = |x|, root and sum in two parts; log(2 a) beyond 2**12. float32."""
    a = x.abs()
    large = a > LARGE
    b = large.choose(1.0, a)
    square, square_low = out.product(b, b)
    sum_, sum_low = out.total(square, b.lift(1.0))
    root, root_low = _root(out, sum_, sum_low + square_low)
    total, low = out.quick_total(root, b)
    return _log_of_sum(out, large.choose(a, total), low + root_low, large, 1.0).with_sign_of(x)


def acosh_single(out: FunctionBody, x: Value) -> Value:
    """log(1 + t + sqrt(t (t + 2))) for t = x - 1, root and sums in two parts; log(2 x) beyond 2**12, NaN below 1. float32."""
    large = x > LARGE
    t = large.choose(1.0, x) - 1.0
    sum_, sum_low = out.total(t, t.lift(2.0))
    square, square_low = out.product(t, sum_)
    root, root_low = _root(out, square, out.fma(t, sum_low, square_low))
    more, more_low = out.quick_total(root, t)
    total, low = out.total(more, t.lift(1.0))
    result = _log_of_sum(out, large.choose(x, total), low + (more_low + root_low), large, 1.0)
    return (x >= 1.0).choose(result, float("nan"))


def atanh_single(out: FunctionBody, x: Value) -> Value:
    """log(1 + 2 a / (1 - a)) / 2 for a = |x|, quotient and sum in two parts; NaN beyond 1. float32."""
    a = x.abs()
    divisor, divisor_low = out.quick_total(a.lift(1.0), -a)
    inverse = 1.0 / divisor
    quotient = (a + a) * inverse
    product, product_low = out.product(quotient, divisor)
    quotient_low = (((a + a - product) - product_low) - quotient * divisor_low) * inverse
    total, low = out.total(quotient, a.lift(1.0))
    result = 0.5 * _log_of_sum(out, total, low + quotient_low, a > 1.0)
    edge = a.equals(1.0).choose(INFINITY, out.real(float("nan"), 32))
    return (a < 1.0).choose(result, edge).with_sign_of(x)


def _root(out: FunctionBody, square: Value, low: Value) -> tuple[Value, Value]:
    """sqrt(square + low) in two parts, one step of Newton's method behind the first."""
    root = square.sqrt()
    product, product_low = out.product(root, root)
    return root, (((square - product) - product_low) + low) * 0.5 / (root > 0.0).choose(root, 1.0)


def _log_of_sum(out: FunctionBody, total: Value, low: Value, large: Value, beyond: float = 0.0) -> Value:
    """log(total + low) of float32, of which `low` is about the rounding error of the first: relative to total + low - 1 near 1.
    Where `large` holds it is log(total * 2**beyond), and `low` means nothing.
    """
    e, f = parts_single(out, total)
    bits, unit = total.as_bits(), total.lift(1.0).as_bits()
    by_exponent = (unit - ((bits - total.lift(0.75).as_bits()) & -(1 << MANTISSA[32]))).as_float()
    low, by_exponent = large.choose(0.0, low), large.choose(0.0, by_exponent)
    both = out.fma(low, by_exponent, f)
    return log_of_parts(out, large.choose(e + beyond, e) if beyond else e, both, out.fma(low, by_exponent, f - both))


def log_parts(out: FunctionBody, x: Value) -> tuple[Value, Value, Value]:
    """(e, high, low): log(m) = high + low, high with half the bits cut so that products with it are exact."""
    e, m = split(x)
    f = m - 1.0
    half, rest = tail(out, f)
    high = ((f - half).as_bits() & -(1 << 32)).as_float()
    return e, high, ((f - high) - half) + rest


def log2(out: FunctionBody, x: Value) -> Value:
    """e + log(m) / ln2, the quotient in two parts (float64)."""
    if out.looks_up:
        return intervals.log(out, x, intervals.BINARY)
    e, high, low = log_parts(out, x)
    c_high, c_low = 1.4426950407214463, 1.6751713164886512e-10  # 1 / ln2 with 32 bits, and the rest
    first = high * c_high
    second = low * c_high + (low + high) * c_low
    total, error = out.total(e, first)
    return with_special_cases(x, total + (second + error))


def log10(out: FunctionBody, x: Value) -> Value:
    """e * log10(2) + log(m) / ln10, each in two parts (float64)."""
    if out.looks_up:
        return intervals.log(out, x, intervals.DECIMAL)
    e, high, low = log_parts(out, x)
    c_high, c_low = 0.4342944818781689, 2.5082946711645275e-11  # 1 / ln10 with 32 bits, and the rest
    two_high, two_low = 0.3010299955494702, 1.1451100898021838e-10
    first = high * c_high
    second = (low * c_high + (low + high) * c_low) + e * two_low
    total, error = out.total(e * two_high, first)
    return with_special_cases(x, total + (second + error))


def log1p(out: FunctionBody, x: Value, x_low: Value | None = None) -> Value:
    """log1p(x) as log(u) + (x - (u - 1)) / u for u = 1 + x; near 0 the argument f of the polynomial is x itself. x_low: the
    rounding error of x, which is added to it.
    """
    if out.looks_up:
        return intervals.log1p(out, x, x_low)
    u = x + 1.0
    e, m = split(u)
    small = (x > -0.2928).choose(x, 1.0) < 0.4142
    zero = x * 0.0
    lost = small.choose(zero, (x >= 1.0).choose(1.0 - (u - x), x - (u - 1.0)))
    e, lost = small.choose(zero, e), (lost if x_low is None else lost + x_low) / u
    f = small.choose(x, m - 1.0)
    half, rest = tail(out, f)
    high, low = LN2[x.bits]
    result = out.fma(e, high, f - (half - (rest + out.fma(e, low, lost))))
    result = x.equals(INFINITY).choose(INFINITY, result)
    result = x.equals(-1.0).choose(-INFINITY, result)
    result = (x < -1.0).choose(float("nan"), result)
    return (x.abs() < 2.0**-54).choose(x, result)  # also keeps the sign of zero


def asinh(out: FunctionBody, x: Value) -> Value:
    """log1p(a + a*a / (1 + sqrt(1 + a*a))) for a = |x|; log(a) + ln2 for large a."""
    a = x.abs()
    large = a > 2.0**27
    b = large.choose(1.0, a)
    square = b * b
    near = log1p(out, b + square / ((square + 1.0).sqrt() + 1.0))
    return large.choose(log(out, a) + 0.6931471805599453, near).with_sign_of(x)


def acosh(out: FunctionBody, x: Value) -> Value:
    """log1p(t + sqrt(2 t + t*t)) for t = x - 1; log(x) + ln2 for large x; NaN below 1."""
    large = x > 2.0**27
    t = large.choose(1.0, x) - 1.0
    near = log1p(out, *out.quick_total((t * 2.0 + t * t).sqrt(), t))
    return (x >= 1.0).choose(large.choose(log(out, x) + 0.6931471805599453, near), float("nan"))


def atanh(out: FunctionBody, x: Value) -> Value:
    """log1p(2 a + 2 a**2 / (1 - a)) / 2 for a = |x|; NaN beyond 1."""
    a = x.abs()
    twice = a + a
    result = 0.5 * log1p(out, *out.quick_total(twice, twice * a / (1.0 - a)))
    return (a > 1.0).choose(float("nan"), result).with_sign_of(x)
