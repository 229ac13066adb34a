"""Functions of integers and of values of any dtype: division by each rounding, powers, bits, selection, constants and casts."""

from __future__ import annotations

from typing import Any

from tedsl.errors import ArgumentError, DTypeError
from tedsl.ir import build
from tedsl.ir.dtype import INT32, INT64, UINT64, DType
from tedsl.ir.dtype import dtype as as_dtype
from tedsl.ir.expr import Expr
from tedsl.ir.script import shown
from tedsl.lang.value import as_condition, as_value


def div(a: Any, b: Any) -> Expr:
    """`a / b` as in C: rounded towards zero for integers."""
    x, y = _pair("div", a, b)
    return build.div(x, y) if x.dtype.is_float else build.truncdiv(x, y)


def truncdiv(a: Any, b: Any) -> Expr:
    """`a / b` of integers, rounded towards zero."""
    return build.truncdiv(*_pair("truncdiv", a, b))


def truncmod(a: Any, b: Any) -> Expr:
    """The remainder `a - truncdiv(a, b) * b` of integers; it has the sign of a."""
    return build.truncmod(*_pair("truncmod", a, b))


def floordiv(a: Any, b: Any) -> Expr:
    """`a // b`, rounded towards minus infinity."""
    return build.floordiv(*_pair("floordiv", a, b))


def floormod(a: Any, b: Any) -> Expr:
    """The remainder `a % b`, which has the sign of b."""
    return build.floormod(*_pair("floormod", a, b))


def ceildiv(a: Any, b: Any) -> Expr:
    """The quotient of integers rounded up, `(a + b - 1) // b`; b must be positive."""
    x, y = _integers("ceildiv", a, b)
    return build.floordiv(build.add(x, build.sub(y, 1)), y)


def add(lhs: Any, rhs: Any) -> Expr:
    """`lhs + rhs`."""
    return build.add(*_pair("add", lhs, rhs))


def subtract(lhs: Any, rhs: Any) -> Expr:
    """`lhs - rhs`."""
    return build.sub(*_pair("subtract", lhs, rhs))


def multiply(lhs: Any, rhs: Any) -> Expr:
    """`lhs * rhs`."""
    return build.mul(*_pair("multiply", lhs, rhs))


def q_multiply_shift(x: Any, y: Any, q: Any, s: Any) -> Expr:
    """The fixed-point product `x * y * 2**(s - q)` of int32 values, rounded to nearest (ties upwards), computed in 64 bits.

    y is a fixed-point number with q fractional bits; s is a left shift. q, s: constants, 1 <= q + max(-s, 0) <= 63, s <= 31.
    """
    a, b = _pair("q_multiply_shift", x, y)
    if a.dtype.element is not INT32:
        raise DTypeError(f"q_multiply_shift takes int32, not {a.dtype}", hint="cast them: x.astype('int32')")
    point, shift = build.as_int(as_value(q, "q_multiply_shift")), build.as_int(as_value(s, "q_multiply_shift"))
    if point is None or shift is None or shift > 31 or not 1 <= point + max(-shift, 0) <= 63:
        raise ArgumentError(f"q_multiply_shift: q is {shown(q)} and s is {shown(s)}",
                            hint="constants: bits behind the point and a shift, with 1 <= q + max(-s, 0) <= 63 and s <= 31")
    wide = INT64.with_lanes(a.dtype.lanes)
    product: Any = (build.cast(wide, a) << max(shift, 0)) * build.cast(wide, b)
    right = point + max(-shift, 0)
    rounded: Expr = (product + build.const(1 << (right - 1), wide)) >> right
    return build.cast(a.dtype, rounded)


def indexdiv(a: Any, b: Any) -> Expr:
    """`a // b` of indices, which are integers of at least 0."""
    return build.floordiv(*_integers("indexdiv", a, b))


def indexmod(a: Any, b: Any) -> Expr:
    """`a % b` of indices, which are integers of at least 0."""
    return build.floormod(*_integers("indexmod", a, b))


def _pair(name: str, a: Any, b: Any) -> tuple[Expr, Expr]:
    """Both operands as integer expressions of one dtype; a Python number takes the dtype of the other."""
    return build.match_operands(*(v if isinstance(v, (bool, int, float)) else as_value(v, name) for v in (a, b)))


def _integers(name: str, a: Any, b: Any) -> tuple[Expr, Expr]:
    x, y = _pair(name, a, b)
    if not x.dtype.is_integer:
        raise DTypeError(f"{name} takes integers, not {x.dtype}", hint="use te.floordiv and te.floormod for floats")
    return x, y


def power(x: Any, y: Any) -> Expr:
    """`x ** y`, for floats; for integers if the exponent is a constant from 0 to 4."""
    for value in (x, y):
        as_value(value, "power")
    return build.power(x, y)


pow = power  # its name in tir


def abs(x: Any) -> Expr:
    """The absolute value; the most negative integer of a signed dtype gives itself."""
    return build.absolute(as_value(x, "abs"))


def ldexp(x1: Any, x2: Any) -> Expr:
    """`x1 * 2 ** x2` of a float `x1` and an integer `x2`, in the dtype of `x1`."""
    value, power_of_two = as_value(x1, "ldexp"), as_value(x2, "ldexp")
    if not value.dtype.is_float or not power_of_two.dtype.is_integer:
        raise DTypeError(f"ldexp takes a float and an integer, not {value.dtype} and {power_of_two.dtype}",
                         hint="cast them: te.ldexp(x.astype('float32'), n.astype('int32'))")
    return build.call("tir.ldexp", value, build.cast(INT32, power_of_two))


