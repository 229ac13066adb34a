"""Dequantized values: what is computed with them is computed with the integers that they stand for.

values.py: how such values look. products.py: products, behind which scales and zero points move. moved.py: operators that only
move elements, or choose the largest. rounding.py: values that are quantized again.
"""

from __future__ import annotations

from tedsl.graph.graph import Graph
from tedsl.graph.passes.quantized.moved import moved
from tedsl.graph.passes.quantized.products import product
from tedsl.graph.passes.quantized.rounding import same, without_divisions
from tedsl.graph.passes.quantized.values import dequantized
from tedsl.graph.rewrite import rewrite
from tedsl.graph.value import Node, Value, constant

__all__ = ["quantized"]


def quantized(graph: Graph) -> Graph:
    """The graph with dequantized values as integers where that takes less time; the same object if there are none."""
    return without_divisions(rewrite(rewrite(graph, _changed), _constant))


def _changed(node: Node) -> Value | None:
    return next((found for change in (product, moved, same) if (found := change(node)) is not None), None)


def _constant(node: Node) -> Value | None:
    """The numbers that constant integers stand for: weights of products that stay those of float32, which other passes know."""
    found = dequantized(node.outputs[0]) if node.operator == "multiply" else None
    numbers = None if found is None else found.numbers
    return None if numbers is None else constant(numbers, name=node.outputs[0].name)
