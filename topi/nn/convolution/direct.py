"""Convolutions by TVM's names, one for each layout.

stride, dilation: an int or one for each spatial dimension. padding: see `topi.nn.utils`. out_dtype: the dtype of the sums and
of the result, None for that of the data; 16-bit floats are summed in float32. Formula and source:
`topi.nn.convolution.formula`.
"""

from __future__ import annotations

from typing import Any

from tedsl import te
from tedsl.errors import ArgumentError, ArgumentTypeError
from topi.arguments import checked
from topi.nn.convolution.formula import convolve
from topi.nn.convolution.packed import conv2d_NCHWc

# The layout of the kernel that belongs to each layout of the data.
_KERNELS = {"NCW": "OIW", "NWC": "WIO", "NCHW": "OIHW", "NHWC": "HWIO", "HWCN": "HWIO", "NCDHW": "OIDHW", "NDHWC": "DHWIO"}


@checked
def conv(inp: te.Tensor, filt: te.Tensor, stride: Any, padding: Any, dilation: Any, groups: int, order: str | None = None,
         out_dtype: Any = None, later_dtype: Any = None, *, data_layout: str | None = None,
         kernel_layout: str = "") -> te.Tensor:
    """The convolution of one, two or three dimensions for data of the layout `order`: "NCW", "NWC", "NCHW" (if none is given),
    "NHWC", "HWCN", "NCDHW" or "NDHWC", with channels in `groups`.

    data_layout: the name of `order` in later versions. kernel_layout, later_dtype: as of conv2d.

    Raises ArgumentError for an unknown layout, ShapeError for channels that differ.
    """
    where = f"conv of {inp.name}"
    kernel_layout, out_dtype = _by_place("conv", kernel_layout, out_dtype, later_dtype)
    layout = _one_layout(where, order, data_layout, "NCHW", name="order")
    if layout not in _KERNELS:
        raise ArgumentError(f'{where}: order is "{layout}"', hint=", ".join(f'"{one}"' for one in _KERNELS))
    _check_kernel(where, layout, kernel_layout)
    return convolve("conv", inp, filt, stride, padding, dilation, out_dtype, layout=layout, kernel_layout=_KERNELS[layout],
                    groups=groups)


@checked
def conv2d(input: te.Tensor, filter: te.Tensor, strides: Any, padding: Any, dilation: Any = 1,
           layout: str | None = None, out_dtype: Any = None, later_dtype: Any = None, *,
           data_layout: str | None = None, kernel_layout: str = "") -> te.Tensor:
    """The convolution for `layout` "NCHW" (if none is given), "NHWC", "HWCN" (see conv2d_nchw, ...) or "NCHWc", which has
    blocked tensors.

    dilation: versions of TVM before 0.5 have none, and take the layout and out_dtype in its place. data_layout: the name of
    `layout` in later versions. kernel_layout: the layout of `filter`, which must be the one for
    the layout of the data ("" stands for it): "OIHW" for "NCHW", "HWIO" for "NHWC" and "HWCN". By position, later versions have
    it in the place of out_dtype, which comes behind it as later_dtype.

    Raises ArgumentError for an unknown layout, ShapeError for channels that differ.
    """
    if isinstance(dilation, str) and layout is not None and out_dtype is None:  # (..., padding, layout, out_dtype)
        layout, out_dtype = None, layout
    kernel_layout, out_dtype = _by_place("conv2d", kernel_layout, out_dtype, later_dtype)
    if isinstance(dilation, str):
        dilation, layout = 1, _one_layout(f"conv2d of {input.name}", layout, dilation, "NCHW")
    layout = _one_layout(f"conv2d of {input.name}", layout, data_layout, "NCHW")
    _check_kernel(f"conv2d of {input.name}", layout, kernel_layout)
    if layout == "NCHWc" and input.ndim == 5:
        return conv2d_NCHWc(input, filter, strides, padding, dilation, layout, layout, out_dtype)
    convolution = {"NCHW": conv2d_nchw, "NHWC": conv2d_nhwc, "HWCN": conv2d_hwcn}.get(layout)
    if convolution is None:
        raise ArgumentError(f'conv2d of {input.name}: layout is "{layout}"', hint='"NCHW", "NHWC", "HWCN" or "NCHWc"')
    return convolution(input, filter, strides, padding, dilation, out_dtype)


