"""Simplify addresses with divisions again once strides are known, and turn vectors of addresses back into ramps.

before:  A[(ramp(i*16, 1, 16)//broadcast(m, 16))*broadcast(m, 16) + ramp(i*16, 1, 16)%broadcast(m, 16)]
after:   A[ramp(i*16, 1, 16)]

The compact version of a function with symbolic strides has such addresses where axes were fused: there the rows are contiguous,
so that the quotient and the remainder combine to the fused index. The divisor must not be 0, which holds because a buffer that
is read or written has no empty dimension. A vector is simplified as a function of its lane.
"""

from __future__ import annotations

from typing import Any

from tedsl.arith.analyzer import Analyzer
from tedsl.ir import build
from tedsl.ir.expr import BinaryOp, Broadcast, Cast, Expr, FloorDiv, FloorMod, IntImm, Load, Ramp, Var
from tedsl.ir.func import PrimFunc
from tedsl.ir.iters import Range
from tedsl.ir.node import Node
from tedsl.ir.stmt import For, Stmt, Store
from tedsl.ir.walk.contents import contains
from tedsl.ir.walk.rewriter import Rewriter, ScopedRewriter
from tedsl.ir.walk.visitor import post_order
from tedsl.passes.facts.conjunctions import conjunction
from tedsl.passes.loops.vectorize_expr import LaneExpressions, NotVectorizable


def straighten_indices(func: PrimFunc) -> PrimFunc:
    """Returns `func` with simpler addresses; itself if none has a division."""
    if not has_division(func.body):
        return func
    some = {b.data: [build.greater_equal(d, 1) for d in b.shape if isinstance(d, Var)] for b in func.buffers}
    return func.with_body(_Statements(some)(func.body))


def has_division(node: Node) -> bool:
    """Tells whether `node` contains a floor division or a modulo."""
    return contains(node, FloorDiv, FloorMod)


class _Statements(ScopedRewriter):
    """Simplifies the addresses in statements. some: for each buffer of the caller, the conditions that its dimensions are at
    least 1.
    """

    def __init__(self, some: dict[Var, list[Expr]]) -> None:
        self.some = some
        self.analyzer = Analyzer()
        self.indices = _Indices(self)  # what it simplified holds everywhere: each variable has one loop

    def expr(self, expr: Expr) -> Expr:
        return self.indices(expr) if has_division(expr) else expr

    def stmt(self, stmt: Stmt) -> Stmt:
        if not has_division(stmt):
            return stmt
        if isinstance(stmt, For):
            self.analyzer.bind(stmt.loop_var, Range.from_min_extent(stmt.min, stmt.extent))
        done = self.descend(stmt)
        if isinstance(done, Store):
            index = self.access(done)
            return done if index is done.index else done.replace(index=index)
        return done

    def access(self, node: Load | Store) -> Expr:
        """Returns the index of `node`, simplified where it has divisions."""
        if not has_division(node.index):
            return node.index
        some = self.some.get(node.buffer_var)
        if not some:
            return self.index(node.index)
        with self.analyzer.constraint_scope(conjunction(some)):
            return self.index(node.index)

    def index(self, index: Expr) -> Expr:
        if isinstance(index, Ramp) or index.dtype.lanes == 1:
            return self.analyzer.simplify(index)
        lane = Var("lane", index.dtype.element)
        scalar = as_function_of_lane(index, lane)
        if scalar is None:
            return index
        lanes = index.dtype.lanes
        zero, one = IntImm(lane.dtype, 0), IntImm(lane.dtype, 1)
        self.analyzer.bind(lane, Range.from_min_extent(zero, IntImm(lane.dtype, lanes)))
        simple = self.analyzer.simplify(scalar)
        if has_division(simple):
            return index
        expressions = LaneExpressions(lanes, {lane: Ramp(zero, one, lanes)})
        try:
            return expressions.widen(expressions(simple))
        except NotVectorizable:
            return index


class _Indices(Rewriter):
    kinds = (FloorDiv, FloorMod)

    def __init__(self, statements: _Statements) -> None:
        super().__init__()
        self.statements = statements

    def rewrite(self, node: Any) -> Any:
        if not isinstance(node, Load):
            return node
        index = self.statements.access(node)
        return node if index is node.index else node.replace(index=index)


def as_function_of_lane(index: Expr, lane: Var) -> Expr | None:
    """Returns the element at `lane` of a vector of integers made of ramps, broadcasts and arithmetic; None for any other
    vector.
    """
    scalars: dict[Any, Expr] = {}
    for node in post_order(index):
        if not isinstance(node, Expr):
            return None
        if node.dtype.lanes == 1:
            scalars[node] = node
        elif isinstance(node, Ramp):
            scalars[node] = build.add(node.base, build.mul(node.stride, build.cast(node.stride.dtype, lane)))
        elif isinstance(node, Broadcast):
            scalars[node] = node.value
        elif isinstance(node, Cast) and node.value in scalars:
            scalars[node] = build.cast(node.dtype.element, scalars[node.value])
        elif isinstance(node, BinaryOp) and node.dtype.is_integer:
            scalars[node] = build.binary(type(node), scalars[node.a], scalars[node.b])
        else:
            return None
    return scalars[index]
