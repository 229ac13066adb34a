"""What nodes, parts and networks have to do, whatever runs them."""

from __future__ import annotations

import math
from collections.abc import Iterable

from tedsl.errors import ArgumentTypeError, type_in_words
from tedsl.graph.formula import alone, formula_of
from tedsl.graph.graph import Graph
from tedsl.graph.network.costs import formulas_of, multiply_adds_of, operations_of
from tedsl.graph.value import Node
from tedsl.record import record


@record
class Costs:
    """flops: operations on elements, a multiply-add counts two. multiply_adds: of convolutions and matrix products, which have
    out * height * width * in/groups * kh * kw, and rows * in * out. parameters: elements of constants. bytes: of the arrays
    that nodes read and write, each once for each node.
    """

    flops: int = 0
    multiply_adds: int = 0
    parameters: int = 0
    bytes: int = 0

    def __add__(self, other: Costs) -> Costs:
        return Costs(self.flops + other.flops, self.multiply_adds + other.multiply_adds, self.parameters + other.parameters,
                     self.bytes + other.bytes)


def costs_of(what: Graph | Node | Iterable[Node]) -> Costs:
    """The costs of a graph, a node, or nodes; a constant that several nodes read counts once among parameters.

    Raises ArgumentTypeError for anything else.
    """
    if isinstance(what, Graph):
        what = what.nodes
    nodes = [what] if isinstance(what, Node) else list(what)
    if not all(isinstance(node, Node) for node in nodes):
        raise ArgumentTypeError(f"costs_of: it takes a graph or nodes, not {type_in_words(what)}")
    constants = dict.fromkeys([value for node in nodes for value in node.inputs if value.is_constant and value.shape])
    parameters = sum(math.prod(value.data.shape) for value in constants)
    total = Costs(parameters=parameters)
    for node in nodes:
        total += _of_node(node)
    return total


def _of_node(node: Node) -> Costs:
    """All but parameters. An extent that is not known counts as 1."""
    formulas = formulas_of(formula_of(alone(node)).outputs)
    moved = sum(value.spec.bytes for value in (*dict.fromkeys(node.inputs), *node.outputs) if _is_known(value.shape))
    return Costs(sum(map(operations_of, formulas)), sum(map(multiply_adds_of, formulas)), 0, moved)


def _is_known(shape: Iterable[object]) -> bool:
    return all(isinstance(extent, int) for extent in shape)