def conv2d_nchw(Input: te.Tensor, Filter: te.Tensor, stride: Any, padding: Any, dilation: Any = 1,
                out_dtype: Any = None) -> te.Tensor:
    """The convolution in layout NCHW, a cross-correlation.

    Input: (batch, channel, height, width). Filter: (result, channel, height, width). Returns: (batch, result, height, width).
    """
    return convolve("conv2d_nchw", Input, Filter, stride, padding, dilation, out_dtype, layout="NCHW", kernel_layout="OIHW")


def conv2d_nhwc(Input: te.Tensor, Filter: te.Tensor, stride: Any, padding: Any, dilation: Any = 1,
                out_dtype: Any = None) -> te.Tensor:
    """The convolution in layout NHWC.

    Input: (batch, height, width, channel). Filter: (height, width, channel, result). Returns: (batch, height, width, result).
    """
    return convolve("conv2d_nhwc", Input, Filter, stride, padding, dilation, out_dtype, layout="NHWC", kernel_layout="HWIO",
                    name="Conv2dOutput")


def conv2d_hwcn(Input: te.Tensor, Filter: te.Tensor, stride: Any, padding: Any, dilation: Any = 1,
                out_dtype: Any = None) -> te.Tensor:
    """The convolution in layout HWCN.

    Input: (height, width, channel, batch). Filter: (height, width, channel, result). Returns: (height, width, result, batch).
    """
    return convolve("conv2d_hwcn", Input, Filter, stride, padding, dilation, out_dtype, layout="HWCN", kernel_layout="HWIO",
                    name="Conv2dOutput")


def group_conv2d_nchw(Input: te.Tensor, Filter: te.Tensor, stride: Any, padding: Any, dilation: Any, groups: int,
                      out_dtype: Any = None) -> te.Tensor:
    """The convolution in layout NCHW, with channels in groups: the results of a group read the channels of that group only.

    Input: as of conv2d_nchw. Filter: (result, channel / groups, height, width).
    """
    return convolve("group_conv2d_nchw", Input, Filter, stride, padding, dilation, out_dtype, layout="NCHW",
                    kernel_layout="OIHW", groups=groups)


def group_conv2d_nhwc(Input: te.Tensor, Filter: te.Tensor, stride: Any, padding: Any, dilation: Any, groups: int,
                      out_dtype: Any = None) -> te.Tensor:
    """The convolution in layout NHWC, with channels in groups: the results of a group read the channels of that group only.

    Input: as of conv2d_nhwc. Filter: (height, width, channel / groups, result).
    """
    return convolve("group_conv2d_nhwc", Input, Filter, stride, padding, dilation, out_dtype, layout="NHWC",
                    kernel_layout="HWIO", groups=groups)


@checked
def conv1d(data: te.Tensor, kernel: te.Tensor, strides: Any = 1, padding: Any = "VALID", dilation: Any = 1,
           layout: str | None = None, out_dtype: Any = None, later_dtype: Any = None, *,
           data_layout: str | None = None, kernel_layout: str = "") -> te.Tensor:
    """The convolution for `layout` "NCW" (if none is given) or "NWC".

    data_layout, kernel_layout ("OIW", "WIO"), later_dtype: as of conv2d.

    Raises ArgumentError for an unknown layout.
    """
    kernel_layout, out_dtype = _by_place("conv1d", kernel_layout, out_dtype, later_dtype)
    layout = _one_layout(f"conv1d of {data.name}", layout, data_layout, "NCW")
    _check_kernel(f"conv1d of {data.name}", layout, kernel_layout)
    convolution = {"NCW": conv1d_ncw, "NWC": conv1d_nwc}.get(layout)
    if convolution is None:
        raise ArgumentError(f'conv1d of {data.name}: layout is "{layout}"', hint='"NCW" or "NWC"')
    return convolution(data, kernel, strides, padding, dilation, out_dtype)


