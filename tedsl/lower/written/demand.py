"""Bounds checks as assertions, and their hoisting out of loops.

before:  for (i: 0, n) { B[i + k] = 0 }
after:   assert (n <= 0 or (0 <= k and n - 1 + k < m), "...") { for (i: 0, n) { B[i + k] = 0 } }

A demand is hoisted out of a loop if the index is monotonic in its variable, and stays inside otherwise.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from tedsl.arith.analyzer import Analyzer
from tedsl.arith.interval import relax
from tedsl.ir import build
from tedsl.ir.expr import Expr, StringImm, Var
from tedsl.ir.stmt import AssertStmt, Stmt
from tedsl.ir.text import key_text
from tedsl.ir.walk.around import Loop
from tedsl.ir.walk.substitute import substitute
from tedsl.ir.walk.visitor import variables
from tedsl.lang.reads import takes_its_ends
from tedsl.record import record


@record(eq=False)
class Demand:
    """A bounds check: `first <= least` and `most < first + extent` wherever all `facts` hold. No part reads memory."""

    least: Expr
    most: Expr
    first: Expr
    extent: Expr
    facts: tuple[Expr, ...]
    message: str

    def inside(self) -> Expr:
        """The condition that the index stays in its range."""
        return within(self.least, self.most, self.first, self.extent)

    def condition(self) -> Expr:
        """The condition to assert: the index stays in its range wherever the facts hold."""
        wanted = self.inside()
        for fact in reversed(self.facts):
            wanted = build.logical_or(build.logical_not(fact), wanted)
        return wanted

    def variables(self) -> set[Var]:
        return {v for e in (self.least, self.most, self.first, self.extent, *self.facts) for v in variables(e)}

    def out_of(self, loop: Loop, analyzer: Analyzer) -> Demand | None:
        """The demand outside of `loop`; None if it must stay inside."""
        around = tuple(self.facts) if never_empty(loop, analyzer) else (*self.facts, build.greater_equal(loop.extent, 1))
        if loop.var not in self.variables():
            return replace(self, facts=around)
        fixed = {v for e in (self.first, self.extent, *self.facts) for v in variables(e)}
        if loop.var in fixed or not all(takes_its_ends(e, (loop.var,)) for e in (self.least, self.most)):
            return None
        last = build.sub(build.add(loop.min, loop.extent), 1)
        least = relax(self.least, {loop.var: (loop.min, last)}, analyzer)[0]
        most = relax(self.most, {loop.var: (loop.min, last)}, analyzer)[1]
        if least is None or most is None or loop.var in {*variables(least), *variables(most)}:
            return None
        return replace(self, least=least, most=most, facts=around)

    def with_value(self, var: Var, value: Expr) -> Demand:
        """The demand with `value` substituted for `var`, as it reads outside the let that binds `var`."""
        known = {var: value}
        return Demand(substitute(self.least, known), substitute(self.most, known), substitute(self.first, known),
                      substitute(self.extent, known), tuple(substitute(f, known) for f in self.facts), self.message)


def within(least: Expr, most: Expr, first: Expr, extent: Expr) -> Expr:
    """The condition first <= least and most < first + extent."""
    return build.logical_and(build.greater_equal(least, first), build.less(most, build.add(first, extent)))


def never_empty(loop: Loop, analyzer: Analyzer) -> bool:
    return analyzer.can_prove(build.greater_equal(loop.extent, 1))


def asserted(body: Stmt, demands: Sequence[Demand]) -> Stmt:
    """Put `body` behind assertions of the demands, each once."""
    return behind(body, ((d.condition(), d.message) for d in demands))


def behind(body: Stmt, conditions: Iterable[tuple[Expr, str]]) -> Stmt:
    """Put `body` behind assertions of (condition, message), each condition once."""
    once = {key_text(condition): (condition, message) for condition, message in conditions}
    for condition, message in reversed(once.values()):
        if not build.is_true(condition):
            body = AssertStmt(condition, StringImm(message), body)
    return body
