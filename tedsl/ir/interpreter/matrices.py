"""The calls on fragments and products by tiles at run time, as functions on numpy arrays: see `ir/calls/fragments.py` and
`ir/calls/tile_products.py` for what they mean.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tedsl.errors import InternalError
from tedsl.ir.calls.tile_products import PANEL, terms_of_group
from tedsl.ir.dtype import wrap_integer
from tedsl.ir.interpreter.arithmetic import BFLOAT16_VALUES, bfloat16_bits

CALLS = ("fragment", "fill_fragment", "load_matrix", "store_matrix", "multiply_matrices", "multiply_tiles")
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
    return _within(name, array, places)


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


def multiply_tiles(names: tuple[str, str, str], dtypes: tuple[Any, Any, Any], c: Any, c_at: int, a: Any, a_at: int, b: Any,
                   b_at: int, rows: int, columns: int, terms: int, c_row: int, c_panel: int, a_row: int, b_group: int,
                   b_panel: int, from_zero: int, *around: int) -> None:
    """Adds the products of `tir.tile_product` to `c`; floats are summed in float64. dtypes: of the elements of c, a and b."""
    group, (i, j, k) = terms_of_group(dtypes[1]), (np.arange(max(n, 0)) for n in (rows, columns, terms))
    of_a, of_b = k, (k // group) * b_group + k % group
    for extent, a_step, b_step in zip(*(around[at::3] for at in range(3))):
        t = np.arange(extent)
        of_a, of_b = ((t * step)[:, None] + of for step, of in ((a_step, of_a), (b_step, of_b)))
        of_a, of_b = of_a.ravel(), of_b.ravel()
    places = (_within(names[0], c, c_at + i[:, None] * c_row + (j // PANEL) * c_panel + j % PANEL),
              _within(names[1], a, a_at + i[:, None] * a_row + of_a),
              _within(names[2], b, b_at + of_b[:, None] + (j // PANEL) * b_panel + (j % PANEL) * group))
    wide = np.float64 if dtypes[1].is_float else np.int64
    left, right = (_numbers(x[at], of).astype(wide) for x, at, of in zip((a, b), places[1:], dtypes[1:]))
    total = (0 if from_zero else c[places[0]].astype(wide)) + left @ right
    c[places[0]] = total.astype(np.float32) if dtypes[1].is_float else total.astype(np.uint32).astype(c.dtype)


def _within(name: str, array: Any, places: Any) -> Any:
    if places.size and (places.min() < 0 or places.max() >= len(array)):
        raise InternalError(f"a matrix reaches from element {places.min()} to {places.max()} of {name}, which has {len(array)}")
    return places


def _numbers(x: Any, element: Any) -> Any:
    if element.code == "bfloat":
        return BFLOAT16_VALUES[x]
    return x.astype(np.float32 if element.is_float else np.int32)
