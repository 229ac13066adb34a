"""Parts of convolutions that programs with schedules of their own are made of, by TVM's names."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from tedsl import te
from tedsl.errors import ArgumentError
from topi.arguments import checked
from topi.extents import as_int, opening
from topi.kinds import InjectiveOp
from topi.nn.convolution.formula import require_rank
from topi.nn.convolution.winograd import conv2d_winograd_nchw, conv2d_winograd_nhwc, transform_matrices
from topi.nn.dilate import dilate
from topi.nn.pad import pad
from topi.nn.utils import pad_widths, spatial
from topi.utils import const_matrix


class Workload(NamedTuple):
    """The extents of a convolution, for which schedules are chosen."""

    in_dtype: Any
    out_dtype: Any
    height: Any
    width: Any
    in_filter: Any
    groups: Any
    out_filter: Any
    kernel_h: Any
    kernel_w: Any
    padt: Any
    padl: Any
    padb: Any
    padr: Any
    dilation_h: Any
    dilation_w: Any
    stride_h: Any
    stride_w: Any


@checked
def _get_workload(data: te.Tensor, kernel: te.Tensor, stride: Any, padding: Any, dilation: Any, out_dtype: Any,
                  data_layout: str = "NCHW") -> Workload:
    """The extents of a convolution of `data` in NCHW, NHWC or HWCN with a kernel, OIHW for NCHW and HWIO for the others."""
    where = opening("_get_workload", data, kernel)
    kernels = {"NCHW": "OIHW", "NHWC": "HWIO", "HWCN": "HWIO"}
    if data_layout not in kernels:
        raise ArgumentError(f"{where}: there is no data_layout {data_layout!r}", hint=f"choose one of {', '.join(kernels)}")
    for tensor, layout in ((data, data_layout), (kernel, kernels[data_layout])):
        require_rank(tensor, layout, where)
    image = {letter: as_int(extent) or extent for letter, extent in zip(data_layout, data.shape)}
    taps = {letter: as_int(extent) or extent for letter, extent in zip(kernels[data_layout], kernel.shape)}
    gaps, steps = spatial(dilation, 2, where, "dilation"), spatial(stride, 2, where, "stride")
    window = [(taps[axis] - 1) * gap + 1 for axis, gap in zip("HW", gaps)]
    (top, left), (bottom, right) = pad_widths(padding, window, where)
    return Workload(data.dtype, out_dtype, image["H"], image["W"], image["C"], image["C"] // taps["I"], taps["O"], taps["H"],
                    taps["W"], top, left, bottom, right, *gaps, *steps)


@checked
def unpack_NCHWc_to_nchw(packed_out: te.Tensor, out_dtype: Any) -> te.Tensor:
    """A tensor in NCHWc, (n, chunk, h, w, channel of the chunk), in NCHW."""
    require_rank(packed_out, "NCHWc", opening("unpack_NCHWc_to_nchw", packed_out))
    n, chunks, height, width, block = packed_out.shape
    unpacked: te.Tensor = te.compute(
        (n, chunks * block, height, width), lambda b, c, h, w: packed_out(b, c // block, h, w, c % block).astype(out_dtype),
        name="output_unpack", tag="injective,unpack_nchwc", info=InjectiveOp("unpack_NCHWc_to_nchw"))
    return unpacked


@checked
def winograd_transform_matrices(tile_size: int, kernel_size: int, out_dtype: Any) -> tuple[te.Tensor, te.Tensor, te.Tensor]:
    """The matrices A, B and G of `conv2d_winograd_nchw` as tensors of constants.

    Their points are tedsl's: transformed data and weights of other programs do not fit them.
    """
    import numpy

    a, b, g = (numpy.array([[float(entry) for entry in row] for row in matrix], str(out_dtype))
               for matrix in transform_matrices(tile_size, kernel_size))
    return const_matrix(a, "A"), const_matrix(b, "B"), const_matrix(g, "G")


@checked
def conv2d_winograd_nhwc_without_weight_transform(data: te.Tensor, weight: te.Tensor, strides: Any, padding: Any, dilation: Any,
                                                  out_dtype: Any = None,
                                                  auto_scheduler_rewritten_layout: str = "") -> te.Tensor:
    """conv2d_winograd_nhwc of weights that conv2d_winograd_weight_transform has transformed."""
    return conv2d_winograd_nhwc(data, weight, strides, padding, dilation, out_dtype, True)


@checked
def conv2d_winograd_without_weight_transform(data: te.Tensor, weight: te.Tensor, strides: Any, padding: Any, dilation: Any,
                                             layout: str = "NCHW", out_dtype: Any = None, tile_size: int = 4) -> te.Tensor:
    """conv2d_winograd_nchw of weights that conv2d_winograd_weight_transform has transformed, as called before TVM 0.7."""
    if layout != "NCHW":
        raise ArgumentError(f"conv2d_winograd_without_weight_transform: layout is {layout!r}",
                            hint="topi.nn.conv2d_winograd_nhwc_without_weight_transform takes NHWC")
    return conv2d_winograd_nchw(data, weight, strides, padding, dilation, out_dtype, True, tile_size)


@checked
def conv2d_transpose_nchw_preprocess(data: te.Tensor, kernel: te.Tensor, strides: Any, padding: Any, out_dtype: Any,
                                     output_padding: Any) -> tuple[te.Tensor, te.Tensor]:
    """What conv2d_nchw with stride 1 makes the transposed convolution of: the data with zeros between its elements and around
    them, and the kernel (in, out, h, w) as (out, in, h, w), turned around.
    """
    return _preprocessed("conv2d_transpose_nchw_preprocess", data, kernel, "HW", strides, padding, out_dtype, output_padding)


@checked
def conv3d_transpose_ncdhw_preprocess(data: te.Tensor, kernel: te.Tensor, strides: Any, padding: Any, out_dtype: Any,
                                      output_padding: Any) -> tuple[te.Tensor, te.Tensor]:
    """The same for conv3d_ncdhw, of kernels (in, out, d, h, w)."""
    return _preprocessed("conv3d_transpose_ncdhw_preprocess", data, kernel, "DHW", strides, padding, out_dtype, output_padding)


def _preprocessed(operator: str, data: te.Tensor, kernel: te.Tensor, space: str, strides: Any, padding: Any, out_dtype: Any,
                  output_padding: Any) -> tuple[te.Tensor, te.Tensor]:
    where, rank = opening(operator, data, kernel), len(space)
    require_rank(data, "NC" + space, where)
    require_rank(kernel, "IO" + space, where)
    steps, extents = spatial(strides, rank, where, "strides"), list(kernel.shape[2:])
    before, after = pad_widths(padding, extents, where)
    more: Sequence[int] = output_padding if isinstance(output_padding, (list, tuple)) else [output_padding] * rank
    spread = dilate(data, [1, 1, *steps], name="data_dilate")
    around = pad(spread, [0, 0, *[k - 1 - p for k, p in zip(extents, before)]],
                 [0, 0, *[k - 1 - p + o for k, p, o in zip(extents, after, more)]], name="data_pad")
    turned: te.Tensor = te.compute(
        (kernel.shape[1], kernel.shape[0], *extents),
        lambda o, i, *at: kernel(i, o, *[k - 1 - x for k, x in zip(extents, at)]).astype(out_dtype or kernel.dtype),
        name="kernel_transform", tag="injective", info=InjectiveOp(operator))
    return around, turned
