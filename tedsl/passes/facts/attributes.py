"""Tells whether a function has an attribute at all: passes that serve one directive ask first, and cost nothing without it."""

from __future__ import annotations

from tedsl.ir.stmt import AttrStmt, Stmt


def has_attribute(body: Stmt, *keys: str) -> bool:
    """Tells whether a statement in `body` has one of the attributes `keys`. Visits statements only."""
    stack = [body]
    while stack:
        stmt = stack.pop()
        if isinstance(stmt, AttrStmt) and stmt.attr_key in keys:
            return True
        stack.extend(child for child in stmt.child_nodes() if isinstance(child, Stmt))
    return False
