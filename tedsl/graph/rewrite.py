"""Graphs made of other graphs: nodes replaced, inputs of other shapes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tedsl.errors import ArgumentTypeError, GraphError, type_in_words
from tedsl.graph.apply import with_arguments
from tedsl.graph.dimensions import Dimension, with_extents
from tedsl.graph.graph import Graph
from tedsl.graph.value import Node, Spec, Value, with_values
from tedsl.ir.expr import Expr, Var

Replacement = Value | Sequence[Value] | None


def rewrite(graph: Graph, change: Callable[[Node], Replacement]) -> Graph:
    """The graph with the results of each node replaced by what `change` returns: values, or None to keep the node.

    change sees the nodes producers first, each with what its inputs have become. The same object if nothing changes.
    Raises GraphError if a replacement has another shape or dtype.
    """
    replaced: dict[Value, Value] = {}
    for node in graph.nodes:
        present = with_arguments(node, {name: with_values(argument, replaced) for name, argument in node.arguments.items()})
        given = change(present)
        results = present.outputs if given is None else (given,) if isinstance(given, Value) else tuple(given)
        if given is not None:
            _check(present, results)
        replaced |= {old: new for old, new in zip(node.outputs, results) if old is not new}
    return with_outputs(graph, [replaced.get(value, value) for value in graph.outputs])


def _check(node: Node, results: tuple[Any, ...]) -> None:
    strangers = [value for value in results if not isinstance(value, Value)]
    if strangers:
        raise ArgumentTypeError(f"rewrite: {node!r} is replaced by {type_in_words(strangers[0])}, not by values")
    if [value.spec for value in results] != [out.spec for out in node.outputs]:
        raise GraphError(f"rewrite: {node!r} is replaced by values of other shapes or dtypes: "
                         f"{', '.join(str(value.spec) for value in results)}", hint="a replacement computes the same values")


def with_outputs(graph: Graph, outputs: Sequence[Value]) -> Graph:
    """The graph with other outputs; the same object if they are the same."""
    same = len(outputs) == len(graph.outputs) and all(new is old for new, old in zip(outputs, graph.outputs))
    return graph if same else Graph(graph.inputs, outputs, graph.name, graph.compiler)


def with_inputs(graph: Graph, specs: Sequence[Spec]) -> Graph:
    """The graph for inputs of other shapes and dtypes; variables in the shapes, and in attributes, get the extents given.

    Raises GraphError if a shape does not fit: another number of dimensions, two extents for one variable, or a shape that an
    operator refuses.
    """
    return _with_inputs(graph, specs, {})


def _with_inputs(graph: Graph, specs: Sequence[Spec], known: Mapping[Var, Dimension]) -> Graph:
    """known: extents of variables of the graph that calls this one, whose inputs may be of n * 2, and not say what n is."""
    if len(specs) != len(graph.inputs):
        raise GraphError(f"{graph.name} takes {len(graph.inputs)} values, not {len(specs)}")
    if not known and all(value.spec == spec for value, spec in zip(graph.inputs, specs)):
        return graph
    extents: dict[Var, Dimension] = {}
    for value, spec in zip(graph.inputs, specs):
        _bind(graph, value, spec, extents)
    extents = {**known, **extents}
    replaced = {value: Value(value.name, spec) for value, spec in zip(graph.inputs, specs)}
    inputs = [replaced[value] for value in graph.inputs]
    for node in graph.nodes:
        arguments = {name: _with_extents(with_values(argument, replaced), extents) for name, argument in node.arguments.items()}
        if node.function is None:
            present = with_arguments(node, arguments)
        else:
            operands = [replaced.get(value, value) for value in node.inputs]
            function = _with_inputs(node.function, [value.spec for value in operands], extents)
            present = Node(node.operator, arguments, tuple(out.spec for out in function.outputs), node.name, function)
        replaced |= zip(node.outputs, present.outputs)
    return Graph(inputs, [replaced.get(value, value) for value in graph.outputs], graph.name, graph.compiler)


def _bind(graph: Graph, value: Value, spec: Spec, extents: dict[Var, Dimension]) -> None:
    if len(spec.shape) != len(value.shape):
        raise GraphError(f"{graph.name}: its input {value.name} is {value.spec}, of {len(value.shape)} dimensions, "
                         f"and {spec} has {len(spec.shape)}")
    for extent, given in zip(value.shape, spec.shape):
        if isinstance(extent, Var):
            known = extents.setdefault(extent, given)
            if known is not given and known != given:
                raise GraphError(f"{graph.name}: {extent.name} is {known} and {given} (input {value.name}: {value.spec})")


def _with_extents(argument: Any, extents: Mapping[Var, Dimension]) -> Any:
    if isinstance(argument, Expr):
        return with_extents(argument, extents)
    if isinstance(argument, tuple) and argument and not isinstance(argument[0], Value):
        parts = tuple([_with_extents(part, extents) for part in argument])
        return argument if all(new is old for new, old in zip(parts, argument)) else parts
    return argument
