"""Convolutions in plain numpy, by TVM's names. Sums are made in float64 (integers: int64), the result has the data's dtype.

stride, dilation: an int or one for each spatial dimension; padding: as operators take it (`topi.nn.utils`).
"""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np

from topi.nn.utils import pad_widths, spatial

Array = np.ndarray[Any, Any]


def conv_python(data: Array, kernel: Array, stride: Any, padding: Any, dilation: Any = 1, groups: int = 1) -> Array:
    """The convolution of data (n, c, *space) with kernel (o, c / groups, *extents), computed position by position of the
    kernel.
    """
    extents, rank = kernel.shape[2:], data.ndim - 2
    steps, holes = spatial(stride, rank, "stride", "stride"), spatial(dilation, rank, "dilation", "dilation")
    spans = [(k - 1) * h + 1 for k, h in zip(extents, holes)]
    padded = np.pad(data, [(0, 0), (0, 0), *zip(*pad_widths(padding, spans, "padding"))]).astype(_wide(data))
    results = [(n - span) // step + 1 for n, span, step in zip(padded.shape[2:], spans, steps)]
    out = np.zeros((data.shape[0], kernel.shape[0], *results), padded.dtype)
    for place in product(*map(range, extents)):
        part = padded[_index(..., *[slice(at * h, at * h + (r - 1) * s + 1, s)
                                    for at, h, r, s in zip(place, holes, results, steps)])]
        for g in range(groups):
            o = slice(g * kernel.shape[0] // groups, (g + 1) * kernel.shape[0] // groups)
            channels = part[:, g * kernel.shape[1]:(g + 1) * kernel.shape[1]]
            out[:, o] += np.einsum("nc...,oc->no...", channels, kernel[_index(o, slice(None), *place)].astype(padded.dtype))
    return out.astype(data.dtype)


def conv1d_ncw_python(a_np: Array, w_np: Array, stride: Any, padding: Any, dilation: Any) -> Array:
    """The convolution of a (n, c, w) with w (o, c, w)."""
    return conv_python(a_np, w_np, stride, padding, dilation)


def conv2d_nchw_python(a_np: Array, w_np: Array, stride: Any, padding: Any, groups: int = 1, dilation: Any = 1) -> Array:
    """The convolution of a (n, c, h, w) with w (o, c / groups, h, w)."""
    return conv_python(a_np, w_np, stride, padding, dilation, groups)


def conv2d_nhwc_python(a_np: Array, w_np: Array, stride: Any, padding: Any, groups: int = 1, dilation: Any = 1) -> Array:
    """The convolution of a (n, h, w, c) with w (h, w, c / groups, o)."""
    result = conv_python(a_np.transpose(0, 3, 1, 2), w_np.transpose(3, 2, 0, 1), stride, padding, dilation, groups)
    return result.transpose(0, 2, 3, 1)


def conv2d_hwcn_python(a_np: Array, w_np: Array, stride: Any, padding: Any, dilation: Any = 1) -> Array:
    """The convolution of a (h, w, c, n) with w (h, w, c, o)."""
    result = conv_python(a_np.transpose(3, 2, 0, 1), w_np.transpose(3, 2, 0, 1), stride, padding, dilation)
    return result.transpose(2, 3, 1, 0)


def conv3d_ncdhw_python(a_np: Array, w_np: Array, stride: Any, padding: Any, groups: int = 1, dilation: Any = 1) -> Array:
    """The convolution of a (n, c, d, h, w) with w (o, c / groups, d, h, w)."""
    return conv_python(a_np, w_np, stride, padding, dilation, groups)


def conv3d_ndhwc_python(a_np: Array, w_np: Array, stride: Any, padding: Any, groups: int = 1, dilation: Any = 1) -> Array:
    """The convolution of a (n, d, h, w, c) with w (d, h, w, c / groups, o)."""
    result = conv_python(np.moveaxis(a_np, -1, 1), w_np.transpose(4, 3, 0, 1, 2), stride, padding, dilation, groups)
    return np.moveaxis(result, 1, -1)


def depthwise_conv2d_python_nchw(input_np: Array, filter_np: Array, stride: Any, padding: Any, dilation: Any = 1) -> Array:
    """The depthwise convolution of input (n, c, h, w) with filter (c, multiplier, h, w)."""
    channels, multiplier, height, width = filter_np.shape
    kernel = filter_np.reshape(channels * multiplier, 1, height, width)
    return conv_python(input_np, kernel, stride, padding, dilation, channels)


def depthwise_conv2d_python_nhwc(input_np: Array, filter_np: Array, stride: Any, padding: Any, dilation: Any = 1) -> Array:
    """The depthwise convolution of input (n, h, w, c) with filter (h, w, c, multiplier)."""
    result = depthwise_conv2d_python_nchw(input_np.transpose(0, 3, 1, 2), filter_np.transpose(2, 3, 0, 1), stride, padding,
                                        dilation)
    return result.transpose(0, 2, 3, 1)


def depthwise_conv2d_python_nchwc(input_np: Array, filter_np: Array, stride: Any, padding: Any) -> Array:
    """The depthwise convolution of input (n, chunk, h, w, c) with filter (chunk, 1, h, w, 1, c), in the layout of the input."""
    n, chunks, height, width, block = input_np.shape
    data = input_np.transpose(0, 1, 4, 2, 3).reshape(n, chunks * block, height, width)
    kernel = filter_np.transpose(0, 5, 1, 2, 3, 4).reshape(chunks * block, 1, *filter_np.shape[2:4])
    result = depthwise_conv2d_python_nchw(data, kernel, stride, padding)
    return result.reshape(n, chunks, block, *result.shape[2:]).transpose(0, 1, 3, 4, 2)


def conv_transpose_python(a_np: Array, w_np: Array, stride: Any, padding: Any, output_padding: Any = 0,
                          groups: int = 1) -> Array:
    """The transposed convolution of a (n, c, *space) with w (c, o / groups, *extents): each element of `a` adds a kernel to the
    result, whose border is then cut off.
    """
    extents, rank = w_np.shape[2:], a_np.ndim - 2
    steps = spatial(stride, rank, "stride", "stride")
    more = (output_padding,) * rank if isinstance(output_padding, int) else tuple(output_padding)
    before, after = pad_widths(padding, extents, "padding")
    full = [(n - 1) * s + k + m for n, s, k, m in zip(a_np.shape[2:], steps, extents, more)]
    out = np.zeros((a_np.shape[0], w_np.shape[1] * groups, *full), _wide(a_np))
    inputs = a_np.shape[1] // groups
    for place in product(*map(range, extents)):
        where = tuple([slice(at, at + (n - 1) * s + 1, s) for at, n, s in zip(place, a_np.shape[2:], steps)])
        for g in range(groups):
            c, o = slice(g * inputs, (g + 1) * inputs), slice(g * w_np.shape[1], (g + 1) * w_np.shape[1])
            out[_index(slice(None), o, *where)] += np.einsum("nc...,co->no...", a_np[:, c].astype(out.dtype),
                                                       w_np[_index(c, slice(None), *place)].astype(out.dtype))
    result: Array = out[_index(..., *[slice(b, n - a) for b, a, n in zip(before, after, full)])].astype(a_np.dtype)
    return result


def conv1d_transpose_ncw_python(a_np: Array, w_np: Array, stride: Any, padding: Any, output_padding: Any = 0) -> Array:
    """The transposed convolution of a (n, c, w) with w (c, o, w)."""
    return conv_transpose_python(a_np, w_np, stride, padding, output_padding)


def conv2d_transpose_nchw_python(a_np: Array, w_np: Array, stride: Any, padding: Any, output_padding: Any = 0,
                                 groups: int = 1) -> Array:
    """The transposed convolution of a (n, c, h, w) with w (c, o / groups, h, w)."""
    return conv_transpose_python(a_np, w_np, stride, padding, output_padding, groups)


def conv2d_transpose_nhwc_python(a_nhwc: Array, weight: Array, weight_format: str, stride: Any, padding: Any,
                                 output_padding: Any = (0, 0)) -> Array:
    """The transposed convolution of a (n, h, w, c); weight_format: the order of I (c), O (results), H and W in the weight."""
    kernel = weight.transpose([weight_format.index(letter) for letter in "IOHW"])
    found = conv_transpose_python(a_nhwc.transpose(0, 3, 1, 2), kernel, stride, padding, output_padding)
    return found.transpose(0, 2, 3, 1)


def conv3d_transpose_ncdhw_python(a_np: Array, w_np: Array, stride: Any, padding: Any, output_padding: Any = 0) -> Array:
    """The transposed convolution of a (n, c, d, h, w) with w (c, o, d, h, w)."""
    return conv_transpose_python(a_np, w_np, stride, padding, output_padding)


def dilate_python(input_np: Array, strides: Any, dilation_value: float = 0.0, out_dtype: Any = None) -> Array:
    """The input with strides[d] - 1 elements of dilation_value between neighbours along each dimension."""
    shape = [(n - 1) * s + 1 for n, s in zip(input_np.shape, strides)]
    out = np.full(shape, dilation_value, out_dtype or input_np.dtype)
    out[tuple([slice(None, None, s) for s in strides])] = input_np
    return out


def _index(*parts: Any) -> Any:
    return parts


def _wide(array: Array) -> Any:
    return np.int64 if array.dtype.kind in "iu" else np.float64
