"""Calls of operators, and of graphs that nodes call, for another number of images."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tedsl.graph.apply import call, made
from tedsl.graph.graph import Graph
from tedsl.graph.value import Node, Spec, Value, with_values


class OtherNumber:
    """Calls what nodes of `count` images call, with operands of another number."""

    def __init__(self, count: int) -> None:
        self.count = count
        self.functions: dict[tuple[Graph, tuple[Spec, ...]], Graph] = {}

    def call(self, node: Node, operands: Mapping[Value, Value], size: int, name: str = "") -> Node:
        """The call of a node with `operands` of `size` images. Raises GraphError for what the operator refuses."""
        if node.function is not None:
            called = [operands.get(value, value) for value in node.inputs]
            return call(self._function(node.function, [value.spec for value in called], size), *called, name=name)
        arguments: dict[str, Any] = {name: with_values(given, operands) for name, given in node.arguments.items()}
        shape = arguments.get("newshape")
        if node.operator == "reshape" and isinstance(shape, tuple) and shape[:1] == (self.count,) and \
                arguments["a"].spec != node.inputs[0].spec:
            arguments["newshape"] = (size, *shape[1:])
        return made(node.operator, arguments, name)

    def _function(self, function: Graph, specs: Sequence[Spec], size: int) -> Graph:
        """A graph that nodes call, for inputs of other shapes."""
        if all(value.spec == spec for value, spec in zip(function.inputs, specs)):
            return function
        key = function, tuple(specs)
        if key not in self.functions:
            replaced = {value: Value(value.name, spec) for value, spec in zip(function.inputs, specs)}
            inputs = list(replaced.values())
            for node in function.nodes:
                replaced |= zip(node.outputs, self.call(node, replaced, size, node.name).outputs)
            self.functions[key] = Graph(inputs, [replaced.get(value, value) for value in function.outputs], function.name,
                                        function.compiler)
        return self.functions[key]
