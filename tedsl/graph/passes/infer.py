"""infer: shapes and dtypes of all values, from those of the inputs."""

from __future__ import annotations

from typing import Any

from tedsl.errors import ArgumentError, GraphError
from tedsl.graph.formula import specs_of
from tedsl.graph.graph import Graph
from tedsl.graph.rewrite import with_inputs
from tedsl.graph.value import Spec


def infer(graph: Graph, **specs: Any) -> Graph:
    """The graph for other shapes, or shapes and dtypes (`Spec`), of the inputs of these names; the others stay.

    infer(g, image=(8, 3, 224, 224)); infer(g, image=Spec((te.var("n"), 3, 224, 224))). Without specs: the graph itself.
    Raises GraphError where values have other shapes or dtypes than their operators give.
    """
    names = [value.name for value in graph.inputs]
    strangers = [name for name in specs if name not in names]
    if strangers:
        raise ArgumentError(f"infer: {graph.name} has no input {strangers[0]}", hint=f"its inputs: {', '.join(names)}")
    given = [_as_spec(specs[value.name], value.spec) if value.name in specs else value.spec for value in graph.inputs]
    found = with_inputs(graph, given)
    for node in found.nodes:
        outputs = specs_of(node.operator, node.arguments) if node.function is None else \
            tuple([out.spec for out in infer(node.function).outputs])
        if outputs != tuple([out.spec for out in node.outputs]):
            raise GraphError(f"{node!r} gives {', '.join(map(str, outputs))}")
    return found


def _as_spec(given: Any, old: Spec) -> Spec:
    return given if isinstance(given, Spec) else Spec(given, old.dtype)
