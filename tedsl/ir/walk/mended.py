"""Rewriting of expressions to make accesses safe: loads are replaced, and choices made lazy."""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping
from typing import Any, TypeAlias

from tedsl.ir import build
from tedsl.ir.expr import And, Expr, Or, Select
from tedsl.ir.node import Node
from tedsl.ir.walk.around import Eager
from tedsl.ir.walk.visitor import post_order

Loads: TypeAlias = Mapping[Any, Callable[[Any], Expr]]  # for loads: what to make of the load with its indices mended


def mended(expr: Expr, loads: Loads, lazy: Container[Eager]) -> Expr:
    """`expr` with loads replaced as `loads` says, and each Select, te.all and te.any in `lazy` turned into an if_then_else."""
    if not loads and not lazy:
        return expr
    done: dict[Node, Any] = {}
    for node in post_order(expr):
        new: Any = node.map_children(done.__getitem__)
        if node in loads:
            new = loads[node](new)
        elif isinstance(node, (Select, And, Or)) and node in lazy:
            new = _lazy(new)
        done[node] = new
    return done[expr]  # type: ignore[no-any-return]


def _lazy(choice: Eager) -> Expr:
    """`choice` as an if_then_else, which evaluates only the chosen side."""
    match choice:
        case Select(condition=condition, true_value=yes, false_value=no):
            return build.if_then_else(condition, yes, no)
        case And(a=a, b=b):
            return build.if_then_else(a, b, build.const(False))
        case Or(a=a, b=b):
            return build.if_then_else(a, build.const(True), b)
