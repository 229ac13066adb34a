"""Construction of expressions: conversion of Python values, promotion of dtypes, folding of constants.

Promotion (TVM v0.8's): an integer with a float takes the float's dtype; otherwise the wider; at equal width unsigned.
bool in arithmetic becomes int32; float16 with bfloat16 is an error. A Python number takes the dtype of the other
operand if it fits: an int any numeric dtype that holds it, a float any float dtype; a Python float with an integer is a
float32 (so the integer is cast). A number that does not fit is a DTypeError that names the cast.

Folding never changes a value: constants fold if the result fits its dtype (index arithmetic must not wrap), and
x + 0, x - 0, x * 1, x // 1 are x; x * 0 is 0 for integers only. Deeper simplification is the business of `arith`.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

from tedsl.errors import DTypeError, ExpressionError, ShapeError
from tedsl.ir.container import Array
from tedsl.ir.dtype import BOOL, FLOAT32, INT32, INT64, DType, dtype, dtype_of_call
from tedsl.ir.expr import (
    EQ,
    GE,
    GT,
    LE,
    LT,
    NE,
    Add,
    And,
    BinaryOp,
    Broadcast,
    Call,
    Cast,
    Div,
    Expr,
    FloatImm,
    FloorDiv,
    FloorMod,
    IntImm,
    Max,
    Min,
    Mod,
    Mul,
    Not,
    Or,
    Select,
    StringImm,
    Sub,
)
from tedsl.ir.operators import LazyEqual
from tedsl.ir.ops import BITWISE_NOT, IF_THEN_ELSE, LIKELY, Op

# --- conversion -----------------------------------------------------------------------------------------------------

def is_expr(value: object) -> bool:
    """Whether `value` is an expression."""
    return isinstance(value, Expr)


def is_operand(value: object) -> bool:
    """Whether `value` can stand beside an expression under an operator."""
    return isinstance(value, (Expr, LazyEqual, bool, int, float)) or hasattr(value, "as_expr") or is_numpy_scalar(value)


def is_numpy_scalar(value: object) -> bool:
    """Whether `value` is one number of numpy, with a dtype."""
    return hasattr(value, "dtype") and hasattr(value, "item") and getattr(value, "shape", None) == ()


def as_expr(value: Any, like: DType | None = None) -> Expr:
    """`value` as an expression. Python numbers become constants: of dtype `like` if given, else bool, int32 (int64 where
    needed) and float32; a numpy scalar keeps its dtype; an object with `as_expr()`, such as an axis, is converted by it.
    """
    if isinstance(value, Expr):
        return value
    if isinstance(value, LazyEqual):
        return value.asobject()
    if isinstance(value, (bool, int, float)):
        return const(value, like)
    if hasattr(value, "as_expr"):
        return value.as_expr()  # type: ignore[no-any-return]
    if is_numpy_scalar(value):
        return const(value.item(), dtype(value.dtype))
    if isinstance(value, str):
        return StringImm(value)
    raise ExpressionError(f"{value!r} ({type(value).__name__}) cannot be used in an expression",
                          hint="use numbers, variables, axes and elements of tensors such as A[i, j]")


def const(value: Any, dtype_: object = None) -> Expr:
    """A constant of the given dtype (None: bool, int32 or int64, float32). Vector dtypes give a broadcast.

    Raises DTypeError where the dtype cannot hold the value.
    """
    if type(value) is int:
        usual = INT32 if dtype_ is None else dtype(dtype_)
        if value in usual.numbers and not usual.is_bool:
            return int_imm(usual, value)
    if isinstance(value, Expr):
        value = value.value if isinstance(value, (IntImm, FloatImm)) else value
    if not isinstance(value, (bool, int, float)):
        raise DTypeError(f"a constant is made from a Python number, not {value!r}")
    if dtype_ is None:
        small = isinstance(value, float) or -2**31 <= value < 2**31
        dtype_ = BOOL if isinstance(value, bool) else FLOAT32 if isinstance(value, float) else INT32 if small else INT64
    of = dtype(dtype_)
    if of.lanes > 1:
        return Broadcast(const(value, of.element), of.lanes)
    if of.is_float or of.is_custom:
        return FloatImm(of, float(value))
    if of.is_handle:
        raise DTypeError("there are no constants of dtype handle")
    if isinstance(value, float) and (not math.isfinite(value) or value != math.trunc(value)):
        raise DTypeError(f"{value} is not representable in {of}", hint="use a float dtype, or round it first")
    integer = int(value)
    if of.is_bool:
        return IntImm(BOOL, int(integer != 0))
    assert of.min_value is not None and of.max_value is not None
    if not of.min_value <= integer <= of.max_value:
        raise DTypeError(f"the constant {integer} does not fit {of} ({of.min_value} to {of.max_value})",
                         hint="cast the other operand to a wider dtype first: x.astype('int64')")
    return IntImm(of, integer)


@functools.lru_cache(maxsize=4096)
def int_imm(of: DType, value: int) -> IntImm:
    """The constant `value`, which `of` can hold, an integer dtype: one node, so that what contains it may be one, too."""
    return IntImm(of, value)


def as_dims(shape: Any) -> tuple[Any, ...]:
    """The dimensions of a shape given as a number, an expression or a sequence of them; numpy scalars count as numbers.

    A float that is a whole number is one: `n / 8`, where it divides, is common in programs of TVM.
    """
    sequence = hasattr(shape, "__iter__") and not isinstance(shape, str) and getattr(shape, "shape", None) != ()
    return tuple(map(whole_number, shape)) if sequence else (whole_number(shape),)


def whole_number(value: Any) -> Any:
    """A float without a fraction as an int; anything else as it is."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


