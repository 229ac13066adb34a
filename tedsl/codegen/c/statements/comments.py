"""The comments of loops: the stage whose elements they compute."""

from __future__ import annotations

from tedsl.ir.stmt import Allocate, Stmt, Store


def stage_of(s: Stmt) -> str:
    """Returns the name of the one buffer that the statements below `s` write; "" if there are several, or none.

    Buffers that live inside of `s` do not count where another is written too.
    """
    written: dict[object, str] = {}
    inside: set[object] = set()
    stack: list[Stmt] = [s]
    while stack:
        node = stack.pop()
        if isinstance(node, Store):
            written[node.buffer_var] = node.buffer_var.name
        elif isinstance(node, Allocate):
            inside.add(node.buffer_var)
        stack.extend([child for child in node.child_nodes() if isinstance(child, Stmt)])
    outside = [name for var, name in written.items() if var not in inside]
    return outside[0] if len(outside) == 1 else ""
