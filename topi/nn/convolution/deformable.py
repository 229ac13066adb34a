"""Deformable convolutions: each position of a window is moved by an offset held in a tensor, and interpolated between pixels.

    out[n, o, y, x] = sum over c, ky, kx of  kernel[o, c, ky, kx]
                                           * data[n, c] at (y * stride + ky * dilation - before + offset y, ... x)

Between pixels the four neighbours are interpolated linearly; outside there are zeros. Dai et al., Deformable Convolutional
Networks (2017). offset: has 2 * deformable_groups * height * width of the window channels, (y, x) innermost; the channels of
the data are divided into deformable_groups, each with offsets of its own.
"""

from __future__ import annotations

from typing import Any

from tedsl import te
from tedsl.errors import ShapeError
from tedsl.tir import Expr
from topi.arguments import checked
from topi.extents import as_int, differ, opening, shown
from topi.image.taps import read_inside, taps, weighted
from topi.kinds import ConvOp
from topi.nn.convolution.formula import accumulated, require_channels, require_rank, result_dtype, windows


@checked
def deformable_conv2d_nchw(data: te.Tensor, offset: te.Tensor, kernel: te.Tensor, strides: Any, padding: Any, dilation: Any,
                           deformable_groups: int, groups: int, out_dtype: Any = None) -> te.Tensor:
    """The deformable convolution in layout NCHW.

    data: (batch, channel, height, width). offset: (batch, offsets, height, width) of the result. kernel: as of conv2d_nchw.
    """
    return _deformable("deformable_conv2d_nchw", data, offset, kernel, strides, padding, dilation, deformable_groups, groups,
                       out_dtype, "NCHW", "OIHW")


@checked
def deformable_conv2d_nhwc(data: te.Tensor, offset: te.Tensor, kernel: te.Tensor, strides: Any, padding: Any, dilation: Any,
                           deformable_groups: int, groups: int, out_dtype: Any = None) -> te.Tensor:
    """The deformable convolution in layout NHWC.

    data: (batch, height, width, channel). offset: (batch, height, width, offsets) of the result. kernel: as of conv2d_nhwc.
    """
    return _deformable("deformable_conv2d_nhwc", data, offset, kernel, strides, padding, dilation, deformable_groups, groups,
                       out_dtype, "NHWC", "HWIO")


def _deformable(operator: str, data: te.Tensor, offset: te.Tensor, kernel: te.Tensor, stride: Any, padding: Any, dilation: Any,
                deformable_groups: int, groups: int, out_dtype: Any, layout: str, kernel_layout: str) -> te.Tensor:
    where = opening(operator, data, offset, kernel)
    for tensor, letters in ((data, layout), (offset, layout), (kernel, kernel_layout)):
        require_rank(tensor, letters, where)
    size, weight = dict(zip(layout, data.shape)), dict(zip(kernel_layout, kernel.shape))
    moved = dict(zip(layout, offset.shape))
    require_channels(size["C"], weight["I"], weight["O"], groups, (data, kernel), where)
    w = windows([weight["H"], weight["W"]], stride, padding, dilation, where)
    height, width = w.results([size["H"], size["W"]], where)
    expected = {"N": size["N"], "C": 2 * deformable_groups * weight["H"] * weight["W"], "H": height, "W": width}
    if any(differ(moved[d], expected[d]) for d in layout) or (as_int(size["C"]) or 0) % max(deformable_groups, 1):
        raise ShapeError(f"{where}: offset {shown(offset.shape)} is not {shown([expected[d] for d in layout])}, or the "
                         f"channels of {shown(data.shape)} are not divisible into {deformable_groups} groups")
    bent = _bent(data, offset, weight, w, size["C"] // deformable_groups, layout, (height, width))
    rc, ry, rx = (te.reduce_axis((0, weight[d]), name=n) for d, n in (("I", "rc"), ("H", "ry"), ("W", "rx")))
    per_group = weight["O"] // groups

    def formula(total: Any, *i: Any) -> Expr:
        at = dict(zip(layout, i))
        channel = rc if groups == 1 else at["C"] // per_group * weight["I"] + rc
        by = {"O": at["C"], "I": rc, "H": ry, "W": rx}
        element = bent(at["N"], channel, ry, rx, at["H"], at["W"])
        return te.sum(total(element) * total(kernel(*[by[d] for d in kernel_layout])), axis=[rc, ry, rx])

    shape = [{**expected, "C": weight["O"]}[d] for d in layout]
    record = ConvOp(operator, data, bent, kernel, "bent", kernel_layout, w.strides, w.dilation, w.before, w.after, groups)
    return accumulated(shape, formula, record, result_dtype(data, kernel, out_dtype, where), name=operator, tag=operator,
                       axes=[{"N": "nn", "C": "ff", "H": "yy", "W": "xx"}[d] for d in layout])


def _bent(data: te.Tensor, offset: te.Tensor, weight: Any, w: Any, per_group: Any, layout: str, results: Any) -> te.Tensor:
    """The interpolated data at each position of each window: (batch, channel, ky, kx, y, x)."""
    size = dict(zip(layout, data.shape))

    def formula(n: Any, c: Any, ky: Any, kx: Any, y: Any, x: Any) -> Any:
        def moved(number: int, base: Any) -> Any:
            channel = ((c // per_group * weight["H"] + ky) * weight["W"] + kx) * 2 + number
            by = {"N": n, "C": channel, "H": y, "W": x}
            shift = offset(*[by[d] for d in layout])
            return base.astype(shift.dtype) + shift

        rows = [taps(moved(d, i * w.strides[d] + k * w.dilation[d] - w.before[d]), extent, "linear")
                for d, (i, k, extent) in enumerate(((y, ky, size["H"]), (x, kx, size["W"])))]

        def element(at_y: Any, at_x: Any) -> Any:
            at = {"N": n, "C": c, "H": at_y, "W": at_x}
            return data(*[at[d] for d in layout])

        def read(*chosen: Any) -> Any:
            return read_inside(element, chosen, (size["H"], size["W"]), te.const(0, data.dtype))

        return weighted(rows, read).astype(data.dtype)

    shape = (size["N"], size["C"], weight["H"], weight["W"], *results)
    output: te.Tensor = te.compute(shape, formula, name="data_deform", tag="data_deform")
    return output
