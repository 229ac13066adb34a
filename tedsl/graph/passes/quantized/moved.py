"""Operators that give the same for dequantized values and for the integers.

    nn.pool2d((q - z) * s, pool_type="max")     ──►      (nn.pool2d(q, pool_type="max") - z) * s

So do views and transpositions. They read a quarter of the bytes.
"""

from __future__ import annotations

from tedsl.graph.apply import apply, made
from tedsl.graph.passes.quantized.values import dequantized
from tedsl.graph.plan.views import VIEWS
from tedsl.graph.value import Node, Value, constant


def moved(node: Node) -> Value | None:
    """The result of a node that moves elements, or takes the largest, as dequantized integers; None for other nodes."""
    largest = node.operator == "nn.pool2d" and node.arguments.get("pool_type") == "max"
    if not (largest or node.operator in VIEWS or node.operator == "transpose") or len(node.inputs) != 1:
        return None
    x = dequantized(node.inputs[0])
    if x is None or x.whole.offset is None or x.scale.data.size != 1 or not bool((x.scale.data > 0).all()):
        return None
    integers: Value = made(node.operator, {**node.arguments, next(iter(node.arguments)): x.whole.stored}).outputs[0]
    if x.whole.offset:
        integers = apply("subtract", apply("cast", integers, "int32"), constant(x.whole.offset, "int32"))
    result: Value = apply("multiply", apply("cast", integers, "float32"), constant(x.scale.data.reshape(())))
    return result
