"""Operators of the domain com.microsoft, which onnxruntime's tools for quantization write.

They compute in float32 what their integers stand for; products are made of integers by the pass `quantized`. Their inputs and
attributes are those of "Contrib Operator Schemas" in the documentation of onnxruntime.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tedsl.graph.onnx.call import Call
from tedsl.graph.onnx.operators import activations, elementwise, pooling, products, quantized, reductions, slices
from tedsl.graph.onnx.operators.elementwise import cast, number
from tedsl.graph.onnx.operators.shapes import to_shape
from tedsl.graph.onnx.refusal import Unsupported
from tedsl.graph.trace import ops

_OPSET = 17  # of the default domain, whose attributes these operators have
_FLOATS = {**activations.OPERATORS, **elementwise.OPERATORS, **pooling.OPERATORS, **reductions.OPERATORS}


def _real(call: Call, at: int) -> Any:
    """The numbers that inputs `at` (integers), `at + 1` (scale) and `at + 2` (zero point) stand for."""
    return quantized.dequantized(call[at], call[at + 1], call.get(at + 2))


def _whole(call: Call, x: Any, at: int) -> Any:
    """The integers of `x` by inputs `at` (scale) and `at + 1` (zero point), of the dtype of the latter; without it of uint8."""
    zero, scaled = call.get(at + 1), ops.divide(x, quantized.scalar(call[at]))
    return quantized.rounded(scaled, None if zero is None else quantized.scalar(zero),
                             "uint8" if zero is None else str(zero.dtype))


def _plain(call: Call, operator: str, inputs: Sequence[Any]) -> Call:
    """The node as one of an operator of the default domain, on other inputs."""
    if call.attribute("channels_last", 0):
        raise Unsupported("channels_last")
    return Call(operator, _OPSET, inputs, call.attributes, 1, {})


def _of_two(function: Callable[[Any, Any], Any]) -> Callable[[Call], Any]:
    return lambda call: _whole(call, function(_real(call, 0), _real(call, 3)), 6)


def _of_one(operator: str) -> Callable[[Call], Any]:
    return lambda call: _whole(call, _FLOATS[operator](_plain(call, operator, [_real(call, 0)])), 3)


def _concatenated(call: Call) -> Any:
    parts = [_real(call, at) for at in range(2, len(call.inputs), 3)]
    return _whole(call, slices.concat(_plain(call, "Concat", parts)), 0)


def _where(call: Call) -> Any:
    return _whole(call, ops.where(call[0], _real(call, 1), _real(call, 4)), 7)


def _gemm(call: Call) -> Any:
    """alpha * A * B + C, where the scale of C is that of the products; float32 where the result has no scale."""
    weights, scale, zero, bias = call[3], call[4], call.get(5), call.get(6)
    if scale.shape not in ((), (1,)):
        shape = (-1, 1) if call.attribute("transB", 0) else (1, -1)
        scale = to_shape(scale, shape)
        zero = zero if zero is None or zero.shape in ((), (1,)) else to_shape(zero, shape)
    y = products.gemm(_plain(call, "Gemm", [_real(call, 0), quantized.dequantized(weights, scale, zero)]))
    if bias is not None:
        factor = ops.multiply(quantized.scalar(call[1]), quantized.scalar(call[4]))
        factor = ops.multiply(factor, number(call.attribute("alpha", 1.0), factor))
        y = ops.add(y, ops.multiply(cast(bias, "float32"), factor))
    return y if call.get(7) is None else _whole(call, y, 7)


OPERATORS: dict[str, Callable[[Call], Any]] = {
    "QuantizeLinear": quantized.quantize, "DequantizeLinear": quantized.dequantize,
    "QLinearAdd": _of_two(ops.add), "QLinearMul": _of_two(ops.multiply), "QLinearConcat": _concatenated, "QLinearWhere": _where,
    "QGemm": _gemm, "QLinearSigmoid": _of_one("Sigmoid"), "QLinearLeakyRelu": _of_one("LeakyRelu"),
    "QLinearSoftmax": _of_one("Softmax"), "QLinearReduceMean": _of_one("ReduceMean"),
    "QLinearAveragePool": _of_one("AveragePool"), "QLinearGlobalAveragePool": _of_one("GlobalAveragePool"),
}
