"""Expressions as a sentence shows them."""

from __future__ import annotations

from collections.abc import Mapping

from tedsl.ir import build
from tedsl.ir.expr import EQ, GE, GT, LE, LT, NE, Add, BinaryOp, Expr, FloorDiv, FloorMod, Mul, Sub, Var
from tedsl.ir.walk.substitute import substitute
from tedsl.ir.walk.visitor import variables

INFIX: dict[type, tuple[str, int]] = {  # how an operator is written, and how tightly it binds
    LT: (" < ", 1), LE: (" <= ", 1), GT: (" > ", 1), GE: (" >= ", 1), EQ: (" == ", 1), NE: (" != ", 1),
    Add: (" + ", 2), Sub: (" - ", 2), Mul: ("*", 3), FloorDiv: ("//", 3), FloorMod: ("%", 3)}


def shown(e: Expr, outside: int = 0) -> str:
    """An expression as a sentence shows it: with no more parentheses than it needs."""
    number = build.as_int(e)
    if number is not None:
        return str(number)
    if not isinstance(e, BinaryOp) or type(e) not in INFIX:
        return repr(e)
    sign, binds = INFIX[type(e)]
    text = f"{shown(e.a, binds)}{sign}{shown(e.b, binds + 1)}"
    return f"({text})" if binds < outside else text


def told_apart(e: Expr, owners: Mapping[Var, str], own: str) -> Expr:
    """`e` with the loops of other stages called by their stages (C.x.outer) where one name stands for two loops."""
    used = list(dict.fromkeys(variables(e)))
    names = [var.name for var in used]
    return substitute(e, {var: Var(f"{owners[var]}.{var.name}", var.dtype) for var in used
                          if names.count(var.name) > 1 and owners.get(var, own) != own})
