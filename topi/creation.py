"""Operators that create tensors from numbers and shapes. `full` and `full_like` are with the element-wise operators."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from tedsl import te
from tedsl.errors import ArgumentError, ShapeError
from topi.arguments import Number, checked
from topi.extents import as_int, product, require_one_dtype, shown
from topi.injective import injective


@checked
def arange(start: Number, stop: Number | None = None, step: Number = 1, dtype: Any = "float32") -> te.Tensor:
    """start, start + step, ... up to but not including stop; from 0 to start where stop is None. Same as numpy.arange.

    Numbers, or integer expressions (then the step is a positive int, for the length depends on it).
    """
    first, last = (0, start) if stop is None else (start, stop)
    length = _length(first, last, step)
    begin = te.const(first, dtype) if isinstance(first, (int, float)) else first.astype(dtype)
    return injective("arange", (length,), lambda i: begin + te.const(step, dtype) * i.astype(dtype))


def _length(first: Any, last: Any, step: Any) -> Any:
    numbers = [float(x.value) if hasattr(x, "value") else x for x in (first, last, step)]
    if not isinstance(numbers[2], (int, float)) or numbers[2] == 0:
        raise ArgumentError(f"arange: the step is {step!r}", hint="the step is a number other than 0")
    if all(isinstance(x, (int, float)) for x in numbers):
        return max(0, math.ceil((numbers[1] - numbers[0]) / numbers[2]))
    by = as_int(step)
    if by is None or by < 0:
        raise ArgumentError(f"arange: from {first!r} to {last!r} in steps of {step!r}",
                            hint="between symbolic bounds the step is a positive int")
    span = last if as_int(first) == 0 else last - first
    return te.max(span if by == 1 else (span + (by - 1)) // by, 0)


@checked
def meshgrid(a_tuple: Sequence[te.Tensor], indexing: str) -> list[te.Tensor]:
    """Each vector repeated over the dimensions of all: result n holds a_tuple[n][i[n]] at [i]. Same as numpy.meshgrid.

    Vectors and scalars of one dtype. indexing: "ij", or "xy" for images, which exchanges the first two dimensions.
    """
    tensors = list(a_tuple)
    if indexing not in ("ij", "xy"):
        raise ArgumentError(f"meshgrid: there is no indexing {indexing!r}", hint="choose 'ij' or 'xy'")
    if not tensors:
        raise ArgumentError("meshgrid: there is no tensor")
    require_one_dtype(tensors, "meshgrid")
    for tensor in tensors:
        if tensor.ndim > 1:
            raise ShapeError(f"meshgrid: {tensor.name} has the shape {shown(tensor.shape)}, not that of a vector or scalar")
    order = list(range(len(tensors)))
    if indexing == "xy" and len(order) > 1:
        order[:2] = 1, 0
    shape = [tensors[n].shape[0] if tensors[n].ndim else 1 for n in order]
    return [injective("meshgrid", shape, _along(tensor, order.index(n))) for n, tensor in enumerate(tensors)]


def _along(tensor: te.Tensor, dimension: int) -> Any:
    return lambda *i: tensor(i[dimension]) if tensor.ndim else tensor()


@checked
def shape(array: te.Tensor, dtype: Any = "int32") -> te.Tensor:
    """The extents of `array` as a vector of `dtype`; its values are not read. Same as numpy.shape."""
    def formula(d: Any) -> Any:
        chosen: Any = te.const(0, dtype)
        for position, extent in enumerate(array.shape):
            own = extent.astype(dtype)
            chosen = own if position == 0 else te.select(d == position, own, chosen)
        return chosen

    return injective("shape", (array.ndim,), formula)


@checked
def ndarray_size(array: te.Tensor, dtype: Any = "int32") -> te.Tensor:
    """The number of elements of `array` as a scalar tensor of `dtype`. Same as numpy.size."""
    count = product(array.shape)
    value = te.const(count, dtype) if isinstance(count, int) else count.astype(dtype)
    return injective("ndarray_size", (), lambda: value, name="ndarray_size")
