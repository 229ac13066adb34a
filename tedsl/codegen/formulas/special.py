"""erf, and the inverse trigonometric functions."""

from __future__ import annotations

from tedsl.codegen.formulas.exponential import LN_2, LOG2_E, exp, reduced, reduced_exp
from tedsl.codegen.formulas.intervals import erf_intervals, odd_function
from tedsl.codegen.formulas.language import INFINITY, MANTISSA, FunctionBody, Value

# erf(x) / x - 1 in x**2 on |x| < 0.93, float32: error 1.8e-8
ERF_SINGLE = (0.12837915122509003, -0.37612488865852356, 0.11281730979681015, -0.026762966066598892, 0.004987352527678013,
              -0.0005959583795629442)
# -log(erfc(x)) / x - 1 in x on [0.92, 3.93], float32: error 3.0e-9 of erf(x)
ERFC_SINGLE = (0.128514364361763, 0.6357182860374451, 0.1052619144320488, -0.022890038788318634, 0.0032149909529834986,
               -0.000213991166674532)
# erf(x) / x - 1 in x**2 on |x| < 1: error 2.2e-21
ERF = (0.1283791670955126, -0.37612638903183754, 0.1128379167095512, -0.02686617064512984, 0.0052239776254232985,
       -0.000854832702193483, 0.00012055332902888736, -1.4925647567519332e-05, 1.6462045441468418e-06,
       -1.6364642158167616e-07, 1.4792401209404813e-08, -1.216456005728345e-09, 8.709045129053106e-11,
       -4.230945824295338e-12)
# erfc(x) * exp(x**2) in (x - 2.5) / (x + 2.5) on [1, 6]: error 8.3e-20
ERFC = (0.2108063640611436, -0.37173673394897333, 0.2517131932174493, -0.1250330523788293, 0.03992253907558476,
        -0.003993701165858238, -0.002642365964297403, 0.0008759154501337608, 0.00022838037890860082,
        -0.0001288771713312957, -3.418223813331523e-05, 1.8614457552080007e-05, 7.552594323139502e-06,
        -2.2981102519735954e-06, -1.8020038653448608e-06, 7.773331597404786e-08, 3.441892461295565e-07,
        6.961191560229168e-08)
# (asin(x) / x - 1) / x**2 in x**2 on |x| <= 1/2: error 6.4e-20
ASIN = (0.16666666666666666, 0.07499999999999991, 0.04464285714288356, 0.030381944441346388, 0.02237215928067093,
        0.017352757444179825, 0.013965010669331847, 0.011549075679439491, 0.009792863988301035, 0.008135014193193648,
        0.008799140451914983, 0.0003664940923274731, 0.0225861124015735, -0.024063914377949608, 0.030744526924322196)
# (atan(x) / x - 1) / x**2 in x**2 on |x| <= tan(pi/8): error 4.9e-20
ATAN = (-0.3333333333333333, 0.1999999999999999, -0.14285714285711226, 0.11111111110721053, -0.09090909065008844,
        0.07692306666088453, -0.06666640476612812, 0.05881902886080892, -0.05257825876436812, 0.0471802454590135,
        -0.04098925212046918, 0.030508638210712917, -0.013790276896186757)
# the same of float32: asin on |x| <= 1/2, error 5.0e-9 of asin(x); atan on |x| <= 1, error 2.7e-9 of atan(x)
ASIN_SINGLE = (0.16666753590106964, 0.07495252788066864, 0.04547591134905815, 0.024152815341949463, 0.04221051186323166)
ATAN_SINGLE = (-0.33333298563957214, 0.1999853551387787, -0.14264124631881714, 0.10951638221740723, -0.08401985466480255,
               0.057934246957302094, -0.031155923381447792, 0.010903410613536835, -0.0017912235343828797)
HALF_PI_SINGLE = (1.5707963705062866, -4.371139000186241e-08)
HALF_PI = (1.5707963267948966, 6.123233995736766e-17)
QUARTER_PI = (0.7853981633974483, 3.061616997868383e-17)
ERF_SPLIT, ERF_TOP = 0.925, 3.93  # erf of float32: where the formula changes; where it is 1 after rounding
TAN_EIGHTH, TAN_THREE_EIGHTHS = 0.41421356237309503, 2.414213562373095


def erf(out: FunctionBody, x: Value) -> Value:
    """x + x * P(x**2) for |x| < 1, else 1 - erfc(|x|) with the sign of x; float64."""
    magnitude = x.abs()
    near = out.fma(out.horner(x * x, ERF), x, x)
    a = (magnitude > 6.0).choose(6.0, magnitude)
    t = (a - 2.5) / (a + 2.5)
    far = 1.0 - exp(out, -(a * a)) * out.horner(t, ERFC)
    return (magnitude < 1.0).choose(near, far.with_sign_of(x))


