"""Constants that depend on a dtype: its extremes, its infinity."""

from __future__ import annotations

import math

from tedsl.errors import DTypeError
from tedsl.ir import build
from tedsl.ir.calls.datatypes import min_of_datatype
from tedsl.ir.dtype import DType
from tedsl.ir.dtype import dtype as as_dtype
from tedsl.ir.expr import Expr

# of code and bits: the largest finite value
_LARGEST = {
    ("float", 16): 65504.0,
    ("bfloat", 16): math.ldexp(255.0, 120),
    ("float", 32): math.ldexp(2.0 - 2.0**-23, 127),
    ("float", 64): math.ldexp(2.0 - 2.0**-52, 1023),
}


def max_value(dtype: object) -> Expr:
    """The largest finite value of `dtype`.

    Raises DTypeError for a dtype without numbers.
    """
    of = _number(dtype, "max_value")
    if of.is_custom:
        raise DTypeError(f"the largest value of {of} is not known",
                         hint="write a reducer with an identity of its own: te.comm_reducer")
    return build.const(_LARGEST[of.code, of.bits] if of.is_float else of.max_value, of)


def min_value(dtype: object) -> Expr:
    """The smallest finite value of `dtype`: for floats the most negative one, for a type of the program what it registered.

    Raises DTypeError for a dtype without numbers.
    """
    of = _number(dtype, "min_value")
    if of.is_custom:
        return min_of_datatype(of)
    return build.const(-_LARGEST[of.code, of.bits] if of.is_float else of.min_value, of)


def infinity(dtype: object) -> Expr:
    """Positive infinity of a float dtype.

    Raises DTypeError for a dtype that has no infinity.
    """
    of = _number(dtype, "infinity")
    if not of.is_float:
        raise DTypeError(f"{of} has no infinity", hint=f"te.max_value({str(of)!r}) is its largest value")
    return build.const(math.inf, of)


def lowest_value(dtype: DType) -> Expr:
    """The lower bound of all values of `dtype`, which is the identity of max: -inf for floats, since a row of -inf has maximum
    -inf.
    """
    return build.const(-math.inf, dtype) if dtype.is_float else min_value(dtype)


def highest_value(dtype: DType) -> Expr:
    """The upper bound of all values of `dtype`, the identity of min: inf for floats."""
    return build.const(math.inf, dtype) if dtype.is_float else max_value(dtype)


def _number(dtype: object, what: str) -> DType:
    of = as_dtype(dtype)
    if of.is_handle:
        raise DTypeError(f"{what}: {of} is not a dtype of numbers")
    return of
