"""Operators of one tensor, element by element. The result has the shape of the argument, and its dtype unless said.

Functions of floats refuse integers: cast first, `topi.cast(x, "float32")`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tedsl import te, tir
from tedsl.errors import ArgumentError, DTypeError, ShapeError
from tedsl.tir import Expr
from topi.arguments import checked
from topi.extents import as_int, constant, differ, opening, shown
from topi.tag import ELEMWISE


def exp(x: Any) -> Any:
    """e ** x."""
    return te.map_elements("exp", te.exp, x)


def log(x: Any) -> Any:
    """The natural logarithm."""
    return te.map_elements("log", te.log, x)


def log2(x: Any) -> Any:
    """The logarithm to base 2."""
    return te.map_elements("log2", te.log2, x)


def log10(x: Any) -> Any:
    """The logarithm to base 10."""
    return te.map_elements("log10", te.log10, x)


def tanh(x: Any) -> Any:
    """The hyperbolic tangent."""
    return te.map_elements("tanh", te.tanh, x)


def sigmoid(x: Any) -> Any:
    """1 / (1 + exp(-x))."""
    return te.map_elements("sigmoid", te.sigmoid, x)


def erf(x: Any) -> Any:
    """The error function."""
    return te.map_elements("erf", te.erf, x)


def sqrt(x: Any) -> Any:
    """The square root."""
    return te.map_elements("sqrt", te.sqrt, x)


def rsqrt(x: Any) -> Any:
    """1 / sqrt(x)."""
    return te.map_elements("rsqrt", te.rsqrt, x)


def sin(x: Any) -> Any:
    """The sine."""
    return te.map_elements("sin", te.sin, x)


def cos(x: Any) -> Any:
    """The cosine."""
    return te.map_elements("cos", te.cos, x)


def tan(x: Any) -> Any:
    """The tangent."""
    return te.map_elements("tan", te.tan, x)


def asin(x: Any) -> Any:
    """The inverse of sin."""
    return te.map_elements("asin", te.asin, x)


def acos(x: Any) -> Any:
    """The inverse of cos."""
    return te.map_elements("acos", te.acos, x)


def atan(x: Any) -> Any:
    """The inverse of tan."""
    return te.map_elements("atan", te.atan, x)


def sinh(x: Any) -> Any:
    """The hyperbolic sine."""
    return te.map_elements("sinh", te.sinh, x)


def cosh(x: Any) -> Any:
    """The hyperbolic cosine."""
    return te.map_elements("cosh", te.cosh, x)


def asinh(x: Any) -> Any:
    """The inverse of sinh."""
    return te.map_elements("asinh", te.asinh, x)


def acosh(x: Any) -> Any:
    """The inverse of cosh."""
    return te.map_elements("acosh", te.acosh, x)


def atanh(x: Any) -> Any:
    """The inverse of tanh."""
    return te.map_elements("atanh", te.atanh, x)


def floor(x: Any) -> Any:
    """The largest whole number not above x."""
    return te.map_elements("floor", te.floor, x)


def ceil(x: Any) -> Any:
    """The smallest whole number not below x."""
    return te.map_elements("ceil", te.ceil, x)


def nearbyint(x: Any) -> Any:
    """The nearest whole number, halves to the even one. Same as numpy.rint."""
    return te.map_elements("nearbyint", te.nearbyint, x)


def trunc(x: Any) -> Any:
    """x rounded towards zero."""
    return te.map_elements("trunc", te.trunc, x)


def round(x: Any) -> Any:
    """The nearest whole number, halves away from zero."""
    return te.map_elements("round", te.round, x)


def abs(x: Any) -> Any:
    """The absolute value; also of integers."""
    return te.map_elements("abs", te.abs, x)


def isnan(x: Any) -> Any:
    """Whether x is not a number, a bool."""
    return te.map_elements("isnan", te.isnan, x)


def isfinite(x: Any) -> Any:
    """Whether x is neither infinite nor NaN, a bool."""
    return te.map_elements("isfinite", te.isfinite, x)


def isinf(x: Any) -> Any:
    """Whether x is infinite, a bool."""
    return te.map_elements("isinf", te.isinf, x)


def identity(x: Any) -> Any:
    """A copy of x."""
    return te.map_elements("identity", lambda e: e, x)


def negative(x: Any) -> Any:
    """-x."""
    return te.map_elements("negative", lambda e: -_signed(e, "negative"), x)


def sign(x: Any) -> Any:
    """-1, 0 or 1, in the dtype of x; 0 for NaN."""
    def of(e: Any) -> Expr:
        _signed(e, "sign")
        zero, one = te.const(0, e.dtype), te.const(1, e.dtype)
        positive = te.select(e > zero, one, zero)
        return positive if e.dtype.is_uint else te.select(e < zero, te.const(-1, e.dtype), positive)

    return te.map_elements("sign", of, x)


def _signed(e: Any, operator: str) -> Any:
    if e.dtype == "bool":
        raise DTypeError(f"{operator}: x is bool, and truth values have no sign",
                         hint="topi.logical_not(x), or a number: topi.cast(x, 'int8')")
    return e


def clip(x: Any, a_min: Any, a_max: Any) -> Any:
    """x where it is between a_min and a_max, else the nearer of them; in the dtype of x."""
    def of(e: Any) -> Expr:
        low, high = (constant(b, e.dtype, "clip", name) for b, name in ((a_min, "a_min"), (a_max, "a_max")))
        return te.max(low, te.min(high, e))  # of equal operands the second has the derivative: 1 at both ends

    return te.map_elements("clip", of, x)


def cast(x: Any, dtype: Any) -> Any:
    """x converted to `dtype`."""
    return te.map_elements("cast", lambda e: e.astype(dtype), x)


def reinterpret(x: Any, dtype: Any) -> Any:
    """The bits of x as a value of `dtype`, of equal width. Same as ndarray.view of numpy."""
    return te.map_elements("reinterpret", lambda e: te.reinterpret(e, dtype), x)


def fixed_point_multiply(x: Any, multiplier: int, shift: int) -> Any:
    """x * multiplier * 2**(shift - 31), rounded to nearest, halves upwards: int32 times a number with 31 fractional bits."""
    dtype = getattr(x, "dtype", "int32")
    if dtype != "int32":
        raise DTypeError(f"fixed_point_multiply: x holds {dtype}, not int32", hint="topi.cast(x, 'int32')")
    factor = constant(multiplier, "int32", "fixed_point_multiply", "multiplier")
    places = as_int(shift)
    if places is None or not -32 <= places <= 31:
        raise ArgumentError(f"fixed_point_multiply: shift is {shift!r}", hint="an int from -32 to 31")
    return te.map_elements("fixed_point_multiply", lambda e: tir.q_multiply_shift(e, factor, 31, places), x)


def ceil_log2(x: Any) -> Any:
    """The base-2 logarithm of x, rounded up, in the dtype of x; of integers from 1 on it is exact."""
    x = te.const(x) if isinstance(x, (int, float)) else x

    def of(e: Any) -> Any:
        if e.dtype.is_float:
            return te.ceil(te.log2(e))
        known = as_int(e)
        if known is not None and known > 0:
            return te.const((known - 1).bit_length(), e.dtype)
        return (te.const(e.dtype.bits, "int32") - te.clz(e - te.const(1, e.dtype))).astype(e.dtype)

    return te.map_elements("ceil_log2", of, x)


@checked
def elemwise_sum(xs: Sequence[te.Tensor]) -> te.Tensor:
    """The sum of tensors of one shape."""
    if not xs:
        raise ArgumentError("elemwise_sum: there is no tensor to sum")
    for x in xs:
        opening("elemwise_sum", x)
        if x.ndim != xs[0].ndim or any(map(differ, x.shape, xs[0].shape)):
            raise ShapeError(f"elemwise_sum: {xs[0].name} has the shape {shown(xs[0].shape)} and {x.name} {shown(x.shape)}",
                             hint="topi.add broadcasts")

    def formula(*i: Any) -> Expr:
        total: Expr = xs[0](*i)
        for x in xs[1:]:
            total = total + x(*i)
        return total

    return te.compute(xs[0].shape, formula, name="T_elemwise_sum", tag=ELEMWISE,
                      info=te.ElementwiseOp("elemwise_sum"), axes="ax")


def full(shape: Sequence[Any], dtype: Any, fill_value: Any) -> te.Tensor:
    """A tensor of `shape` whose elements are all `fill_value`."""
    value = constant(fill_value, dtype, "full", "fill_value")
    output: te.Tensor = te.compute(shape, lambda *i: value, name="T_full", tag=ELEMWISE, info=te.ElementwiseOp("full"),
                                   axes="ax")
    return output


def full_like(x: te.Tensor, fill_value: Any) -> te.Tensor:
    """A tensor of the shape and dtype of `x` whose elements are all `fill_value`."""
    opening("full_like", x)
    return full(x.shape, x.dtype, fill_value)
