"""Integers: arithmetic that wraps, division and shifts that are defined for all operands, counts of bits."""

from __future__ import annotations

from collections.abc import Callable
from string import Template

from tedsl.codegen.c.text.types import suffix, value_type
from tedsl.ir.dtype import DType, dtype

_WRAPPING = """
$T tedsl_${name}_$S($T a, $T b)
{
    return ($T)(($W)a $operator ($W)b);
}
"""
# Rounded towards minus infinity; by 0 it is 0, and the least integer by -1 is itself.
_FLOORDIV = """
$T tedsl_floordiv_$S($T a, $T b)
{
    $T quotient;
    if (b == 0) {
        return 0;
    }
    if (b == -1) {
        return ($T)(0u - ($U)a);
    }
    quotient = ($T)(a / b);
    return ($T)((a % b != 0 && (a % b < 0) != (b < 0)) ? quotient - 1 : quotient);
}
"""
_FLOORMOD = """
$T tedsl_floormod_$S($T a, $T b)
{
    $T rest;
    if (b == 0 || b == -1) {
        return 0;
    }
    rest = ($T)(a % b);
    return ($T)((rest != 0 && (rest < 0) != (b < 0)) ? rest + b : rest);
}
"""
_TRUNCDIV = """
$T tedsl_truncdiv_$S($T a, $T b)
{
    return ($T)(b == 0 ? 0 : b == -1 ? ($T)(0u - ($U)a) : ($T)(a / b));
}
"""
_TRUNCMOD = """
$T tedsl_truncmod_$S($T a, $T b)
{
    return ($T)(b == 0 || b == -1 ? 0 : a % b);
}
"""
_UNSIGNED = """
$T tedsl_${name}_$S($T a, $T b)
{
    return ($T)(b == 0 ? 0 : a $operator b);
}
"""
_MIN = """
$T tedsl_${name}_$S($T a, $T b)
{
    return a $operator b ? a : b;
}
"""
_SHIFT_LEFT = """
$T tedsl_shl_$S($T a, $T b)
{
    return ($T)(($U)b < ${bits}u ? ($W)a << b : 0);
}
"""
_SHIFT_RIGHT = """
$T tedsl_shr_$S($T a, $T b)
{
    return ($T)(($U)b < ${bits}u ? a >> b : 0);
}
"""
# Of a negative number C leaves the result of >> to the compiler.
_SHIFT_RIGHT_SIGNED = """
$T tedsl_shr_$S($T a, $T b)
{
    const $T amount = ($T)(($U)b < ${bits}u ? b : $last);
    return ($T)(a < 0 ? ~(~a >> amount) : a >> amount);
}
"""
_ABS = """
$T tedsl_abs_$S($T a)
{
    return a < 0 ? ($T)(0u - ($U)a) : a;
}
"""
_POPCOUNT = """
$T tedsl_popcount_$S($T a)
{
    uint64_t bits = ($U)a;
    bits = bits - ((bits >> 1) & UINT64_C(0x5555555555555555));
    bits = (bits & UINT64_C(0x3333333333333333)) + ((bits >> 2) & UINT64_C(0x3333333333333333));
    bits = (bits + (bits >> 4)) & UINT64_C(0x0F0F0F0F0F0F0F0F);
    return ($T)((bits * UINT64_C(0x0101010101010101)) >> 56);
}
"""
_CLZ = """
int32_t tedsl_clz_$S($T a)
{
    const $U bits = ($U)a;
    int32_t count = 0;
    while (count < $bits && ((bits >> ($last - count)) & 1u) == 0) {
        ++count;
    }
    return count;
}
"""

# a * b in 128 bits.
ALONE = {"wide_product": """
void tedsl_wide_product(uint64_t a, uint64_t b, uint64_t *high, uint64_t *low)
{
    const uint64_t a0 = a & 0xFFFFFFFFu, a1 = a >> 32, b0 = b & 0xFFFFFFFFu, b1 = b >> 32;
    const uint64_t middle = a1 * b0 + ((a0 * b0) >> 32);
    const uint64_t other = a0 * b1 + (middle & 0xFFFFFFFFu);
    *high = a1 * b1 + (middle >> 32) + (other >> 32);
    *low = a * b;
}
"""}


def _text(template: str, of: DType, **more: str) -> str:
    """Fills a template in. T: the type; U: unsigned of its width; W: unsigned that is not promoted to int, which may overflow.
    """
    unsigned = value_type(dtype(f"uint{max(of.bits, 8)}"))
    wide = "uint32_t" if of.bits < 32 else unsigned
    return Template(template).substitute(T=value_type(of), U=unsigned, W=wide, S=suffix(of), bits=str(of.bits),
                                         last=str(of.bits - 1), **more)


def _wrapping(name: str, operator: str) -> Callable[[DType], str]:
    return lambda of: _text(_WRAPPING, of, name=name, operator=operator)


def _division(name: str, operator: str, signed: str) -> Callable[[DType], str]:
    return lambda of: _text(signed, of) if of.is_int else _text(_UNSIGNED, of, name=name, operator=operator)


TEXTS: dict[str, Callable[[DType], str]] = {
    "add": _wrapping("add", "+"), "sub": _wrapping("sub", "-"), "mul": _wrapping("mul", "*"),
    "floordiv": _division("floordiv", "/", _FLOORDIV), "floormod": _division("floormod", "%", _FLOORMOD),
    "truncdiv": _division("truncdiv", "/", _TRUNCDIV), "truncmod": _division("truncmod", "%", _TRUNCMOD),
    "shl": lambda of: _text(_SHIFT_LEFT, of), "shr": lambda of: _text(_SHIFT_RIGHT_SIGNED if of.is_int else _SHIFT_RIGHT, of),
    "abs": lambda of: _text(_ABS, of), "popcount": lambda of: _text(_POPCOUNT, of), "clz": lambda of: _text(_CLZ, of),
    "imin": lambda of: _text(_MIN, of, name="imin", operator="<"),
    "imax": lambda of: _text(_MIN, of, name="imax", operator=">"),
}
