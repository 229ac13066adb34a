"""Rewriting with functions given by the user, called before and after the children of each node."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from tedsl.errors import ArgumentTypeError, type_in_words
from tedsl.ir.node import Node

Step = Callable[[Any], Any]


def ir_transform(stmt: Any, preorder: Step | None, postorder: Step | None, only_enable: Iterable[str] | None = None) -> Any:
    """`stmt` with nodes replaced by the results of `preorder` (called before the children are visited) or `postorder` (after).

    A result of None keeps the node; a result of preorder is not visited. only_enable: names of node classes, such as
    "tir.For"; both functions are called for these only. A node that occurs several times is visited once.
    """
    if not isinstance(stmt, Node):
        raise ArgumentTypeError(f"ir_transform goes through a statement or an expression, not {type_in_words(stmt)}",
                                hint='the body of a function: mod["main"].body')
    enabled = None if only_enable is None else {name.split(".")[-1] for name in only_enable}
    done: dict[Node, Any] = {}
    opened: set[Node] = set()
    stack: list[Node] = [stmt]
    while stack:
        node = stack[-1]
        mine = enabled is None or type(node).__name__ in enabled
        if node in done:
            stack.pop()
        elif node in opened:
            stack.pop()
            made = node.map_children(done.__getitem__)
            replaced = postorder(made) if postorder is not None and mine else None
            done[node] = made if replaced is None else replaced
        else:
            opened.add(node)
            early = preorder(node) if preorder is not None and mine else None
            if early is None:
                stack.extend(reversed(node.child_nodes()))
            else:
                done[node] = early
    return done[stmt]
