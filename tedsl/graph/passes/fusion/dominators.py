"""Post-dominators: for each node the nearest one that all paths from its results to the outputs pass.

        conv                 conv ──► add: both paths to the outputs pass it; how the nodes on the way read what they read
       ↙    ↘                decides whether conv and add can be one kernel
    relu    tanh
       ↘    ↙
        add
"""

from __future__ import annotations

from collections.abc import Mapping

from tedsl.graph.graph import Graph
from tedsl.graph.passes.kinds import Kind, kind_of_edge
from tedsl.graph.value import Node
from tedsl.record import record


@record(eq=False)
class Dominator:
    """The node that all paths from another pass, and the largest kind of a read on these paths; `depth` in the tree."""

    node: Node | None
    kind: Kind
    depth: int


def post_dominators(graph: Graph, kinds: Mapping[Node, Kind]) -> dict[Node, Dominator]:
    """The post-dominator of each node; None stands for the caller, who reads the outputs."""
    found: dict[Node, Dominator] = {}
    outputs = {value.node for value in graph.outputs}
    for node in reversed(graph.nodes):
        edges = [(reader, kind_of_edge(value, reader, kinds[reader]))
                 for value in node.outputs for reader in graph.users(value)]
        found[node] = Dominator(None, Kind.OPAQUE, 1) if node in outputs else _common(edges, found)
    return found


def _common(edges: list[tuple[Node, Kind]], found: Mapping[Node, Dominator]) -> Dominator:
    """The lowest node that all edges lead to."""
    above, kind = edges[0][0], edges[0][1]
    meeting: Node | None = above
    for reader, own in edges[1:]:
        kind = max(kind, own)
        other: Node | None = reader
        while meeting is not other:
            if meeting is None or other is None:
                return Dominator(None, Kind.OPAQUE, 1)
            here, there = found[meeting], found[other]
            if here.depth >= there.depth:
                kind, meeting = max(kind, here.kind), here.node
            if there.depth >= here.depth:
                kind, other = max(kind, there.kind), there.node
    if meeting is None:
        return Dominator(None, Kind.OPAQUE, 1)
    return Dominator(meeting, kind, found[meeting].depth + 1)
