"""What stands in a tree, remembered with its nodes: a pass that serves one kind of node asks first, and costs nothing without
it.

Each node keeps a set of kinds as the bits of a number, which its constructor makes of those of its children.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from tedsl.ir.node import MASKED, POINTER, Node, kind_bit

__all__ = ["MASKED", "POINTER", "contains", "contents_of", "mask_of", "of_kinds"]


def contains(root: Node, *kinds: object) -> bool:
    """Tells whether a node below `root`, or itself, is of one of `kinds`: a class (and no subclass of it), the operator of
    calls, the key of attributes, MASKED or POINTER. Nodes are those that `post_order` visits.
    """
    return bool(contents_of(root) & mask_of(kinds))


def contents_of(root: Node) -> int:
    """Returns the kinds of the nodes below `root` and of itself, as bits that `mask_of` names."""
    return root._contents


def mask_of(kinds: Iterable[object]) -> int:
    """Returns the bits of `kinds`, which `contains` describes."""
    mask = 0
    for kind in kinds:
        mask |= kind_bit(kind)
    return mask


def of_kinds(root: Node, *kinds: object) -> Iterator[Node]:
    """Iterates over the nodes below `root`, and itself, in which one of `kinds` stands, in the order of `post_order`.

    Among them are all of those kinds. What has none of them is not walked through.
    """
    mask = mask_of(kinds)
    seen: set[Node] = set()
    stack: list[Node | None] = [root] if contents_of(root) & mask else []
    while stack:
        node = stack.pop()
        if node is None:
            node = stack.pop()
            assert node is not None
            yield node
        elif node not in seen:
            seen.add(node)
            stack += (node, None)
            below = [child for child in node.child_nodes() if contents_of(child) & mask]
            below.reverse()
            stack += below
