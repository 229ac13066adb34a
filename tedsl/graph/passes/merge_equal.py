"""merge_equal: nodes that compute the same of the same values are one."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

from tedsl.graph.graph import Graph
from tedsl.graph.rewrite import Replacement, rewrite
from tedsl.graph.value import Node, Value, holds_values, values_of

_SMALL = 1 << 16  # bytes of constants that are compared by their elements; larger ones are the same object or differ


def merge_equal(graph: Graph) -> Graph:
    """The graph with the results of equal nodes replaced by those of the first."""
    known: dict[Hashable, Node] = {}

    def change(node: Node) -> Replacement:
        first = known.setdefault(_key(node), node)
        return None if first is node else first.outputs

    return rewrite(graph, change)


def _key(node: Node) -> Hashable:
    arguments = [(name, tuple(map(_value, values_of(given))) if holds_values(given) else (type(given), str(given)))
                 for name, given in node.arguments.items()]
    return (node.operator, node.function, tuple(arguments))


def _value(value: Value) -> Any:
    if value.is_constant and value.spec.bytes <= _SMALL:
        return (value.spec, value.data.tobytes())
    return value
