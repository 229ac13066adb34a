"""Replace operations that machines lack by those that they have, and floor divisions by truncating ones where these are equal.

before:  A[i // 3] = isfinite(x)          after:  A[i / 3] = (fabs(x) < inf)          (for 0 <= i)

    isnan(x) → x != x      isinf(x) → fabs(x) == inf      isfinite(x) → fabs(x) < inf      likely(c) → c
    tvm_thread_context(x) → x

A floor division rounds as a truncating one where the signs of its operands are proved equal; the code generator needs
one instruction for that instead of five. Divisions by powers of two stay: they are shifts whatever the sign. exp, tanh
and their kin stay: the code generator has them in vectors.
"""

from __future__ import annotations

import math
from typing import Any

from tedsl.arith.analyzer import Analyzer
from tedsl.ir.dtype import DType
from tedsl.ir.expr import EQ, LT, NE, Broadcast, Call, Div, Expr, FloatImm, FloorDiv, FloorMod, IntImm, Mod
from tedsl.ir.func import PrimFunc
from tedsl.ir.iters import Range
from tedsl.ir.node import Node
from tedsl.ir.ops import FABS, ISFINITE, ISINF, ISNAN, LIKELY, THREAD_CONTEXT, Op
from tedsl.ir.stmt import For, IfThenElse, LetStmt, Stmt
from tedsl.ir.walk.contents import contains
from tedsl.ir.walk.rewriter import Rewriter, ScopedRewriter

_LOWERED = (ISNAN, ISINF, ISFINITE, LIKELY, THREAD_CONTEXT)


def lower_intrinsics(func: PrimFunc) -> PrimFunc:
    """Returns `func` with operators that every backend implements."""
    return func.with_body(_Statements()(func.body)) if _is_worth_it(func.body) else func


def _is_worth_it(node: Node) -> bool:
    """Tells whether `node` contains something to lower."""
    return contains(node, *_Operations.kinds)


class _Statements(ScopedRewriter):
    """Lowers the expressions of statements."""

    def __init__(self) -> None:
        self.analyzer = Analyzer()
        self.operations = _Operations(self.analyzer)  # what it lowered holds wherever the same conditions do

    def expr(self, expr: Expr) -> Expr:
        return self.operations(expr) if _is_worth_it(expr) else expr

    def stmt(self, stmt: Stmt) -> Stmt:
        if not _is_worth_it(stmt):
            return stmt
        if isinstance(stmt, For):
            self.analyzer.bind(stmt.loop_var, Range.from_min_extent(stmt.min, stmt.extent))
        elif isinstance(stmt, LetStmt) and stmt.value.dtype.is_int and stmt.value.dtype.lanes == 1:
            self.analyzer.bind(stmt.var, stmt.value)
        elif isinstance(stmt, IfThenElse):
            condition = self.expr(stmt.condition)
            outside = self.operations
            with self.analyzer.constraint_scope(condition):
                self.operations = _Operations(self.analyzer)
                then = self.stmt(stmt.then_case)
            self.operations = outside
            other = None if stmt.else_case is None else self.stmt(stmt.else_case)
            same = condition is stmt.condition and then is stmt.then_case and other is stmt.else_case
            return stmt if same else IfThenElse(condition, then, other)
        return self.descend(stmt)


class _Operations(Rewriter):
    """Lowers expressions under the conditions of one place, on which depends what can be proved. Each variable has one loop."""

    kinds = (FloorDiv, FloorMod, *_LOWERED)

    def __init__(self, analyzer: Analyzer) -> None:
        super().__init__()
        self.analyzer = analyzer

    def rewrite(self, node: Any) -> Any:
        if isinstance(node, (FloorDiv, FloorMod)):
            return self.division(node)
        if isinstance(node, Call) and node.op in _LOWERED:
            return _classify(node.op, node.args[0])
        return node

    def division(self, node: FloorDiv | FloorMod) -> Expr:
        if node.dtype.lanes > 1 or not node.dtype.is_int:
            return node
        if isinstance(node.b, IntImm) and node.b.value & (node.b.value - 1) == 0:
            return node
        if self.at_least(node.b, 1) and self.at_least(node.a, 0):
            return Div(node.a, node.b) if isinstance(node, FloorDiv) else Mod(node.a, node.b)
        return node

    def at_least(self, e: Expr, least: int) -> bool:
        low, _ = self.analyzer.bounds(e)
        return low is not None and low >= least


def _classify(op: Op, x: Expr) -> Expr:
    if op in (LIKELY, THREAD_CONTEXT):
        return x
    if op is ISNAN:
        return NE(x, x)
    size = Call(x.dtype, FABS, (x,))
    return EQ(size, _infinity(x.dtype)) if op is ISINF else LT(size, _infinity(x.dtype))


def _infinity(dtype: DType) -> Expr:
    infinity = FloatImm(dtype.element, math.inf)
    return infinity if dtype.lanes == 1 else Broadcast(infinity, dtype.lanes)
