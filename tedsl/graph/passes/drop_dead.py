"""drop_dead: what no output needs. Of graphs that nodes call, results that none reads, and inputs that these alone needed.

The inputs of the graph itself stay: they are how it is called.
"""

from __future__ import annotations

from tedsl.graph.apply import call, with_arguments
from tedsl.graph.graph import Graph
from tedsl.graph.rewrite import with_outputs
from tedsl.graph.value import Node, Value, with_values


def drop_dead(graph: Graph) -> Graph:
    """The graph whose calls give only what is read. Nodes that no output needs are no part of a graph."""
    while True:
        fewer = _without_unread(graph)
        if fewer is graph:
            return graph
        graph = fewer


def _without_unread(graph: Graph) -> Graph:
    replaced: dict[Value, Value] = {}
    for node in graph.nodes:
        arguments = {name: with_values(given, replaced) for name, given in node.arguments.items()}
        read = [at for at, out in enumerate(node.outputs) if graph.users(out) or out in graph.outputs]
        made = _narrowed(with_arguments(node, arguments), read)
        replaced |= {node.outputs[at]: new for at, new in made.items() if node.outputs[at] is not new}
    return with_outputs(graph, [replaced.get(value, value) for value in graph.outputs])


def _narrowed(node: Node, read: list[int]) -> dict[int, Value]:
    """The results of a node that are read, by their places."""
    function = node.function
    if function is None or function.compiler is not None:
        return dict(enumerate(node.outputs))
    outputs = [function.outputs[at] for at in read]
    needed = {value for inner in Graph(function.inputs, outputs).nodes for value in inner.inputs} | set(outputs)
    kept = [at for at, value in enumerate(function.inputs) if value in needed]
    if len(read) == len(function.outputs) and len(kept) == len(function.inputs):
        return dict(enumerate(node.outputs))
    narrow = Graph([function.inputs[at] for at in kept], outputs, function.name)
    return dict(zip(read, call(narrow, *[node.inputs[at] for at in kept], name=node.name).outputs))
