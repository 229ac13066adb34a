"""log, log2, log10, log1p and the inverse hyperbolic functions made of them.

Method (as in Tang 1990 and the classic libm): x = 2**e * m, m in [sqrt(1/2), sqrt(2)), f = m - 1, s = f / (2 + f);
log(1 + f) = f - f*f/2 + s * (f*f/2 + R), R = s**2 * P(s**2): the large terms are exact or nearly so. float32 has a formula of
its own for log.
"""

from __future__ import annotations

from tedsl.codegen.formulas.exponential import LN2
from tedsl.codegen.formulas.language import INFINITY, MANTISSA, SMALLEST_NORMAL, FunctionBody, Value

# (2 atanh(s) / s - 2) / s**2 as a polynomial in s**2 on s**2 < 0.0295: error 2.1e-18
LOG = (0.6666666666666666, 0.4000000000000088, 0.28571428570803614, 0.22222222391713917, 0.18181795640132906,
       0.15386239702814658, 0.13268773138656886, 0.13086626147840102)
# (log(1 + f) - f) / f**2 on [-1/4, 1/2], float32: error 4.9e-9 of log(1 + f)
LOG_SINGLE = (-0.5, 0.3333345055580139, -0.25000104308128357, 0.19990819692611694, -0.1664699912071228, 0.14478321373462677,
              -0.13163873553276062, 0.10468878597021103, -0.04511205479502678)
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
    e, m = split(x)
    f = m - 1.0
    half, rest = tail(out, f)
    high, low = LN2[x.bits]
    return with_special_cases(x, out.fma(e, high, f - (half - out.fma(e, low, rest))))


def log_single(out: FunctionBody, x: Value) -> Value:
    """log of float32: e * ln2 + f + f**2 * P(f) for f = m - 1 within [-1/4, 1/2), without a division."""
    e, m = out.parts(x)
    e = (m < 1.0).choose(e + 1.0, e)
    f = m - 1.0
    high, low = LN2[32]
    rest = out.fma(out.horner(f, LOG_SINGLE), f * f, e * low)
    return out.fma(e, high, f + rest)


def log_parts(out: FunctionBody, x: Value) -> tuple[Value, Value, Value]:
    """(e, high, low): log(m) = high + low, high with half the bits cut so that products with it are exact."""
    e, m = split(x)
    f = m - 1.0
    half, rest = tail(out, f)
    high = ((f - half).as_bits() & -(1 << 32)).as_float()
    return e, high, ((f - high) - half) + rest


def log2(out: FunctionBody, x: Value) -> Value:
    """e + log(m) / ln2, the quotient in two parts (float64)."""
    e, high, low = log_parts(out, x)
    c_high, c_low = 1.4426950407214463, 1.6751713164886512e-10  # 1 / ln2 with 32 bits, and the rest
    first = high * c_high
    second = low * c_high + (low + high) * c_low
    total, error = out.total(e, first)
    return with_special_cases(x, total + (second + error))


def log10(out: FunctionBody, x: Value) -> Value:
    """e * log10(2) + log(m) / ln10, each in two parts (float64)."""
    e, high, low = log_parts(out, x)
    c_high, c_low = 0.4342944818781689, 2.5082946711645275e-11  # 1 / ln10 with 32 bits, and the rest
    two_high, two_low = 0.3010299955494702, 1.1451100898021838e-10
    first = high * c_high
    second = (low * c_high + (low + high) * c_low) + e * two_low
    total, error = out.total(e * two_high, first)
    return with_special_cases(x, total + (second + error))


def log1p(out: FunctionBody, x: Value) -> Value:
    """log1p(x) as log(u) + (x - (u - 1)) / u for u = 1 + x; near 0 the argument f of the polynomial is x itself."""
    u = x + 1.0
    e, m = split(u)
    lost = (x >= 1.0).choose(1.0 - (u - x), x - (u - 1.0)) / u
    small = (x > -0.2928).choose(x, 1.0) < 0.4142
    zero = x * 0.0
    e, lost = small.choose(zero, e), small.choose(zero, lost)
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
    near = log1p(out, t + (t * 2.0 + t * t).sqrt())
    return (x >= 1.0).choose(large.choose(log(out, x) + 0.6931471805599453, near), float("nan"))


def atanh(out: FunctionBody, x: Value) -> Value:
    """log1p(2 a / (1 - a)) / 2 for a = |x|; NaN beyond 1."""
    a = x.abs()
    return (0.5 * log1p(out, (a + a) / (1.0 - a))).with_sign_of(x)
