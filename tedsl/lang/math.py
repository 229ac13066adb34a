"""Functions of scalar values. All take expressions or numbers; a function of floats keeps the dtype, float16 and bfloat16
included.

On whole tensors use topi. Constants fold only where the result is exact (floor, abs, isnan, ...).
"""

from __future__ import annotations

import builtins
import math as python_math
import warnings
from collections.abc import Callable
from typing import Any, TypeVar

from tedsl.errors import DTypeError
from tedsl.ir import build
from tedsl.ir.dtype import BOOL, FLOAT32, FLOAT64
from tedsl.ir.expr import EQ, Expr, FloatImm, Max, Min, Select
from tedsl.ir.script import shown
from tedsl.ir.source_line import user_level
from tedsl.lang.value import as_value

F = TypeVar("F", bound=Callable[..., Any])
Unary = Callable[[Any], Expr]
Binary = Callable[[Any, Any], Expr]


def _float(name: str, x: Any) -> Expr:
    """`x` as a float expression; a Python int counts as a float. An expression of integers is cast, with a warning: to float64
    where it has 64 bits, else to float32.
    """
    if type(x) is int:
        x = float(x)
    value = as_value(x, name)
    if value.dtype.is_integer:
        of = FLOAT64 if value.dtype.bits == 64 else FLOAT32
        warnings.warn(f"{name} takes floats: {shown(value)} of dtype {value.dtype} is cast to {of}", UserWarning,
                      stacklevel=user_level())
        return build.cast(of.with_lanes(value.dtype.lanes), value)
    if not (value.dtype.is_float or value.dtype.is_custom):
        raise DTypeError(f"{name} takes floats, and {shown(value)} is of dtype {value.dtype}",
                         hint=f"cast it: te.{name}(x.astype('float32'))")
    return value


def _function(name: str, doc: str) -> Unary:
    def function(x: Any) -> Expr:
        return build.call(f"tir.{name}", _float(name, x))

    return _described(function, name, doc)


def _rounding(name: str, doc: str, fold: Callable[[float], float]) -> Unary:
    """Returns a function that rounds floats to integral floats and returns integers and bools unchanged."""
    def function(x: Any) -> Expr:
        value = as_value(x, name)
        if value.dtype.is_integer or value.dtype.is_bool:
            return value
        value = _float(name, value)
        if isinstance(value, FloatImm) and value.dtype.is_float:
            whole = fold(value.value) if python_math.isfinite(value.value) else value.value
            return FloatImm(value.dtype, python_math.copysign(whole, value.value))
        return build.call(f"tir.{name}", value)

    return _described(function, name, doc)


def _classify(name: str, doc: str, fold: Callable[[float], bool]) -> Unary:
    """Returns a function that classifies floats (isnan, isinf, isfinite); an integer is always finite."""
    def function(x: Any) -> Expr:
        value = as_value(x, name)
        if value.dtype.is_integer:
            return build.const(name == "isfinite", BOOL.with_lanes(value.dtype.lanes))
        value = _float(name, value)
        if isinstance(value, FloatImm) and value.dtype.is_float:
            return build.const(fold(value.value), "bool")
        return build.call(f"tir.{name}", value, dtype_=BOOL.with_lanes(value.dtype.lanes))

    return _described(function, name, doc)


def _pair(name: str, doc: str) -> Binary:
    def function(x1: Any, x2: Any) -> Expr:
        return _of_two(name, x1, x2)

    return _described(function, name, doc)


def _of_two(name: str, *values: Any) -> Expr:
    for value in values:
        if not isinstance(value, (int, float)):
            _float(name, value)
    a, b = build.match_operands(*(float(v) if type(v) is int else v for v in values))
    return build.call(f"tir.{name}", a, b)


def _half_away(value: float) -> float:
    whole = python_math.floor(abs(value))
    return whole + 1.0 if abs(value) - whole >= 0.5 else whole  # the sign is put back by the caller


def _described(function: F, name: str, doc: str) -> F:
    function.__name__ = function.__qualname__ = name
    function.__doc__ = doc
    return function


exp = _function("exp", "e ** x.")
exp2 = _function("exp2", "2 ** x.")
exp10 = _function("exp10", "10 ** x.")
log = _function("log", "The natural logarithm; NaN below 0, -inf at 0.")
log2 = _function("log2", "The logarithm to base 2.")
log10 = _function("log10", "The logarithm to base 10.")
log1p = _function("log1p", "log(1 + x), accurate near 0.")
tanh = _function("tanh", "The hyperbolic tangent.")
sigmoid = _function("sigmoid", "1 / (1 + exp(-x)).")
erf = _function("erf", "The error function.")
sqrt = _function("sqrt", "The square root; NaN below 0.")
rsqrt = _function("rsqrt", "1 / sqrt(x).")
sin = _function("sin", "The sine of x in radians.")
cos = _function("cos", "The cosine of x in radians.")
tan = _function("tan", "The tangent of x in radians.")
asin = _function("asin", "The angle whose sine is x.")
acos = _function("acos", "The angle whose cosine is x.")
atan = _function("atan", "The angle whose tangent is x.")
sinh = _function("sinh", "The hyperbolic sine.")
cosh = _function("cosh", "The hyperbolic cosine.")
asinh = _function("asinh", "The inverse of sinh.")
acosh = _function("acosh", "The inverse of cosh; NaN below 1.")
atanh = _function("atanh", "The inverse of tanh.")

floor = _rounding("floor", "The largest whole number not above x.", python_math.floor)
ceil = _rounding("ceil", "The smallest whole number not below x.", python_math.ceil)
trunc = _rounding("trunc", "x without its fraction.", python_math.trunc)
round = _rounding("round", "The nearest whole number, halves away from zero.", _half_away)
nearbyint = _rounding("nearbyint", "The nearest whole number, halves to the even one.", builtins.round)

isnan = _classify("isnan", "Whether x is not a number.", python_math.isnan)
isinf = _classify("isinf", "Whether x is inf or -inf.", python_math.isinf)
isfinite = _classify("isfinite", "Whether x is neither infinite nor NaN.", python_math.isfinite)


def fmod(x: Any, y: Any) -> Expr:
    """x - trunc(x / y) * y of floats: the sign of x. For integers te.truncmod."""
    return _of_two("fmod", x, y)


def logaddexp(x1: Any, x2: Any) -> Expr:
    """log(exp(x1) + exp(x2)) without overflow: max + log(1 + exp(-|x1 - x2|))."""
    for value in (x1, x2):
        if not isinstance(value, (int, float)):
            _float("logaddexp", value)
    a, b = build.match_operands(*(float(v) if type(v) is int else v for v in (x1, x2)))
    beyond = log1p(exp(Min(a - b, b - a)))  # infinities less themselves are NaN
    return Select(EQ(a, b), a + build.const(python_math.log(2), a.dtype), Max(a, b) + beyond)


atan2 = _pair("atan2", "The angle of the point (y, x): atan2(y, x).")
hypot = _pair("hypot", "sqrt(x * x + y * y) without overflow in between.")
copysign = _pair("copysign", "|x| with the sign of y.")
nextafter = _pair("nextafter", "The next float after x in the direction of y.")
