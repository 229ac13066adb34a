"""Normalization and dropout."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tedsl.graph.onnx.call import Call
from tedsl.graph.onnx.operators.elementwise import cast, number
from tedsl.graph.onnx.operators.reductions import mean_over
from tedsl.graph.onnx.refusal import Unsupported
from tedsl.graph.trace import ops


def batch_normalization(call: Call) -> Any:
    x, scale, bias, mean, variance = [call[at] for at in range(5)]
    epsilon, momentum = call.attribute("epsilon", 1e-5), call.attribute("momentum", 0.9)
    training = bool(call.attribute("training_mode", 0))
    if call.opset < 9 and call.attribute("spatial", 1) == 0:
        raise Unsupported("statistics for each element (spatial=0)")
    if not training:
        if call.opset >= 14 and call.results > 1:
            raise Unsupported("statistics as results outside of training")
        scale, bias, mean, variance = [cast(one, str(x.dtype)) for one in (scale, bias, mean, variance)]
        return ops.nn.batch_norm(x, scale, bias, mean, variance, 1, epsilon)[:1]
    made = ops.nn.batch_norm(x, scale, bias, mean, variance, 1, epsilon, training=True, momentum=1 - momentum)
    return made[:call.results]


def layer_normalization(call: Call) -> Any:
    x, axis = call[0], call.attribute("axis", -1)
    if call.results > 1:
        return None
    axes = tuple(range(axis % len(x.shape), len(x.shape)))
    shape = tuple(x.shape[d] for d in axes)
    gamma, beta = [None if one is None else one if one.shape == shape else ops.broadcast_to(one, shape)
                   for one in (call[1], call.get(2))]
    return ops.nn.layer_norm(x, gamma, beta, axes, call.attribute("epsilon", 1e-5))


def instance_normalization(call: Call) -> Any:
    x, scale, bias = call[0], call[1], call[2]
    axes = tuple(range(2, len(x.shape)))
    centred = ops.subtract(x, mean_over(x, axes))
    variance = mean_over(ops.multiply(centred, centred), axes)
    normal = ops.divide(centred, ops.sqrt(ops.add(variance, number(call.attribute("epsilon", 1e-5), x))))
    scale, bias = [ops.reshape(one, (1, -1, *[1] * len(axes))) for one in (scale, bias)]
    return ops.add(ops.multiply(normal, scale), bias)


def lrn(call: Call) -> Any:
    return ops.nn.lrn(call[0], call.attribute("size"), 1, call.attribute("alpha", 0.0001), call.attribute("beta", 0.75),
                      call.attribute("bias", 1.0))


def lp_normalization(call: Call) -> Any:
    x, axis = call[0], call.attribute("axis", -1)
    if call.attribute("p", 2) == 1:
        norm = ops.sum(ops.abs(x), axis, True)
    else:
        norm = ops.sqrt(ops.sum(ops.multiply(x, x), axis, True))
    zero = ops.equal(norm, number(0, x))
    return ops.where(zero, number(0, x), ops.divide(x, norm))


def dropout(call: Call) -> Any:
    x = call[0]
    if call.opset >= 12 and call.get(2) is not None and call.number(2, False) and call.number(1, 0.5) != 0:
        raise Unsupported("random numbers (training_mode is true)")
    mask = [ops.full(x.shape, "bool", 1)] if call.results > 1 else []
    return [x, *mask]


OPERATORS: dict[str, Callable[[Call], Any]] = {
    "BatchNormalization": batch_normalization, "LayerNormalization": layer_normalization,
    "InstanceNormalization": instance_normalization, "LRN": lrn, "LpNormalization": lp_normalization, "Dropout": dropout,
}
