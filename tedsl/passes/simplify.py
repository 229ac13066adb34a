"""Simplify every expression where it stands, under the loops and conditions around it; drop what cannot run.

before:  for (i: 0, 4) { for (j: 0, 8) { if likely((i*8 + j) < 32) { A[((i*8 + j) // 8)] = 0 } } }
after:   for (i: 0, 4) { for (j: 0, 8) { A[i] = 0 } }
"""

from __future__ import annotations

from typing import Any

from tedsl.arith.analyzer import Analyzer
from tedsl.ir import build
from tedsl.ir.expr import Call, Expr, FloatImm, IntImm, Load, StringImm, Var
from tedsl.ir.func import PrimFunc
from tedsl.ir.iters import Range
from tedsl.ir.ops import ELEMENTS_PAST_LINE
from tedsl.ir.stmt import AssertStmt, AttrStmt, For, IfThenElse, LetStmt, SeqStmt, Stmt, Store, no_op, seq
from tedsl.ir.walk.rewriter import ScopedRewriter
from tedsl.ir.walk.substitute import substitute
from tedsl.ir.walk.visitor import post_order, statements
from tedsl.passes.facts.conjunctions import conjunction, conjuncts, is_likely, without_likely
from tedsl.passes.facts.threads import bind_launched
from tedsl.passes.folding import is_always_false, is_always_true


def simplify(func: PrimFunc) -> PrimFunc:
    """Returns `func` with simplified expressions and without branches, loops and lets that are decided."""
    return func.with_body(_Simplifier()(func.body))


def simplify_changed(func: PrimFunc, before: PrimFunc) -> PrimFunc:
    """Returns `func` with those parts simplified that are not parts of `before`, or stand in other loops there."""
    places: set[Any] = set()
    kept: set[Stmt] = set()
    for stmt in statements(before.body):
        kept.add(stmt)
        if isinstance(stmt, For):
            places.add((stmt.loop_var, stmt.min, stmt.extent))
        elif isinstance(stmt, IfThenElse):
            places.add(stmt.condition)
    return func.with_body(_Changed(kept, places)(func.body))


class _Simplifier(ScopedRewriter):
    def __init__(self) -> None:
        self.analyzer = Analyzer()

    def expr(self, expr: Expr) -> Expr:
        if isinstance(expr, (IntImm, FloatImm, Var, StringImm)):
            return expr
        return self.analyzer.simplify(expr)

    def stmt(self, stmt: Stmt) -> Stmt:
        match stmt:
            case For():
                return self.loop(stmt)
            case IfThenElse():
                return self.branch(stmt)
            case LetStmt():
                return self.let(stmt)
            case AssertStmt():
                return self.check(stmt)
            case Store():
                return self.store(stmt)
            case AttrStmt():
                bind_launched(self.analyzer, stmt)
                return self.descend(stmt)
            case SeqStmt():
                parts = [self.stmt(s) for s in stmt.seq]
                return stmt if all(a is b for a, b in zip(parts, stmt.seq)) else seq(*parts)
            case _:
                return self.descend(stmt)

    def loop(self, loop: For) -> Stmt:
        low, extent = self.expr(loop.min), self.expr(loop.extent)
        if isinstance(extent, IntImm) and extent.value <= 0:
            return no_op()
        self.analyzer.bind(loop.loop_var, Range.from_min_extent(low, extent))
        if isinstance(extent, IntImm):
            body = self.stmt(loop.body)
        else:  # the body runs only if there is an iteration at all
            with self.analyzer.constraint_scope(build.greater(extent, IntImm(extent.dtype, 0))):
                body = self.stmt(loop.body)
        if low is loop.min and extent is loop.extent and body is loop.body:
            return loop
        return loop.replace(min=low, extent=extent, body=body)

    def condition(self, condition: Expr) -> Expr:
        """Returns `condition` without the parts that are proved; false if one is refuted."""
        kept: list[Expr] = []
        parts = conjuncts(condition)
        for part in parts:
            bare = without_likely(part)
            simple = self.expr(bare)
            if is_always_false(simple):
                return simple
            if is_always_true(simple):
                continue
            kept.append(part if simple is bare else build.likely(simple) if is_likely(part) else simple)
        unchanged = len(kept) == len(parts) and all(a is b for a, b in zip(kept, parts))
        return condition if unchanged else conjunction(kept)

    def branch(self, branch: IfThenElse) -> Stmt:
        condition = self.condition(branch.condition)
        if is_always_true(condition):
            return self.stmt(branch.then_case)
        if is_always_false(condition):
            return no_op() if branch.else_case is None else self.stmt(branch.else_case)
        known = conjunction(map(without_likely, conjuncts(condition)))
        with self.analyzer.constraint_scope(known):
            then = self.stmt(branch.then_case)
        otherwise = branch.else_case
        if otherwise is not None:
            with self.analyzer.constraint_scope(build.logical_not(known)):
                otherwise = self.stmt(otherwise)
        if condition is branch.condition and then is branch.then_case and otherwise is branch.else_case:
            return branch
        return IfThenElse(condition, then, otherwise)

    def let(self, let: LetStmt) -> Stmt:
        """Substitutes the value of a let where it is a cheap integer without loads, so that indices are simplified as a
        whole.
        """
        value = self.expr(let.value)
        if can_inline(value):
            return self.stmt(substitute(let.body, {let.var: value}))
        if value.dtype.is_integer and value.dtype.lanes == 1:
            self.analyzer.bind_let(let.var, value)
        body = self.stmt(let.body)
        return let if value is let.value and body is let.body else LetStmt(let.var, value, body)

    def check(self, check: AssertStmt) -> Stmt:
        condition = self.expr(check.condition)
        if is_always_true(condition):
            return self.stmt(check.body)
        with self.analyzer.constraint_scope(condition):
            body = self.stmt(check.body)
        return check if condition is check.condition and body is check.body else AssertStmt(condition, check.message, body)

    def store(self, store: Store) -> Stmt:
        index, value = self.expr(store.index), self.expr(store.value)
        predicate = None if store.predicate is None else self.expr(store.predicate)
        if predicate is not None:
            if is_always_false(predicate):
                return no_op()
            if is_always_true(predicate):
                predicate = None
        if index is store.index and value is store.value and predicate is store.predicate:
            return store
        return Store(store.buffer_var, value, index, predicate)


class _Changed(_Simplifier):
    """Simplifies what is new. kept: statements that stay as they are in `places`, loops and conditions."""

    def __init__(self, kept: set[Stmt], places: set[Any]) -> None:
        super().__init__()
        self.kept, self.places = kept, places
        self.moved = False  # there is another loop or condition around

    def stmt(self, stmt: Stmt) -> Stmt:
        if not self.moved and stmt in self.kept:
            return stmt
        outside = self.moved
        if isinstance(stmt, For):
            self.moved = outside or (stmt.loop_var, stmt.min, stmt.extent) not in self.places
        elif isinstance(stmt, IfThenElse):
            self.moved = outside or stmt.condition not in self.places
        done = super().stmt(stmt)
        self.moved = outside
        return done


def can_inline(value: Expr) -> bool:
    """Tells whether `value` is better substituted than bound by a let: a constant, a variable, or integer arithmetic without
    memory, impure calls and the bits of addresses.
    """
    if isinstance(value, (IntImm, FloatImm, Var)):
        return True
    if not value.dtype.is_integer or value.dtype.lanes != 1:
        return False
    return not any(isinstance(n, Load) or (isinstance(n, Call) and (not n.op.is_pure or n.op is ELEMENTS_PAST_LINE))
                   for n in post_order(value))


