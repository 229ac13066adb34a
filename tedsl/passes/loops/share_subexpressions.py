"""Computes what several expressions have in common once, before them.

before:  for (i) { B[i*4 + n*2] = A[i*4 + n*2] }
after:   for (i) { let cse_var_1 = i*4 + n*2;  B[cse_var_1] = A[cse_var_1] }

A let stands right inside of what binds the last variable of its value: outside of all loops that do not change it. Loads and
calls that are not pure stay where they are, and vectors. The rest is defined for all operands, so that it may be computed where
it was not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import count
from typing import Any

from tedsl.ir.expr import BufferLoad, Call, Expr, FloatImm, IntImm, Let, Load, ProducerLoad, Reduce, StringImm, Var
from tedsl.ir.func import PrimFunc
from tedsl.ir.iters import IterVar
from tedsl.ir.node import Node
from tedsl.ir.stmt import THREADS, AttrStmt, For, LetStmt, Stmt
from tedsl.ir.walk.equal import structural_equal, structural_hash
from tedsl.ir.walk.rewriter import Rewriter, ScopedRewriter
from tedsl.ir.walk.visitor import post_order
from tedsl.passes.facts.threads import has_launch

_LEAVES = (Var, IntImm, FloatImm, StringImm)
_STAY = (Load, BufferLoad, ProducerLoad, Let, Reduce, StringImm)
Form = Callable[[Expr], Expr]


def share_subexpressions(func: PrimFunc, *, form: Form | None = None) -> PrimFunc:
    """Returns `func` with a let for each expression that occurs twice. form: what makes expressions that are to count as equal
    the same, a simplifier; None: they are equal as they are written.
    """
    sharer = _Sharer(form or (lambda expr: expr))
    return func.with_body(sharer(sharer.shared(func.body)))


class _Sharer(ScopedRewriter):
    def __init__(self, form: Form) -> None:
        self.form = form
        self.names = (f"cse_var_{n}" for n in count(1))

    def stmt(self, stmt: Stmt) -> Stmt:
        if isinstance(stmt, (For, LetStmt)) or (isinstance(stmt, AttrStmt) and stmt.attr_key in THREADS):
            stmt = stmt.replace(body=self.shared(stmt.body))
        return self.descend(stmt)

    def shared(self, stmt: Stmt) -> Stmt:
        """`stmt` with lets around it for what occurs twice and needs nothing that is bound inside."""
        if has_launch(stmt):
            return stmt  # launches stand together; inside of them
        lets: list[tuple[Var, Expr]] = []
        while (found := self._largest(stmt)) is not None:
            var = Var(next(self.names), found[0].dtype)
            lets.append((var, found[0]))
            stmt = _Replacer(found, var)(stmt)
        for var, value in reversed(lets):
            stmt = LetStmt(var, value, stmt)
        return stmt

    def _largest(self, stmt: Stmt) -> list[Expr] | None:
        """The occurrences of the largest expression that there are several of."""
        inside = set(_bound(stmt))
        sizes: dict[Node, int | None] = {}  # of expressions that may move; None: they may not
        for node in post_order(stmt):
            sizes[node] = _size(node, sizes, inside)
        alike: dict[int, list[list[Expr]]] = {}
        for node in post_order(stmt):
            for child in node.child_nodes():
                if isinstance(child, Expr) and (sizes[child] or 0) > 1:
                    _enter(alike, child, self.form(child))
        several = [entry[1:] for entries in alike.values() for entry in entries if len(entry) > 2]
        return max(several, key=lambda entry: sizes[entry[0]] or 0, default=None)


def _enter(alike: dict[int, list[list[Expr]]], expr: Expr, form: Expr) -> None:
    """Adds an occurrence to those of one form; an entry is the form, then the occurrences."""
    entries = alike.setdefault(structural_hash(form), [])
    entry = next((one for one in entries if structural_equal(one[0], form)), None)
    if entry is None:
        entries.append([form, expr])
    else:
        entry.append(expr)


def _size(node: Node, sizes: dict[Node, int | None], inside: set[Any]) -> int | None:
    """The number of nodes of an expression that may be computed before the statement; None where it may not."""
    if not isinstance(node, Expr) or isinstance(node, _STAY) or node in inside or node.dtype.lanes > 1:
        return None
    if isinstance(node, _LEAVES):
        return 1
    if isinstance(node, Call) and node.op.effect != "pure":
        return None
    parts = [sizes[child] for child in node.child_nodes()]
    return None if any(part is None for part in parts) else 1 + sum(part or 0 for part in parts)


def _bound(stmt: Stmt) -> Iterator[Any]:
    """The variables that are bound inside of a statement."""
    for node in post_order(stmt):
        for field in type(node).binders:
            value = getattr(node, field)
            for one in value if isinstance(value, tuple) else (value,):
                yield one.var if isinstance(one, IterVar) else one
        if isinstance(node, AttrStmt) and node.attr_key in THREADS:
            yield node.node.var


class _Replacer(Rewriter):
    """Puts a variable in the place of some expressions."""

    def __init__(self, expressions: list[Expr], var: Var) -> None:
        super().__init__()
        self._done.update(dict.fromkeys(expressions, var))
