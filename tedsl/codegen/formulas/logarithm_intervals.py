"""log, log2, log10 and log1p of float64 by 16 intervals, of which tables hold a reciprocal and its logarithm.

For processors that look 8 lanes up in 16 floats by one instruction (`FunctionBody.looks_up`): without a division, in half of
the time. Method (as in Tang 1990): x = 2**e * m, m in [3/4, 3/2); c is about 1 / m, z = m * c - 1 within 1/16 of 0, and
log(x) = e * log(2) - log(c) + log(1 + z).

The intervals are those of the first four bits of the fraction of m. In those from 15/16 to 17/16, c is 1, so that results near
0 are relative to z. Each other c is such that -log(c) is a multiple of 2**-42 but for 2**-67 of it: e * log(2) with as many
digits is added to it without a rounding.
"""

from __future__ import annotations

from tedsl.codegen.formulas.exponential import LN2
from tedsl.codegen.formulas.language import INFINITY, MANTISSA, FunctionBody, Table, Value
from tedsl.record import record

_INDEX = MANTISSA[64] - 4  # what the bits of m are shifted by, to an index in their last four bits
# ((log(1 + z) - z) / z**2 + 1/2) / z on [-1/16, 1/16]: error 2**-60 of log(1 + z)
_SERIES = (0.3333333333333335, -0.2500000000000001, 0.1999999999982362, -0.16666666666502872, 0.14285714646811098,
           -0.1250000033533015, 0.11110852480322804, -0.09999759826054883, 0.09166444467686555, -0.08403477046477217)
_TWO_53 = 2.0**53


@record
class Base:
    """A base of logarithms. two: log(2) in two parts, of which the first has zeros behind 2**-42; by: what natural logarithms
    are multiplied with, in two parts. inverses, logarithms: the tables.
    """

    two: tuple[float, float]
    by: tuple[float, float]
    inverses: Table
    logarithms: Table


def _base(name: str, two: tuple[float, float], by: tuple[float, float], inverses: tuple[float, ...],
          logarithms: tuple[float, ...]) -> Base:
    return Base(two, by, Table(f"tedsl.{name}.inverses", 64, (1.0, *inverses, 1.0, 1.0)),
                Table(f"tedsl.{name}.logarithms", 64, (0.0, *logarithms, 0.0, 0.0)))


NATURAL = _base("log", LN2[64], (1.0, 0.0), (
    0.9142857160925791, 0.8648648666649094, 0.8205128217032249, 0.7804878033083839, 0.7441860474676252, 0.7111111129502488,
    0.6808510652735458, 1.306122445740965, 1.2549019636501986, 1.2075471751897313, 1.1636363614960408, 1.1228070160679626,
    1.0847457607698054), (
    0.0896121567134287, 0.14518200776319645, 0.1978257418791145, 0.24783616591571445, 0.29546421160921454, 0.3409265843843059,
    0.3844116967898117, -0.2670627827694716, -0.22705745291909807, -0.18859117426154626, -0.15154989628786097,
    -0.11583181421065092, -0.0813456376636168))
BINARY = _base("log2", (1.0, 0.0), (1.4426950408889634, 2.0355273740931033e-17), (
    0.9142857142732946, 0.8648648650772827, 0.820512819930312, 0.7804878052322864, 0.7441860453739704, 0.7111111108342251,
    0.6808510632588209, 1.3061224494821062, 1.2549019613178465, 1.207547172379396, 1.163636360717177, 1.122807018672075,
    1.0847457601196104), (
    0.129283016964564, 0.20945336527461222, 0.2854022198864641, 0.357552003963292, 0.42626475690758525, 0.4918530968914183,
    0.5545888528874912, -0.38529015643985076, -0.32757465864187907, -0.2720795485049621, -0.21864028285608583,
    -0.16710998728490267, -0.11735694719050116))
DECIMAL = _base("log10", (0.3010299955494702, 1.1451100898021838e-10), (0.4342944819032518, 1.098319650216765e-17), (
    0.9142857138710804, 0.8648648668866068, 0.8205128198623667, 0.7804878061333209, 0.744186046476218, 0.7111111103724674,
    0.6808510626761227, 1.3061224351243101, 1.254901972168833, 1.2075471599304268, 1.163636362919304, 1.122807017122313,
    1.0847457559550788), (
    0.038918066227324744, 0.06305174473186526, 0.0859146290508761, 0.10763387770134614, 0.12831847728034518,
    0.14806253590654705, 0.1669478803516995, -0.11598388934839932, -0.09860980182588719, -0.08190410082943345,
    -0.06581728422202104, -0.05030511814834426, -0.03532795963656099))


def log(out: FunctionBody, x: Value, base: Base) -> Value:
    """The logarithm of x to `base`: -inf of 0, inf of inf, NaN of negative numbers."""
    e, m = _parts(out, x)
    inverse, high = _looked_up(out, m, base)
    z = out.fma(m, inverse, -1.0)
    high = out.fma(e, base.two[0], high) if base.two[0] != 1.0 else e + high
    return _sum(out, base, e, high, z, None)


def log1p(out: FunctionBody, x: Value, x_low: Value | None = None) -> Value:
    """log(1 + x), of the sum in two parts; of x alone where 1 is nothing beside it. x_low: the rounding error of x, which is
    added to it.
    """
    large, u = x > _TWO_53, x + 1.0
    lost = (x >= 1.0).choose(1.0 - (u - x), x - (u - 1.0))
    lost = lost if x_low is None else lost + x_low
    bits, unit = u.as_bits(), u.lift(1.0).as_bits()
    by_exponent = (unit - ((bits - u.lift(0.75).as_bits()) & -(1 << MANTISSA[64]))).as_float()
    e, m = _parts(out, u)
    inverse, high = _looked_up(out, m, NATURAL)
    low = large.choose(0.0, lost * by_exponent * inverse)
    first = out.fma(m, inverse, -1.0)
    z = first + low
    return _sum(out, NATURAL, e, out.fma(e, NATURAL.two[0], high), z, low - (z - first)).with_sign_of(x)


def _parts(out: FunctionBody, x: Value) -> tuple[Value, Value]:
    """(e, m) for x = 2**e * m, m in [3/4, 3/2)."""
    e, m = out.parts(x)
    return (m < 1.0).choose(e + 1.0, e), m


def _looked_up(out: FunctionBody, m: Value, base: Base) -> tuple[Value, Value]:
    """(c, -log(c)) for the interval of m."""
    index = m.as_bits() >> _INDEX
    return out.lookup(base.inverses, index), out.lookup(base.logarithms, index)


def _sum(out: FunctionBody, base: Base, e: Value, high: Value, z: Value, low: Value | None) -> Value:
    """`high`, which is exact, and log(1 + z + low) and the rest of e * log(2)."""
    rest = out.fma(out.horner(z, _SERIES), z, -0.5) * (z * z)
    if low is not None:
        rest = rest + low
    by, by_low = base.by
    if by != 1.0:
        rest = out.fma(rest, by, z * by_low)
        first = z * by
        rest = rest + out.fma(z, by, -first)
        z = first
    if base.two[1]:
        rest = out.fma(e, base.two[1], rest)
    total, lost = out.quick_total(high, z)
    return total + ((e.abs() < INFINITY).choose(lost, 0.0) + rest)
