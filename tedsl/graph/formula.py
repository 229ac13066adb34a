"""Nodes and graphs as formulas: the tensors of te that they compute, of which kernels and the shapes of results are made."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tedsl import te
from tedsl.errors import GraphError, TedslError
from tedsl.graph.graph import Graph
from tedsl.graph.operators import operator_named
from tedsl.graph.text.printer import text
from tedsl.graph.value import Node, Spec, Value, values_of, with_values
from tedsl.record import record


@record(eq=False)
class GraphFormula:
    """A graph as tensors. operands: the values that `inputs` stand for: the inputs of the graph, then its constants."""

    operands: tuple[Value, ...]
    inputs: tuple[te.Tensor, ...]
    outputs: tuple[te.Tensor, ...]


def formula_of(graph: Graph) -> GraphFormula:
    """The formula of a graph, the graphs that it calls included. Numbers (constants without dimensions) become parts of it."""
    known: dict[Value, te.Tensor] = {}
    operands = [*graph.inputs, *[value for value in _constants(graph) if not _is_number(value)]]
    for value in operands:
        known[value] = te.placeholder(value.shape, value.dtype, name=value.name)
    outputs = _tensors(graph, known)
    return GraphFormula(tuple(operands), tuple(known[value] for value in operands), tuple(outputs))


def alone(node: Node) -> Graph:
    """The graph of this node alone: what it reads are inputs, numbers excepted; a value that it reads twice is one input."""
    fresh = {value: Value(value.name, value.spec) for value in node.inputs if not _is_number(value)}
    arguments = {name: with_values(argument, fresh) for name, argument in node.arguments.items()}
    only = Node(node.operator, arguments, tuple(out.spec for out in node.outputs), node.name, node.function)
    return Graph(list(fresh.values()), only.outputs, node.operator.rpartition(".")[2])


class NodeKey:
    """A node, compared by its text: equal nodes are looked at once. graph: the node alone."""

    def __init__(self, node: Node) -> None:
        self.graph = alone(node)
        self.text = text(self.graph)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, NodeKey) and other.text == self.text

    def __hash__(self) -> int:
        return hash(self.text)


def _constants(graph: Graph) -> list[Value]:
    found = dict.fromkeys(graph.constants)
    for node in graph.nodes:
        if node.function is not None:
            found |= dict.fromkeys(_constants(node.function))
    return list(found)


def _is_number(value: Value) -> bool:
    return value.shape == () and value.is_constant


def _tensors(graph: Graph, known: dict[Value, te.Tensor]) -> list[te.Tensor]:
    """The tensors of the outputs; `known` has those of inputs and constants, and gets those of all results."""
    for node in graph.nodes:
        if node.function is not None:
            inner = dict(known)
            inner |= {value: _as_tensor(given, known) for value, given in zip(node.function.inputs, node.inputs)}
            made = _tensors(node.function, inner)
        else:
            made = called(node.operator, {name: _tensors_in(argument, known) for name, argument in node.arguments.items()})
        known |= zip(node.outputs, made)
    return [_as_tensor(value, known) for value in graph.outputs]


def _tensors_in(argument: Any, known: Mapping[Value, te.Tensor]) -> Any:
    if isinstance(argument, Value):
        return _as_tensor(argument, known)
    if values_of(argument):
        return [_as_tensor(value, known) for value in values_of(argument)]
    return list(argument) if isinstance(argument, tuple) else argument


def _as_tensor(value: Value, known: Mapping[Value, te.Tensor]) -> te.Tensor:
    """The tensor of a value; that of a number is a formula, which schedules inline."""
    if value in known:
        return known[value]
    filled: te.Tensor = te.compute((), lambda: te.const(value.data.item(), str(value.dtype)), name=value.name,
                                   info=te.ElementwiseOp("full"))
    return filled


def called(operator: str, arguments: Mapping[str, Any]) -> list[te.Tensor]:
    """The tensors that an operator gives. Raises GraphError, which names it, for what it refuses."""
    try:
        made = operator_named(operator)(arguments)
    except GraphError:
        raise
    except TedslError as refusal:
        shown = ", ".join(f"{name}={_shown(argument)}" for name, argument in arguments.items())
        raise GraphError(f"{operator}({shown}): {refusal}") from refusal
    if not made or not all(isinstance(tensor, te.Tensor) for tensor in made):
        raise GraphError(f"{operator}: the function returned {made!r}, not tensors of te",
                         hint="it gets tensors, and returns te.compute(...) or a list of such")
    return made


def _shown(argument: Any) -> str:
    if isinstance(argument, te.Tensor):
        return str(Spec(argument.shape, argument.dtype))
    if isinstance(argument, (list, tuple)):
        return f"({', '.join(map(_shown, argument))})"
    return repr(argument) if isinstance(argument, str) else str(argument)


def specs_of(operator: str, arguments: Mapping[str, Any]) -> tuple[Spec, ...]:
    """Shapes and dtypes of what an operator gives: those of its formula."""
    tensors = {value: te.placeholder(value.shape, value.dtype, name=value.name)
               for argument in arguments.values() for value in values_of(argument) if not _is_number(value)}
    made = called(operator, {name: _tensors_in(argument, tensors) for name, argument in arguments.items()})
    return tuple([Spec(tensor.shape, tensor.dtype) for tensor in made])

