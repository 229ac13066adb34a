"""The kind of an array: its shape and dtype as one object, of which there is one for all arrays that have them.

Kernels are found by the kinds of their arguments. Objects that are compared by identity make that a look-up of a dictionary.
"""

from __future__ import annotations

from typing import Any

import numpy

from tedsl.ir.dtype import DType
from tedsl.ir.dtype import dtype as dtype_of

Array = numpy.ndarray[Any, Any]
_KINDS: dict[tuple[tuple[int, ...], Any], Kind] = {}


class Kind:
    """A shape and a dtype. `numpy_dtype` is that of arrays, `dtype` that of formulas."""

    __slots__ = ("dtype", "numpy_dtype", "shape")

    def __init__(self, shape: tuple[int, ...], numpy_dtype: Any) -> None:
        self.shape = shape
        self.numpy_dtype = numpy_dtype
        self.dtype: DType = dtype_of(numpy_dtype)

    @property
    def is_float(self) -> bool:
        return self.dtype.is_float

    def __repr__(self) -> str:
        return f"{self.dtype}{list(self.shape)}"


def kind_of(array: Array) -> Kind:
    """The kind of an array. Raises DTypeError for a dtype that kernels do not have."""
    key = array.shape, array.dtype
    return _KINDS.get(key) or _KINDS.setdefault(key, Kind(*key))


def kind_named(shape: tuple[int, ...], dtype: Any) -> Kind:
    """The kind of arrays of a shape and a dtype."""
    key = shape, dtype
    return _KINDS.get(key) or _KINDS.setdefault(key, Kind(*key))