def as_shape(shape: Any, what: str) -> tuple[Expr, ...]:
    """`shape` (a number, an expression, or a sequence of them) as integer expressions; ShapeError names `what`."""
    extents = []
    for position, dim in enumerate(as_dims(shape)):
        expr = as_expr(dim)
        if not expr.dtype.is_integer or expr.dtype.lanes != 1:
            raise ShapeError(f"{what}: dimension {position} of the shape is {dim!r} of dtype {expr.dtype}, not an integer")
        if isinstance(expr, IntImm) and expr.value < 0:
            raise ShapeError(f"{what}: dimension {position} of the shape is {expr.value}, below 0")
        extents.append(expr)
    return Array(extents)


# --- promotion ------------------------------------------------------------------------------------------------------

def promote(a: DType, b: DType) -> DType:
    """The dtype of arithmetic on scalars (or elements) of `a` and `b`; see the head of this file."""
    a, b = a.element, b.element
    if a is b:
        return INT32 if a.is_bool else a
    if a.is_bool:
        return promote(INT32, b)
    if b.is_bool:
        return promote(a, INT32)
    if a.is_handle or b.is_handle:
        raise DTypeError(f"{a} and {b} have no common dtype: a handle takes part in no arithmetic")
    if a.is_custom or b.is_custom:
        own = a if a.is_custom else b
        raise DTypeError(f"{a} and {b} have no common dtype", hint=f"cast one of them: x.astype({str(own)!r})")
    if a.is_float != b.is_float:
        return a if a.is_float else b
    if a.bits != b.bits:
        return a if a.bits > b.bits else b
    if a.is_float:
        raise DTypeError(f"{a} and {b} have no common dtype", hint="cast both to float32 first")
    return a if a.is_uint else b


def match_operands(a: Any, b: Any, *, keep_bool: bool = False) -> tuple[Expr, Expr]:
    """Both operands as expressions of one dtype and equal lanes. keep_bool: two bools stay bool (comparisons)."""
    if isinstance(a, Expr) and isinstance(b, Expr) and a.dtype is b.dtype and (keep_bool or not a.dtype.is_bool):
        return a, b
    number_a, number_b = isinstance(a, (bool, int, float)), isinstance(b, (bool, int, float))
    if number_a and not number_b:
        b = as_expr(b)
        a = _constant_beside(a, b.dtype)
    elif number_b and not number_a:
        a = as_expr(a)
        b = _constant_beside(b, a.dtype)
    else:
        a, b = as_expr(a), as_expr(b)
    if a.dtype is b.dtype and not (a.dtype.is_bool and not keep_bool):
        return a, b
    if a.dtype.is_bool and b.dtype.is_bool and keep_bool:
        target = BOOL
    else:
        target = promote(a.dtype, b.dtype)
    lanes = max(a.dtype.lanes, b.dtype.lanes)
    if {a.dtype.lanes, b.dtype.lanes} - {1, lanes}:
        raise DTypeError(f"vectors of {a.dtype.lanes} and {b.dtype.lanes} lanes do not fit together")
    return _widen(cast(target.with_lanes(a.dtype.lanes), a), lanes), _widen(cast(target.with_lanes(b.dtype.lanes), b), lanes)


