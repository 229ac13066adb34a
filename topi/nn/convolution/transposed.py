"""Transposed convolutions, which compute the gradient of a convolution with respect to its data.

    out[n, o, y, x] = sum over c, ky, kx with y + before - ky = stride * iy ... of  data[n, c, iy, ix] * kernel[c, o, ky, kx]

The extents are (n - 1) * stride + kernel - before - behind + output_padding. Computed as a convolution with stride 1 of the
dilated data with the flipped kernel. Where there are many results, each uses only the taps of its phase, (y + before) % stride,
which skip the zeros of the dilation. The kernel is (channel, result / groups, ...). Dumoulin and Visin, A guide to convolution
arithmetic for deep learning (2016), chapter 4.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tedsl import te
from tedsl.errors import ShapeError
from tedsl.record import record
from topi.arguments import Widths, checked
from topi.extents import as_int, differ, opening, shown
from topi.kinds import InjectiveOp, TransposedConvOp
from topi.nn.convolution.formula import accumulated, require_rank, result_dtype
from topi.nn.dilate import dilate
from topi.nn.pad import pad
from topi.nn.utils import pad_widths, spatial

_LOOPS = {"N": "b", "C": "c", "D": "d", "H": "h", "W": "w"}
_REDUCED = {"D": "dd", "H": "dh", "W": "dw"}


@checked
def conv1d_transpose_ncw(data: te.Tensor, kernel: te.Tensor, stride: Any, padding: Any, out_dtype: Any,
                         output_padding: Widths = 0) -> te.Tensor:
    """The transposed one-dimensional convolution in layout NCW.

    data: (batch, channel, width). kernel: (channel, result, width). Returns: (batch, result, width).
    """
    return _transposed("conv1d_transpose_ncw", data, kernel, stride, padding, out_dtype, output_padding, 1, "NCW")


@checked
def conv2d_transpose_nchw(Input: te.Tensor, Filter: te.Tensor, strides: Any, padding: Any, out_dtype: Any,
                          output_padding: Widths = 0) -> te.Tensor:
    """The transposed convolution in layout NCHW.

    Input: (batch, channel, height, width). Filter: (channel, result, height, width). Returns: (batch, result, height, width).
    """
    return _transposed("conv2d_transpose_nchw", Input, Filter, strides, padding, out_dtype, output_padding, 1, "NCHW")


@checked
def group_conv2d_transpose_nchw(data: te.Tensor, kernel: te.Tensor, stride: Any, padding: Any, out_dtype: Any,
                                output_padding: Widths, groups: int) -> te.Tensor:
    """The transposed convolution in layout NCHW, with channels in groups; kernel: (channel, result / groups, height, width)."""
    return _transposed("group_conv2d_transpose_nchw", data, kernel, stride, padding, out_dtype, output_padding, groups, "NCHW")


@checked
def conv3d_transpose_ncdhw(Input: te.Tensor, Filter: te.Tensor, strides: Any, padding: Any, out_dtype: Any,
                           output_padding: Widths = 0) -> te.Tensor:
    """The transposed three-dimensional convolution in layout NCDHW.

    Input: (batch, channel, depth, height, width). Filter: (channel, result, depth, height, width).
    """
    return _transposed("conv3d_transpose_ncdhw", Input, Filter, strides, padding, out_dtype, output_padding, 1, "NCDHW")


def _transposed(operator: str, data: te.Tensor, kernel: te.Tensor, stride: Any, padding: Any, out_dtype: Any,
                output_padding: Any, groups: int, layout: str) -> te.Tensor:
    where = opening(operator, data, kernel)
    kernel_layout = "IO" + layout[2:]
    require_rank(data, layout, where)
    require_rank(kernel, kernel_layout, where)
    inputs, results = _channels(data, kernel, groups, where)
    spread = _spread(data, kernel, stride, padding, output_padding, where)
    padded, flipped = spread.padded, spread.kernel
    dc = te.reduce_axis((0, inputs), name="dc")
    loops = [te.reduce_axis((0, n), name=_REDUCED[letter]) for n, letter in zip(spread.taps, layout[2:])]

    def formula(total: Any, b: Any, c: Any, *at: Any) -> Any:
        channel = dc if groups == 1 else c // results * inputs + dc
        element = padded(b, channel, *spread.places(at, loops))
        weight = flipped(c if groups == 1 else c % results, channel, *spread.entries(at, loops))
        return te.sum(total(element) * total(weight), axis=[dc, *loops])

    shape = [data.shape[0], results * groups, *spread.extents]
    record = TransposedConvOp(operator, data, kernel, padded, flipped, layout, kernel_layout, spread.strides, groups,
                              spread.before)
    return accumulated(shape, formula, record, result_dtype(data, kernel, out_dtype, where), name=operator, tag=operator,
                       axes=[_LOOPS[letter] for letter in layout])


def _channels(data: te.Tensor, kernel: te.Tensor, groups: int, where: str) -> tuple[Any, Any]:
    """The channels that a result reads, and the results of a group."""
    both = f"{data.name} {shown(data.shape)}, {kernel.name} {shown(kernel.shape)}"
    channels = data.shape[1]
    if differ(channels, kernel.shape[0]):
        raise ShapeError(f"{where}: the data has {channels!r} channels and the kernel takes {kernel.shape[0]!r}: {both}",
                         hint="the kernel is (channel, result, ...)")
    if groups < 1 or (as_int(channels) or 0) % groups:
        raise ShapeError(f"{where}: {channels!r} channels of the data are not divisible into {groups} groups: {both}")
    return channels // groups, kernel.shape[1]


@record
class _Spread:
    """The operands of the sums, and where they are read: `padded` at i + k and `kernel` at k; or, by phases, with
    `first` = before % stride,

        padded at (i + first) // stride + k,    kernel at (i + first) % stride + stride * (taps - 1 - k)
    """

    padded: te.Tensor
    kernel: te.Tensor
    taps: tuple[Any, ...]
    extents: tuple[Any, ...]  # of the result
    strides: tuple[int, ...]
    before: tuple[int, ...]
    first: tuple[int, ...] | None = None  # of phases

    def places(self, at: Sequence[Any], loops: Sequence[Any]) -> list[Any]:
        """The indices at which `padded` is read for the result at `at`."""
        if self.first is None:
            return [i + k for i, k in zip(at, loops)]
        return [(i + f) // s + k for i, k, f, s in zip(at, loops, self.first, self.strides)]

    def entries(self, at: Sequence[Any], loops: Sequence[Any]) -> list[Any]:
        """The indices at which `kernel` is read for the result at `at`."""
        if self.first is None:
            return list(loops)
        return [(i + f) % s + s * (n - 1 - k) for i, k, n, f, s in zip(at, loops, self.taps, self.first, self.strides)]


def _spread(data: te.Tensor, kernel: te.Tensor, stride: Any, padding: Any, output_padding: Any, where: str) -> _Spread:
    """The operands of the sums for strides and padding as users give them."""
    rank = data.ndim - 2
    extents = spatial(kernel.shape[2:], rank, where, "kernel")
    strides = spatial(stride, rank, where, "strides")
    before, after = pad_widths(padding, extents, where)
    more = _output_padding(output_padding, strides, where)
    low = [k - 1 - p for k, p in zip(extents, before)]
    high = [k - 1 - p + m for k, p, m in zip(extents, after, more)]
    if min(*low, *high) < 0:
        raise ShapeError(f"{where}: padding {before} and {after} is more than the kernel {shown(extents)} reaches",
                         hint="at most the kernel's extent - 1 on each side")
    extents_out = [(n - 1) * s + (k + m - p - q)
                   for n, s, k, m, p, q in zip(data.shape[2:], strides, extents, more, before, after)]
    if max(strides) > 1:  # each result has its own taps, and those of the zeros of a dilation are left out
        return _by_phases(data, kernel, extents, strides, before, high, extents_out)
    dilated = dilate(data, [1, 1, *strides], name="data_dilate")
    return _Spread(pad(dilated, [0, 0, *low], [0, 0, *high], name="data_pad"), _turned(kernel), tuple(kernel.shape[2:]),
                   tuple(extents_out), strides, before)


def _turned(kernel: te.Tensor) -> te.Tensor:
    """The kernel as (result, channel, ...), flipped in space."""
    return te.compute((kernel.shape[1], kernel.shape[0], *kernel.shape[2:]), lambda o, i, *k: kernel(
        i, o, *[n - 1 - at for n, at in zip(kernel.shape[2:], k)]), name="kernel_transform", tag="injective",
        info=InjectiveOp("flip"))


def _by_phases(data: te.Tensor, kernel: te.Tensor, extents: Sequence[int], strides: tuple[int, ...], before: Sequence[int],
               high: Sequence[int], made: Sequence[Any]) -> _Spread:
    """The data with zeros around it, and the kernel with zeros up to a multiple of the strides."""
    taps = [-(-k // s) for k, s in zip(extents, strides)]
    low = [n - 1 - p // s for n, p, s in zip(taps, before, strides)]
    above = [reach // s for reach, s in zip(high, strides)]
    padded = pad(data, [0, 0, *low], [0, 0, *above], name="data_pad")

    def entry(o: Any, i: Any, *at: Any) -> Any:
        inside = [place < k for place, k, n, s in zip(at, extents, taps, strides) if n * s != k]
        value = kernel(i, o, *at)
        return te.if_then_else(te.all(*inside), value, te.const(0, kernel.dtype)) if inside else value

    shape = (kernel.shape[1], kernel.shape[0], *[n * s for n, s in zip(taps, strides)])
    moved = te.compute(shape, entry, name="kernel_transform", tag="injective", info=InjectiveOp("flip"))
    return _Spread(padded, moved, tuple(taps), tuple(made), strides, tuple(before),
                   tuple(p % s for p, s in zip(before, strides)))


def _output_padding(given: Any, strides: Sequence[int], where: str) -> tuple[int, ...]:
    numbers = tuple(given) if isinstance(given, (tuple, list)) else (given,) * len(strides)
    if len(numbers) != len(strides) or any(not 0 <= n < max(step, 1) for n, step in zip(numbers, strides)):
        raise ShapeError(f"{where}: output_padding is {numbers} and strides {tuple(strides)}",
                         hint="one number for each spatial dimension, from 0 to the stride - 1")
    return numbers


