"""Convolutions, and the widths of padding that they share with pooling."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tedsl.graph.onnx.call import Call
from tedsl.graph.onnx.refusal import Unsupported
from tedsl.graph.trace import ops
from tedsl.graph.value import Value, constant

Widths = tuple[int, ...]


def padding_of(call: Call, spans: Sequence[int], strides: Sequence[int]) -> Widths:
    """The widths before, then behind, each spatial dimension. spans: extents of the window with the gaps of its dilation."""
    rank, kind = len(spans), call.attribute("auto_pad", "NOTSET")
    if kind in ("NOTSET", ""):
        return tuple(call.attribute("pads", (0,) * (2 * rank)))
    if kind == "VALID":
        return (0,) * (2 * rank)
    extents = call.static_shape(0)[2:]
    totals = [max((-(-extent // step) - 1) * step + span - extent, 0) for extent, span, step in zip(extents, spans, strides)]
    small, large = [total // 2 for total in totals], [total - total // 2 for total in totals]
    return (*small, *large) if kind == "SAME_UPPER" else (*large, *small)


def spatial(call: Call, name: str, rank: int) -> Widths:
    """An attribute with a number for each spatial dimension, all 1 if it is left out."""
    return tuple(call.attribute(name, (1,) * rank))


def reshaped(value: Value, shape: Sequence[Any]) -> Any:
    """The value of another shape; itself if it has that; of a constant a constant."""
    if tuple(value.shape) == tuple(shape):
        return value
    if value.data is not None and all(isinstance(extent, int) for extent in shape):
        return constant(value.data.reshape(shape), name=value.name)
    return ops.reshape(value, tuple(shape))


def conv(call: Call) -> Any:
    x, w = call[0], call[1]
    made = convolved(call, x, w)
    bias = call.get(2)
    return made if bias is None else ops.nn.bias_add(made, bias, 1)


def convolved(call: Call, x: Value, w: Value, out_dtype: str | None = None) -> Any:
    """The convolution of a node with the given data and weights."""
    rank = len(x.shape) - 2
    if rank not in (1, 2, 3):
        raise Unsupported(f"a convolution of {rank} spatial dimensions")
    strides, dilation = spatial(call, "strides", rank), spatial(call, "dilations", rank)
    extents = [_extent(extent) for extent in w.shape[2:]]
    pads = padding_of(call, [(k - 1) * d + 1 for k, d in zip(extents, dilation)], strides)
    if min(pads) < 0:
        raise Unsupported(f"negative pads {pads}")
    groups = call.attribute("group", 1)
    if rank == 3:
        return ops.nn.conv3d_ncdhw(x, w, strides, pads, dilation, groups, out_dtype)
    if rank == 1 and groups > 1:
        made = _conv2d(_with_height(x), _with_height(w), (1, *strides), (0, pads[0], 0, pads[1]), (1, *dilation), groups,
                       out_dtype)
        return ops.squeeze(made, 2)
    if rank == 1:
        return ops.nn.conv1d(x, w, strides, pads, dilation, "NCW", out_dtype)
    return _conv2d(x, w, strides, pads, dilation, groups, out_dtype)


def _extent(extent: Any) -> int:
    if not isinstance(extent, int):
        raise Unsupported("a window of symbolic extents")
    return extent


def _with_height(value: Value) -> Any:
    return reshaped(value, (*value.shape[:2], 1, *value.shape[2:]))


def _conv2d(x: Value, w: Value, strides: Widths, pads: Widths, dilation: Widths, groups: int, out_dtype: str | None) -> Any:
    made: Value
    if groups == 1:
        made = ops.nn.conv2d(x, w, strides, pads, dilation, "NCHW", out_dtype)
    elif groups == x.shape[1] and isinstance(w.shape[0], int):
        per_channel = reshaped(w, (groups, w.shape[0] // groups, *w.shape[2:]))
        made = ops.nn.depthwise_conv2d_nchw(x, per_channel, strides, pads, dilation, out_dtype)
    else:
        made = ops.nn.group_conv2d_nchw(x, w, strides, pads, dilation, groups, out_dtype)
    return made


def conv_transpose(call: Call) -> Any:
    x, w = call[0], call[1]
    rank, groups = len(x.shape) - 2, call.attribute("group", 1)
    strides, dilation = spatial(call, "strides", rank), spatial(call, "dilations", rank)
    extra = tuple(call.attribute("output_padding", (0,) * rank))
    spans = [(_extent(k) - 1) * d + 1 for k, d in zip(w.shape[2:], dilation)]
    pads, extra = _transposed_padding(call, spans, strides, extra)
    if any(d > 1 for d in dilation):
        w = ops.nn.dilate(w, (1, 1, *dilation))
    made = _transposed(x, w, strides, tuple([max(pad, 0) for pad in pads]), extra, groups)
    if min(pads) < 0:
        before, behind = [[max(-pad, 0) for pad in part] for part in (pads[:rank], pads[rank:])]
        made = ops.nn.pad(made, (0, 0, *before), (0, 0, *behind))
    bias = call.get(2)
    return made if bias is None else ops.nn.bias_add(made, bias, 1)


def _transposed_padding(call: Call, spans: Sequence[int], strides: Widths, extra: Widths) -> tuple[Widths, Widths]:
    rank, wanted, kind = len(spans), call.attribute("output_shape"), call.attribute("auto_pad", "NOTSET")
    if wanted is None and kind in ("NOTSET", "", "VALID"):
        return tuple(call.attribute("pads", (0,) * (2 * rank))) if kind != "VALID" else (0,) * (2 * rank), extra
    extents = call.static_shape(0)[2:]
    wanted = [n * step for n, step in zip(extents, strides)] if wanted is None else list(wanted)[-rank:]
    totals = [(n - 1) * step + more + span - size for n, step, more, span, size in zip(extents, strides, extra, spans, wanted)]
    extra = tuple(more + max(-total, 0) for more, total in zip(extra, totals))
    totals = [max(total, 0) for total in totals]
    small, large = [total // 2 for total in totals], [total - total // 2 for total in totals]
    return ((*small, *large) if kind == "SAME_UPPER" else (*large, *small)), extra


def _transposed(x: Value, w: Value, strides: Widths, pads: Widths, extra: Widths, groups: int) -> Any:
    rank, dtype = len(strides), str(x.dtype)
    made: Value
    if rank == 1 and groups > 1:
        made = ops.nn.group_conv2d_transpose_nchw(_with_height(x), _with_height(w), (1, *strides), (0, pads[0], 0, pads[1]),
                                                  dtype, (0, *extra), groups)
        return ops.squeeze(made, 2)
    if rank == 1:
        made = ops.nn.conv1d_transpose_ncw(x, w, strides, pads, dtype, extra)
    elif rank == 2 and groups > 1:
        made = ops.nn.group_conv2d_transpose_nchw(x, w, strides, pads, dtype, extra, groups)
    elif rank == 2:
        made = ops.nn.conv2d_transpose_nchw(x, w, strides, pads, dtype, extra)
    elif rank == 3 and groups == 1:
        made = ops.nn.conv3d_transpose_ncdhw(x, w, strides, pads, dtype, extra)
    else:
        raise Unsupported(f"a transposed convolution of {rank} spatial dimensions in {groups} groups")
    return made


def deformable(call: Call) -> Any:
    x, w, offset = call[0], call[1], call[2]
    if len(x.shape) != 4 or call.get(4) is not None:
        raise Unsupported("a deformable convolution with a mask, or not of images")
    strides, dilation = spatial(call, "strides", 2), spatial(call, "dilations", 2)
    pads = tuple(call.attribute("pads", (0, 0, 0, 0)))
    made = ops.nn.deformable_conv2d_nchw(x, offset, w, strides, pads, dilation, call.attribute("offset_group", 1),
                                         call.attribute("group", 1))
    bias = call.get(3)
    return made if bias is None else ops.nn.bias_add(made, bias, 1)


OPERATORS: dict[str, Callable[[Call], Any]] = {"Conv": conv, "ConvTranspose": conv_transpose, "DeformConv": deformable}