def bitwise_and(x: Any, y: Any) -> Expr:
    """`x & y`, of integers or bools."""
    return build.bitwise_and(as_value(x, "bitwise_and"), as_value(y, "bitwise_and"))


def bitwise_or(x: Any, y: Any) -> Expr:
    """`x | y`, of integers or bools."""
    return build.bitwise_or(as_value(x, "bitwise_or"), as_value(y, "bitwise_or"))


def bitwise_xor(x: Any, y: Any) -> Expr:
    """`x ^ y`, of integers or bools."""
    return build.bitwise_xor(as_value(x, "bitwise_xor"), as_value(y, "bitwise_xor"))


def bitwise_not(x: Any) -> Expr:
    """`~x`, of an integer or a bool."""
    return build.bitwise_not(as_value(x, "bitwise_not"))


def shift_left(x: Any, y: Any) -> Expr:
    """`x << y`, of integers."""
    return build.shift_left(as_value(x, "shift_left"), as_value(y, "shift_left"))


def shift_right(x: Any, y: Any) -> Expr:
    """`x >> y`, of integers; of a signed dtype the sign fills."""
    return build.shift_right(as_value(x, "shift_right"), as_value(y, "shift_right"))


def popcount(x: Any) -> Expr:
    """The number of bits that are set in an integer, as an integer of its dtype."""
    value = _integer("popcount", x)
    return build.call("tir.popcount", value)


def clz(x: Any) -> Expr:
    """The number of leading zero bits of an integer, as int32."""
    value = _integer("clz", x)
    return build.call("tir.clz", value, dtype_=INT32.with_lanes(value.dtype.lanes))


def lane_mask(condition: Any) -> Expr:
    """The lanes of a vector of 2 to 64 bools as the bits of a uint64, lane 0 as the lowest: 0 where none holds."""
    value = as_value(condition, "lane_mask")
    if not value.dtype.is_bool or not 1 < value.dtype.lanes <= 64:
        raise DTypeError(f"lane_mask takes a vector of 2 to 64 bools, not {value.dtype}", hint="compare vectors: v < w")
    return build.call("tir.lane_mask", value, dtype_=UINT64)


def compress_lanes(x: Any, condition: Any) -> Expr:
    """The lanes of a vector where a condition of as many lanes holds, in order from lane 0 on; zeros behind them.

    One instruction with AVX-512. Stored where a place moves on by `te.popcount(te.lane_mask(condition))`, it collects elements.
    """
    value, holds = as_value(x, "compress_lanes"), as_value(condition, "compress_lanes")
    numbers = not (value.dtype.is_bool or value.dtype.is_custom)
    if not (numbers and holds.dtype.is_bool and 1 < value.dtype.lanes == holds.dtype.lanes):
        raise DTypeError(f"compress_lanes takes a vector of numbers and one of bools with as many lanes, not {value.dtype} and "
                         f"{holds.dtype}", hint="compare the vector: te.compress_lanes(v, v < w)")
    return build.call("tir.compress_lanes", value, holds, dtype_=value.dtype)


def _integer(name: str, x: Any) -> Expr:
    value = as_value(x, name)
    if not value.dtype.is_integer:
        raise DTypeError(f"{name} takes integers, not {value.dtype}",
                         hint=f"the bits of a float: te.{name}(te.reinterpret(x, 'uint32'))")
    return value


def if_then_else(cond: Any, t: Any, f: Any) -> Expr:
    """`t` where `cond` holds, else `f`. Only the chosen side is evaluated: the other may read out of range.

    tir.Select evaluates both sides, which is cheaper where both are safe.

    Raises DTypeError for a condition that is not a bool.
    """
    return build.if_then_else(as_condition(cond, "if_then_else"), *_sides("if_then_else", t, f))


def _sides(name: str, t: Any, f: Any) -> tuple[Any, Any]:
    given = [v if isinstance(v, (bool, int, float)) else as_value(v, name) for v in (t, f)]
    return given[0], given[1]


def const(value: Any, dtype: object = None) -> Expr:
    """A constant. Without a dtype: bool, int32 (int64 where needed) or float32, by the Python type."""
    if hasattr(value, "item") and getattr(value, "shape", None) == ():  # a numpy scalar
        return build.const(value.item(), value.dtype if dtype is None else dtype)
    return build.const(value, dtype)


def cast(value: Any, dtype: object) -> Expr:
    """`value` converted to `dtype`: the same as value.astype(dtype)."""
    if isinstance(value, str) and not isinstance(dtype, str):
        value, dtype = dtype, value  # tir.Cast's order
    return build.cast(as_dtype(dtype), as_value(value, "cast"))


def reinterpret(x: Any, dtype: Any) -> Expr:
    """The bits of `x` as a value of `dtype`, which has the same width. The arguments may also be given in the other order.

    Raises DTypeError if the widths differ.
    """
    if isinstance(x, (str, DType)):
        x, dtype = dtype, x
    value, of = as_value(x, "reinterpret"), as_dtype(dtype)
    if of.lanes == 1:
        of = of.with_lanes(value.dtype.lanes)
    if of.bits != value.dtype.bits or of.lanes != value.dtype.lanes:
        raise DTypeError(f"reinterpret: {value.dtype} and {of} differ in width", hint="use .astype to convert the value")
    return value if of is value.dtype else build.call("tir.reinterpret", value, dtype_=of)


def select(cond: Any, t: Any, f: Any) -> Expr:
    """`t` where `cond` holds, else `f`; both sides are evaluated, so both must be safe.

    Raises DTypeError for a condition that is not a bool.
    """
    return build.select(as_condition(cond, "select"), *_sides("select", t, f))


def likely(cond: Any) -> Expr:
    """`cond`, marked as likely to be true: a hint for branch layout."""
    return build.likely(as_condition(cond, "likely"))
