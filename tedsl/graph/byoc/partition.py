"""Regions as functions: each becomes a graph with `compiler`, which one node calls.

    region: y = relu(x * w + b)            @compiler("ccompiler")
                                           def ccompiler_0(x): ... constants w and b ... return y
    main:   y = call(ccompiler_0, x)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from graphlib import CycleError, TopologicalSorter

from tedsl.errors import ArgumentTypeError, GraphError, type_in_words
from tedsl.graph.apply import call, with_arguments
from tedsl.graph.byoc.annotate import Annotation, Part, Region
from tedsl.graph.graph import Graph
from tedsl.graph.rewrite import with_outputs
from tedsl.graph.value import Node, Value, with_values

Replaced = dict[Value, Value]


def partition(annotation: Annotation | Graph, symbols: Mapping[str, str] | None = None) -> Graph:
    """The graph in which each region is a call of a function with `compiler`, whose name is its global symbol: the compiler's
    name, or what `symbols` has for it, and a number.

    A function takes each value from outside once, holds its constants, and returns what is read outside of it.
    Raises GraphError if regions need each other in a circle. The same graph if there are no regions.
    """
    if isinstance(annotation, Graph):
        return annotation
    if not isinstance(annotation, Annotation):
        raise ArgumentTypeError(f"partition: it takes what annotate or merge_regions returns, not {type_in_words(annotation)}")
    graph = annotation.graph
    taken = {function.name for function in graph.functions} | {graph.name}
    replaced: Replaced = {}
    for group in _in_order(annotation):
        if isinstance(group, Region):
            name = _symbol((symbols or {}).get(group.compiler, group.compiler), taken)
            replaced |= _calling(graph, group.parts, replaced, name, group.compiler)
        else:
            replaced |= _copied(group, replaced)
    return with_outputs(graph, [replaced.get(value, value) for value in graph.outputs])


def _symbol(prefix: str, taken: set[str]) -> str:
    number = 0
    while f"{prefix}_{number}" in taken:
        number += 1
    taken.add(f"{prefix}_{number}")
    return f"{prefix}_{number}"


def _in_order(annotation: Annotation) -> list[Region | Node]:
    """The regions, and the nodes of none, producers first."""
    group: dict[Node, Region | Node] = {node: node for node in annotation.graph.nodes}
    group |= {node: region for region in annotation.regions for node in region.nodes}
    needs: TopologicalSorter[Region | Node] = TopologicalSorter()
    for node in annotation.graph.nodes:
        own = group[node]
        needs.add(own, *[group[value.node] for value in node.inputs if value.node and group[value.node] is not own])
    try:
        return list(needs.static_order())
    except CycleError as error:
        circle = [one for one in error.args[1] if isinstance(one, Region)]
        raise GraphError(f"partition: a region of {circle[0].compiler} ({circle[0].nodes[0]!r}, ...) needs what is computed of "
                         "its own results outside of it", hint="merge_regions merges where that is no circle") from None


def _calling(graph: Graph, parts: Sequence[Part], replaced: Replaced, name: str, compiler: str | None) -> Replaced:
    """The results of parts that are read elsewhere, each with the result of a call of a function that computes it."""
    nodes = [node for part in parts for node in part.nodes]
    inside = set(nodes)
    read = dict.fromkeys([value for node in nodes for value in node.inputs
                          if not value.is_constant and value.node not in inside])
    returned = [out for node in nodes for out in node.outputs
                if out in graph.outputs or any(reader not in inside for reader in graph.users(out))]
    inner: Replaced = {value: Value(value.name, value.spec) for value in read}
    arguments = list(inner.values())
    for part in parts:
        if part.composite:
            inner |= _calling(graph, [Part(part.nodes)], inner, part.composite, None)
            continue
        for node in part.nodes:
            inner |= _copied(node, inner)
    function = Graph(arguments, [inner[value] for value in returned], name, compiler)
    return dict(zip(returned, call(function, *[replaced.get(value, value) for value in read]).outputs))


def _copied(node: Node, replaced: Replaced) -> Replaced:
    """The results of a node, each with that of the node whose inputs are replaced."""
    present = with_arguments(node, {name: with_values(argument, replaced) for name, argument in node.arguments.items()})
    return dict(zip(node.outputs, present.outputs))
