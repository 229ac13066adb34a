"""The recorded graph as text, and as a picture in notebooks."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tedsl.autograd.node import Edge, Node

MOST_LINES = 200


class Graph:
    """The nodes from `root` to the leaves, newest first. Its text has a line for each: its number and name, the edges to its
    next functions, and the line of the program that recorded it.
    """

    def __init__(self, root: Node) -> None:
        self.root = root

    @cached_property
    def nodes(self) -> list[Node]:
        """All nodes, each before those that its edges lead to."""
        found: dict[Node, None] = {self.root: None}
        stack = [self.root]
        while stack:
            for node, _ in stack.pop().next_functions:
                if node is not None and node not in found:
                    found[node] = None
                    stack.append(node)
        inner = sorted([node for node in found if node.next_functions], key=lambda node: -node.number)
        return inner + [node for node in found if not node.next_functions]

    def __str__(self) -> str:
        shown = self.nodes[:MOST_LINES]
        at = {node: number for number, node in enumerate(self.nodes)}
        table = [(f"#{number}", node.name(), _edges(node.next_functions, at) or _leaf(node),
                  "" if node.line is None else node.line.short) for number, node in enumerate(shown)]
        lines = _aligned(table)
        more = len(self.nodes) - len(shown)
        return "\n".join([*lines, *[f"... and {more} more"] * bool(more)])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        from tedsl.display.graph import Node as Box
        from tedsl.display.graph import svg_of
        from tedsl.display.page import fragment

        at = {node: number for number, node in enumerate(self.nodes)}
        boxes = [Box(tuple(filter(None, (node.name(), _leaf(node), "" if node.line is None else node.line.short))),
                     "input" if not node.next_functions else "output" if node is self.root else "plain") for node in self.nodes]
        edges = [(at[node], at[below]) for node in self.nodes for below, _ in node.next_functions if below is not None]
        return fragment(f"Recorded graph of {self.root.name()}", svg_of(boxes, edges, "The nodes that gradients pass"))


def _edges(edges: Sequence[Edge], at: dict[Node, int]) -> str:
    return ", ".join("(None, 0)" if node is None else f"(#{at[node]}, {number})" for node, number in edges)


def _leaf(node: Any) -> str:
    """What a leaf is: its shape and dtype."""
    variable = getattr(node, "variable", None)
    return "" if variable is None else repr(variable._kind)


def _aligned(table: Sequence[tuple[str, ...]]) -> list[str]:
    """Rows as lines with columns below one another."""
    widths = [max(map(len, column)) for column in zip(*table)]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip() for row in table]
