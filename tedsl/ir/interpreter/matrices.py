"""The calls on fragments at run time, as functions on numpy arrays: see `ir/calls/fragments.py` for what they mean."""

from __future__ import annotations

from typing import Any

import numpy as np

from tedsl.errors import InternalError
from tedsl.ir.dtype import wrap_integer
from tedsl.ir.interpreter.arithmetic import BFLOAT16_VALUES, bfloat16_bits

CALLS = ("fragment", "fill_fragment", "load_matrix", "store_matrix", "multiply_matrices")
Shape = tuple[int, int]


def fragment(name: str, memory: Any, which: int, shape: Shape) -> Any:
    """The elements of one fragment, which may be changed in place."""
    size = shape[0] * shape[1]
    if which < 0 or (which + 1) * size > len(memory):
        raise InternalError(f"fragment {which} of {name} lies outside: {name} has room for {len(memory) // size}")
    return memory[which * size:(which + 1) * size].reshape(shape)


def fill_fragment(name: str, memory: Any, which: int, shape: Shape, value: Any, element: Any) -> None:
    fragment(name, memory, which, shape)[:] = bfloat16_bits(value) if element.code == "bfloat" else \
        value if element.is_float else wrap_integer(int(value), element)


def elements(name: str, array: Any, offset: int, stride: int, shape: Shape, by_columns: bool) -> Any:
    """The places in `array` of the elements of a matrix."""
    row, column = np.indices(shape)
    places = offset + (column * stride + row if by_columns else row * stride + column)
    if places.min() < 0 or places.max() >= len(array):
        raise InternalError(f"a matrix reaches from element {places.min()} to {places.max()} of {name}, which has {len(array)}")
    return places


def load_matrix(names: tuple[str, str], memory: Any, which: int, shape: Shape, array: Any, offset: int, stride: int,
                by_columns: bool) -> None:
    fragment(names[0], memory, which, shape)[:] = array[elements(names[1], array, offset, stride, shape, by_columns)]


def store_matrix(names: tuple[str, str], memory: Any, which: int, shape: Shape, array: Any, offset: int, stride: int,
                 by_columns: bool) -> None:
    array[elements(names[1], array, offset, stride, shape, by_columns)] = fragment(names[0], memory, which, shape)


def multiply_matrices(d: Any, a: Any, b: Any, c: Any, dtypes: tuple[Any, Any]) -> None:
    """Writes a @ b + c to d. dtypes: of the elements of a and b, and of those of c and d."""
    left, right = (_numbers(x, dtypes[0]) for x in (a, b))
    total = c.astype(np.float32 if dtypes[0].is_float else np.int32)
    for k in range(left.shape[1]):
        total = total + left[:, k, None] * right[None, k, :]
    d[:] = total


def _numbers(x: Any, element: Any) -> Any:
    if element.code == "bfloat":
        return BFLOAT16_VALUES[x]
    return x.astype(np.float32 if element.is_float else np.int32)
