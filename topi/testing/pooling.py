"""Pooling in plain numpy, by TVM's names: one window after the other."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import product
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]


def poolnd_python(np_data: Array, kernel: Sequence[int], strides: Sequence[int], dilation: Sequence[int],
                  padding_before: Sequence[int], padding_after: Sequence[int], pool_type: str, count_include_pad: bool = True,
                  ceil_mode: bool = False, dtype: str = "float32", layout: str = "NCHW") -> Array:
    """Maximum or average in windows over D, H, W, which stand behind the two first dimensions or, "N..C", between them."""
    data = np.moveaxis(np_data, -1, 1) if layout.endswith("C") else np_data
    results, windows = _windows(data.shape[2:], kernel, strides, dilation, padding_before, padding_after, ceil_mode)
    out = np.empty(data.shape[:2] + results, np.float64)
    for place, inside in windows:
        elements = data[_index(..., *np.ix_(*inside))].astype(np.float64).reshape(*data.shape[:2], -1)
        if pool_type == "max":
            out[_index(..., *place)] = elements.max(-1) if elements.size else -np.inf
        else:
            count = np.prod(kernel) if count_include_pad else max(elements.shape[-1], 1)
            out[_index(..., *place)] = elements.sum(-1) / count
    result = np.moveaxis(out, 1, -1) if layout.endswith("C") else out
    return result.astype(dtype)


def adaptive_pool(np_data: Array, out_size: int | Sequence[int], pool_type: str, layout: str = "NCHW") -> Array:
    """Maximum or average in parts of the spatial dimensions, as many as `out_size` says; an int for data of one dimension."""
    out_size = (out_size,) if isinstance(out_size, int) else out_size
    data = np.moveaxis(np_data, -1, 1) if layout.endswith("C") else np_data
    out = np.empty(data.shape[:2] + tuple(out_size), np.float64)
    for place in np.ndindex(*out_size):
        parts = [slice(i * n // o, -(-(i + 1) * n // o)) for i, n, o in zip(place, data.shape[2:], out_size)]
        elements = data[_index(..., *parts)].astype(np.float64).reshape(*data.shape[:2], -1)
        out[_index(..., *place)] = elements.max(-1) if pool_type == "max" else elements.mean(-1)
    result = np.moveaxis(out, 1, -1) if layout.endswith("C") else out
    return result.astype(np_data.dtype)


def adaptive_pool_channel_first(np_data: Array, out_size: int | Sequence[int], pool_op: Callable[..., Any]) -> Array:
    """Adaptive pooling of (n, c, ...) by any function of arrays such as numpy.mean, which gets `axis`."""
    space = np_data.shape[2:]
    sizes = (out_size,) * len(space) if isinstance(out_size, int) else tuple(out_size)
    out = np.empty((*np_data.shape[:2], *sizes), np_data.dtype)
    for place in np.ndindex(*sizes):
        inside = [slice(at * n // size, -(-(at + 1) * n // size)) for at, n, size in zip(place, space, sizes)]
        out[_index(..., *place)] = pool_op(np_data[_index(..., *inside)], axis=tuple(range(2, 2 + len(space))))
    return out


def pool_grad_nchw(a_np: Array, out_grad_np: Array, pool_size: Sequence[int], strides: Sequence[int], padding: Sequence[int],
                   pool_type: str, ceil_mode: bool, count_include_pad: bool = True) -> Array:
    """The gradient of poolnd_python with respect to a (n, c, h, w); the first of equal maxima takes all."""
    _, windows = _windows(a_np.shape[2:], pool_size, strides, (1, 1), padding[:2], padding[2:], ceil_mode)
    out = np.zeros(a_np.shape, np.float64)
    for place, inside in windows:
        if not all(inside):
            continue
        rows, columns = np.ix_(*inside)
        grad = out_grad_np[_index(..., *place)]
        if pool_type == "avg":
            count = np.prod(pool_size) if count_include_pad else rows.size * columns.size
            out[..., rows, columns] += grad[..., None, None] / count
            continue
        for n, c in np.ndindex(*a_np.shape[:2]):
            first = a_np[n, c][rows, columns].argmax()
            at = np.unravel_index(first, (rows.size, columns.size))
            out[n, c, rows[at[0], 0], columns[0, at[1]]] += grad[n, c]
    return out.astype(a_np.dtype)


Windows = Iterator[tuple[tuple[int, ...], list[list[int]]]]


def _windows(extents: Sequence[int], kernel: Sequence[int], strides: Sequence[int], dilation: Sequence[int],
             before: Sequence[int], after: Sequence[int], ceil_mode: bool) -> tuple[tuple[int, ...], Windows]:
    """The extents of the result, and for each window its place and the elements of the data in it, for each dimension."""
    room = [n + b + a - (k - 1) * d - 1 for n, b, a, k, d in zip(extents, before, after, kernel, dilation)]
    results = tuple([-(-r // s) + 1 if ceil_mode else r // s + 1 for r, s in zip(room, strides)])

    def walk() -> Windows:
        for place in product(*map(range, results)):
            taps = [[p * s - b + t * d for t in range(k)] for p, s, b, k, d in zip(place, strides, before, kernel, dilation)]
            yield place, [[t for t in tap if 0 <= t < n] for tap, n in zip(taps, extents)]

    return results, walk()


def _index(*parts: Any) -> Any:
    return parts


def pool1d_ncw_python(np_data: Array, kernel: Any, strides: Any, padding: Any, out_shape: Sequence[int], pool_type: str,
                      count_include_pad: bool = True, ceil_mode: bool = False, dtype: str = "float32") -> Array:
    """Maximum or average in windows over W, as called before TVM 0.8. padding: (left, right); out_shape is not read."""
    return _before_08(np_data, kernel, strides, padding, pool_type, count_include_pad, ceil_mode, dtype, "NCW")


def pool3d_ncdhw_python(np_data: Array, kernel: Any, strides: Any, padding: Any, out_shape: Sequence[int], pool_type: str,
                        count_include_pad: bool = True, ceil_mode: bool = False, dtype: str = "float32") -> Array:
    """The same over D, H and W. padding: three widths before, three behind."""
    return _before_08(np_data, kernel, strides, padding, pool_type, count_include_pad, ceil_mode, dtype, "NCDHW")


def _before_08(data: Array, kernel: Any, strides: Any, padding: Any, pool_type: str, count_include_pad: bool, ceil_mode: bool,
               dtype: str, layout: str) -> Array:
    rank = len(layout) - 2
    sizes, steps = ([given] * rank if isinstance(given, int) else list(given) for given in (kernel, strides))
    widths = [padding] * 2 * rank if isinstance(padding, int) else list(padding)
    return poolnd_python(data, sizes, steps, [1] * rank, widths[:rank], widths[rank:], pool_type, count_include_pad, ceil_mode,
                         dtype, layout)
