"""The groups of a graph: nodes united with their post-dominators in three phases.

    0   convolutions, products, pools and reductions into element-wise nodes after them; element-wise nodes into anything that
        reads them and is no product
    1   injective nodes into injective nodes
    2   at most injective nodes into those that join several values (concatenate, stack)
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tedsl.graph.graph import Graph
from tedsl.graph.passes.fusion.attention import products_joined
from tedsl.graph.passes.fusion.dominators import post_dominators
from tedsl.graph.passes.fusion.narrow import ending_narrow
from tedsl.graph.passes.kinds import Kind, kind_of
from tedsl.graph.plan.views import is_view
from tedsl.graph.value import Node, holds_values

MOST_NODES = 256  # of a group: code and compile time grow with it


@dataclass(eq=False)
class _Group:
    """A set of nodes, as a tree that leads to its root. kind: the largest of its nodes; size: their number."""

    node: Node
    kind: Kind
    size: int = 1
    parent: _Group | None = None

    def root(self) -> _Group:
        found = self
        while found.parent is not None:
            found = found.parent
        while self.parent is not None and self.parent is not found:
            self.parent, self = found, self.parent
        return found


def groups_of(graph: Graph, most: int = MOST_NODES) -> list[tuple[Node, ...]]:
    """The groups, each node in exactly one: its nodes, producers first; only the results of the last one are read by others.

    most: the number of nodes that a group may have.
    """
    united = _Union(graph, most)
    for phase in range(3):
        for node in graph.nodes:
            united.visit(node, phase)
    groups: dict[Node, list[Node]] = {}
    for node in graph.nodes:
        groups.setdefault(united.groups[node].root().node, []).append(node)
    apart = [part for group in groups.values() for part in _without_views(tuple(group))]
    order = {node: at for at, node in enumerate(graph.nodes)}
    narrow = ending_narrow(graph, sorted(apart, key=lambda group: order[group[-1]]), united.kinds, most)
    return products_joined(graph, sorted(narrow, key=lambda group: order[group[-1]]), most)


class _Union:
    def __init__(self, graph: Graph, most: int) -> None:
        self.graph, self.most = graph, most
        self.kinds = {node: kind_of(node) for node in graph.nodes}
        self.above = post_dominators(graph, self.kinds)
        self.groups = {node: _Group(node, kind) for node, kind in self.kinds.items()}

    def visit(self, node: Node, phase: int) -> None:
        """Unites a node, with what is between, with its post-dominator, if this phase does."""
        kind, above = self.groups[node].kind, self.above[node]
        sink = above.node
        if sink is None or kind is Kind.OPAQUE or self._one(node, sink):
            return
        if self._joins(sink) != (phase == 2):
            return
        allowed = self._allowed(kind, above.kind, phase)
        if allowed is None or not self._path(node, sink, allowed):
            return
        between = self._between(node, sink)
        if sum({id(root): root.size for root in [self.groups[one].root() for one in (sink, *between)]}.values()) > self.most:
            return
        for one in between:
            self._unite(one, sink)

    def _one(self, node: Node, other: Node) -> bool:
        return self.groups[node].root() is self.groups[other].root()

    def _joins(self, node: Node) -> bool:
        """Whether a node joins several values, as concatenate does."""
        several = any(holds_values(argument) and isinstance(argument, tuple) for argument in node.arguments.values())
        return several and self.kinds[node] is Kind.INJECTIVE

    @staticmethod
    def _allowed(kind: Kind, reads: Kind, phase: int) -> Callable[[Kind, bool], bool] | None:
        """Which kinds may be on the way, and at its end (True); None if nodes of this kind stay alone in this phase."""
        if phase == 2:
            return (lambda other, last: other <= Kind.INJECTIVE) if kind <= Kind.INJECTIVE else None
        if kind in (Kind.FUSABLE, Kind.REDUCTION):
            return (lambda other, last: other <= Kind.BROADCAST) if not phase and reads is Kind.ELEMENTWISE else None
        if kind <= Kind.BROADCAST:
            ends = (Kind.ELEMENTWISE, Kind.BROADCAST, Kind.INJECTIVE, Kind.REDUCTION, Kind.FUSABLE)
            return (lambda other, last: other in ends if last else other <= Kind.INJECTIVE) if reads <= Kind.REDUCTION else None
        return (lambda other, last: other <= Kind.INJECTIVE) if phase == 1 and kind is Kind.INJECTIVE else None

    def _between(self, node: Node, sink: Node) -> list[Node]:
        """The nodes on the paths from `node` to `sink`, without the latter."""
        found: dict[Node, None] = {node: None}
        stack = [node]
        while stack:
            for value in stack.pop().outputs:
                ahead = [reader for reader in self.graph.users(value) if reader is not sink and reader not in found]
                found |= dict.fromkeys(ahead)
                stack += ahead
        return list(found)

    def _path(self, node: Node, sink: Node, allowed: Callable[[Kind, bool], bool]) -> bool:
        if not allowed(self.groups[sink].root().kind, True):
            return False
        return all(allowed(self.groups[one].root().kind, False) for one in self._between(node, sink)[1:])

    def _unite(self, node: Node, sink: Node) -> None:
        child, parent = self.groups[node].root(), self.groups[sink].root()
        if child is not parent:
            child.parent, parent.kind, parent.size = parent, max(child.kind, parent.kind), parent.size + child.size


def _without_views(group: tuple[Node, ...]) -> list[tuple[Node, ...]]:
    """The group without views at its ends: they cost nothing alone, and indices like i // 3 where they are computed."""
    views: list[tuple[Node, ...]] = []
    while len(group) > 1 and is_view(group[-1]):
        views.append(group[-1:])
        group = group[:-1]
    while len(group) > 1:
        made = {value for node in group for value in node.outputs}
        first = next((node for node in group if is_view(node) and not made.intersection(node.inputs)), None)
        if first is None:
            break
        views.append((first,))
        group = tuple([node for node in group if node is not first])
    return [group, *views]
