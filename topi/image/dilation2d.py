"""Morphological dilation: the largest sum of a pixel and the window's element over it.

    out[n, c, y, x] = max over ky, kx of  data[n, c, y * stride + ky * dilation - before, ...] + filter[c, ky, kx]

Outside of the data there are zeros, as in TVM; tf.nn.dilation2d excludes the border.
"""

from __future__ import annotations

from typing import Any

from tedsl import te
from tedsl.errors import ShapeError
from tedsl.tir import Expr
from topi.extents import differ, opening, shown
from topi.kinds import PoolOp
from topi.nn.convolution.formula import pad_space, require_rank, result_dtype, windows


def dilation2d_nchw(input: te.Tensor, filter: te.Tensor, stride: Any, padding: Any, dilations: Any,
                    out_dtype: Any = None) -> te.Tensor:
    """The dilation of input (batch, channel, height, width) by filter (channel, height, width)."""
    return _dilation("dilation2d_nchw", input, filter, stride, padding, dilations, out_dtype, "NCHW", "CHW")


def dilation2d_nhwc(input: te.Tensor, filter: te.Tensor, stride: Any, padding: Any, dilations: Any,
                    out_dtype: Any = None) -> te.Tensor:
    """The dilation of input (batch, height, width, channel) by filter (height, width, channel)."""
    return _dilation("dilation2d_nhwc", input, filter, stride, padding, dilations, out_dtype, "NHWC", "HWC")


def _dilation(operator: str, data: te.Tensor, kernel: te.Tensor, stride: Any, padding: Any, dilations: Any, out_dtype: Any,
              layout: str, kernel_layout: str) -> te.Tensor:
    where = opening(operator, data, kernel)
    require_rank(data, layout, where)
    require_rank(kernel, kernel_layout, where)
    size, weight = dict(zip(layout, data.shape)), dict(zip(kernel_layout, kernel.shape))
    if differ(size["C"], weight["C"]):
        raise ShapeError(f"{where}: {data.name} {shown(data.shape)} has {size['C']!r} channels, {kernel.name} "
                         f"{shown(kernel.shape)} {weight['C']!r}")
    w = windows([weight["H"], weight["W"]], stride, padding, dilations, where)
    padded, dtype = pad_space(data, layout, w), result_dtype(data, kernel, out_dtype, where)
    height, width = w.results([size["H"], size["W"]], where)
    ry, rx = te.reduce_axis((0, weight["H"]), name="ry"), te.reduce_axis((0, weight["W"]), name="rx")

    def formula(*i: Any) -> Expr:
        at = dict(zip(layout, i))
        by = {**at, "H": ry, "W": rx}
        at["H"], at["W"] = at["H"] * w.strides[0] + ry * w.dilation[0], at["W"] * w.strides[1] + rx * w.dilation[1]
        element, raised = padded(*[at[letter] for letter in layout]), kernel(*[by[letter] for letter in kernel_layout])
        return te.max(element.astype(dtype) + raised.astype(dtype), axis=[ry, rx])

    shape = [{**size, "H": height, "W": width}[letter] for letter in layout]
    record = PoolOp("dilation", data, padded, layout, tuple(w.extents), w.strides, w.dilation)
    return te.compute(shape, formula, name=operator, tag=operator, info=record, axes="ax")
