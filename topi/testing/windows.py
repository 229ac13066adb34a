"""References in plain numpy for correlation, deformable convolutions and grid sampling, position by position."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]


def deformable_conv2d_nchw_python(a_np: Array, offset_np: Array, w_np: Array, stride: int, padding: int, dilation: int,
                                  deformable_groups: int, groups: int) -> Array:
    """The deformable convolution of a (n, c, h, w) with w (o, c / groups, kh, kw); offset: (n, offsets, height, width) of the
    result.
    """
    (n, c, _, _), (_, i, kh, kw) = a_np.shape, w_np.shape
    bent = np.zeros((n, c, kh, kw, *offset_np.shape[2:]))
    for b, ch, p, q, y, z in np.ndindex(*bent.shape):
        at = ((ch // (c // deformable_groups) * kh + p) * kw + q) * 2
        row = y * stride - padding + p * dilation + offset_np[b, at, y, z]
        column = z * stride - padding + q * dilation + offset_np[b, at + 1, y, z]
        bent[b, ch, p, q, y, z] = between(a_np[b, ch], row, column)
    parts = [np.einsum("bcpqyz,ocpq->boyz", bent[:, g * i:(g + 1) * i], part) for g, part in enumerate(np.split(w_np, groups))]
    return np.concatenate(parts, 1).astype(a_np.dtype)


def deformable_conv2d_nhwc_python(a_np: Array, offset_np: Array, w_np: Array, stride: int, padding: int, dilation: int,
                                  deformable_groups: int, groups: int) -> Array:
    """The same of a (n, h, w, c) with w (kh, kw, c / groups, o); offset: (n, height, width, offsets)."""
    moved = (a_np.transpose(0, 3, 1, 2), offset_np.transpose(0, 3, 1, 2), w_np.transpose(3, 2, 0, 1))
    return deformable_conv2d_nchw_python(*moved, stride, padding, dilation, deformable_groups, groups).transpose(0, 2, 3, 1)


def correlation_nchw_python(data1: Array, data2: Array, kernel_size: int, max_displacement: int, stride1: int, stride2: int,
                            padding: int, is_multiply: bool) -> Array:
    """The correlation of data1 and data2 (n, c, h, w): means over patches of both, the second one moved by each
    displacement.
    """
    p, q = (np.pad(z, [(0, 0), (0, 0), (padding, padding), (padding, padding)]) for z in (data1, data2))
    radius, border = max_displacement // stride2, kernel_size // 2 + max_displacement
    steps = [range(0, n - 2 * border, stride1) for n in p.shape[2:]]
    out = np.zeros((data1.shape[0], (2 * radius + 1) ** 2, *map(len, steps)), data1.dtype)
    for c, (dy, dx) in enumerate(product(range(-radius, radius + 1), repeat=2)):
        for (i, u), (j, v) in product(enumerate(steps[0]), enumerate(steps[1])):
            y, x = u + max_displacement, v + max_displacement
            patch = p[:, :, y:y + kernel_size, x:x + kernel_size]
            y, x = y + dy * stride2, x + dx * stride2
            other = q[:, :, y:y + kernel_size, x:x + kernel_size]
            out[:, c, i, j] = (patch * other if is_multiply else abs(patch - other)).mean((1, 2, 3))
    return out


def grid_sample_nchw_python(data: Array, grid: Array, method: str = "bilinear", align_corners: bool = True) -> Array:
    """`data` (n, c, h, w) interpolated at the positions (x, y) of grid (n, 2, height, width), from -1 to 1; zeros outside."""
    out = np.zeros((*data.shape[:2], *grid.shape[2:]), data.dtype)
    for b, c, i, j in np.ndindex(*out.shape):
        places = [(g + 1) * (n - 1) / 2 if align_corners else ((g + 1) * n - 1) / 2
                  for g, n in zip(grid[b, ::-1, i, j].astype("float64"), data.shape[2:])]
        row, column = map(np.rint, places) if method == "nearest" else places
        out[b, c, i, j] = between(data[b, c], row, column)
    return out


def between(image: Array, row: float, column: float) -> float:
    """The value interpolated from the four neighbours of a position; zeros outside."""
    total = 0.0
    for u, v in product((np.floor(row), np.floor(row) + 1), (np.floor(column), np.floor(column) + 1)):
        if 0 <= u < image.shape[0] and 0 <= v < image.shape[1]:
            total += image[int(u), int(v)] * (1 - abs(row - u)) * (1 - abs(column - v))
    return total
