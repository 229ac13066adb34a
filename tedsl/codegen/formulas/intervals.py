"""tanh and erf of float32 by a polynomial for each of 32 intervals, whose coefficients come from tables.

A formula for processors that look 16 lanes up in 32 floats by one instruction (`FunctionBody.looks_up`): 18 instructions
without a division, where one formula for all arguments takes 21 and a division (tanh) or 34 (erf).

The intervals of |x| are those of 1 + |x| by its exponent and the first three bits of its fraction: eighths from 0 to 1,
quarters to 3, halves to 7, then ones. The polynomials, of degree 5, interpolate at Chebyshev's points.
"""

from __future__ import annotations

import functools
import itertools
import math
import struct
from collections.abc import Callable, Sequence

from tedsl.codegen.formulas.language import MANTISSA, FunctionBody, Table, Value
from tedsl.ir.dtype import FLOAT32, round_float
from tedsl.record import record

DEGREE = 5
STEPS = 8  # intervals of an octave of 1 + |x|
COUNT = 32
SHIFT = MANTISSA[32] - 3
FIRST = (127 << MANTISSA[32]) >> SHIFT  # what 1 + 0 is shifted to


@record
class Intervals:
    """An odd function that grows from 0 to 1. top: where it is 1 after rounding. centers: a float in each interval.

    coefficients: of the polynomials in |x| - center, from the constants up. In the interval at 0, whose center is 0, constant
    and slope are 0 and the function's slope less 1, or less 0 where that is not above 1: the result is relative to |x|.
    """

    top: float
    steep: bool
    centers: Table
    coefficients: tuple[Table, ...]


def odd_function(out: FunctionBody, x: Value, of: Intervals) -> Value:
    """c0 + r (c1 + r (c2 + ...)) with the sign of x, for r = |x| - center.

    A slope above 1 at 0 would be rounded to half as many digits as the result: there r is added in place of c0, which is less
    than r in the interval at 0 alone.
    """
    a = x.abs()
    a = (a > of.top).choose(of.top, a)
    index = (a + 1.0).as_bits() >> SHIFT
    r = a - out.lookup(of.centers, index)
    constant, *others = (out.lookup(table, index) for table in of.coefficients)
    if of.steep:
        constant = (constant < r).choose(r, constant)
    return out.fma(out.horner(r, others), r, constant).signed_as(x)


def _intervals(name: str, function: Callable[[float], float], slope: float, top: float) -> Intervals:
    steep = slope > 1.0
    rows = [(0.0, *(0.0,) * (DEGREE + 1))] * COUNT
    for k in range(COUNT):
        low, high = (_float((FIRST + k + end) << SHIFT) - 1.0 for end in (0, 1))
        row = rows[(FIRST + k) % COUNT]
        if low == 0.0:
            points = _points(0.0, high, DEGREE)
            relative = _interpolated(points, [function(x) / x for x in points], 0.0)
            row = (0.0, 0.0, relative[0] - steep, *relative[1:])
        elif low < top:
            center = _center(function, round_float((low + high) / 2, FLOAT32))
            points = _points(low, high, DEGREE + 1)
            row = (center, *_interpolated(points, [function(x) for x in points], center))
        rows[(FIRST + k) % COUNT] = row
    centers, *coefficients = (Table(f"tedsl.{name}.{k}", 32, tuple(round_float(value, FLOAT32) for value in column))
                              for k, column in enumerate(zip(*rows)))
    return Intervals(top, steep, centers, tuple(coefficients))


def _float(bits: int) -> float:
    return float(struct.unpack("<f", struct.pack("<i", bits))[0])


def _points(low: float, high: float, count: int) -> list[float]:
    """Chebyshev's points of an interval."""
    return [(low + high) / 2 + (high - low) / 2 * math.cos(math.pi * (2 * k + 1) / (2 * count)) for k in range(count)]


def _center(function: Callable[[float], float], middle: float) -> float:
    """The float near `middle` at which the function is nearest to a float (Gal 1986): the constant adds hardly an error."""
    bits = struct.unpack("<i", struct.pack("<f", middle))[0]
    near = (_float(bits + k) for k in range(-12, 13))
    return min(near, key=lambda x: abs((y := function(x)) - round_float(y, FLOAT32)))


def _interpolated(points: Sequence[float], values: Sequence[float], center: float) -> list[float]:
    """The coefficients, in x - center, of the polynomial through these values (Newton's divided differences)."""
    differences, at = list(values), [x - center for x in points]
    for order in range(1, len(at)):
        for k in range(len(at) - 1, order - 1, -1):
            differences[k] = (differences[k] - differences[k - 1]) / (at[k] - at[k - order])
    result = [0.0] * len(at)
    for x, difference in zip(reversed(at), reversed(differences)):
        result = [difference - x * result[0], *(a - x * b for a, b in itertools.pairwise(result))]
    return result


@functools.cache
def tanh_intervals() -> Intervals:
    return _intervals("tanh", math.tanh, 1.0, 9.9)


@functools.cache
def erf_intervals() -> Intervals:
    return _intervals("erf", math.erf, 2 / math.sqrt(math.pi), 3.99)
