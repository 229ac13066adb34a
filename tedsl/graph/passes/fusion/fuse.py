"""fuse: each group of nodes as a graph that a node calls.

    t0 = nn.conv2d(x, w, ...)          def conv2d_relu(p0, p1):
    y = nn.relu(t0)            ──►         ...
                                       y = call(conv2d_relu, x, w)
"""

from __future__ import annotations

from collections.abc import Sequence

from tedsl.graph.apply import call, with_arguments
from tedsl.graph.graph import Graph
from tedsl.graph.passes.functions import Functions
from tedsl.graph.passes.fusion.groups import MOST_NODES, groups_of
from tedsl.graph.rewrite import with_outputs
from tedsl.graph.value import Node, Value, with_values

_LONGEST = 40  # characters of a name


def fuse(graph: Graph, most: int = MOST_NODES) -> Graph:
    """The graph with each group of nodes that one kernel computes replaced by the call of a graph. Equal groups call one.

    A group of one node stays as it is, so that a graph without more is returned itself. most: the nodes that a group may have.
    """
    groups = {group[-1]: group for group in groups_of(graph, most)}
    inside = {node for group in groups.values() if len(group) > 1 for node in group[:-1]}
    functions = Functions()
    replaced: dict[Value, Value] = {}
    for node in graph.nodes:
        if node in inside:
            continue
        if len(groups[node]) == 1:
            arguments = {name: with_values(argument, replaced) for name, argument in node.arguments.items()}
            replaced |= _pairs(node.outputs, with_arguments(node, arguments).outputs)
            continue
        operands, results, function = _function(groups[node], graph)
        made = call(functions.one(function), *[replaced.get(value, value) for value in operands])
        replaced |= _pairs(results, made.outputs)
    return with_outputs(graph, [replaced.get(value, value) for value in graph.outputs])


def _pairs(old: Sequence[Value], new: Sequence[Value]) -> dict[Value, Value]:
    return {one: other for one, other in zip(old, new) if one is not other}


def _function(group: tuple[Node, ...], graph: Graph) -> tuple[list[Value], list[Value], Graph]:
    """What a group reads, which of its results others read, and the graph between the two. Numbers are parts of it."""
    made = {value for node in group for value in node.outputs}
    operands = list(dict.fromkeys([value for node in group for value in node.inputs
                                   if value not in made and not (value.is_constant and value.shape == ())]))
    inner = {value: Value(f"p{at}", value.spec) for at, value in enumerate(operands)}
    for node in group:
        arguments = {name: with_values(argument, inner) for name, argument in node.arguments.items()}
        copied = Node(node.operator, arguments, tuple([out.spec for out in node.outputs]))
        inner |= zip(node.outputs, copied.outputs)
    results = [out for out in group[-1].outputs if out in graph.outputs or graph.users(out)]
    return operands, results, Graph([inner[value] for value in operands], [inner[value] for value in results], _name(group))


def _name(group: tuple[Node, ...]) -> str:
    words = "_".join(dict.fromkeys(node.operator.rpartition(".")[2] for node in group))
    return words if len(words) <= _LONGEST else f"{words[:_LONGEST].rstrip('_')}_and_more"