def erf_single(out: FunctionBody, x: Value) -> Value:
    """x + x * P(x**2) near 0, else 1 - exp(-|x| - |x| * Q(|x|)) with the sign of x; float32.

    The exponential is at most 0.2, and normal: one product reduces its argument, and n is added to its exponent. By intervals
    where a target looks coefficients up.
    """
    if out.looks_up:
        return odd_function(out, x, erf_intervals())
    magnitude = x.abs()
    near = out.fma(out.horner(x * x, ERF_SINGLE), x, x)
    a = (magnitude > ERF_TOP).choose(ERF_TOP, magnitude)
    y = out.fma(out.horner(a, ERFC_SINGLE), -a, -a)
    n, integer = y.nearest_multiple(LOG2_E)
    e = reduced_exp(out, out.fma(n, -LN_2, y) if out.has_fma else reduced(out, y, n))
    e = (e.as_bits() + (integer << MANTISSA[32])).as_float()
    return (magnitude > ERF_SPLIT).choose((1.0 - e).signed_as(x), near)


def asin(out: FunctionBody, x: Value) -> Value:
    """The series for |x| <= 1/2, else pi/2 - 2 asin(sqrt((1 - |x|) / 2)); NaN beyond 1."""
    a = x.abs()
    small = a <= 0.5
    z = small.choose(x * x, (1.0 - a) * 0.5)
    y = small.choose(a, z.sqrt())
    rest = out.horner(z, ASIN) * z * y
    lost = root_error(out, z, y)
    far = HALF_PI[0] - 2.0 * y
    far_error = (HALF_PI[0] - far) - 2.0 * y
    far = far - (2.0 * (rest + lost) - HALF_PI[1] - far_error)
    return small.choose(y + rest, far).with_sign_of(x)


def root_error(out: FunctionBody, z: Value, y: Value) -> Value:
    """sqrt(z) - y for the rounded root y."""
    p, p_low = out.product(y, y)
    return ((z - p) - p_low) / (y + y + 1e-300)


def acos(out: FunctionBody, x: Value) -> Value:
    """pi/2 - asin(x) near 0; 2 asin(sqrt((1 - x) / 2)) for x > 1/2; pi minus that of -x for x < -1/2."""
    a = x.abs()
    small = a <= 0.5
    z = small.choose(x * x, (1.0 - a) * 0.5)
    y = small.choose(x, z.sqrt())
    rest = out.horner(z, ASIN) * z * y
    middle = HALF_PI[0] - (y - (HALF_PI[1] - rest))
    twice = 2.0 * (y + rest)
    return small.choose(middle, (x > 0.0).choose(twice, 2.0 * (HALF_PI[0] - (y + (rest - HALF_PI[1])))))


def atan(out: FunctionBody, x: Value) -> Value:
    """Reduced to |t| <= tan(pi/8) by atan(a) = pi/4 + atan((a - 1) / (a + 1)) and pi/2 - atan(1 / a)."""
    a = x.abs()
    middle, large = a > TAN_EIGHTH, a > TAN_THREE_EIGHTHS
    numerator = large.choose(-1.0, middle.choose(a - 1.0, a))
    denominator = large.choose(a, middle.choose(a + 1.0, a * 0.0 + 1.0))
    infinite = a.equals(float("inf"))
    t = infinite.choose(0.0, numerator / denominator)
    z = t * t
    rest = out.horner(z, ATAN) * z * t
    base = large.choose(HALF_PI[0], middle.choose(QUARTER_PI[0], a * 0.0))
    low = large.choose(HALF_PI[1], middle.choose(QUARTER_PI[1], a * 0.0))
    base, low = infinite.choose(HALF_PI[0], base), infinite.choose(HALF_PI[1], low)
    return (base + (t + (rest + low))).with_sign_of(x)


