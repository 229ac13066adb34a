"""Values of the reference: numpy arrays with the semantics at the head of `tedsl/ir/expr.py`, implemented independently.

Nothing here imports the compiler: a rule that is wrong there must not be wrong here for the same reason.
"""

from __future__ import annotations

import functools
import importlib.util
import re
from collections.abc import Callable
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]
Fold = Callable[[Any, Any], Any]
MANTISSA = {"float16": 11, "bfloat16": 8, "float32": 24, "float64": 53}
LARGEST = {"float16": 65504.0, "bfloat16": 3e38, "float32": 3e38, "float64": 1e308}


@functools.cache
def numpy_type(dtype: str) -> np.dtype[Any]:
    """The numpy dtype for `dtype`; for bfloat16 that of the package ml_dtypes."""
    if dtype != "bfloat16":
        return np.dtype(dtype)
    import ml_dtypes

    bfloat16: np.dtype[Any] = np.dtype(ml_dtypes.bfloat16)
    return bfloat16


@functools.cache
def available(dtype: str) -> str:
    """`dtype`, or float16 where numpy has no bfloat16."""
    missing = dtype == "bfloat16" and importlib.util.find_spec("ml_dtypes") is None
    return "float16" if missing else dtype


def is_float(dtype: str) -> bool:
    return dtype in MANTISSA


def bits_of(dtype: str) -> int:
    return 8 if dtype == "bool" else int(re.sub(r"\D", "", dtype))


def promoted(a: str, b: str) -> str:
    """The dtype of arithmetic on `a` and `b`, as TVM v0.8 promotes."""
    a, b = ("int32" if d == "bool" else d for d in (a, b))
    if a == b:
        return a
    if is_float(a) != is_float(b):
        return a if is_float(a) else b
    if bits_of(a) != bits_of(b):
        return a if bits_of(a) > bits_of(b) else b
    return a if a.startswith("u") else b


def converted(array: Any, source: str, target: str) -> Array:
    """A cast: integers wrap, floats saturate and truncate, NaN is 0, floats round once."""
    if source == target:
        return np.asarray(array)
    if target == "bool":
        return np.asarray(array != 0)
    if is_float(target):
        return _to_float(array, source, target)
    if is_float(source):
        limits = np.iinfo(target)
        wide = np.trunc(np.asarray(array, np.float64))
        inside = (wide > limits.min - 0.5) & (wide < float(limits.max) + (bits_of(target) < 64))
        kept = np.where(inside, wide, 0).astype(target)
        return np.where(np.isnan(wide) | inside, kept, np.where(wide > 0, limits.max, limits.min).astype(target))
    return np.asarray(array).astype(target)


def _sticky(array: Array) -> Array:
    """64-bit integers that float64 represents exactly and that round to 16-bit floats like the given ones.

    Beyond 2**53 the low 11 bits, which only break ties, become one sticky bit.
    """
    magnitude = np.abs(array).astype(np.uint64)  # of the smallest integer too: its abs wraps to itself
    low = magnitude & np.uint64(2047)
    coarse = (magnitude - low) | np.where(low != 0, np.uint64(2048), np.uint64(0))
    rounded = np.where(magnitude > 2**53, coarse, magnitude).astype(np.float64)
    return np.where(np.asarray(array) < 0, -rounded, rounded)


def _to_float(array: Any, source: str, target: str) -> Array:
    if is_float(source) and MANTISSA[source] < MANTISSA[target] and target != "float16":
        return np.asarray(array).astype(numpy_type(target))
    if target in ("float64", "float32") and source != "bfloat16":
        return np.asarray(array).astype(target)
    wide = np.asarray(_sticky(array) if bits_of(source) == 64 and not is_float(source) else array, np.float64)
    if target == "float16":
        return wide.astype(np.float16)
    mantissa, exponent = np.frexp(wide)
    nearest = np.ldexp(np.round(mantissa * 256), exponent - 8)  # ties to even
    return np.where(np.isfinite(wide), nearest, wide).astype(np.float32).astype(numpy_type(target))


