"""Products of dequantized values as products of the integers; scales and zero points move behind the sums.

    nn.conv2d((q - z) * s, (w - v) * t)     ──►      (nn.conv2d(q, w - v, out_dtype="int32") - z * sum(w - v)) * (s * t)

q: integers of 8 bits, w: constant ones. The same holds for products of matrices, and for sums of int32 without scales. Products
with scales stay those of float32 on processors that compute these as fast. The zeros of a border are `z` in `q`. Where channels
are no multiple of four, zero weights make them one, for instructions add up four products of bytes. No instruction adds up
products of one channel: depthwise convolutions compute with the integers as float32, in which their sums are exact.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy

from tedsl.graph.apply import apply, made
from tedsl.graph.passes.quantized.values import Whole, dequantized, is_bytes, whole
from tedsl.graph.value import Node, Value, constant
from tedsl.target.current import as_target
from topi.nn.utils import get_pad_tuple

_MOST_TERMS = (2**31 - 1) // (255 * 128)  # whose sums fit 32 bits whatever the bytes are
_MOST_EXACT = 2**24 // (255 * 128)  # terms whose sums float32 holds
_GROUP = 4  # products that instructions add up
_KERNELS = {"NCHW": "OIHW", "NHWC": "HWIO"}  # of the weights, by the layout of the data


def product(node: Node) -> Value | None:
    """The results of a convolution or a product of matrices from integers; None where they stay as they are."""
    if node.operator == "nn.depthwise_conv2d_nchw":
        return _depthwise(node)
    if node.operator not in ("nn.conv2d", "nn.dense", "nn.matmul"):
        return None
    data, weights = node.inputs[:2]
    if str(node.outputs[0].dtype) == "int32":
        left, right = whole(data), whole(weights)
        given = is_bytes(data) and is_bytes(weights)
        return None if left is None or right is None or given else _sums(node, left, right)
    x, w = dequantized(data), dequantized(weights)
    axis = _results_axis(node)
    if x is None or w is None or axis is None or x.scale.data.size != 1 or not as_target(None).has_byte_products:
        return None
    scales = _along(w.scale.data, axis, len(weights.shape))
    if scales is None or not weights.spec.is_static or weights.spec.size // max(weights.shape[axis], 1) > _MOST_TERMS:
        return None
    sums = _sums(node, x.whole, w.whole)
    if sums is None:
        return None
    factor = (x.scale.data.reshape(()) * scales).astype("float32")
    result: Value = apply("multiply", apply("cast", sums, "float32"), _of_results(node, factor))
    bias = node.arguments.get("bias")
    return result if bias is None else apply("add", result, bias)


def _results_axis(node: Node) -> int | None:
    """The dimension of the weights for the results; None for nodes that are not known here."""
    if node.operator == "nn.dense":
        return 0
    if node.operator == "nn.matmul":
        return None if node.arguments.get("transpose_a") else 0 if node.arguments.get("transpose_b") else 1
    layout = _layout(node)
    return None if layout is None else _KERNELS[layout].index("O")


def _layout(conv: Node) -> str | None:
    """The layout of the data of a convolution, that of the weights follows from it; None for others."""
    layout = conv.arguments.get("layout") or "NCHW"
    follows = not {"data_layout", "kernel_layout"} & conv.arguments.keys()
    return layout if layout in _KERNELS and follows and len(conv.inputs) == 2 else None


def _along(array: Any, axis: int, rank: int) -> Any:
    """The numbers of an array that broadcasts with one of `rank` dimensions, if they depend on one dimension alone."""
    shape = (1,) * (rank - array.ndim) + array.shape
    return array.reshape(-1) if all(extent == 1 for at, extent in enumerate(shape) if at != axis) else None


def _of_results(node: Node, array: Any) -> Value:
    """A constant that broadcasts with the results of a node, of one number, or of one for each result."""
    if array.size == 1:
        return constant(array.reshape(()))
    return constant(array.reshape(-1, 1, 1) if node.operator == "nn.conv2d" and _layout(node) == "NCHW" else array)


def _sums(node: Node, x: Whole, w: Whole) -> Value | None:
    """The sums of products of whole numbers, of int32; None for weights that are no constants of int8."""
    axis, weights, point = _results_axis(node), w.array, x.offset
    if axis is None or weights is None or (x.zero is not None and not (x.zero.spec.is_static and x.zero.spec.size == 1)):
        return None
    first, second = list(node.arguments)[:2]
    arguments = {**node.arguments, "out_dtype": "int32", first: x.stored}
    arguments.pop("bias", None)
    if node.operator == "nn.conv2d":
        prepared = _prepared(node, x, weights)
        if prepared is None:
            return None
        changed, weights = prepared
        arguments |= {first: changed[0], "padding": changed[1]}
    sums: Value = made(node.operator, arguments | {second: constant(weights, name=w.stored.name)}).outputs[0]
    if point == 0:
        return sums
    totals = weights.sum(tuple([at for at in range(weights.ndim) if at != axis]), dtype="int32")
    if point is not None:
        shift = _of_results(node, totals * numpy.int32(point))
    else:
        assert x.zero is not None
        zero = apply("reshape", x.zero, ()) if x.zero.shape else x.zero
        shift = apply("multiply", _of_results(node, totals), apply("cast", zero, "int32"))
    result: Value = apply("subtract", sums, shift)
    return result


def _prepared(conv: Node, x: Whole, weights: Any) -> tuple[tuple[Value, Any], Any] | None:
    """The data, with a border of zero points and with channels that are a multiple of four, and the padding that is left; the
    weights for them. None where the border is not known.
    """
    layout = _layout(conv) or ""
    kernel = _KERNELS[layout]
    missing = -weights.shape[kernel.index("I")] % _GROUP
    bordered = _bordered(conv, x, layout, [weights.shape[kernel.index(letter)] for letter in "HW"], missing)
    if missing:
        weights = numpy.pad(weights, [(0, missing if letter == "I" else 0) for letter in kernel])
    return None if bordered is None else (bordered, weights)


def _bordered(conv: Node, x: Whole, layout: str, window: Sequence[int], missing: int = 0) -> tuple[Value, Any] | None:
    """The data with a border of zero points, and with as many channels more as are `missing`; and the padding that is left."""
    padding, dilation = conv.arguments.get("padding") or 0, conv.arguments.get("dilation") or 1
    gaps = dilation if isinstance(dilation, tuple) else (dilation, dilation)
    if isinstance(padding, str) or not all(isinstance(gap, int) for gap in gaps):
        return None
    border = get_pad_tuple(list(padding) if isinstance(padding, tuple) else padding,
                           [(extent - 1) * gap + 1 for extent, gap in zip(window, gaps)])
    if any(border) and x.offset is None:
        return None
    before, after = dict.fromkeys(layout, 0), dict.fromkeys(layout, 0) | {"C": missing}
    if any(border) and x.offset:
        before |= zip("HW", border[:2])
        after |= zip("HW", border[2:])
        padding = 0
    if not any((*before.values(), *after.values())):
        return x.stored, padding
    return apply("nn.pad", x.stored, tuple(before.values()), tuple(after.values()), x.offset or 0), padding


def _depthwise(conv: Node) -> Value | None:
    """A convolution of each channel alone, of NCHW and weights (channels, results of each, height, width)."""
    data, weights = conv.inputs[:2]
    if str(conv.outputs[0].dtype) == "int32":
        left, right = whole(data), whole(weights)
        sums = None if left is None or right is None else _sums_of_channels(conv, left, right)
        return None if sums is None else apply("cast", sums, "int32")
    x, w = dequantized(data), dequantized(weights)
    if x is None or w is None or x.scale.data.size != 1 or w.whole.array is None:
        return None
    channels, results, *window = w.whole.array.shape
    if 0 in (channels, results, *window):
        return None
    each = numpy.broadcast_to(w.scale.data, w.whole.array.shape).reshape(channels * results, -1)
    sums = _sums_of_channels(conv, x.whole, w.whole) if (each == each[:, :1]).all() else None
    factor = (x.scale.data.reshape(()) * each[:, 0]).astype("float32").reshape(-1, 1, 1)
    return None if sums is None else apply("multiply", sums, constant(factor))


def _sums_of_channels(conv: Node, x: Whole, w: Whole) -> Value | None:
    """The sums of products of whole numbers in each channel, of float32; None where that does not hold them, and for weights
    that are no constants of int8.
    """
    weights = w.array
    bordered = None if weights is None or x.offset is None else _bordered(conv, x, "NCHW", weights.shape[2:])
    if bordered is None or math.prod(weights.shape[2:]) > _MOST_EXACT:
        return None
    first, second = list(conv.arguments)[:2]
    changed = {first: apply("cast", bordered[0], "float32"), "padding": bordered[1],
               second: constant(weights.astype("float32"), name=w.stored.name), "out_dtype": "float32"}
    sums: Value = made(conv.operator, {**conv.arguments, **changed}).outputs[0]
    if not x.offset:
        return sums
    shifted: Value = apply("subtract", sums, constant((x.offset * weights.sum((2, 3), dtype="float32")).reshape(-1, 1, 1)))
    return shifted