def atan2(out: FunctionBody, y: Value, x: Value) -> Value:
    """The angle of the point (x, y), with the conventions of C for zeros and infinities.

    `atan` of the lesser coordinate by the greater one, reduced before they are divided. Where their sum could overflow both are
    halved; denormal ones are scaled up, to keep their bits.
    """
    ax, ay = x.abs(), y.abs()
    steep, left = ay > ax, x.as_bits() < 0
    top, bottom = steep.choose(ax, ay), steep.choose(ay, ax)
    scale = (bottom > 2.0**1000).choose(0.5, (bottom < 2.0**-900).choose(2.0**200, out.real(1.0, 64)))
    both_infinite = top.equals(INFINITY)
    top, bottom = both_infinite.choose(1.0, top * scale), both_infinite.choose(1.0, bottom * scale)
    middle = top > bottom * TAN_EIGHTH
    denominator = bottom.equals(0.0).choose(1.0, middle.choose(top + bottom, bottom))
    t = middle.choose(top - bottom, top) / denominator
    z = t * t
    rest = out.horner(z, ATAN) * z * t
    base, low = (middle.choose(part, t * 0.0) for part in QUARTER_PI)
    angle = base + (t + (rest + low))
    angle = steep.choose(HALF_PI[0] - (angle - HALF_PI[1]), angle)
    angle = left.choose(2.0 * HALF_PI[0] - (angle - 2.0 * HALF_PI[1]), angle)
    return x.is_unordered(y).choose(x + y, angle.with_sign_of(y))


def asin_single(out: FunctionBody, x: Value) -> Value:
    """The series for |x| <= 1/2, else pi/2 - 2 asin(sqrt((1 - |x|) / 2)); float32, NaN beyond 1."""
    a = x.abs()
    small, t, rest = _asin_parts(out, a, a)
    base, low = out.quick_total(t.lift(HALF_PI_SINGLE[0]), t * -2.0)
    far = base + (low - out.fma(rest, 2.0, -HALF_PI_SINGLE[1]))
    return small.choose(t + rest, far).with_sign_of(x)


def acos_single(out: FunctionBody, x: Value) -> Value:
    """pi/2 - asin(x) for |x| <= 1/2, 2 asin(sqrt((1 - x) / 2)) above, and pi less that of -x below; float32, NaN beyond 1."""
    small, t, rest = _asin_parts(out, x, x.abs())
    negative = x < 0.0
    factor = small.choose(-1.0, negative.choose(-2.0, t.lift(2.0)))
    base = small.choose(HALF_PI_SINGLE[0], negative.choose(2.0 * HALF_PI_SINGLE[0], t * 0.0))
    base_low = small.choose(HALF_PI_SINGLE[1], negative.choose(2.0 * HALF_PI_SINGLE[1], t * 0.0))
    high, low = out.quick_total(base, t * factor)
    return high + (low + out.fma(rest, factor, base_low))


def _asin_parts(out: FunctionBody, x: Value, a: Value) -> tuple[Value, Value, Value]:
    """(whether a <= 1/2, t, asin(t) - t) for t = x there, else sqrt((1 - a) / 2), for a = |x|; float32."""
    small = a <= 0.5
    z = small.choose(a * a, (1.0 - a) * 0.5)
    t = small.choose(x, z.sqrt())
    return small, t, out.horner(z, ASIN_SINGLE) * (z * t)


def atan_single(out: FunctionBody, x: Value) -> Value:
    """t + t**3 * P(t**2) for t = |x| up to 1, pi/2 less that for t = 1 / |x| beyond; float32."""
    a = x.abs()
    large = a > 1.0
    t = large.choose(1.0 / a, a)
    base, low = (large.choose(part, 0.0 * t) for part in HALF_PI_SINGLE)
    return _angle(out, t, large, base, low).with_sign_of(x)


def atan2_single(out: FunctionBody, y: Value, x: Value) -> Value:
    """The angle of the point (x, y), with the conventions of C for zeros and infinities; float32.

    The quotient of the lesser coordinate and the greater one, whose angle is added to 0, pi/2 or pi, or taken away from it.
    """
    a, b = x.abs(), y.abs()
    steep, left = b > a, x.as_bits() < 0
    least, most = steep.choose(a, b), steep.choose(b, a)
    both_infinite = a.equals(INFINITY) & b.equals(INFINITY)
    t = both_infinite.choose(1.0, (a + b).equals(0.0).choose(0.0, least / most))
    nothing = 0.0 * t
    base = steep.choose(HALF_PI_SINGLE[0], left.choose(2.0 * HALF_PI_SINGLE[0], nothing))
    low = steep.choose(HALF_PI_SINGLE[1], left.choose(2.0 * HALF_PI_SINGLE[1], nothing))
    return _angle(out, t, steep ^ left, base, low).with_sign_of(y)


def _angle(out: FunctionBody, t: Value, backwards: Value, base: Value, base_low: Value) -> Value:
    """base + base_low + atan(t), or less atan(t) where `backwards` holds, for t in [0, 1]; float32."""
    z = t * t
    rest = out.horner(z, ATAN_SINGLE) * (z * t)
    t, rest = backwards.choose(-t, t), backwards.choose(-rest, rest)
    high, low = out.quick_total(base, t)
    return high + (low + (rest + base_low))
