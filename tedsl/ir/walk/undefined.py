"""Which variables of a program are used and bound by nothing around."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from tedsl.errors import ArgumentTypeError, type_in_words
from tedsl.ir.expr import BufferLoad, Expr, Let, Load, Reduce, Var
from tedsl.ir.func import PrimFunc
from tedsl.ir.iters import IterVar
from tedsl.ir.node import Node
from tedsl.ir.stmt import THREADS, Allocate, AttrStmt, BufferRealize, BufferStore, For, LetStmt, Stmt, Store
from tedsl.ir.walk.contents import contains
from tedsl.ir.walk.visitor import post_order, variables

_Step = tuple[str, Any]  # "visit" a node, "bind" a variable from here on, or "leave" its scope


def undefined_vars(node: Stmt | Expr | PrimFunc, defs: Collection[Var] = ()) -> list[Var]:
    """Returns the variables that are used in `node` outside of what binds them, in order of first use; `defs`, and the
    parameters and shapes of a function, count as bound.

    Raises ArgumentTypeError for other objects.
    """
    if not isinstance(node, (Stmt, Expr, PrimFunc)):
        raise ArgumentTypeError(f"undefined_vars takes a statement, an expression or a function, not {type_in_words(node)}",
                                hint="mod['main'], or its body")
    if not isinstance(defs, (list, tuple, set, frozenset)) or not all(isinstance(var, Var) for var in defs):
        raise ArgumentTypeError(f"undefined_vars: what is defined is a list of variables, not {defs!r}")
    bound: dict[Var, int] = dict.fromkeys(defs, 1)
    if isinstance(node, PrimFunc):
        bound |= dict.fromkeys(node.params, 1)
        for buffer in node.buffers:
            bound[buffer.data] = 1
            bound |= dict.fromkeys([var for part in (*buffer.shape, *buffer.strides, buffer.elem_offset)
                                    for var in variables(part)], 1)
        node = node.body
    return _search(node, bound)


def _search(root: Node, bound: dict[Var, int]) -> list[Var]:
    """bound: how many scopes around the place bind each variable."""
    found: dict[Var, None] = {}
    todo: list[_Step] = [("visit", root)]
    while todo:
        step, what = todo.pop()
        if step == "bind":
            bound[what] = bound.get(what, 0) + 1
        elif step == "leave":
            bound[what] -= 1
        elif isinstance(what, Expr) and not contains(what, Let, Reduce):  # shared parts are looked at once
            found.update(dict.fromkeys(var for node in post_order(what) for var in _used_by(node) if not bound.get(var)))
        else:
            found.update(dict.fromkeys(var for var in _used_by(what) if not bound.get(var)))
            todo.extend(reversed(_steps(what)))
    return list(found)


def _used_by(node: Node) -> tuple[Var, ...]:
    """Returns the variables that `node` itself uses, the memory of its accesses among them."""
    match node:
        case Var():
            return (node,)
        case Load(buffer_var=var) | Store(buffer_var=var) | AttrStmt(node=Var() as var):
            return (var,)
        case BufferLoad(buffer=buffer) | BufferStore(buffer=buffer):
            return (buffer.data,)
        case _:
            return ()


def _steps(node: Node) -> list[_Step]:
    """Returns the children of a node in the order of the program, and where the scope of what it binds begins and ends."""
    scope = _scope(node)
    children: list[_Step] = [("visit", child) for child in node.child_nodes()]
    if isinstance(node, Reduce):
        return [*(("bind", axis.var) for axis in node.axis), *children, *(("leave", axis.var) for axis in node.axis)]
    if scope is None:
        return children
    var, body = scope
    before = [step for step in children if step[1] is not body]
    return [*before, ("bind", var), ("visit", body), ("leave", var)]


def _scope(node: Node) -> tuple[Var, Node] | None:
    """Returns the variable that `node` binds and the part in which it stands; None if it binds none."""
    match node:
        case For(loop_var=var, body=body) | LetStmt(var=var, body=body) | Allocate(buffer_var=var, body=body):
            return var, body
        case Let(var=var, body=inner):
            return var, inner
        case BufferRealize(buffer=buffer, body=body):
            return buffer.data, body
        case AttrStmt(attr_key=key, node=IterVar(var=var), body=body) if key in THREADS:
            return var, body
        case _:
            return None
