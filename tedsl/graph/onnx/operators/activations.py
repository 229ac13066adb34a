"""Activation functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy

from tedsl.graph.onnx.call import Call
from tedsl.graph.onnx.operators.elementwise import number
from tedsl.graph.trace import ops
from tedsl.graph.value import Value


def leaky_relu(call: Call) -> Any:
    return ops.nn.leaky_relu(call[0], call.attribute("alpha", 0.01))


def p_relu(call: Call) -> Any:
    x, slope = call[0], call[1]
    return ops.where(ops.less(x, number(0, x)), ops.multiply(x, slope), x)


def elu(call: Call) -> Any:
    return _negative(call[0], _grown(call[0], call.attribute("alpha", 1.0)))


def selu(call: Call) -> Any:
    x = call[0]
    alpha, gamma = call.attribute("alpha", 1.67326319217681884765625), call.attribute("gamma", 1.05070102214813232421875)
    return ops.multiply(_negative(x, _grown(x, alpha)), number(gamma, x))


def celu(call: Call) -> Any:
    x, alpha = call[0], call.attribute("alpha", 1.0)
    return _negative(x, _grown(ops.divide(x, number(alpha, x)), alpha))


def _grown(x: Value, alpha: float) -> Any:
    """alpha * (exp(x) - 1)"""
    return ops.multiply(ops.subtract(ops.exp(x), number(1, x)), number(alpha, x))


def _negative(x: Value, below: Value) -> Any:
    """x where it is positive, else `below`."""
    return ops.where(ops.less(x, number(0, x)), below, x)


def thresholded_relu(call: Call) -> Any:
    x = call[0]
    return ops.where(ops.greater(x, number(call.attribute("alpha", 1.0), x)), x, number(0, x))


def hard_sigmoid(call: Call) -> Any:
    x = call[0]
    return _line(x, call.attribute("alpha", 0.2), call.attribute("beta", 0.5))


def hard_swish(call: Call) -> Any:
    return ops.multiply(call[0], _line(call[0], 1 / 6, 0.5))


def _line(x: Value, alpha: float, beta: float) -> Any:
    """alpha * x + beta, from 0 to 1."""
    return ops.clip(ops.add(ops.multiply(x, number(alpha, x)), number(beta, x)), 0.0, 1.0)


def softplus(call: Call) -> Any:
    """max(x, 0) + log(1 + exp(-|x|)), which does not overflow."""
    x = call[0]
    rest = ops.log(ops.add(ops.exp(ops.negative(ops.abs(x))), number(1, x)))
    return ops.add(ops.maximum(x, number(0, x)), rest)


def softsign(call: Call) -> Any:
    x = call[0]
    return ops.divide(x, ops.add(ops.abs(x), number(1, x)))


def mish(call: Call) -> Any:
    return ops.multiply(call[0], ops.tanh(softplus(call)))


def swish(call: Call) -> Any:
    x = call[0]
    return ops.multiply(x, ops.sigmoid(ops.multiply(x, number(call.attribute("alpha", 1.0), x))))


def gelu(call: Call) -> Any:
    x = call[0]
    if call.attribute("approximate", "none") == "tanh":
        cubed = ops.multiply(ops.multiply(ops.multiply(x, x), x), number(0.044715, x))
        inner = ops.tanh(ops.multiply(ops.add(x, cubed), number(numpy.sqrt(2 / numpy.pi), x)))
    else:
        inner = ops.erf(ops.multiply(x, number(numpy.sqrt(0.5), x)))
    return ops.multiply(ops.multiply(x, number(0.5, x)), ops.add(inner, number(1, x)))


def shrink(call: Call) -> Any:
    x, bias, limit = call[0], call.attribute("bias", 0.0), call.attribute("lambd", 0.5)
    above = ops.where(ops.greater(x, number(limit, x)), ops.subtract(x, number(bias, x)), number(0, x))
    return ops.where(ops.less(x, number(-limit, x)), ops.add(x, number(bias, x)), above)


def _along_axis(operator: Callable[[Value, int], Any]) -> Callable[[Call], Any]:
    """An operator along one axis; before operator set 13 it is that of all dimensions from the axis on."""
    def translate(call: Call) -> Any:
        x = call[0]
        if call.opset >= 13:
            return operator(x, call.attribute("axis", -1))
        axis = call.attribute("axis", 1) % len(x.shape)
        if axis == len(x.shape) - 1:
            return operator(x, axis)
        rows = ops.reshape(x, (*x.shape[:axis], -1))
        return ops.reshape(operator(rows, -1), x.shape)
    return translate


def _hardmax(x: Value, axis: int) -> Any:
    axis %= len(x.shape)
    places = ops.argmax(x, axis)
    return ops.one_hot(places, 1, 0, x.shape[axis], axis, str(x.dtype))


OPERATORS: dict[str, Callable[[Call], Any]] = {
    "LeakyRelu": leaky_relu, "PRelu": p_relu, "Elu": elu, "Selu": selu, "Celu": celu, "ThresholdedRelu": thresholded_relu,
    "HardSigmoid": hard_sigmoid, "HardSwish": hard_swish, "Softplus": softplus, "Softsign": softsign, "Mish": mish,
    "Swish": swish, "Gelu": gelu, "Shrink": shrink, "Softmax": _along_axis(lambda x, axis: ops.nn.softmax(x, axis)),
    "LogSoftmax": _along_axis(lambda x, axis: ops.nn.log_softmax(x, axis)), "Hardmax": _along_axis(_hardmax),
}
