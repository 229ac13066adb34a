"""Arrays of networks: their memory begins at a line of the cache."""

from __future__ import annotations

import math
from typing import Any

import numpy

from tedsl.autograd.formula import numpy_dtype
from tedsl.graph.plan.offsets import ALIGNMENT
from tedsl.graph.value import Value
from tedsl.ir.dtype import DType


def aligned_bytes(size: int) -> Any:
    """A new array of bytes that begins at a multiple of the alignment."""
    whole = numpy.empty(size + ALIGNMENT, numpy.uint8)
    start = -whole.ctypes.data % ALIGNMENT
    return whole[start:start + size]


def aligned_array(shape: tuple[int, ...], dtype: DType) -> Any:
    """A new array that begins at a multiple of the alignment."""
    of = numpy_dtype(dtype)
    return aligned_bytes(math.prod(shape) * of.itemsize).view(of).reshape(shape)


def shape_of(value: Value) -> tuple[int, ...]:
    """The extents of a value, which are numbers."""
    return tuple([int(extent) for extent in value.shape])


def dtype_of(value: Value) -> Any:
    """The dtype of arrays for a value."""
    return numpy_dtype(value.dtype)