def _constant_beside(value: Any, other: DType) -> Expr:
    if isinstance(value, float) and not (other.is_float or other.is_custom):
        return const(value, FLOAT32)
    if isinstance(value, bool) or other.is_bool or other.is_handle:
        return const(value)
    return const(value, other.element)


def _widen(value: Expr, lanes: int) -> Expr:
    return value if value.dtype.lanes == lanes else Broadcast(value, lanes)


# --- folding --------------------------------------------------------------------------------------------------------

def _trunc_div(x: int, y: int) -> int:
    q = abs(x) // abs(y)
    return q if (x < 0) == (y < 0) else -q


def _float_min(x: float, y: float) -> float:
    return x if x != x else y if y != y or not x < y else x


def _float_max(x: float, y: float) -> float:
    return x if x != x else y if y != y or not x > y else x


_INTEGER: dict[type[Expr], Callable[[int, int], int | None]] = {
    Add: lambda x, y: x + y, Sub: lambda x, y: x - y, Mul: lambda x, y: x * y,
    Div: lambda x, y: _trunc_div(x, y) if y else 0, Mod: lambda x, y: x - _trunc_div(x, y) * y if y else 0,
    FloorDiv: lambda x, y: x // y if y else 0, FloorMod: lambda x, y: x % y if y else 0, Min: min, Max: max,
    EQ: lambda x, y: int(x == y), NE: lambda x, y: int(x != y), LT: lambda x, y: int(x < y), LE: lambda x, y: int(x <= y),
    GT: lambda x, y: int(x > y), GE: lambda x, y: int(x >= y), And: lambda x, y: x & y, Or: lambda x, y: x | y,
}
_FLOAT: dict[type[Expr], Callable[[float, float], float | None]] = {
    Add: lambda x, y: x + y, Sub: lambda x, y: x - y, Mul: lambda x, y: x * y, Div: lambda x, y: x / y if y else None,
    Min: _float_min, Max: _float_max,
    EQ: lambda x, y: x == y, NE: lambda x, y: x != y, LT: lambda x, y: x < y, LE: lambda x, y: x <= y,
    GT: lambda x, y: x > y, GE: lambda x, y: x >= y,
}


def fold(kind: type[BinaryOp], a: Expr, b: Expr) -> Expr | None:
    """The simpler form of `kind(a, b)`, operands of one dtype, or None."""
    if (type(a) not in _CONSTANTS and type(b) not in _CONSTANTS) or a.dtype.is_custom:
        return None
    if isinstance(a, IntImm) and isinstance(b, IntImm):
        result = _INTEGER[kind](a.value, b.value)
        of = BOOL if kind in _TO_BOOL else a.dtype
        assert of.min_value is not None and of.max_value is not None
        return int_imm(of, result) if result is not None and of.min_value <= result <= of.max_value else None
    if isinstance(a, FloatImm) and isinstance(b, FloatImm) and kind in _FLOAT:
        value = _FLOAT[kind](a.value, b.value)  # float32 from float64 operations on float32: rounding twice is exact here
        if value is None:
            return None
        return IntImm(BOOL, int(value)) if kind in _TO_BOOL else FloatImm(a.dtype, value)
    return _fold_neutral(kind, a, b)


_TO_BOOL = frozenset((EQ, NE, LT, LE, GT, GE))
_CONSTANTS = frozenset((IntImm, FloatImm))


