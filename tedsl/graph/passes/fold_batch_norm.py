"""fold_batch_norm: batch norms for inference become part of the weights before them, or a factor and a sum.

    nn.batch_norm(nn.conv2d(x, w), ...)    ──►    nn.bias_add(nn.conv2d(x, w * factor), shift)
"""

from __future__ import annotations

from typing import Any

import numpy

from tedsl.graph.apply import apply, with_arguments
from tedsl.graph.graph import Graph
from tedsl.graph.match import Match, Pattern, a_constant, anything, op, optional, replace
from tedsl.graph.value import Node, Value, constant, with_values

_CHANNELS_FIRST = ("nn.conv2d", "nn.conv2d_nchw", "nn.group_conv2d_nchw", "nn.depthwise_conv2d_nchw")
_KEPT = {"layout": (None, "NCHW"), "data_layout": (None, "", "NCHW"), "kernel_layout": (None, "", "OIHW")}


def fold_batch_norm(graph: Graph) -> Graph:
    """The graph without batch norms whose statistics are constants. Those in training stay."""
    statistics = [a_constant(name) for name in ("gamma", "beta", "mean", "var")]
    norm = op("nn.batch_norm", anything("data"), *statistics, training=lambda given: not given)
    return replace(_into_weights(graph, statistics), norm, _as_factor)


def _into_weights(graph: Graph, statistics: list[Pattern]) -> Graph:
    product = op(_CHANNELS_FIRST, anything("x"), a_constant("w"), name="product") | \
        op("nn.dense", anything("x"), a_constant("w"), name="product") | \
        op("nn.dense", anything("x"), a_constant("w"), a_constant("own_bias"), name="product")
    data = optional(product, lambda product: op("nn.bias_add", product, a_constant("bias"), axis=1))
    norm = op("nn.batch_norm", data, *statistics, axis=lambda axis: axis in (None, 1), training=lambda given: not given)
    return replace(graph, norm, _folded, alone=True)


def _folded(found: Match) -> Any:
    product = found["product"].node
    assert product is not None and found.value.node is not None
    if any(name in product.arguments and product.arguments[name] not in kept for name, kept in _KEPT.items()):
        return None
    factor, shift = _factor_and_shift(found.value.node, found)
    weights, biases = found["w"], [found[name].data for name in ("own_bias", "bias") if name in found]
    if not weights.dtype.is_float or weights.dtype != found.value.dtype:  # weights of fewer bits cannot hold the product
        return None
    rows = weights.data.reshape(factor.size, -1)
    scaled = numpy.empty_like(rows)
    numpy.multiply(rows, factor[:, None], out=scaled, dtype="float64", casting="unsafe")  # rounded once, without whole copies
    new = constant(scaled.reshape(weights.data.shape), name=weights.name)
    bias = constant(shift + factor * sum(biases), str(weights.dtype), name=f"{weights.name}_bias")
    if product.operator == "nn.dense":
        made = apply("nn.dense", found["x"], new, bias, **product.attributes)
    else:
        arguments = {name: with_values(given, {weights: new}) for name, given in product.arguments.items()}
        made = apply("nn.bias_add", with_arguments(product, arguments).outputs[0], bias)
    return [made, found["mean"], found["var"]] if made.spec == found.value.spec else None


def _as_factor(found: Match) -> Any:
    """A batch norm of a value that no weights precede: a product and a sum instead of four operations and a root."""
    assert found.value.node is not None
    data = found["data"]
    axis = found.value.node.arguments.get("axis")
    shape = [-1] + [1] * (len(data.shape) - 1 - (1 if axis is None else axis % len(data.shape)))
    factor, shift = [constant(array.reshape(shape), str(data.dtype), name=name)
                     for array, name in zip(_factor_and_shift(found.value.node, found), ("factor", "shift"))]
    made: Value = apply("add", apply("multiply", data, factor), shift)
    return [made, found["mean"], found["var"]] if made.spec == found.value.spec else None


def _factor_and_shift(norm: Node, found: Match) -> tuple[Any, Any]:
    """In float64: what each channel is multiplied with, and what is added, biases before included."""
    gamma, beta, mean, var = [found[name].data.astype("float64") for name in ("gamma", "beta", "mean", "var")]
    epsilon = norm.arguments.get("epsilon")
    factor = 1 / numpy.sqrt(var + (1e-5 if epsilon is None else epsilon))
    factor = factor * gamma if norm.arguments.get("scale") is not False else factor
    return factor, (beta if norm.arguments.get("center") is not False else 0) - mean * factor


