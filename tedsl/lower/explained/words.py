"""The text of expressions in explanations."""

from __future__ import annotations

from collections.abc import Mapping

from tedsl.ir.expr import Expr, Var
from tedsl.ir.walk.substitute import substitute
from tedsl.ir.walk.visitor import variables


def told_apart(e: Expr, owners: Mapping[Var, str], own: str) -> Expr:
    """`e` with a loop of another stage written with its stage (C.x.outer) where two loops have the same name."""
    used = list(dict.fromkeys(variables(e)))
    names = [var.name for var in used]
    return substitute(e, {var: Var(f"{owners[var]}.{var.name}", var.dtype) for var in used
                          if names.count(var.name) > 1 and owners.get(var, own) != own})
