"""Approximations of elementary functions that are faster than those of te: errors of a few ulp of float32, clamped arguments.

Other dtypes than float32 take the function of te.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tedsl import te

# Cephes, expf.c: a polynomial for (exp(r) - 1 - r) / r**2 where |r| <= log(2) / 2, and log(2) in two parts.
EXP = (1.9875691500e-4, 1.3981999507e-3, 8.3334519073e-3, 4.1665795894e-2, 1.6666665459e-1, 5.0000001201e-1)
LOG2_HIGH, LOG2_LOW, LOG2_E = 0.693359375, -2.12194440e-4, 1.44269504088896341
WHOLE = 1.5 * 2.0 ** 23  # added to a small float32, it rounds it to a whole number, which is the end of the bits of the sum
EXP_RANGE = 88.3762626647949  # beyond it the result is not a normal float32
# Eigen, ptanh_float: x * P(x**2) / Q(x**2) where |x| <= 9.
TANH = ((-2.76076847742355e-16, 2.00018790482477e-13, -8.60467152213735e-11, 5.12229709037114e-08, 1.48572235717979e-05,
         6.37261928875436e-04, 4.89352455891786e-03),
        (1.19825839466702e-06, 1.18534705686654e-04, 2.26843463243900e-03, 4.89352518554385e-03))
# Eigen, perf: the same form where |x| <= 4.
ERF = ((-2.72614225801306e-10, 2.77068142495902e-08, -2.10102402082508e-06, -5.69250639462346e-05, -7.34990630326855e-04,
        -2.95459980854025e-03, -1.60960333262415e-02),
       (-1.45660718464996e-05, -2.13374055278905e-04, -1.68282697438203e-03, -7.37332916720468e-03, -1.42647390514189e-02))


def fast_exp(x: Any) -> Any:
    """e ** x: 2**n * exp(r) with n the whole number next to x / log(2); within 1e-6 of the value where it is a normal float32.

    Arguments are clamped to +-88.376. The formula is that of Cephes, expf.c.
    """
    def of(e: Any) -> Any:
        clamped = te.max(te.min(e, EXP_RANGE), -EXP_RANGE)
        shifted = clamped * LOG2_E + WHOLE  # its last bits are n
        n = shifted - WHOLE
        r = clamped - n * LOG2_HIGH - n * LOG2_LOW
        power_of_two = te.reinterpret((te.reinterpret(shifted, "int32") + 127) << 23, "float32")
        return (_polynomial(EXP, r) * r * r + r + 1.0) * power_of_two

    return _float32("fast_exp", of, te.exp, x)


def fast_tanh(x: Any) -> Any:
    """The hyperbolic tangent as a quotient of two polynomials: within 4e-7 of the value. The coefficients are Eigen's."""
    return _float32("fast_tanh", lambda e: _quotient(TANH, e, 9.0), te.tanh, x)


def fast_erf(x: Any) -> Any:
    """The error function as a quotient of two polynomials: within 5e-7 of the value. The coefficients are Eigen's."""
    return _float32("fast_erf", lambda e: _quotient(ERF, e, 4.0), te.erf, x)


def _float32(operator: str, fast: Callable[[Any], Any], other: Callable[[Any], Any], x: Any) -> Any:
    return te.map_elements(operator, lambda e: fast(e) if e.dtype == "float32" else other(e), x)


def _quotient(coefficients: tuple[Sequence[float], Sequence[float]], x: Any, bound: float) -> Any:
    """x * P(x**2) / Q(x**2) of x clamped to +-bound."""
    clamped = te.max(te.min(x, bound), -bound)
    square = clamped * clamped
    above, below = (_polynomial(c, square) for c in coefficients)
    return clamped * above / below


def _polynomial(coefficients: Sequence[float], x: Any) -> Any:
    """The polynomial by Horner's rule; the coefficient of the highest power first."""
    value: Any = te.const(coefficients[0], "float32")
    for coefficient in coefficients[1:]:
        value = value * x + te.const(coefficient, "float32")
    return value
