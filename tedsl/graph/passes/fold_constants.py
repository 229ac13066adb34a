"""fold_constants: nodes that read constants alone are computed while the graph is compiled."""

from __future__ import annotations

from tedsl.graph.evaluate import run_node
from tedsl.graph.graph import Graph
from tedsl.graph.rewrite import Replacement, rewrite
from tedsl.graph.value import Node, constant

MOST_BYTES = 1 << 16  # of a result; what is larger is computed before the first call, and stands in no text


def fold_constants(graph: Graph, most: int = MOST_BYTES) -> Graph:
    """The graph with results of constants, of at most `most` bytes each, as constants."""

    def change(node: Node) -> Replacement:
        if node.function is not None or not all(value.is_constant for value in node.inputs) or \
                not all(out.spec.is_static and out.spec.bytes <= most for out in node.outputs):
            return None
        arrays = run_node(node, [value.data for value in node.inputs])
        return [constant(array, name=out.name) for array, out in zip(arrays, node.outputs)]

    return rewrite(graph, change)
