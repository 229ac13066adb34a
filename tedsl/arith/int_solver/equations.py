"""Solves linear equations over the integers.

2*y + k == h     ->   k = h - 2*y                            a coefficient of 1: y is free
2*y == h         ->   y = h // 2         where h % 2 == 0    a common factor
2*x + 3*y == h   ->   x = -h + 3*z, y = h - 2*z              Smith normal form: z is a new variable
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from math import gcd

from tedsl.arith.affine import Sum
from tedsl.arith.bounds import Bounds
from tedsl.arith.int_solver.linear import as_condition, expression, replaced, slopes
from tedsl.arith.int_solver.smith import SmithForm, smith_normal_form
from tedsl.ir import build
from tedsl.ir.dtype import BOOL, INT32, INT64
from tedsl.ir.expr import Expr, IntImm, Var

Linear = tuple[Sum, dict[Var, Sum], Sum]  # an equation, the coefficients of its variables, the rest


class Equations:
    """Equations in the course of their solution.

    values: of the variables that are solved for, in terms of `variables`, those that are free; originals: for each variable
    that was introduced, what it is in terms of the given ones. conditions: what symbols must fulfil so that there is a
    solution, and equations that are not linear.
    """

    def __init__(self, known: Bounds, equations: Iterable[Sum], variables: Sequence[Var],
                 prefer: Callable[[Var], float] = lambda var: 0) -> None:
        self.known = known
        self.pending = list(equations)
        self.variables = list(variables)
        self.prefer = prefer  # of several variables with a coefficient of 1 the one with the greatest key is solved for
        self.values: dict[Var, Expr] = {}
        self.originals: dict[Var, Expr] = {}
        self.conditions: list[Expr] = []
        self.dtype = INT64 if any(var.dtype is INT64 for var in variables) else INT32
        self.solve()

    def solve(self) -> None:
        while self.pending:
            self._drop_decided()
            linear = self._linear()
            if not (self._by_unit(linear) or self._by_matrix(linear)):
                break
        self.conditions += [as_condition(self.known, s, self.dtype, equation=True) for s in self.pending]
        self.pending = []

    def _drop_decided(self) -> None:
        """Moves equations without a variable to the conditions, and divides the others by common factors."""
        kept = []
        for s in self.pending:
            linear = slopes(self.known, s, self.variables)
            if linear is None:
                kept.append(s)  # the value of a variable may make it linear
            elif linear[0]:
                kept.append(self._without_factor(s, *linear))
            elif s.terms:
                self.conditions.append(as_condition(self.known, s, self.dtype, equation=True))
            elif s.const:
                self.conditions.append(IntImm(BOOL, 0))
        self.pending = kept

    def _linear(self) -> list[Linear]:
        """Returns the pending equations that are linear, with their coefficients and rests."""
        found = [(s, slopes(self.known, s, self.variables)) for s in self.pending]
        return [(s, *linear) for s, linear in found if linear is not None]

    def _without_factor(self, s: Sum, coefficients: dict[Var, Sum], rest: Sum) -> Sum:
        """Returns the equation divided by the common factor of the coefficients, with the condition that it divides the rest.
        """
        if any(c.terms for c in coefficients.values()):
            return s
        g = gcd(*[c.const for c in coefficients.values()])
        if g == 1:
            return s
        quotient = self._quotient(rest, g)
        return quotient.plus(Sum({var: c.const // g for var, c in coefficients.items()}))

    def _quotient(self, s: Sum, g: int) -> Sum:
        """Returns s / g, and adds the condition that g divides s."""
        whole = Sum({t: c // g for t, c in s.terms.items() if c % g == 0})
        part = s.plus(whole, -g)
        if not part.terms:
            self.conditions += [IntImm(BOOL, 0)] if part.const % g else []
            return whole.shifted(part.const // g)
        sign = 1 if next(iter(part.terms.values())) > 0 else -1  # -(j // 2) reads better than (0 - j) // 2, and is equal here
        value = expression(self.known, part.times(sign), self.dtype)
        self.conditions.append(build.equal(build.floormod(value, g), 0))
        return whole.plus(self.known.sum(build.floordiv(value, g)), sign)

    # --- one variable ---------------------------------------------------------------------------------------------------

    def _by_unit(self, linear: list[Linear]) -> bool:
        """Solves one equation for a variable whose coefficient is 1 or -1; False if there is none."""
        units = [(var, s, c.const) for s, coefficients, _ in linear for var, c in coefficients.items()
                 if not c.terms and abs(c.const) == 1]
        if not units:
            return False
        var, s, sign = max(units, key=lambda unit: self.prefer(unit[0]))
        self.pending = [other for other in self.pending if other is not s]
        self._set({var: expression(self.known, s.without(var).times(-sign), var.dtype)})
        return True

    def _set(self, values: dict[Var, Expr]) -> None:
        """Replaces variables by their values in everything."""
        known = self.known
        self.variables = [var for var in self.variables if var not in values]
        self.pending = [replaced(known, s, values) for s in self.pending]
        self.values = {var: expression(known, replaced(known, known.sum(value), values), var.dtype)
                       for var, value in self.values.items()} | values

    # --- several variables ----------------------------------------------------------------------------------------------

    def _by_matrix(self, linear: list[Linear]) -> bool:
        """Solves the equations with constant coefficients together, by new variables; False if there are none."""
        rows = [row for row in linear if row[1] and all(not c.terms for c in row[1].values())]
        if not rows:
            return False
        columns = [var for var in self.variables if any(var in coefficients for _, coefficients, _ in rows)]
        form = smith_normal_form([[coefficients[var].const if var in coefficients else 0 for var in columns]
                                  for _, coefficients, _ in rows])
        self.pending = [s for s in self.pending if not any(s is row[0] for row in rows)]
        rights = [_combined(row, [rest.times(-1) for _, _, rest in rows]) for row in form.left]
        rank = len(form.diagonal)
        parts = [self._quotient(right, d) for right, d in zip(rights, form.diagonal)]
        self.pending += rights[rank:]  # without a variable
        self._introduce(columns, form, parts)
        return True

    def _introduce(self, columns: Sequence[Var], form: SmithForm, parts: list[Sum]) -> None:
        """Replaces the variables `columns` by inverse * columns, of which the first are `parts` and the others free."""
        rank, dtype = len(parts), columns[0].dtype
        free = [Var(f"n{len(self.originals) + i}", dtype) for i in range(len(columns) - rank)]
        parts += [self.known.sum(var) for var in free]
        values = {var: expression(self.known, _combined(form.right[i], parts), var.dtype) for i, var in enumerate(columns)}
        given = [self.known.sum(self.originals.get(var, var)) for var in columns]
        self.originals |= {var: expression(self.known, _combined(form.inverse[rank + i], given), dtype)
                           for i, var in enumerate(free)}
        self.variables += free
        self._set(values)


def _combined(factors: Sequence[int], parts: Sequence[Sum]) -> Sum:
    result = Sum({})
    for factor, part in zip(factors, parts):
        result = result.plus(part, factor)
    return result
