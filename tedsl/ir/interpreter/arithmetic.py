"""The arithmetic of the interpreter: exact scalar functions for every dtype; `lanewise` applies them to vectors.

Values: integers are Python ints in the range of their dtype, bools Python (or numpy) bools, floats numpy scalars of their
dtype; a bfloat16 is a numpy float32 that bfloat16 can represent, in memory a uint16. Vectors are numpy arrays of those.
All run under `numpy.errstate(all="ignore")`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np

from tedsl.ir.dtype import DType, dtype, round_float

BFLOAT16 = dtype("bfloat16")


# --- bfloat16 -------------------------------------------------------------------------------------------------------

# The float32 of every 16-bit pattern.
BFLOAT16_VALUES = (np.arange(1 << 16, dtype=np.uint32) << np.uint32(16)).view(np.float32)


def bfloat16_bits(x: Any) -> Any:
    """The patterns of the bfloat16s nearest to float32 `x` (ties to even), as uint16."""
    bits = np.asarray(x, np.float32).view(np.uint32).astype(np.uint64)
    rounded = (bits + np.uint64(0x7FFF) + ((bits >> np.uint64(16)) & np.uint64(1))) >> np.uint64(16)
    return np.where(np.isnan(x), (bits >> np.uint64(16)) | np.uint64(0x40), rounded).astype(np.uint16)[()]


def round_bfloat16(x: Any) -> Any:
    """float32 `x` rounded to what bfloat16 represents."""
    return BFLOAT16_VALUES[bfloat16_bits(x)]


def bfloat16_from_double(x: Any) -> Any:
    return np.float32(round_float(float(x), BFLOAT16))


# --- conversions ----------------------------------------------------------------------------------------------------

def odd_float(n: int) -> float:
    """`n` as a double, rounded to odd where it is not exact, so that rounding the result again rounds `n` once."""
    shift = max(n.bit_length() - 53, 0)
    high = abs(n) >> shift
    return math.ldexp(math.copysign(high | (abs(n) != high << shift), n), shift)


def float32_from_int(n: int) -> Any:
    return np.float32(odd_float(n))


def bfloat16_from_int(n: int) -> Any:
    return bfloat16_from_double(odd_float(n))


def float_to_int(x: Any, low: int, high: int) -> int:
    """`x` truncated to an integer; NaN gives 0, and values outside low .. high saturate."""
    if x != x:
        return 0
    if np.isinf(x):
        return high if x > 0 else low
    return max(low, min(high, int(x)))


def reinterpret(value: Any, source: str, target: str, is_vector: bool) -> Any:
    """The bits of a scalar or vector seen as a scalar or vector of another dtype of equal width; names of `memory_type`."""
    stored = bfloat16_bits(value) if source == "bfloat16" else np.asarray(value, memory_type(dtype(source)))
    seen = np.atleast_1d(stored).view(memory_type(dtype(target)))
    if target == "bfloat16":
        seen = BFLOAT16_VALUES[seen]
    if is_vector:
        return seen
    return seen[0] if dtype(target).is_float else seen[0].item()


def memory_type(element: DType) -> Any:
    """The numpy type of elements of this dtype in memory."""
    special = {"bool": np.uint8, "bfloat16": np.uint16}
    return np.dtype(special.get(str(element.element), str(element.element))).type


def vector_type(element: DType) -> Any:
    """The numpy type of vectors of this dtype."""
    special = {"bool": np.bool_, "bfloat16": np.float32}
    return np.dtype(special.get(str(element.element), str(element.element))).type


# --- integers -------------------------------------------------------------------------------------------------------

def floordiv(a: int, b: int) -> int:
    return a // b if b else 0


def floormod(a: int, b: int) -> int:
    return a % b if b else 0


def truncdiv(a: int, b: int) -> int:
    if not b:
        return 0
    quotient = abs(a) // abs(b)
    return quotient if (a < 0) == (b < 0) else -quotient


def truncmod(a: int, b: int) -> int:
    return a - truncdiv(a, b) * b if b else 0


def shift_left(a: int, amount: int, bits: int) -> int:
    return a << amount if 0 <= amount < bits else 0


def shift_right(a: int, amount: int, bits: int) -> int:
    return a >> (amount if 0 <= amount < bits else bits)


def add_products(total: Any, a: Any, b: Any, kind: Any) -> Any:
    """`total` with the products of a group of lanes of `a` and `b` added to each lane: a vector of `kind`, which wraps."""
    products = a.astype(np.int64) * b.astype(np.int64)
    return (total.astype(np.int64) + products.reshape(len(total), -1).sum(axis=1)).astype(kind)


def add_pairs(total: Any, a: Any, b: Any, kind: Any) -> Any:
    """`total` with the products of pairs of lanes added to each lane, the second first: what `vdpbf16ps` gives."""
    sums = _without_denormals(total)
    left, right = (_without_denormals(x).reshape(-1, 2) for x in (a, b))
    for at in (1, 0):
        sums = _without_denormals(np.array([fma32(x, y, z) for x, y, z in zip(left[:, at], right[:, at], sums)], kind))
    return sums


def _without_denormals(x: Any) -> Any:
    return np.where(np.abs(x) < np.float32(2.0**-126), np.copysign(np.float32(0), x), x).astype(np.float32)


def popcount(a: int, bits: int) -> int:
    return bin(a & ((1 << bits) - 1)).count("1")


def count_leading_zeros(a: int, bits: int) -> int:
    return bits - (a & ((1 << bits) - 1)).bit_length()


# --- floats ---------------------------------------------------------------------------------------------------------

def smaller(a: Any, b: Any) -> Any:
    """The minimum of scalars or vectors: NaN if either is NaN; the second of two equal operands."""
    return np.where((a != a) | (a < b), a, b)[()]


def larger(a: Any, b: Any) -> Any:
    return np.where((a != a) | (a > b), a, b)[()]


def fma32(a: Any, b: Any, c: Any) -> Any:
    """a * b + c of float32s (or of narrower floats), rounded once to float32.

    The product is exact in double. The sum is made odd where it is inexact, so that rounding it to float32 rounds once.
    """
    product, addend = float(a) * float(b), float(c)
    total = product + addend
    if not math.isfinite(total):
        return np.float32(total)
    back = total - product
    error = (product - (total - back)) + (addend - back)
    if error and not np.float64(total).view(np.int64) & 1:
        total = math.nextafter(total, math.inf if error > 0 else -math.inf)
    return np.float32(total)


def fma64(a: Any, b: Any, c: Any) -> Any:
    """a * b + c of float64s, rounded once."""
    x, y, z = float(a), float(b), float(c)
    if not (math.isfinite(x) and math.isfinite(y) and math.isfinite(z)):
        return np.float64(z if math.isfinite(x) and math.isfinite(y) else np.float64(x) * np.float64(y) + np.float64(z))
    if x == 0.0 or y == 0.0:
        return np.float64(x * y + z)
    exact = Fraction(x) * Fraction(y) + Fraction(z)
    try:
        return np.float64(exact.numerator / exact.denominator)
    except OverflowError:
        return np.float64(math.inf if exact > 0 else -math.inf)


def round_half_away(x: Any) -> Any:
    whole = np.floor(np.abs(x))
    return np.copysign(whole + (np.abs(x) - whole >= 0.5), x)


def next_bfloat16(x: Any, towards: Any) -> Any:
    if x != x or towards != towards:
        return np.float32(np.nan)
    if x == towards:
        return np.float32(towards)
    if x == 0:
        return np.copysign(BFLOAT16_VALUES[1], towards)
    step = 1 if (towards > x) == (x > 0) else -1
    return BFLOAT16_VALUES[int(bfloat16_bits(x)) + step]


def _sigmoid(x: Any) -> Any:
    small = np.exp(-np.abs(x))
    return (small if x < 0 else 1.0) / (1.0 + small)


# From float64 to float64; the caller rounds to the dtype of the call.
MATH: dict[str, Callable[..., Any]] = {
    "exp": np.exp, "exp2": np.exp2, "exp10": lambda x: np.power(np.float64(10.0), x), "log": np.log, "log2": np.log2,
    "log10": np.log10, "log1p": np.log1p, "tanh": np.tanh, "sigmoid": _sigmoid, "erf": math.erf, "sqrt": np.sqrt,
    "rsqrt": lambda x: np.float64(1.0) / np.sqrt(x), "sin": np.sin, "cos": np.cos, "tan": np.tan, "asin": np.arcsin,
    "acos": np.arccos, "atan": np.arctan, "sinh": np.sinh, "cosh": np.cosh, "asinh": np.arcsinh, "acosh": np.arccosh,
    "atanh": np.arctanh, "floor": np.floor, "ceil": np.ceil, "trunc": np.trunc, "round": round_half_away,
    "nearbyint": np.rint, "fabs": np.abs, "pow": np.power, "fmod": np.fmod, "atan2": np.arctan2, "hypot": np.hypot,
    "exp_bounded": np.exp, "copysign": np.copysign, "isnan": np.isnan, "isinf": np.isinf, "isfinite": np.isfinite,
    "ldexp": lambda x, n: np.ldexp(x, max(-5000, min(5000, n))),
}


def call_math(name: str, of: str, *args: Any) -> Any:
    """Function `name` of MATH on scalars, the result rounded to dtype `of`; integer arguments stay integers."""
    function = MATH[name]
    result = function(*[a if isinstance(a, int) else np.float64(a) for a in args])
    return bool(result) if of == "bool" else FROM_DOUBLE[of](result)


FROM_DOUBLE: dict[str, Callable[[Any], Any]] = {
    "float16": np.float16, "float32": np.float32, "float64": np.float64, "bfloat16": bfloat16_from_double}


def next_after(x: Any, towards: Any, of: str) -> Any:
    if x == towards:
        return towards  # also where the signs of zero differ, which numpy's float16 does not heed
    return next_bfloat16(x, towards) if of == "bfloat16" else np.nextafter(x, towards)


# --- vectors --------------------------------------------------------------------------------------------------------

def lanewise(function: Callable[..., Any], kind: Any, *vectors: Any) -> Any:
    """`function` on each lane of the vectors, as an array of numpy type `kind`; integers wrap."""
    lanes = zip(*[v.tolist() if v.dtype.kind in "iub" else v for v in vectors])
    values = [function(*lane) for lane in lanes]
    if np.dtype(kind).kind in "iu":
        mask = (1 << np.dtype(kind).itemsize * 8) - 1
        unsigned = np.array([int(v) & mask for v in values], np.uint64)
        return unsigned.astype(kind)
    return np.array(values, kind)


def outside(index: Any, mask: Any, size: int) -> bool:
    """Whether a lane of `index` that `mask` (None: all) enables lies outside 0 <= index < size."""
    wrong = (index < 0) | (index >= size)
    return bool(np.any(wrong if mask is None else wrong & mask))


def uninitialised(size: int, element: DType) -> Any:
    """An array of `size` elements that makes reads of uninitialised memory visible: NaN, or alternating extreme integers."""
    kind = memory_type(element)
    if element.is_float and element.code != "bfloat":
        return np.full(size, np.nan, kind)
    memory = np.empty(size, kind)
    width = np.dtype(kind).itemsize
    memory[0::2] = 1 if element.is_bool else 0x7FC1 if element.is_float else int.from_bytes(b"\x7d" * width, "big")
    memory[1::2] = 0 if element.is_bool else 0x7FC1 if element.is_float else int.from_bytes(
        b"\x82" * width, "big", signed=element.is_int)
    return memory
