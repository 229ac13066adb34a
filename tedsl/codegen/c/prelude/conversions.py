"""Conversions that C leaves undefined or does not have: floats to integers, and the bits of one type as another."""

from __future__ import annotations

from tedsl.codegen.c.text.types import float_text, integer_text, memory_type, suffix, value_type
from tedsl.ir.dtype import DType

# Beyond 2**53 bits that a double loses are kept as one sticky bit, so that a second rounding sees them.
ALONE = {"sticky_i64": """
int64_t tedsl_sticky_i64(int64_t x)
{
    const int64_t odd = (int64_t)(x % 2048 != 0);
    const bool exact = x >= -INT64_C(9007199254740992) && x <= INT64_C(9007199254740992);
    const int64_t below = (int64_t)((uint64_t)x & ~UINT64_C(2047));
    return exact ? x : (int64_t)((uint64_t)below | ((uint64_t)odd << 11));
}
""", "sticky_u64": """
uint64_t tedsl_sticky_u64(uint64_t x)
{
    const uint64_t odd = (x & UINT64_C(2047)) != 0 ? UINT64_C(2048) : 0;
    return x <= UINT64_C(9007199254740992) ? x : ((x & ~UINT64_C(2047)) | odd);
}
"""}


def float_to_integer(target: DType, source: DType) -> str:
    """Returns the function that truncates a float towards zero, saturates at the ends of the range, and makes NaN 0."""
    least, greatest = target.min_value, target.max_value
    assert least is not None and greatest is not None
    low, high = (float_text(float(end), source) for end in (least, greatest + 1))  # powers of 2: exact
    below = f"x != x ? 0 : {integer_text(least, target)}" if target.is_int else "0"
    result = value_type(target)
    return f"""{result} tedsl_{suffix(target)}_of_{suffix(source)}({value_type(source)} x)
{{
    if (!(x > {low})) {{
        return {below};
    }}
    return x >= {high} ? {integer_text(greatest, target)} : ({result})x;
}}
"""


def same_bits(target: DType, source: DType) -> str:
    """Returns the function that reads the bits of a value in memory as those of another type of equal width."""
    t, s = memory_type(target), memory_type(source)
    return f"""{t} tedsl_bits_{suffix(target)}_from_{suffix(source)}({s} x)
{{
    {t} y;
    memcpy(&y, &x, sizeof y);
    return y;
}}
"""
