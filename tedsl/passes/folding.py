"""Copies flat statements with variables replaced and constants folded."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from tedsl.ir import build
from tedsl.ir.expr import And, BinaryOp, Broadcast, Call, Cast, Expr, IntImm, Let, Load, Not, Or, Select, Var
from tedsl.ir.node import Node
from tedsl.ir.ops import IF_THEN_ELSE, LIKELY
from tedsl.ir.stmt import Allocate, AttrStmt, For, IfThenElse, LetStmt, SeqStmt, Stmt, Store, no_op, seq
from tedsl.ir.walk.contents import of_kinds
from tedsl.ir.walk.rewriter import Rewriter
from tedsl.ir.walk.substitute import copy_var
from tedsl.ir.walk.visitor import post_order

N = TypeVar("N", bound=Node)


def fold_with(root: N, mapping: Mapping[Any, Any]) -> N:
    """Returns `root` with variables and whole subtrees (compared by identity) replaced as `mapping` says, and constants
    folded.
    """
    return Folder(mapping)(root)  # type: ignore[no-any-return]


def folded_copy(stmt: Stmt, mapping: Mapping[Any, Any]) -> Stmt:
    """Returns the copy that `fold_with` makes, with fresh binders, so that it may stand in a function beside the original."""
    renamed: dict[Any, Any] = dict(mapping)
    renamed |= {v: copy_var(v) for v in map(_binder, of_kinds(stmt, *_BINDERS)) if v is not None}
    return Folder(renamed)(stmt)  # type: ignore[no-any-return]


class Copier:
    """Makes folded copies of one statement for several values of a variable; the copies share subtrees that do not depend on
    the variable and bind none.
    """

    def __init__(self, stmt: Stmt, var: Var) -> None:
        self.stmt, self.var = stmt, var
        nodes = list(post_order(stmt))
        self.binders = [v for v in map(_binder, [node for node in nodes if type(node) in _BINDERS]) if v is not None]
        given: set[Any] = {var, *self.binders}
        own = set(given)
        self.own: list[Any] = []  # the nodes that differ in each copy, children first
        for node in nodes:
            if node not in given and (type(node) in _BINDERS or not own.isdisjoint(node.child_nodes())
                                      or _accessed(node) in own):
                own.add(node)
                self.own.append(node)

    def __call__(self, value: Expr) -> Stmt:
        folder = Folder({v: copy_var(v) for v in self.binders} | {self.var: value})
        copied: Stmt = folder.in_order(self.own, self.stmt)
        return copied


_BINDERS = (For, LetStmt, Let, Allocate)


def _binder(node: Node) -> Var | None:
    match node:
        case For(loop_var=v) | LetStmt(var=v) | Let(var=v) | Allocate(buffer_var=v):
            return v
    return None


def _accessed(node: Node) -> Any:
    """Returns the data pointer that `node` accesses, or the node that an attribute is about; None for other nodes."""
    return node.buffer_var if isinstance(node, (Load, Store)) else node.node if isinstance(node, AttrStmt) else None


class Folder(Rewriter):
    """Replaces the keys of `mapping`, also where they are binders, folds constants and drops branches whose condition is
    constant.
    """

    def __init__(self, mapping: Mapping[Any, Any]) -> None:
        super().__init__()
        self.mapping = dict(mapping)
        self._done.update(self.mapping)

    def in_order(self, nodes: list[Any], root: Any) -> Any:
        """Returns what becomes of `root` where only `nodes`, children first, may change."""
        done = self._done
        for node in nodes:
            copy = node.map_children(done.__getitem__)
            handler = _TABLE.get(type(copy))
            done[node] = fold_node(copy) if handler is None else handler(self, copy)
        return done[root]

    def rewrite(self, node: Any) -> Any:
        handler = _TABLE.get(type(node))
        if handler is not None:
            return handler(self, node)
        return fold_node(node)

    def _renamed(self, v: Var) -> Var:
        new = self.mapping.get(v, v)
        return new if isinstance(new, Var) else v

    def _access(self, node: Load | Store) -> Any:
        new = self._renamed(node.buffer_var)
        predicate = node.predicate
        if predicate is not None and is_always_true(predicate):
            return node.replace(buffer_var=new, predicate=None)
        if isinstance(node, Store) and predicate is not None and is_always_false(predicate):
            return no_op()
        return node if new is node.buffer_var else node.replace(buffer_var=new)

    def _attribute(self, node: AttrStmt) -> Any:
        new = self._renamed(node.node) if isinstance(node.node, Var) else node.node
        return node if new is node.node else node.replace(node=new)

    def _loop(self, node: For) -> Any:
        new = self._renamed(node.loop_var)
        return node if new is node.loop_var else node.replace(loop_var=new)

    def _binding(self, node: LetStmt | Let) -> Any:
        new = self._renamed(node.var)
        return node if new is node.var else node.replace(var=new)

    def _allocation(self, node: Allocate) -> Any:
        new = self._renamed(node.buffer_var)
        return node if new is node.buffer_var else node.replace(buffer_var=new)

    def _sequence(self, node: SeqStmt) -> Any:
        joined = seq(*node.seq)
        return node if isinstance(joined, SeqStmt) and joined.seq == node.seq else joined


_TABLE: dict[type, Any] = {
    Load: Folder._access, Store: Folder._access, AttrStmt: Folder._attribute, For: Folder._loop, LetStmt: Folder._binding,
    Let: Folder._binding, Allocate: Folder._allocation, SeqStmt: Folder._sequence,
}


_FOLDED = frozenset((IfThenElse, Select, Call, Not, Cast))


def fold_node(node: Any) -> Any:
    """Returns `node` with its operator folded if its children, which are folded already, are constants."""
    if isinstance(node, BinaryOp):
        if isinstance(node.a, IntImm) or isinstance(node.b, IntImm):
            folded = build.fold(type(node), node.a, node.b)
            return node if folded is None else folded
        if isinstance(node, (And, Or)) and node.dtype.lanes > 1:
            return _fold_masks(node)
        return node
    if type(node) not in _FOLDED:
        return node
    match node:
        case IfThenElse(condition=c) if isinstance(build_value := decided(c), bool):
            return node.then_case if build_value else (node.else_case if node.else_case is not None else no_op())
        case Select(condition=c) if isinstance(build_value := decided(c), bool):
            return node.true_value if build_value else node.false_value
        case Call(op=op) if op is IF_THEN_ELSE and isinstance(build_value := decided(node.args[0]), bool):
            return node.args[1] if build_value else node.args[2]
        case Call(op=op) if op is LIKELY and isinstance(node.args[0], IntImm):
            return node.args[0]
        case Not(a=IntImm(value=v)):
            return IntImm(node.dtype, 1 - v)
        case Cast(value=IntImm() as v):
            return build.cast(node.dtype, v)
        case _:
            return node


def _fold_masks(node: And | Or) -> Expr:
    for constant, other in ((node.a, node.b), (node.b, node.a)):
        value = decided(constant)
        if value is not None:
            return other if value is isinstance(node, And) else constant
    return node


def decided(condition: Expr) -> bool | None:
    """Returns the value of a constant condition, scalar or broadcast; None if it is not a constant."""
    if isinstance(condition, Broadcast):
        condition = condition.value
    return bool(condition.value) if isinstance(condition, IntImm) else None


def is_always_true(condition: Expr) -> bool:
    return decided(condition) is True


def is_always_false(condition: Expr) -> bool:
    return decided(condition) is False
