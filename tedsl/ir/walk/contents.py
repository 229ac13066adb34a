"""What stands in a tree, remembered with its nodes: a pass that serves one kind of node asks first, and costs nothing without
it.

Each node keeps a set of kinds as the bits of a number, which its constructor makes of those of its children.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Iterator

from tedsl.ir.node import FLOAT_PRODUCT, MASKED, POINTER, Node, kind_bit

__all__ = ["FLOAT_PRODUCT", "MASKED", "POINTER", "contains", "contents_of", "mask_of", "of_kinds"]


def contains(root: Node, *kinds: object) -> bool:
    """Tells whether a node below `root`, or itself, is of one of `kinds`: a class (and no subclass of it), the operator of
    calls, the key of attributes, MASKED, POINTER or FLOAT_PRODUCT. Nodes are those that `post_order` visits.
    """
    return bool(root._contents & (_MASKS.get(kinds) or mask_of(kinds)))


def contents_of(root: Node) -> int:
    """Returns the kinds of the nodes below `root` and of itself, as bits that `mask_of` names."""
    return root._contents


_MASKS: dict[tuple[object, ...], int] = {}  # those that were asked for, few in a program


def mask_of(kinds: tuple[object, ...]) -> int:
    """Returns the bits of `kinds`, which `contains` describes."""
    mask = _MASKS.get(kinds)
    if mask is None:
        mask = _MASKS[kinds] = functools.reduce(operator.or_, map(kind_bit, kinds), 0)
    return mask


def of_kinds(root: Node, *kinds: object) -> Iterator[Node]:
    """Iterates over the nodes below `root`, and itself, in which one of `kinds` stands, in the order of `post_order`.

    Among them are all of those kinds. What has none of them is not walked through.
    """
    mask = mask_of(kinds)
    seen: set[Node] = set()
    stack: list[Node | None] = [root] if root._contents & mask else []
    while stack:
        node = stack.pop()
        if node is None:
            node = stack.pop()
            assert node is not None
            yield node
        elif node not in seen:
            seen.add(node)
            below = [child for child in node.child_nodes() if child._contents & mask]
            if below:
                below.reverse()
                stack += (node, None)
                stack += below
            else:
                yield node