def _fold_neutral(kind: type[BinaryOp], a: Expr, b: Expr) -> Expr | None:
    left = a.value if isinstance(a, IntImm) else None
    right = b.value if isinstance(b, (IntImm, FloatImm)) else None
    if kind is And or kind is Or:
        absorbing = 0 if kind is And else 1
        if left is not None:
            return a if left == absorbing else b
        if right is not None:
            return b if right == absorbing else a
    elif right is not None and not (isinstance(b, FloatImm) and kind is Add):  # -0.0 + 0.0 is 0.0
        if (kind is Add or kind is Sub) and right == 0 and math.copysign(1.0, right) > 0:
            return a
        if kind in (Mul, Div, FloorDiv) and right == 1:
            return a
        if kind is Mul and right == 0 and isinstance(b, IntImm):
            return b
        if (kind is FloorMod or kind is Mod) and right == 1:
            return const(0, b.dtype)
    elif left is not None:
        if (kind is Add and left == 0) or (kind is Mul and left == 1):
            return b
        if kind in (Mul, FloorDiv, FloorMod) and left == 0:
            return a
    return None


def binary(kind: Any, a: Any, b: Any) -> Expr:
    """`kind(a, b)`, an operator of two operands, after promotion and folding."""
    a, b = match_operands(a, b, keep_bool=kind in _KEEP_BOOL)
    folded = fold(kind, a, b)
    return folded if folded is not None else kind(a, b)


_KEEP_BOOL = frozenset((EQ, NE, And, Or))


# --- arithmetic -----------------------------------------------------------------------------------------------------

def add(a: Any, b: Any) -> Expr:
    return binary(Add, a, b)


def sub(a: Any, b: Any) -> Expr:
    return binary(Sub, a, b)


def mul(a: Any, b: Any) -> Expr:
    return binary(Mul, a, b)


def product_of_extents(a: Expr, b: Expr) -> Expr:
    """`a * b` of counts of iterations or elements; the product of two constants is an int64 where it does not fit int32."""
    left, right = as_int(a), as_int(b)
    if left is None or right is None:
        return mul(a, b)
    x, y = match_operands(a, b)
    limit = x.dtype.max_value
    return const(left * right, x.dtype if limit is not None and left * right <= limit else INT64)


def div(a: Any, b: Any) -> Expr:
    """`a / b` of floats. On two integers an error that names both choices."""
    x, y = match_operands(a, b)
    if not (x.dtype.is_float or x.dtype.is_custom):
        raise DTypeError(f"`/` on integers ({x.dtype}) is ambiguous",
                         hint="write // (floor) or te.truncdiv (towards zero), or cast one operand to a float: "
                              "x.astype('float32') / y")
    folded = fold(Div, x, y)
    return folded if folded is not None else Div(x, y)


def truncdiv(a: Any, b: Any) -> Expr:
    return binary(Div, *_integers("truncdiv", a, b))


def truncmod(a: Any, b: Any) -> Expr:
    return binary(Mod, *_integers("truncmod", a, b))


def floordiv(a: Any, b: Any) -> Expr:
    """`a // b`: FloorDiv of integers, floor(a / b) of floats."""
    x, y = match_operands(a, b)
    return call("tir.floor", div(x, y)) if x.dtype.is_float or x.dtype.is_custom else binary(FloorDiv, x, y)


def ceil_div(a: Expr, b: Expr) -> Expr:
    """`a / b` of integers, rounded up; b is at least 1."""
    return floordiv(add(a, sub(b, 1)), b)


def floormod(a: Any, b: Any) -> Expr:
    """`a % b`: FloorMod of integers, a - floor(a / b) * b of floats."""
    x, y = match_operands(a, b)
    if x.dtype.is_float or x.dtype.is_custom:
        return sub(x, mul(call("tir.floor", div(x, y)), y))
    return binary(FloorMod, x, y)


def _integers(name: str, a: Any, b: Any) -> tuple[Expr, Expr]:
    x, y = match_operands(a, b)
    if not x.dtype.is_integer:
        raise DTypeError(f"{name} takes integers, not {x.dtype}", hint="use / for floats, with te.trunc or te.fmod")
    return x, y


def minimum(a: Any, b: Any) -> Expr:
    return binary(Min, a, b)


def maximum(a: Any, b: Any) -> Expr:
    return binary(Max, a, b)


def negative(a: Any) -> Expr:
    """`-a`; for floats the sign of zero changes too."""
    x = as_expr(a)
    if isinstance(x, FloatImm) and x.dtype.is_float:
        return FloatImm(x.dtype, -x.value)
    if x.dtype.is_float:
        return Mul(x, const(-1.0, x.dtype))
    if x.dtype.is_bool:
        x = cast(INT32.with_lanes(x.dtype.lanes), x)
    return binary(Sub, const(0, x.dtype), x)


