"""Convolutions of each channel alone: depthwise, with `multiplier` results for each channel.

    out[n, c * multiplier + m, y, x] = sum over ky, kx of  data[n, c, y * stride + ky * dilation, ...] * kernel[c, m, ky, kx]

Arguments are those of `topi.nn.convolution.direct`. Chollet, Xception: Deep Learning with Depthwise Separable Convolutions
(2017).
"""

from __future__ import annotations

from typing import Any

from tedsl import te
from tedsl.errors import ShapeError
from topi.extents import differ, opening, shown
from topi.kinds import DepthwiseConvOp
from topi.nn.convolution.formula import SPACE, accumulated, pad_space, require_rank, result_dtype, w_indices, windows

_LOOPS = {"N": "b", "C": "c", "H": "i", "W": "j"}
_REDUCED = {"H": "di", "W": "dj"}


def depthwise_conv2d_nchw(Input: te.Tensor, Filter: te.Tensor, stride: Any, padding: Any, dilation: Any = 1,
                          out_dtype: Any = None) -> te.Tensor:
    """The depthwise convolution in layout NCHW, with channel * multiplier channels in the result.

    Input: (batch, channel, height, width). Filter: (channel, multiplier, height, width).

    Raises ShapeError for ranks or channels that differ.
    """
    return convolve_channels("depthwise_conv2d_nchw", Input, Filter, stride, padding, dilation, out_dtype, "NCHW", "CMHW")


def depthwise_conv2d_nhwc(Input: te.Tensor, Filter: te.Tensor, stride: Any, padding: Any, dilation: Any = 1,
                          out_dtype: Any = None) -> te.Tensor:
    """The depthwise convolution in layout NHWC, with channel * multiplier channels in the result.

    Input: (batch, height, width, channel). Filter: (height, width, channel, multiplier).

    Raises ShapeError for ranks or channels that differ.
    """
    return convolve_channels("depthwise_conv2d_nhwc", Input, Filter, stride, padding, dilation, out_dtype, "NHWC", "HWCM")


def convolve_channels(operator: str, data: te.Tensor, kernel: te.Tensor, stride: Any, padding: Any, dilation: Any,
                      out_dtype: Any, layout: str, kernel_layout: str) -> te.Tensor:
    """The convolution of each channel alone, in any layout: "NCHW" and "CMHW", M counting the results for each channel."""
    where = opening(operator, data, kernel)
    require_rank(data, layout, where)
    require_rank(kernel, kernel_layout, where)
    size, weight = dict(zip(layout, data.shape)), dict(zip(kernel_layout, kernel.shape))
    if differ(size["C"], weight["C"]):
        raise ShapeError(f"{where}: the data has {size['C']!r} channels and the kernel {weight['C']!r}: {data.name} "
                         f"{shown(data.shape)}, {kernel.name} {shown(kernel.shape)}", hint=f"the kernel is {kernel_layout}")
    space = [letter for letter in layout if letter in SPACE]
    w = windows([weight[letter] for letter in space], stride, padding, dilation, where)
    padded, multiplier = pad_space(data, layout, w), weight["M"]
    reduced = {letter: te.reduce_axis((0, weight[letter]), name=_REDUCED[letter]) for letter in space}
    results = dict(zip(space, w.results([size[letter] for letter in space], where)))

    def formula(total: Any, *indices: Any) -> Any:
        i = dict(zip(layout, indices))
        at = {"N": i["N"], "C": i["C"] // multiplier, **w_indices(space, i, reduced, w)}
        by = {**reduced, "C": i["C"] // multiplier, "M": i["C"] % multiplier}
        element, factor = padded(*[at[letter] for letter in layout]), kernel(*[by[letter] for letter in kernel_layout])
        return te.sum(total(element) * total(factor), axis=list(reduced.values()))

    shape = [{"N": size["N"], "C": size["C"] * multiplier, **results}[letter] for letter in layout]
    record = DepthwiseConvOp(operator, data, padded, kernel, layout, kernel_layout, w.strides, w.dilation, w.before, w.after)
    return accumulated(shape, formula, record, result_dtype(data, kernel, out_dtype, where), name="DepthwiseConv2d",
                       tag=operator, axes=[_LOOPS[letter] for letter in layout])
