"""Calls of operators and of graphs on values: they make nodes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy

from tedsl.errors import GraphError
from tedsl.graph.formula import specs_of
from tedsl.graph.operators import operator_named
from tedsl.graph.value import CALL, Argument, Node, Value, constant, holds_values, values_of

if TYPE_CHECKING:
    from tedsl.graph.graph import Graph


def apply(operator: str, *args: Any, **kwargs: Any) -> Any:
    """The value that `operator` gives for values and attributes; a list of values if it gives several results.

    Arrays of numpy among the arguments become constants. Raises GraphError if there is no such operator, or if it refuses them.
    """
    by_name = {name: _as_value(arg) for name, arg in kwargs.items()}
    bound = operator_named(operator).bound([_as_value(arg) for arg in args], by_name)
    outputs = made(operator, bound).outputs
    return outputs[0] if len(outputs) == 1 else list(outputs)


def _as_value(argument: Any) -> Any:
    if isinstance(argument, numpy.ndarray):
        return constant(argument)
    if isinstance(argument, (list, tuple)) and any(isinstance(part, (Value, numpy.ndarray)) for part in argument):
        return tuple([_as_value(part) for part in argument])
    return argument


def made(operator: str, arguments: Mapping[str, Argument], name: str = "") -> Node:
    """The node of an operator with arguments that are bound; its results have the shapes and dtypes of its formula."""
    return Node(operator, arguments, specs_of(operator, arguments), name)


def call(function: Graph, *operands: Value, name: str = "") -> Node:
    """The node that calls a graph. Raises GraphError unless the operands have the shapes and dtypes of its inputs."""
    return _call(function, operands, name)


def _call(function: Graph, operands: Sequence[Value], name: str) -> Node:
    if len(operands) != len(function.inputs):
        raise GraphError(f"{function.name} takes {len(function.inputs)} values, not {len(operands)}")
    for value, given in zip(function.inputs, operands):
        if given.spec != value.spec:
            raise GraphError(f"{function.name}: its input {value.name} is {value.spec}, and {given.name} is {given.spec}")
    specs = tuple([out.spec for out in function.outputs])
    return Node(CALL, {"operands": tuple(operands)}, specs, name or function.name, function)


def with_arguments(node: Node, arguments: Mapping[str, Argument]) -> Node:
    """The same call with other arguments; the same object if they are the same."""
    same_names = arguments.keys() == node.arguments.keys()
    if same_names and all(arguments[name] is argument for name, argument in node.arguments.items()):
        return node
    if node.function is not None:
        return _call(node.function, [value for argument in arguments.values() for value in values_of(argument)], node.name)
    if same_names and all(map(_alike, node.arguments.values(), arguments.values())):
        return Node(node.operator, arguments, tuple(out.spec for out in node.outputs), node.name)
    return made(node.operator, arguments, node.name)


def _alike(old: Argument, new: Argument) -> bool:
    """Whether a formula has results of the same shapes and dtypes for two arguments; numbers are part of a formula."""
    if not holds_values(old):
        return old is new
    specs = [value.spec for value in values_of(new)]
    return specs == [value.spec for value in values_of(old)] and all(spec.shape for spec in specs)
