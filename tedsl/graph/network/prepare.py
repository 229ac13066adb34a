"""What a network computes of constants alone: once, before the first call, and not at every call.

    def main(x):                                       the graph that prepares      the graph that runs
        w = constant("w")                              w = constant("w")            packed = constant("packed")
        packed = nn.conv2d_..._weight_transform(w)     packed = ...(w)              y = conv(x, packed)
        y = conv(x, packed)                            return packed                return y
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy

from tedsl.graph.apply import with_arguments
from tedsl.graph.evaluate import evaluate
from tedsl.graph.graph import Graph
from tedsl.graph.network.arrays import dtype_of, shape_of
from tedsl.graph.rewrite import with_outputs
from tedsl.graph.value import Node, Value, constant, with_values
from tedsl.record import record


@record(eq=False)
class Split:
    """A graph without what it computes of constants. before: the graph of these, without inputs, None if there are none.

    arrays: where the results of `before` belong; they are the elements of constants of `graph`.
    """

    graph: Graph
    before: Graph | None
    arrays: tuple[numpy.ndarray[Any, Any], ...]


def split_constants(graph: Graph) -> Split:
    """The graph and what has to be computed before its first call."""
    fixed: set[Node] = set()
    for node in graph.nodes:
        if all(value.is_constant or value.node in fixed for value in node.inputs) and \
                all(out.spec.is_static for out in node.outputs):
            fixed.add(node)
    needed = dict.fromkeys([value for node in graph.nodes if node not in fixed for value in node.inputs if value.node in fixed])
    needed |= dict.fromkeys([value for value in graph.outputs if value.node in fixed])
    if not needed:
        return Split(graph, None, ())
    numbers = [value for value in needed if value.shape == ()]  # parts of kernels, which are made before `before` runs
    known = dict(zip(numbers, evaluate(Graph((), numbers)))) if numbers else {}
    arrays = {value: numpy.empty(shape_of(value), dtype_of(value)) for value in needed if value not in known}
    made = {value: constant(array, name=value.name) for value, array in (known | arrays).items()}
    before = Graph((), tuple(arrays), f"{graph.name}_constants") if arrays else None
    return Split(_with_constants(graph, fixed, made), before, tuple(arrays.values()))


def _with_constants(graph: Graph, fixed: set[Node], made: Mapping[Value, Value]) -> Graph:
    """The graph with results of fixed nodes replaced by constants."""
    replaced = dict(made)
    for node in graph.nodes:
        if node not in fixed:
            present = with_arguments(node, {name: with_values(argument, replaced) for name, argument in node.arguments.items()})
            replaced |= {old: new for old, new in zip(node.outputs, present.outputs) if old is not new}
    return with_outputs(graph, [replaced.get(value, value) for value in graph.outputs])
