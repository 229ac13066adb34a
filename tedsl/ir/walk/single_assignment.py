"""The check that every variable of a function is bound once."""

from __future__ import annotations

from tedsl.ir.expr import Let, Var
from tedsl.ir.func import PrimFunc
from tedsl.ir.node import Node
from tedsl.ir.stmt import Allocate, For, LetStmt
from tedsl.ir.walk.substitute import bind_once
from tedsl.ir.walk.visitor import post_order


def verify_ssa(func: PrimFunc) -> bool:
    """Whether no variable is bound twice: as a parameter, by a loop, a let or an allocation. An expression `Let` that stands
    in several places counts once.
    """
    binders: dict[Var, Node] = dict.fromkeys(func.params, func)
    if len(binders) < len(func.params):
        return False
    for node in post_order(func.body):
        match node:
            case For(loop_var=var) | LetStmt(var=var) | Allocate(buffer_var=var) | Let(var=var):
                if binders.setdefault(var, node) is not node:
                    return False
    return bind_once(func.body) is func.body  # a statement that stands in two places binds twice, too
