"""pack_weights: weights that a schedule reads in panels are packed once."""

from __future__ import annotations

from typing import Any

from tedsl.graph.apply import apply, with_arguments
from tedsl.graph.formula import formula_of
from tedsl.graph.graph import Graph
from tedsl.graph.passes.weights import Layer, Prepared, with_prepared_weights
from tedsl.graph.value import Node, Value, with_values
from topi.kinds import MatmulOp
from topi.schedules.packing import panels_in


def pack_weights(graph: Graph) -> Graph:
    """The graph with constant weights of convolutions and products as panels, where the schedule for the current target reads
    them so.
    """
    return with_prepared_weights(graph, _panels)


def _panels(layer: Layer) -> Prepared | None:
    formula = formula_of(layer.function)
    panels = panels_in(list(formula.outputs)).get(formula.inputs[layer.place])
    if panels is None:
        return None
    width, group = panels
    info, shape = layer.info, layer.function.inputs[layer.place].shape
    if isinstance(info, MatmulOp):
        layout, turned = "OI" if info.transpose_b else "IO", {} if info.operator == "dense" else {"transpose_b": True}
        results = int(shape[layout.index("O")])
        return Prepared(lambda weights: apply("nn.dense_pack_weights", weights, width, layout, group),
                        lambda node, packed: _with_weights(node, apply("nn.dense_unpack_weights", packed, results), turned))
    layout, outputs = info.kernel_layout, int(shape[info.kernel_layout.index("O")])
    return Prepared(lambda weights: apply("nn.conv2d_pack_weights", weights, 1, width, layout, group),
                    lambda node, packed: _with_weights(node, apply("nn.conv2d_unpack_weights", packed, outputs, group), {}))


def _with_weights(node: Node, weights: Value, changed: dict[str, Any]) -> Value:
    """The result of the node with other weights, and other arguments as in `changed`."""
    arguments = {name: with_values(given, {node.inputs[1]: weights}) for name, given in node.arguments.items()}
    return with_arguments(node, arguments | changed).outputs[0]