class Value:
    """An array of a dtype with the operators of formulas; dimensions of reductions come first, then those of the compute."""

    __array_ufunc__ = None
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, array: Any, dtype: str) -> None:
        self.array, self.dtype = np.asarray(array), dtype
        assert self.array.dtype == numpy_type(dtype), (self.array.dtype, dtype)

    def astype(self, dtype: str) -> Value:
        return Value(converted(self.array, self.dtype, dtype), dtype)

    def __index__(self) -> int:
        return int(self.array)

    __int__ = __index__

    def equal(self, other: Any) -> Value:
        return _compare(np.equal, self, other)

    def __neg__(self) -> Value:
        return Value(np.zeros((), self.array.dtype) - self.array, self.dtype) if not is_float(self.dtype) else \
            Value(-self.array, self.dtype)

    def __invert__(self) -> Value:
        return Value(np.invert(self.array), self.dtype)


def as_value(value: Any, like: str | None = None) -> Value:
    """`value` as a Value; a Python number takes the dtype of the other operand, a float beside an integer is float32."""
    if isinstance(value, Value):
        return value
    if hasattr(value, "as_value"):
        return as_value(value.as_value())
    if isinstance(value, bool):
        return Value(np.bool_(value), "bool")
    if isinstance(value, float):
        dtype = like if like and is_float(like) else "float32"
        return Value(converted(np.float64(value), "float64", dtype), dtype)
    dtype = like if like and like != "bool" else "int32"
    return Value(np.asarray(value, np.float64 if is_float(dtype) else dtype).astype(numpy_type(dtype)), dtype)


def matched(a: Any, b: Any, keep_bool: bool = False) -> tuple[Value, Value]:
    """Both operands converted to their common dtype."""
    a = as_value(a, getattr(b, "dtype", None))
    b = as_value(b, a.dtype)
    if keep_bool and a.dtype == b.dtype == "bool":
        return a, b
    common = promoted(a.dtype, b.dtype)
    return a.astype(common), b.astype(common)


def _compare(function: Fold, a: Any, b: Any) -> Value:
    a, b = matched(a, b, keep_bool=True)
    return Value(function(a.array, b.array), "bool")


def arithmetic(function: Fold, a: Any, b: Any) -> Value:
    a, b = matched(a, b)
    return Value(np.asarray(function(a.array, b.array)).astype(a.array.dtype), a.dtype)


def floor_divide(x: Array, y: Array) -> Array:
    safe = np.where(y == 0, np.ones_like(y), y)
    return np.where(y == 0, np.zeros_like(y), np.floor_divide(x, safe))


def remainder(x: Array, y: Array) -> Array:
    return np.where(y == 0, np.zeros_like(y), x - floor_divide(x, y) * y)


def truncate_divide(x: Array, y: Array) -> Array:
    q = floor_divide(x, y)
    inexact = (y != 0) & (q * y != x) & ((x < 0) != (y < 0))
    return np.asarray(q + inexact.astype(q.dtype))


def truncate_remainder(x: Array, y: Array) -> Array:
    return np.where(y == 0, np.zeros_like(y), x - truncate_divide(x, y) * y)


def shifted_left(x: Array, y: Array) -> Array:
    inside = (y >= 0) & (y < 8 * y.dtype.itemsize)
    return np.where(inside, np.left_shift(x, np.where(inside, y, 0)), np.zeros_like(x))


def shifted_right(x: Array, y: Array) -> Array:
    inside = (y >= 0) & (y < 8 * y.dtype.itemsize)
    return np.where(inside, np.right_shift(x, np.where(inside, y, 0)), np.where(x < 0, -1, 0).astype(x.dtype))


def least(x: Array, y: Array) -> Array:
    return np.where(np.isnan(x) | (x < y), x, y) if x.dtype.kind not in "iub" else np.minimum(x, y)


def greatest(x: Array, y: Array) -> Array:
    return np.where(np.isnan(x) | (x > y), x, y) if x.dtype.kind not in "iub" else np.maximum(x, y)


ARITHMETIC: dict[str, Fold] = {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "truediv": np.divide, "floordiv": floor_divide, "mod": remainder,
    "and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor, "lshift": shifted_left, "rshift": shifted_right}
COMPARISONS: dict[str, Fold] = {"lt": np.less, "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal}

for _name, _function in ARITHMETIC.items():
    setattr(Value, f"__{_name}__", functools.partialmethod(lambda self, other, f: arithmetic(f, self, other), f=_function))
    setattr(Value, f"__r{_name}__", functools.partialmethod(lambda self, other, f: arithmetic(f, other, self), f=_function))
for _name, _function in COMPARISONS.items():
    setattr(Value, f"__{_name}__", functools.partialmethod(lambda self, other, f: _compare(f, self, other), f=_function))
