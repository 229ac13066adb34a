"""Rules for shifts, bitwise operators and the absolute value, which hold modulo 2**bits too."""

from __future__ import annotations

from tedsl.arith.bounds import Bounds
from tedsl.ir.expr import Call, Expr, IntImm, Sub
from tedsl.ir.ops import BITWISE_AND, BITWISE_OR, BITWISE_XOR, FABS, SHIFT_LEFT, SHIFT_RIGHT

BITWISE = (BITWISE_AND, BITWISE_OR, BITWISE_XOR, FABS, SHIFT_LEFT, SHIFT_RIGHT)


def fold_bits(e: Call, known: Bounds) -> Expr | None:
    """Returns a simpler form of a scalar call of one of BITWISE, or None."""
    if not e.dtype.is_integer or e.dtype.lanes != 1:
        return None
    if e.op is FABS:
        return _absolute(e, known)
    a, b = e.args
    if e.op in (SHIFT_LEFT, SHIFT_RIGHT):                                         # x << 0, x >> 0 → x
        return a if isinstance(b, IntImm) and b.value == 0 else None
    if known.same(a, b):                                                          # x & x, x | x → x;  x ^ x → 0
        return IntImm(e.dtype, 0) if e.op is BITWISE_XOR else a
    for x, mask in ((a, b), (b, a)):
        if isinstance(mask, IntImm) and mask.value == 0:                          # x & 0 → 0;  x | 0, x ^ 0 → x
            return mask if e.op is BITWISE_AND else x
        if isinstance(mask, IntImm) and mask.value in (-1, e.dtype.max_value if e.dtype.is_uint else -1):
            if e.op is not BITWISE_XOR:                                           # x & ~0 → x;  x | ~0 → ~0
                return x if e.op is BITWISE_AND else mask
    return None


def _absolute(e: Call, known: Bounds) -> Expr | None:
    """Simplifies |x| → x if x >= 0, → 0 - x if x <= 0 and x does not wrap."""
    x, = e.args
    low, high = known.range(x)
    if low is not None and low >= 0:
        return x
    if high is not None and high <= 0 and known.is_index(known.sum(x)):
        return Sub(IntImm(e.dtype, 0), x)
    return None
