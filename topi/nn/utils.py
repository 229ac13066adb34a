"""Padding in the forms that operators accept, by TVM's names; numbers for spatial dimensions.

padding: an int for all sides, a number for each dimension (both sides), the numbers of all sides (first the sides before, then
those behind), "VALID" for none, "SAME" for as much as keeps the extent at stride 1.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

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
