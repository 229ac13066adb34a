"""Padding in the forms that operators accept, by TVM's names; numbers for spatial dimensions.

padding: an int for all sides, a number for each dimension (both sides), the numbers of all sides (first the sides before, then
those behind), "VALID" for none, "SAME" for as much as keeps the extent at stride 1.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tedsl import te
from tedsl.errors import ArgumentError, ShapeError, entries
from topi.extents import as_int

Widths = tuple[int, ...]


def get_pad_tuple(padding: Any, kernel: Sequence[Any]) -> tuple[int, int, int, int]:
    """(top, left, bottom, right) from `padding` for a kernel of two extents."""
    (top, left), (bottom, right) = pad_widths(padding, kernel, "get_pad_tuple")
    return top, left, bottom, right


def get_pad_tuple1d(padding: Any, kernel: Sequence[Any]) -> tuple[int, int]:
    """(left, right) from `padding` for a kernel of one extent."""
    (left,), (right,) = pad_widths(padding, kernel, "get_pad_tuple1d")
    return left, right


def get_pad_tuple3d(padding: Any, kernel: Sequence[Any]) -> tuple[int, int, int, int, int, int]:
    """(front, top, left, back, bottom, right) from `padding` for a kernel of three extents."""
    (front, top, left), (back, bottom, right) = pad_widths(padding, kernel, "get_pad_tuple3d")
    return front, top, left, back, bottom, right


def get_pad_tuple_generic(padding: Any, kernel: Sequence[Any]) -> tuple[int, ...]:
    """The widths before each dimension of a kernel of any number of extents, then those behind, as `padding` gives them."""
    before, after = pad_widths(padding, kernel, "get_pad_tuple_generic")
    return (*before, *after)


def infer_pad(data: te.Tensor, data_pad: te.Tensor | None) -> tuple[int, int]:
    """Half of what the height and the width of `data_pad` have more than those of `data`, both NCHW; (0, 0) for None."""
    if data_pad is None:
        return 0, 0
    height, width = [(_constant(wide, "the data", "infer_pad") - _constant(narrow, "the data", "infer_pad")) // 2
                     for wide, narrow in zip(data_pad.shape[2:4], data.shape[2:4])]
    return height, width


def infer_pad3d(data: te.Tensor, data_pad: te.Tensor | None, layout: str) -> tuple[int, ...]:
    """What depth, height and width of `data_pad` have more than those of `data`, in the layout NCDHW or NDHWC."""
    if layout not in ("NCDHW", "NDHWC"):
        raise ArgumentError(f"infer_pad3d: the layout is {layout!r}", hint="NCDHW or NDHWC")
    if data_pad is None:
        return 0, 0, 0
    return tuple([_constant(data_pad.shape[d], "the data", "infer_pad3d") - _constant(data.shape[d], "the data", "infer_pad3d")
                  for d in map(layout.index, "DHW")])


def infer_stride(data: te.Tensor, kernel: te.Tensor, out: te.Tensor) -> tuple[int, int]:
    """The strides of a convolution NCHW of `data`, padded, with a kernel OIHW, whose result is `out`."""
    sizes = [[_constant(extent, "a shape", "infer_stride") for extent in tensor.shape[2:4]] for tensor in (data, kernel, out)]
    height, width = [(n - k) // max(m - 1, 1) for n, k, m in zip(*sizes)]
    return height, width


def pad_widths(padding: Any, kernel: Sequence[Any], where: str) -> tuple[Widths, Widths]:
    """The widths before and behind each spatial dimension. kernel: its extents, including the gaps of a dilation."""
    rank = len(kernel)
    if isinstance(padding, str):
        if padding not in ("VALID", "SAME"):
            raise ArgumentError(f'{where}: padding is "{padding}"', hint='"VALID", "SAME", or numbers')
        total = [_constant(k, "kernel", where) - 1 if padding == "SAME" else 0 for k in kernel]
        return tuple([(t + 1) // 2 for t in total]), tuple([t // 2 for t in total])
    given = list(padding) if isinstance(padding, (tuple, list)) else [padding] * rank
    if len(given) == 1:
        given = given * rank
    if len(given) not in (rank, 2 * rank):
        raise ShapeError(f"{where}: padding has {len(given)} numbers for {rank} spatial dimensions: {tuple(given)}",
                         hint=f"give 1, {rank} (both sides alike) or {2 * rank} (first those before, then those behind)")
    widths = tuple([_constant(p, "padding", where) for p in given])
    if min(widths) < 0:
        raise ShapeError(f"{where}: padding is {widths}, a width is below 0")
    return (widths[:rank], widths[rank:]) if len(widths) == 2 * rank else (widths, widths)


def spatial(value: Any, rank: int, where: str, name: str) -> tuple[int, ...]:
    """An int, or one for each spatial dimension, as a tuple of positive ints."""
    given = list(value) if isinstance(value, (tuple, list)) else [value]
    if len(given) == 1:
        given = given * rank
    if len(given) != rank:
        raise ShapeError(f"{where}: {name} has {len(given)} numbers for {rank} spatial dimensions: {tuple(given)}")
    numbers = tuple([_constant(v, name, where) for v in given])
    if min(numbers) < 1:
        raise ShapeError(f"{where}: {name} is {numbers}", hint="1 is the least")
    return numbers


def _constant(value: Any, name: str, where: str) -> int:
    number = as_int(value)
    if number is None:
        raise ArgumentError(f"{where}: {name} has {value!r}, not a constant",
                            hint="batch and spatial extents of the data may be symbolic, not those of the kernel")
    return number


entries(globals())