def absolute(a: Any) -> Expr:
    """The absolute value; of the most negative integer itself."""
    x = as_expr(a)
    if x.dtype.is_bool:
        raise DTypeError("abs takes numbers, not bool", hint="cast it: x.astype('int32')")
    if x.dtype.is_uint:
        return x
    if isinstance(x, IntImm):
        return x if x.value >= 0 or x.value == x.dtype.min_value else const(-x.value, x.dtype)
    return FloatImm(x.dtype, abs(x.value)) if isinstance(x, FloatImm) and x.dtype.is_float else call("tir.fabs", x)


def power(a: Any, b: Any) -> Expr:
    """`a ** b` of floats; an integer base to a constant power up to 4 is a product.

    So are the square of a float and the cube of float32 and float64: 1.5 ulp, in a seventh of the time of the function.
    """
    if isinstance(b, int) and not isinstance(b, bool) and 0 <= b <= 4:
        x = as_expr(a)
        result = const(1, x.dtype if not x.dtype.is_bool else INT32)
        for _ in range(b):
            result = mul(x, result)
        if x.dtype.is_integer or b <= 2 or (b == 3 and x.dtype.is_float and x.dtype.bits >= 32):
            return result
    x, y = match_operands(a, b)
    if not (x.dtype.is_float or x.dtype.is_custom):
        raise DTypeError(f"power of {x.dtype} is not defined beyond constant exponents 0 to 4",
                         hint="cast to a float first: x.astype('float32')")
    return call("tir.pow", x, y)


# --- comparison and logic -------------------------------------------------------------------------------------------

def equal(a: Any, b: Any) -> Expr:
    return binary(EQ, a, b)


def not_equal(a: Any, b: Any) -> Expr:
    return binary(NE, a, b)


def less(a: Any, b: Any) -> Expr:
    return binary(LT, a, b)


def less_equal(a: Any, b: Any) -> Expr:
    return binary(LE, a, b)


def greater(a: Any, b: Any) -> Expr:
    return binary(GT, a, b)


def greater_equal(a: Any, b: Any) -> Expr:
    return binary(GE, a, b)


def constant_equality(a: Any, b: Any) -> bool | None:
    """Whether two operands are equal as constants; None if they are not both constants."""
    if not (is_operand(a) and is_operand(b)):
        return None
    try:
        result = equal(a, b)
    except (DTypeError, ExpressionError):
        return False
    return bool(result.value) if isinstance(result, IntImm) else None


def logical_and(a: Any, b: Any) -> Expr:
    return binary(And, _condition("and", a), _condition("and", b))


def logical_or(a: Any, b: Any) -> Expr:
    return binary(Or, _condition("or", a), _condition("or", b))


def logical_not(a: Any) -> Expr:
    x = _condition("not", a)
    return IntImm(BOOL, 1 - x.value) if isinstance(x, IntImm) else Not(x)


def _condition(name: str, value: Any) -> Expr:
    x = as_expr(value)
    if not x.dtype.is_bool:
        raise DTypeError(f"logical {name} takes bool, not {x.dtype}", hint="compare first, for example x != 0")
    return x


def true() -> Expr:
    return IntImm(BOOL, 1)


def is_true(e: Expr) -> bool:
    return isinstance(e, IntImm) and e.dtype.is_bool and e.value == 1


def select(condition: Any, true_value: Any, false_value: Any) -> Expr:
    """Select with both sides evaluated and promoted to one dtype."""
    t, f = match_operands(true_value, false_value, keep_bool=True)
    c = _condition("select", condition)
    return (t if c.value else f) if isinstance(c, IntImm) else Select(c, t, f)


def if_then_else(condition: Any, true_value: Any, false_value: Any) -> Expr:
    """`true_value` if `condition` else `false_value`; only the chosen side is evaluated."""
    t, f = match_operands(true_value, false_value, keep_bool=True)
    c = _condition("if_then_else", condition)
    return (t if c.value else f) if isinstance(c, IntImm) else Call(t.dtype, IF_THEN_ELSE, (c, t, f))


# --- bits, casts, calls ---------------------------------------------------------------------------------------------

