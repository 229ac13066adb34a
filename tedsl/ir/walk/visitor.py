"""Walks over IR with an explicit stack: any depth, each shared node once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from tedsl.errors import ArgumentTypeError, type_in_words
from tedsl.ir.expr import FloatImm, IntImm, Load, SizeVar, StringImm, Var
from tedsl.ir.node import Node
from tedsl.ir.stmt import (
    Allocate,
    AssertStmt,
    AttrStmt,
    BufferRealize,
    BufferStore,
    Evaluate,
    For,
    LetStmt,
    Prefetch,
    ProducerRealize,
    ProducerStore,
    SeqStmt,
    Stmt,
    Store,
    While,
)
from tedsl.ir.walk.contents import POINTER, of_kinds

LEAVES = frozenset((Var, SizeVar, IntImm, FloatImm, StringImm))  # half of all nodes: nothing stands below them


def post_order(root: Node) -> Iterator[Node]:
    """Every node below and including `root`, children before parents, each once.

    Buffers of loads and stores and bound variables are not visited: they are fields, not children.
    """
    seen: set[Node] = set()
    stack: list[Any] = [root]  # None: the children of the node below it are done
    while stack:
        node = stack.pop()
        if node is None:
            yield stack.pop()
        elif node not in seen:
            seen.add(node)
            children = node.child_nodes()
            if children:
                children.reverse()
                while children and type(children[-1]) in LEAVES:  # at once: nothing is below them
                    leaf = children.pop()
                    if leaf not in seen:
                        seen.add(leaf)
                        yield leaf
                if children:
                    stack += (node, None)
                    stack += children
                else:
                    yield node
            else:
                yield node


ENDS = frozenset((Store, BufferStore, Evaluate, ProducerStore, Prefetch))  # statements with no others below them
WITH_BODY = frozenset((For, While, LetStmt, AttrStmt, Allocate, BufferRealize, ProducerRealize, AssertStmt))  # and with one


def statements(root: Stmt) -> Iterator[Stmt]:
    """Iterates over `root` and every statement below it, parents first, without descending into expressions."""
    stack: list[Any] = [root]
    while stack:
        s = stack.pop()
        yield s
        kind = type(s)
        if kind in ENDS:
            continue
        if kind is SeqStmt:
            stack += reversed(s.seq)
        elif kind in WITH_BODY:
            stack.append(s.body)
        else:
            stack += [child for child in reversed(s.child_nodes()) if isinstance(child, Stmt)]


def post_order_visit(stmt: Node, fvisit: Callable[[Node], object]) -> None:
    """Calls `fvisit` on every node below `stmt` and on itself, children first."""
    if not isinstance(stmt, Node):
        raise ArgumentTypeError(f"post_order_visit goes through a statement or an expression, got {stmt!r}")
    if not callable(fvisit):
        raise ArgumentTypeError(f"post_order_visit calls a function with each node, not {type_in_words(fvisit)}",
                                hint="post_order_visit(stmt, lambda node: ...)")
    for node in post_order(stmt):
        fvisit(node)


def variables(root: Node) -> list[Var]:
    """The variables that are used below `root`, in order of first use: including data pointers of loads and stores."""
    if type(root) in LEAVES:
        return [root] if isinstance(root, Var) else []
    return _named(post_order(root))


def pointers(root: Node) -> list[Var]:
    """Those of the `variables` below `root` that are pointers or named by attributes, in the same order: what stands in index
    arithmetic alone is not walked through.
    """
    return _named(of_kinds(root, Load, Store, AttrStmt, POINTER))


def _named(nodes: Iterable[Any]) -> list[Var]:
    """The variables among `nodes`, and the pointers and variables that they name."""
    used: dict[Var, None] = {}
    for node in nodes:
        kind = type(node)
        if kind is IntImm:  # the most frequent kind
            continue
        if kind is Var or kind is SizeVar:
            used[node] = None
        elif kind is Load or kind is Store:
            used[node.buffer_var] = None
        elif kind is AttrStmt and isinstance(node.node, Var):
            used[node.node] = None
    return list(used)


def uses(root: Node, wanted: object) -> bool:
    """Whether a variable of `wanted` (one Var or a collection of them) is used below `root`."""
    names = {wanted} if isinstance(wanted, Var) else set(wanted)  # type: ignore[call-overload]
    return any(v in names for v in variables(root))
