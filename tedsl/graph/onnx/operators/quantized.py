"""Quantised operators: integers q that stand for (q - zero point) * scale."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy

from tedsl.graph.onnx.call import Call
from tedsl.graph.onnx.operators.convolution import convolved
from tedsl.graph.onnx.operators.elementwise import cast, dtype_named
from tedsl.graph.onnx.operators.products import centred, product
from tedsl.graph.onnx.operators.shapes import to_shape
from tedsl.graph.onnx.refusal import Unsupported
from tedsl.graph.trace import ops
from tedsl.graph.value import Value


def quantize(call: Call) -> Any:
    x, scale, zero = call[0], call[1], call.get(2)
    dtype = str(zero.dtype) if zero is not None else dtype_named(call.attribute("output_dtype", 0) or 2)
    scaled = ops.divide(cast(x, "float32"), cast(_placed(call, x, scale), "float32"))
    return rounded(scaled, None if zero is None else _placed(call, x, zero), dtype)


def rounded(x: Value, zero: Value | None, dtype: str) -> Any:
    """The nearest whole numbers, halves to even, plus the zero point, within the limits of `dtype`."""
    if dtype not in ("int8", "uint8", "int16", "uint16"):
        raise Unsupported(f"quantised values of {dtype}")
    limits = numpy.iinfo(dtype)
    whole = ops.nearbyint(x)
    whole = whole if zero is None else ops.add(whole, cast(zero, "float32"))
    return cast(ops.clip(whole, float(limits.min), float(limits.max)), dtype)


def dequantize(call: Call) -> Any:
    x, zero = call[0], call.get(2)
    scale = _placed(call, x, call[1])
    target = call.attribute("output_dtype", 0)
    dtype = dtype_named(target) if target else str(scale.dtype)
    return cast(dequantized(x, scale, None if zero is None else _placed(call, x, zero)), dtype)


def dequantized(x: Value, scale: Value, zero: Value | None) -> Any:
    """The numbers of float32 that integers stand for. scale, zero: of one element, or of shapes that broadcast."""
    whole = x if zero is None else ops.subtract(cast(x, "int32"), cast(scalar(zero), "int32"))
    return ops.multiply(cast(whole, "float32"), cast(scalar(scale), "float32"))


def _placed(call: Call, x: Value, value: Value) -> Any:
    """Scales or zero points in a shape that broadcasts: one, one for each index of an axis, or one for each block of it."""
    if not value.shape or (value.shape == (1,) and len(x.shape) != 1):
        return to_shape(value, ())
    axis, block = call.attribute("axis", 1), call.attribute("block_size", 0)
    axis = axis + len(x.shape) if axis < 0 else axis
    if len(value.shape) == 1 and not (block and len(x.shape) == 1):
        return to_shape(value, [value.shape[0] if d == axis else 1 for d in range(len(x.shape))])
    if not block:
        raise Unsupported(f"scales of {value.spec} without block_size")
    repeated = ops.repeat(value, block, axis)
    if repeated.shape[axis] != x.shape[axis]:
        repeated = ops.strided_slice(repeated, [0], [x.shape[axis]], axes=[axis])
    return repeated


def qlinear_conv(call: Call) -> Any:
    x, x_scale, x_zero, w, w_scale, w_zero, y_scale, y_zero = [call[at] for at in range(8)]
    total = _convolution(call, x, x_zero, w, w_zero)
    bias = call.get(8)
    total = total if bias is None else ops.nn.bias_add(total, bias, 1)
    rank = len(x.shape)
    scale = ops.divide(ops.multiply(scalar(x_scale), _by_channel(w_scale, 1, rank)), scalar(y_scale))
    return rounded(ops.multiply(cast(total, "float32"), scale), scalar(y_zero), str(y_zero.dtype))


def conv_integer(call: Call) -> Any:
    return _convolution(call, call[0], call.get(2), call[1], call.get(3))


def _convolution(call: Call, x: Value, x_zero: Value | None, w: Value, w_zero: Value | None) -> Any:
    if w_zero is not None and w_zero.shape and w_zero.shape != (1,):
        w_zero = _by_channel(w_zero, 0, len(w.shape))
    x, w = centred(x, x_zero), centred(w, w_zero)
    if x.dtype != w.dtype:
        x, w = cast(x, "int32"), cast(w, "int32")
    return convolved(call, x, w, "int32")


def scalar(value: Value) -> Any:
    """A scale or a zero point of one element without dimensions."""
    return to_shape(value, ()) if value.shape == (1,) else value


def _by_channel(value: Value, axis: int, rank: int) -> Any:
    if value.shape in ((), (1,)):
        return to_shape(value, ())
    return to_shape(value, [value.shape[0] if d == axis else 1 for d in range(rank)])


def qlinear_matmul(call: Call) -> Any:
    a, a_scale, a_zero, b, b_scale, b_zero, y_scale, y_zero = [call[at] for at in range(8)]
    a, b = centred(a, a_zero, row=True), centred(b, b_zero)
    if a.dtype != b.dtype:
        a, b = cast(a, "int32"), cast(b, "int32")
    total = cast(product(a, b, "int32"), "float32")
    rows = to_shape(a_scale, (*a_scale.shape, 1)) if len(a_scale.shape) == 1 and a_scale.shape != (1,) else a_scale
    left, right, result = [cast(scalar(one), "float32") for one in (rows, b_scale, y_scale)]
    factor = ops.divide(ops.multiply(left, right), result)
    return rounded(ops.multiply(total, factor), scalar(y_zero), str(y_zero.dtype))


OPERATORS: dict[str, Callable[[Call], Any]] = {
    "QuantizeLinear": quantize, "DequantizeLinear": dequantize, "QLinearConv": qlinear_conv, "ConvInteger": conv_integer,
    "QLinearMatMul": qlinear_matmul,
}
