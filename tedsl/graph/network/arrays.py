"""Arrays for values of networks."""

from __future__ import annotations

from typing import Any

from tedsl.graph.value import Value
from tedsl.runtime.array import numpy_dtype


def shape_of(value: Value) -> tuple[int, ...]:
    """The extents of a value, which are numbers."""
    return tuple([int(extent) for extent in value.shape])


def dtype_of(value: Value) -> Any:
    """The dtype of arrays for a value."""
    return numpy_dtype(value.dtype)
