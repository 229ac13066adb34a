"""Solves linear equations in one or several variables."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tedsl.arith.affine import Sum
from tedsl.arith.analyzer import Analyzer
from tedsl.arith.bounds import Bounds
from tedsl.arith.inequality import expand, factors, product_of
from tedsl.arith.sets import variables_of
from tedsl.errors import ArgumentTypeError
from tedsl.ir import build
from tedsl.ir.expr import Expr, Var
from tedsl.ir.iters import IterVar
from tedsl.ir.walk.visitor import uses


def solve_for(expr: Expr, var: Var, value: Expr) -> Expr | None:
    """Returns the only possible value of `var` with expr == value, for expr = a*var + b with `var` neither in a nor in b.

    None where expr is not of that form. For a other than 1 and -1 it is (value - b) // a: the caller must substitute it to see
    whether it solves the equation, since a remainder means that there is no solution.
    """
    linear = detect_linear_equation(expr, [var])
    if not linear:
        return None
    a, b = linear
    if build.as_int(a) == 0:
        return None
    analyzer = Analyzer()
    rest = build.sub(value, b)
    if build.as_int(a) == -1:
        return analyzer.simplify(build.sub(b, value))
    return analyzer.simplify(rest if build.as_int(a) == 1 else build.floordiv(rest, a))


def detect_linear_equation(expr: Expr, var_list: Sequence[Var | IterVar]) -> list[Expr]:
    """Returns [a1, ..., an, b] with expr = a1*v1 + ... + an*vn + b, no variable in any of them; [] if `expr` is not linear."""
    names = variables_of(var_list, "detect_linear_equation")
    expr = build.as_expr(expr)
    if expr.dtype.is_handle:
        raise ArgumentTypeError(f"detect_linear_equation takes an expression of integers, got {expr!r}", hint="x * 2 + 1")
    if not expr.dtype.is_integer or expr.dtype.lanes != 1:
        return []
    known = Bounds()
    slopes = [Sum({}) for _ in names]
    base = expand(known, known.sum(expr))
    rest = Sum({}, base.const)
    for term, c in base.terms.items():
        parts: list[Any] = list(factors(term))
        at = [i for i, part in enumerate(parts) if any(part is v for v in names)]
        others = [part for i, part in enumerate(parts) if i not in at[:1]]
        if len(at) > 1 or any(uses(part, names) for part in others):
            return []
        if not at:
            rest = rest.plus(known.term_sum(term), c)
            continue
        product = product_of(others, expr.dtype)
        position = next(i for i, v in enumerate(names) if v is parts[at[0]])
        slopes[position] = slopes[position].plus(known.sum(product), c)
    built = [known.build(s, expr.dtype) for s in (*slopes, rest)]
    coefficients = [one for one in built if one is not None]
    return coefficients if len(coefficients) == len(built) else []
