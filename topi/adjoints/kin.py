"""Adjoints of the kin of convolutions: transposed ones, those of blocked layouts, those that are computed by tiles."""

from __future__ import annotations

from typing import Any

from tedsl import te
from topi.adjoints.convolutions import Along, extents_along, of_convolution, of_kernel
from topi.adjoints.parts import Parts, in_dtype
from topi.extents import as_int
from topi.injective import injective
from topi.kinds import ConvOp, DepthwiseConvOp, PackedConvOp, PackedDepthwiseConvOp, TiledConvOp, TransposedConvOp
from topi.nn.convolution.formula import convolve


def of_transposed(info: TransposedConvOp, op: te.Operation, head: te.Tensor) -> Parts:
    """A transposed convolution is the adjoint of the data of a convolution: its own adjoint is that convolution, of the head.

    In that convolution the head is the data, the data is the head, and the kernel the same one.
    """
    space, kernel_layout = info.layout[2:], f"OI{info.layout[2:]}"
    dilation = (1,) * len(space)
    ahead = ConvOp("transposed", head, head, info.kernel, info.layout, kernel_layout, info.strides, dilation, info.before, (),
                   info.groups)
    along = extents_along(ahead, info.data)
    if along is None:
        return None
    data = in_dtype(info.data, head.dtype)
    return [(info.data, lambda: _convolved(ahead, along)), (info.kernel, lambda: of_kernel(ahead, data, along))]


def _convolved(ahead: ConvOp, along: dict[str, Along]) -> te.Tensor:
    """The convolution of the head, as large as the data: its window may end before the head does, or beyond."""
    behind = [(a.result - 1) * a.stride + a.kernel - a.before - a.data for a in along.values()]
    shape = [*ahead.data.shape[:2], *[a.data + min(rest, 0) for a, rest in zip(along.values(), behind)]]
    head = ahead.data
    if min(behind) < 0:
        head = injective("strided_slice", shape, lambda *i: ahead.data(*i))
    borders = [*ahead.before, *[max(0, rest) for rest in behind]]
    return convolve("conv_transpose_adjoint", head, in_dtype(ahead.kernel, head.dtype), ahead.strides, borders, 1, None,
                    layout=ahead.layout, kernel_layout=ahead.kernel_layout, groups=ahead.groups)


def of_tiled(info: TiledConvOp, op: te.Operation, head: te.Tensor) -> Parts:
    """The adjoints of the convolution without tiles."""
    ones = (1,) * len(info.before)
    plain = ConvOp(info.operator, info.data, info.data, info.kernel, info.layout, info.kernel_layout, ones, ones, info.before,
                   info.after)
    return of_convolution(plain, op, head)


def of_packed(info: PackedConvOp | PackedDepthwiseConvOp, op: te.Operation, head: te.Tensor) -> Parts:
    """The adjoints in the layouts without blocks, converted."""
    depthwise = isinstance(info, PackedDepthwiseConvOp)
    channels, block = as_int(info.data.shape[1] * info.data.shape[-1]), info.data.shape[-1]
    results, out_block = as_int(head.shape[1] * head.shape[-1]), head.shape[-1]
    if channels is None or results is None:
        return None
    kernel, inner = info.kernel, info.kernel.shape[4]
    window = kernel.shape[2:4]
    data = _joined(info.data)
    if depthwise:
        multiplier = results // channels
        plain = injective("unpacked", (channels, multiplier, *window), lambda c, m, h, w: kernel(
            (c * multiplier + m) // out_block, 0, h, w, 0, (c * multiplier + m) % out_block))
        ahead: ConvOp = DepthwiseConvOp("unpacked", data, data, plain, "NCHW", "CMHW", info.strides, info.dilation, info.before,
                                        info.after)
    else:
        plain = injective("unpacked", (results, kernel.shape[1] * inner, *window), lambda o, i, h, w: kernel(
            o // out_block, i // inner, h, w, i % inner, o % out_block))
        ahead = ConvOp("unpacked", data, data, plain, "NCHW", "OIHW", info.strides, info.dilation, info.before, info.after,
                       info.groups)
    parts = of_convolution(ahead, op, _joined(head))
    if parts is None:
        return None
    (_, made_data), (_, made_kernel) = parts

    def data_part() -> te.Tensor:
        found = made_data()
        return injective("layout_transform", info.data.shape, lambda n, c, h, w, b: found(n, c * block + b, h, w))

    def kernel_part() -> te.Tensor:
        found = made_kernel()

        def formula(o: Any, i: Any, h: Any, w: Any, bi: Any, bo: Any) -> Any:
            result = o * out_block + bo
            return found(result // multiplier, result % multiplier, h, w) if depthwise else found(result, i * inner + bi, h, w)

        return injective("layout_transform", kernel.shape, formula)

    return [(info.data, data_part), (info.kernel, kernel_part)]


def _joined(tensor: te.Tensor) -> te.Tensor:
    """NCHWc as NCHW."""
    n, chunks, h, w, block = tensor.shape
    return injective("layout_transform", (n, chunks * block, h, w), lambda n, c, h, w: tensor(n, c // block, h, w, c % block))
