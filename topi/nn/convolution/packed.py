"""Convolutions of layouts with blocks of channels innermost, one vector wide or several: NCHWc.

    out[n, O, y, x, o] = sum over c, ky, kx of  data[n, c / block, y * stride + ky * dilation, ..., c % block]
                                              * kernel[O, c / block, ky, kx, c % block, o]

Liu et al., Optimizing CNN Model Inference on CPUs (2019). Arguments are those of `topi.nn.convolution.direct`; layout and
out_layout
are names like "NCHW16c", for programs that carry them.
"""

from __future__ import annotations

from typing import Any

from tedsl import te
from tedsl.errors import ShapeError
from tedsl.tir import Expr
from topi.arguments import checked
from topi.extents import as_int, differ, opening, shown
from topi.kinds import InjectiveOp, PackedConvOp, PackedDepthwiseConvOp, PanelsOp
from topi.nn.convolution.formula import accumulated, pad_space, require_rank, result_dtype, windows

_AXES = ("n", "oc_chunk", "oh", "ow", "oc_block")


def conv2d_NCHWc(data: te.Tensor, kernel: te.Tensor, stride: Any, padding: Any, dilation: Any, layout: str = "NCHWc",
                 out_layout: str = "NCHWc", out_dtype: Any = None) -> te.Tensor:
    """The convolution in blocks of channels.

    data: (batch, chunks, height, width, block). kernel: (out chunks, chunks / groups, height, width, block, out block).
    Returns (batch, out chunks, height, width, out block). The number of groups follows from the chunks of the kernel.
    """
    where = opening("conv2d_NCHWc", data, kernel)
    require_rank(data, "NCHWc", where)
    require_rank(kernel, "OIHWio", where)
    batch, chunks, height, width, block = data.shape
    outer, inner, kernel_h, kernel_w, kernel_block, out_block = kernel.shape
    groups = (as_int(chunks) or 1) // max(as_int(inner) or 1, 1) if differ(chunks, inner) else 1
    if differ(block, kernel_block) or differ(chunks, inner * groups) or (as_int(outer) or 0) % max(groups, 1):
        raise ShapeError(f"{where}: {chunks!r} chunks of {block!r} channels and a kernel for {inner!r} of {kernel_block!r}: "
                         f"{data.name} {shown(data.shape)}, {kernel.name} {shown(kernel.shape)}", hint="the kernel is OIHWio")
    w = windows([kernel_h, kernel_w], stride, padding, dilation, where)
    padded, per_group = pad_space(data, "NCHWc", w), outer // groups
    ic, kh, kw = (te.reduce_axis((0, n), name=k) for n, k in ((inner * block, "ic"), (kernel_h, "kh"), (kernel_w, "kw")))

    def formula(total: Any, n: Any, chunk: Any, oh: Any, ow: Any, o: Any) -> Expr:
        first = 0 if groups == 1 else chunk // per_group * inner
        element = padded(n, first + ic // block, oh * w.strides[0] + kh * w.dilation[0], ow * w.strides[1] + kw * w.dilation[1],
                         ic % block)
        return te.sum(total(element) * total(kernel(chunk, ic // block, kh, kw, ic % block, o)), axis=[ic, kh, kw])

    record = PackedConvOp("conv2d_NCHWc", data, padded, kernel, "NCHWc", "OIHWio", w.strides, w.dilation, w.before, w.after,
                          groups)
    return accumulated([batch, outer, *w.results([height, width], where), out_block], formula, record,
                       result_dtype(data, kernel, out_dtype, where), name="conv2d_NCHWc", tag="conv2d_NCHWc", axes=_AXES)


def depthwise_conv2d_NCHWc(Input: te.Tensor, Filter: te.Tensor, stride: Any, padding: Any, dilation: Any, layout: str = "NCHWc",
                           out_layout: str = "NCHWc", out_dtype: Any = None) -> te.Tensor:
    """The depthwise convolution in blocks of channels.

    Input: (batch, chunks, height, width, block). Filter: (out chunks, 1, height, width, 1, out block). Channel c of the result
    reads channel c / multiplier, where multiplier is the number of results for each channel.
    """
    where = opening("depthwise_conv2d_NCHWc", Input, Filter)
    require_rank(Input, "NCHWc", where)
    require_rank(Filter, "OIHWio", where)
    batch, chunks, height, width, block = Input.shape
    outer, one, kernel_h, kernel_w, single, out_block = Filter.shape
    channels, results = as_int(chunks * block), as_int(outer * out_block)
    if differ(one, 1) or differ(single, 1) or channels is None or results is None or not channels or results % channels:
        raise ShapeError(f"{where}: {Input.name} {shown(Input.shape)} does not fit {Filter.name} {shown(Filter.shape)}",
                         hint="the kernel is (out chunks, 1, height, width, 1, out block), a multiple of the channels")
    w, multiplier = windows([kernel_h, kernel_w], stride, padding, dilation, where), results // channels
    padded = pad_space(Input, "NCHWc", w)
    kh, kw = te.reduce_axis((0, kernel_h), name="kh"), te.reduce_axis((0, kernel_w), name="kw")

    def formula(total: Any, n: Any, chunk: Any, oh: Any, ow: Any, o: Any) -> Expr:
        channel = (chunk * out_block + o) // multiplier
        same = multiplier == 1 and not differ(block, out_block)
        place = (chunk, o) if same else (channel // block, channel % block)
        element = padded(n, place[0], oh * w.strides[0] + kh * w.dilation[0], ow * w.strides[1] + kw * w.dilation[1], place[1])
        return te.sum(total(element) * total(Filter(chunk, 0, kh, kw, 0, o)), axis=[kh, kw])

    record = PackedDepthwiseConvOp("depthwise_conv2d_NCHWc", Input, padded, Filter, "NCHWc", "OIHWio", w.strides, w.dilation,
                                   w.before, w.after, channels)
    return accumulated([batch, outer, *w.results([height, width], where), out_block], formula, record,
                       result_dtype(Input, Filter, out_dtype, where), name="DepthwiseConv2d", tag="depthwise_conv2d_NCHWc",
                       axes=("b", "oco", "oh", "ow", "oci"))


@checked
def conv2d_pack_weights(kernel: te.Tensor, block: int, out_block: int | None = None, layout: str = "OIHW",
                        group: int = 1) -> te.Tensor:
    """The weights of conv2d_NCHWc from those of conv2d_nchw ("OIHW") or conv2d_nhwc ("HWIO"): OIHWio, to be packed once.

    block: channels in a chunk of the data; out_block: results in a chunk, None for `block`. The last chunk is padded with
    zeros. group: neighbouring channels, which divide all, that one instruction adds up; the weights are then panels of
    conv2d_nhwc, OHWIoi, and block is 1.
    """
    where = opening("conv2d_pack_weights", kernel)
    require_rank(kernel, layout, where)
    size, wide = dict(zip(layout, kernel.shape)), block if out_block is None else out_block
    if sorted(layout) != sorted("OIHW") or block < 1 or wide < 1:
        raise ShapeError(f'{where}: layout is "{layout}", the blocks are {block} and {wide}', hint='"OIHW" or "HWIO", from 1')
    if group < 1 or (group > 1 and ((as_int(size["I"]) or 1) % group or block > 1)):
        raise ShapeError(f"{where}: groups of {group} of {size['I']!r} channels, in blocks of {block}",
                         hint="a group that divides the channels, with blocks of 1")
    outer, inner = (size["O"] + wide - 1) // wide, (size["I"] + block - 1) // block

    def element(o: Any, i: Any, h: Any, w: Any) -> Expr:
        at = {"O": o, "I": i, "H": h, "W": w}
        found = kernel(*[at[letter] for letter in layout])
        inside = [at[k] < size[k] for k, n in (("O", wide), ("I", block)) if (as_int(size[k]) or 1) % n]
        return te.if_then_else(te.all(*inside), found, te.const(0, kernel.dtype)) if inside else found

    def of_block(O: Any, I: Any, h: Any, w: Any, i: Any, o: Any) -> Expr:
        return element(O * wide + o, I * block + i, h, w)

    def of_group(O: Any, h: Any, w: Any, I: Any, o: Any, i: Any) -> Expr:
        return element(O * wide + o, I * group + i, h, w)

    window = size["H"], size["W"]
    shape, formula = ((outer, inner, *window, block, wide), of_block) if group == 1 else \
        ((outer, *window, inner // group, wide, group), of_group)
    return te.compute(shape, formula, name="packed_kernel", tag="injective", info=InjectiveOp("conv2d_pack_weights"))


@checked
def conv2d_unpack_weights(panels: te.Tensor, outputs: int, group: int = 1) -> te.Tensor:
    """The weights of conv2d_nchw with `outputs` results from what `conv2d_pack_weights(kernel, 1, wide)` makes of them; with
    groups of channels those of conv2d_nhwc, from `conv2d_pack_weights(kernel, 1, wide, layout, group)`.

    A convolution of weights that were packed by the tile of its schedule reads the panels as they lie.
    """
    where = opening("conv2d_unpack_weights", panels)
    require_rank(panels, "OIHWio" if group == 1 else "OHWIoi", where)
    *window, inner = panels.shape[1:4] if group != 1 else (*panels.shape[2:4], panels.shape[1])
    one, size = [as_int(panels.shape[at]) for at in ((4, 5) if group == 1 else (5, 4))]
    if one != group or size is None or (as_int(panels.shape[0]) or 0) != (outputs + size - 1) // size:
        raise ShapeError(f"{where}: {panels.name} {shown(panels.shape)} are no panels of {outputs} results, groups of {group}",
                         hint="conv2d_pack_weights(kernel, 1, wide, layout, group)")

    def of_block(o: Any, i: Any, h: Any, w: Any) -> Expr:
        return panels(o // size, i, h, w, 0, o % size)

    def of_group(h: Any, w: Any, i: Any, o: Any) -> Expr:
        return panels(o // size, h, w, i // group, o % size, i % group)

    shape, formula = ((outputs, inner, *window), of_block) if group == 1 else ((*window, inner * group, outputs), of_group)
    return te.compute(shape, formula, name="unpacked_kernel", tag="injective",
                      info=PanelsOp("conv2d_unpack_weights", panels, size, group))
