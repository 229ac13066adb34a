"""The text of formulas in errors."""

from __future__ import annotations

from tedsl.ir import build
from tedsl.ir.expr import Add, Expr, Max, Min, Mul, Reduce
from tedsl.ir.script import shown

COMBINERS: dict[type[Expr], str] = {Add: "sum", Mul: "prod", Max: "max", Min: "min"}
LONGEST = 200


def formula_text(expr: Expr, over: str = "") -> str:
    """`expr` on one line; a reduction as "sum(... over k, from init)", with `over` as the names of its axes."""
    if not isinstance(expr, Reduce):
        return _short(shown(expr))
    name = COMBINERS.get(type(expr.combiner.result[0]), "reduce") if len(expr.source) == 1 else "reduce"
    sources = ", ".join(map(shown, expr.source))
    where = "" if build.is_true(expr.condition) else f" where {shown(expr.condition)}"
    axes = over or ", ".join(axis.name for axis in expr.axis)
    begin = f", from {', '.join(map(shown, expr.init))}" if expr.init else ""
    return _short(f"{name}({sources} over {axes}{where}{begin})")


def _short(text: str) -> str:
    return text if len(text) <= LONGEST else text[:LONGEST - 3] + "..."
