"""Nodes that compute nothing: their results stand in the memory of what they read, or what they read in that of the result.

    whole   reshape, squeeze, ...               the result is the operand under another shape
    parts   split along the first axis          the results are parts of the operand
    join    concatenate along the first axis    each operand is computed where it stands in the result

Parts and operands of a join begin at cache lines of the whole, as arrays in an arena do. Parts that the caller gets, and joins
of what stands elsewhere (inputs, constants, outputs, parts, what another join reads) are steps that copy.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence

from tedsl.graph.graph import Graph
from tedsl.graph.plan.offsets import ALIGNMENT
from tedsl.graph.value import Node, Value

# Operators whose result has the elements of the only operand in the same order.
VIEWS = frozenset(("reshape", "squeeze", "expand_dims", "nn.flatten", "nn.batch_flatten"))


def is_view(node: Node) -> bool:
    """Whether a node only gives its operand another shape."""
    if node.function is not None:
        inside = node.function
        return (inside.compiler is None and len(inside.inputs) == len(inside.outputs) == 1 and not inside.constants
                and all(map(is_view, inside.nodes)))
    return node.operator in VIEWS and len(node.inputs) == len(node.outputs) == 1 and \
        node.inputs[0].dtype is node.outputs[0].dtype


def views_of(graph: Graph) -> frozenset[Node]:
    """The nodes of a graph that are no steps."""
    return frozenset(_Roots(graph).views)


def is_join(node: Node) -> bool:
    """Whether a node concatenates along the first axis."""
    return node.operator == "concatenate" and _is_first_axis(node, node.outputs[0])


def begins_of(parts: Sequence[Value]) -> Mapping[Value, int]:
    """The bytes of the whole at which its parts begin, which stand one after the other."""
    return dict(zip(parts, itertools.accumulate([part.spec.bytes for part in parts[:-1]], initial=0)))


class _Roots:
    """Goes through a graph. views: the nodes that are no steps; root: the value with whose memory that of another begins."""

    def __init__(self, graph: Graph) -> None:
        self.views: set[Node] = set()
        self.root: dict[Value, Value] = {}
        self.taken = self._returned(graph)  # values that stand where no join can have them
        for node in graph.nodes:
            if is_view(node):
                self.root[node.outputs[0]] = self._root(node.inputs[0])
            elif node.operator == "split" and self._are_parts(node):
                self.root |= dict.fromkeys(node.outputs, self._root(node.inputs[0]))
            elif not (is_join(node) and self._joins(node)):
                continue
            self.views.add(node)

    @staticmethod
    def _returned(graph: Graph) -> set[Value]:
        """The outputs, and the values of which they are views."""
        found = set(graph.outputs)
        for node in reversed(graph.nodes):
            if is_view(node) and node.outputs[0] in found:
                found.add(node.inputs[0])
        return found

    def _root(self, value: Value) -> Value:
        return self.root.get(value, value)

    def _are_parts(self, node: Node) -> bool:
        return _is_first_axis(node, node.inputs[0]) and self.taken.isdisjoint(node.outputs) and _begin_at_lines(node.outputs)

    def _joins(self, node: Node) -> bool:
        roots = [self._root(value) for value in node.inputs]
        if len(set(roots)) < len(roots) or not self.taken.isdisjoint(roots) or not _begin_at_lines(node.inputs) or \
                not all(root.node is not None and root.spec.bytes == value.spec.bytes
                        for root, value in zip(roots, node.inputs)):
            return False
        self.taken |= set(roots)
        return True


def _is_first_axis(node: Node, whole: Value) -> bool:
    return node.function is None and node.arguments.get("axis", 0) in (0, -len(whole.shape))


def _begin_at_lines(parts: Sequence[Value]) -> bool:
    """Whether values of known extents that stand one after the other all begin at cache lines."""
    return all(part.spec.is_static for part in parts) and all(begin % ALIGNMENT == 0 for begin in begins_of(parts).values())
