"""Types and constants of C.

In expressions float16 and bfloat16 are floats whose value the narrow type represents, bool is `bool`; in memory they are
`uint16_t` and a byte.
"""

from __future__ import annotations

import math
from functools import cache

import numpy

from tedsl.ir.dtype import VOID, DType


@cache
def value_type(d: DType) -> str:
    """Returns the type of one lane of dtype `d` in expressions."""
    if d is VOID:
        return "void"
    if d.is_float:
        return "double" if d.bits == 64 else "float"
    if d.is_handle:
        return "void *"
    return "bool" if d.is_bool else f"{'' if d.is_int else 'u'}int{d.bits}_t"


@cache
def memory_type(d: DType) -> str:
    """Returns the type of one lane of dtype `d` in memory."""
    if d.is_bool:
        return "uint8_t"
    return "uint16_t" if d.is_float and d.bits == 16 else value_type(d)


def suffix(d: DType) -> str:
    """Returns the suffix of a helper function for one lane of dtype `d`: i32, u8, f64, bf16, b."""
    if d.is_bool:
        return "b"
    return ("bf" if d.code == "bfloat" else d.code[0]) + str(d.bits)


def integer_text(value: int, d: DType) -> str:
    """Returns an integer constant of dtype `d`."""
    if d.is_bool:
        return "true" if value else "false"
    if d.bits >= 32 and value == d.min_value and d.is_int:
        return f"INT{d.bits}_MIN"
    if d.bits == 64:
        return f"{'U' if d.is_uint else ''}INT64_C({value})"
    return f"{value}u" if d.is_uint and d.bits == 32 else str(value)


def float_text(value: float, d: DType) -> str:
    """Returns a float constant of dtype `d`: the shortest decimals that are rounded to it."""
    if math.isnan(value):
        return "(double)NAN" if d.bits == 64 else "NAN"
    if math.isinf(value):
        sign = "-" if value < 0 else ""
        return f"{sign}(double)INFINITY" if d.bits == 64 else f"{sign}INFINITY"
    if d.bits == 64:
        return repr(float(value))
    return repr(float(str(numpy.float32(value)))) + "f"  # Python's form: numpy's own differs between its versions
