"""Quotients and remainders as variables: x // c is q and x % c is m with x == c*q + m and 0 <= m < c."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tedsl.arith.affine import Key, Sum
from tedsl.arith.bounds import Bounds
from tedsl.arith.inequality import nonnegative
from tedsl.arith.int_solver.linear import replaced
from tedsl.ir import build
from tedsl.ir.expr import Expr, FloorDiv, FloorMod, Var
from tedsl.ir.walk.rewriter import Rewriter
from tedsl.ir.walk.visitor import uses


class Quotients(Rewriter):
    """Replaces // and % by variables in conditions on `variables`.

    made: the new variables, with what each stands for. equations: sums that are 0. gaps: sums that are at least 0.
    """

    def __init__(self, known: Bounds, variables: Iterable[Var]) -> None:
        super().__init__()
        self.known = known
        self.variables = set(variables)
        self.made: dict[Var, Expr] = {}
        self.equations: list[Sum] = []
        self.gaps: list[Sum] = []
        self.pairs: dict[tuple[Key, Key], tuple[Var, Var]] = {}

    def rewrite(self, node: Any) -> Any:
        if isinstance(node, (FloorDiv, FloorMod)) and node.dtype.lanes == 1 and uses(node.a, self.variables) \
                and not uses(node.b, self.variables):
            pair = self.pair(node.a, node.b)
            if pair is not None:
                return pair[isinstance(node, FloorMod)]
        return node

    def pair(self, x: Expr, by: Expr) -> tuple[Var, Var] | None:
        """Returns the quotient and the remainder as variables; None if they are not index arithmetic by a positive number."""
        known = self.known
        dividend, divisor = known.sum(x), known.sum(by)
        if not (known.is_index(dividend) and known.is_index(divisor) and nonnegative(known, divisor.shifted(-1))):
            return None
        key = dividend.key, divisor.key
        if key not in self.pairs:
            number = len(self.pairs)
            q, m = Var(f"q{number}", x.dtype), Var(f"m{number}", x.dtype)
            self.pairs[key] = q, m
            self.variables |= {q, m}
            self.made |= {q: build.floordiv(x, by), m: build.floormod(x, by)}
            self.equations.append(replaced(known, known.sum(build.sub(build.sub(x, build.mul(q, by)), m)), {}))
            self.gaps += [known.sum(m), divisor.plus(known.sum(m), -1).shifted(-1)]
        return self.pairs[key]