def conv1d_ncw(data: te.Tensor, kernel: te.Tensor, strides: Any = 1, padding: Any = "VALID", dilation: Any = 1,
               out_dtype: Any = None) -> te.Tensor:
    """The one-dimensional convolution in layout NCW.

    data: (batch, channel, width). kernel: (result, channel, width). Returns: (batch, result, width).
    """
    return convolve("conv1d_ncw", data, kernel, strides, padding, dilation, out_dtype, layout="NCW", kernel_layout="OIW")


def conv1d_nwc(data: te.Tensor, kernel: te.Tensor, strides: Any = 1, padding: Any = "VALID", dilation: Any = 1,
               out_dtype: Any = None) -> te.Tensor:
    """The one-dimensional convolution in layout NWC.

    data: (batch, width, channel). kernel: (width, channel, result). Returns: (batch, width, result).
    """
    return convolve("conv1d_nwc", data, kernel, strides, padding, dilation, out_dtype, layout="NWC", kernel_layout="WIO")


def conv3d_ncdhw(Input: te.Tensor, Filter: te.Tensor, stride: Any, padding: Any, dilation: Any, groups: int = 1,
                 out_dtype: Any = None) -> te.Tensor:
    """The three-dimensional convolution in layout NCDHW.

    Input: (batch, channel, depth, height, width). Filter: (result, channel / groups, depth, height, width).
    """
    return convolve("conv3d_ncdhw", Input, Filter, stride, padding, dilation, out_dtype, layout="NCDHW",
                    kernel_layout="OIDHW", groups=groups)


def conv3d_ndhwc(Input: te.Tensor, Filter: te.Tensor, stride: Any, padding: Any, dilation: Any, groups: int = 1,
                 out_dtype: Any = None) -> te.Tensor:
    """The three-dimensional convolution in layout NDHWC.

    Input: (batch, depth, height, width, channel). Filter: (depth, height, width, channel / groups, result).
    """
    return convolve("conv3d_ndhwc", Input, Filter, stride, padding, dilation, out_dtype, layout="NDHWC",
                    kernel_layout="DHWIO", groups=groups, name="Conv3dOutput")


def _by_place(where: str, kernel_layout: str, out_dtype: Any, later_dtype: Any) -> tuple[str, Any]:
    """Returns the layout of the kernel and the dtype of the result: out_dtype may be the former, and later_dtype the latter."""
    if isinstance(out_dtype, str) and (out_dtype == "" or out_dtype.isupper()):
        return out_dtype, later_dtype
    if later_dtype is not None:
        raise ArgumentTypeError(f"{where} takes no argument {later_dtype!r} behind out_dtype {out_dtype!r}",
                                hint="by position: layout, out_dtype; or data_layout, kernel_layout, out_dtype")
    return kernel_layout, out_dtype


def _one_layout(where: str, layout: str | None, data_layout: str | None, default: str, name: str = "layout") -> str:
    """Returns the layout of the data, given by either of its two names; ArgumentError if they contradict each other."""
    if layout is not None and data_layout is not None and layout != data_layout:
        raise ArgumentError(f'{where}: {name} is "{layout}" and data_layout is "{data_layout}"',
                            hint="they say the same: pass one")
    return next((given for given in (layout, data_layout) if given is not None), default)


def _check_kernel(where: str, layout: str, kernel_layout: str) -> None:
    """Refuses a layout of the kernel that does not belong to that of the data."""
    wanted = _KERNELS.get(layout)
    if kernel_layout and wanted is not None and kernel_layout != wanted:
        raise ArgumentError(f'{where}: kernel_layout is "{kernel_layout}"; to data of "{layout}" belongs "{wanted}"',
                            hint=f'topi.layout_transform(kernel, "{kernel_layout}", "{wanted}")')