def _bits(name: str) -> Callable[[Any, Any], Expr]:
    op = Op.get(f"tir.{name}")

    def build(a: Any, b: Any) -> Expr:
        x, y = match_operands(a, b, keep_bool=not name.startswith("shift"))
        if x.dtype.is_float:
            raise DTypeError(f"{name} takes integers, not {x.dtype}",
                             hint="cast to an integer, or tir.reinterpret the bits: te.reinterpret(x, 'int32')")
        if x.dtype.is_bool:
            return {"bitwise_and": logical_and, "bitwise_or": logical_or, "bitwise_xor": not_equal}[name](x, y)
        if isinstance(x, IntImm) and isinstance(y, IntImm):
            value = _fold_bits(name, x, y)
            assert x.dtype.min_value is not None and x.dtype.max_value is not None
            if x.dtype.min_value <= value <= x.dtype.max_value:
                return IntImm(x.dtype, value)
        return Call(x.dtype, op, (x, y))

    build.__name__ = name
    return build


def _fold_bits(name: str, x: IntImm, y: IntImm) -> int:
    if name.startswith("shift"):
        legal = 0 <= y.value < x.dtype.bits
        if name == "shift_left":
            return x.value << y.value if legal else 0
        return x.value >> (y.value if legal else 64)
    return {"bitwise_and": x.value & y.value, "bitwise_or": x.value | y.value, "bitwise_xor": x.value ^ y.value}[name]


shift_left, shift_right = _bits("shift_left"), _bits("shift_right")
bitwise_and, bitwise_or, bitwise_xor = _bits("bitwise_and"), _bits("bitwise_or"), _bits("bitwise_xor")


def bitwise_not(a: Any) -> Expr:
    x = as_expr(a)
    if x.dtype.is_bool:
        return logical_not(x)
    if not x.dtype.is_integer:
        raise DTypeError(f"bitwise_not takes integers, not {x.dtype}", hint="cast to an integer first")
    return Call(x.dtype, BITWISE_NOT, (x,))


def cast(to: object, value: Any) -> Expr:
    """`value` converted to dtype `to` (the lanes of the value are kept for a scalar `to`). Constants fold where exact."""
    if isinstance(value, Expr) and value.dtype is to:
        return value
    target, x = dtype(to), as_expr(value)
    if target.lanes == 1 and x.dtype.lanes > 1:
        target = target.with_lanes(x.dtype.lanes)
    elif target.lanes > 1 and x.dtype.lanes == 1:
        return Broadcast(cast(target.element, x), target.lanes)
    if target is x.dtype:
        return x
    if target.is_handle or x.dtype.is_handle:
        raise DTypeError(f"{x.dtype} cannot be cast to {target}")
    if isinstance(x, (IntImm, FloatImm)) and not (target.is_custom or x.dtype.is_custom):
        folded = _fold_cast(target, x)
        if folded is not None:
            return folded
    return Cast(target, x)


def _fold_cast(target: DType, x: IntImm | FloatImm) -> Expr | None:
    if target.is_float:
        exact = isinstance(x, FloatImm) or abs(x.value) <= 2**53  # a larger int would be rounded twice
        return FloatImm(target, float(x.value)) if exact else None
    if target.is_bool:
        return IntImm(BOOL, int(x.value != 0))
    assert target.min_value is not None and target.max_value is not None
    if not math.isfinite(x.value) or not target.min_value <= int(x.value) <= target.max_value:
        return None
    return IntImm(target, int(x.value))


def call(op: object, *args: Any, dtype_: object = None) -> Expr:
    """A Call of intrinsic `op`; its dtype is that of the first argument unless given."""
    operands = tuple(as_expr(a) for a in args)
    return Call(dtype_of_call(dtype_) if dtype_ is not None else operands[0].dtype, Op.get(op), operands)


def likely(condition: Any) -> Expr:
    """`condition`, marked as expected to hold; constants stay as they are."""
    c = _condition("likely", condition)
    return c if isinstance(c, IntImm) else Call(BOOL, LIKELY, (c,))


def as_int(value: object) -> int | None:
    """The Python int of an integer constant (IntImm or int), else None."""
    if isinstance(value, IntImm):
        return value.value
    return value if isinstance(value, int) and not isinstance(value, bool) else None
