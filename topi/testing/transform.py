"""References in plain numpy for operators of topi that numpy lacks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]


def strided_slice_python(data: Array, begin: Sequence[Any], end: Sequence[Any], strides: Sequence[Any] | None = None,
                         slice_mode: str = "end", axes: Sequence[int] | None = None) -> Array:
    """data[begin[0]:end[0]:strides[0], ...] of the dimensions `axes`; in mode "size" `end` holds extents, -1 for the rest."""
    along = list(range(len(begin))) if axes is None else list(axes)
    parts = [slice(None)] * data.ndim
    for number, axis in enumerate(along):
        start, stop = begin[number], end[number]
        step = strides[number] if strides is not None and slice_mode == "end" and number < len(strides) else None
        if slice_mode == "size":
            first = 0 if start is None else start + data.shape[axis] if start < 0 else start
            stop = None if stop == -1 else first + stop
        parts[axis] = slice(start, stop, step)
    return data[tuple(parts)]


def strided_set_python(data: Array, v: Array, begin: Sequence[Any], end: Sequence[Any],
                       strides: Sequence[Any] | None = None) -> Array:
    """A copy of `data` with data[begin[0]:end[0]:strides[0], ...] = v."""
    result = data.copy()
    steps = [None] * len(begin) if strides is None else strides
    result[tuple([slice(*parts) for parts in zip(begin, end, steps)])] = v
    return result


def reverse_sequence_python(data: Array, seq_lengths: Array, seq_axis: int = 1, batch_axis: int = 0) -> Array:
    """`data` with its first seq_lengths[b] elements along `seq_axis` reversed, for each b of `batch_axis`."""
    moved = np.moveaxis(data, (batch_axis, seq_axis), (0, 1))
    result = moved.copy()
    for place, length in enumerate(seq_lengths):
        count = max(min(int(length), moved.shape[1]), 0)
        result[place, :count] = moved[place, :count][::-1]
    return np.moveaxis(result, (0, 1), (batch_axis, seq_axis))


def sequence_mask_python(data: Array, valid_length: Array, mask_value: float = 0, axis: int = 0) -> Array:
    """`data` with what lies at or behind valid_length[b] along `axis` replaced; b is the other one of the first two axes."""
    moved = np.moveaxis(data, axis, 0).copy()
    for place, length in enumerate(valid_length):
        moved[max(int(length), 0):, place] = mask_value
    return np.moveaxis(moved, 0, axis)


def matrix_set_diag(input_np: Array, diagonal: Array, k: Any = 0, align: str = "RIGHT_LEFT") -> Array:
    """`input_np` with its diagonals k[0] to k[1] replaced by the rows of `diagonal`, the topmost first."""
    low, high = (k, k) if isinstance(k, int) else (k[0], k[-1])
    rows = diagonal if low != high else np.expand_dims(diagonal, -2)
    above, below = align.split("_")
    result = input_np.copy()
    for offset in range(low, high + 1):
        length = min(input_np.shape[-2] + min(offset, 0), input_np.shape[-1] - max(offset, 0))
        pushed = rows.shape[-1] - length if (above if offset >= 0 else below) == "RIGHT" else 0
        for t in range(length):
            result[..., t - min(offset, 0), t + max(offset, 0)] = rows[..., high - offset, t + pushed]
    return result
