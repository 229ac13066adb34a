"""pack_weights: weights that a schedule would copy into panels at every call are packed once."""

from __future__ import annotations

from tedsl.graph.apply import apply, with_arguments
from tedsl.graph.formula import formula_of
from tedsl.graph.graph import Graph
from tedsl.graph.passes.weights import Convolution, Prepared, with_prepared_weights
from tedsl.graph.value import Node, Value, with_values
from topi.schedules.packing import panels_in


def pack_weights(graph: Graph) -> Graph:
    """The graph with constant weights of convolutions as panels, where the schedule for the current target copies them."""
    return with_prepared_weights(graph, _panels)


def _panels(conv: Convolution) -> Prepared | None:
    formula = formula_of(conv.function)
    width = panels_in(list(formula.outputs)).get(formula.inputs[conv.place])
    if width is None:
        return None
    outputs = int(conv.function.inputs[conv.place].shape[0])

    def instead(node: Node, panels: Value) -> Value:
        weights = apply("nn.conv2d_unpack_weights", panels, outputs)
        arguments = {name: with_values(given, {node.inputs[1]: weights}) for name, given in node.arguments.items()}
        return with_arguments(node, arguments).outputs[0]

    return Prepared(lambda weights: apply("nn.conv2d_pack_weights", weights, 1, width), instead)
