"""Replace loops marked `vectorized` by vector statements; statements that need their lanes one by one stay serial loops.

before:  for (v: 0, 8) "vectorized" { if likely((i*8 + v) < n) { B[i*8 + v] = A[i*8 + v] * x } }
after:   B[ramp(i*8, 1, 8)] = A[ramp(i*8, 1, 8)] * broadcast(x, 8)   if (ramp(i*8, 1, 8) < broadcast(n, 8))

A guard that differs among the lanes becomes the predicate of the loads and stores under it. Memory allocated inside the
loop gets a dimension for the lanes. Loops inside run once for all lanes if their bounds do not depend on the lane. Lanes of a
loop that a schedule says to combine are combined in the element that all of them write. These stay serial: other reductions
into one element (the order of float additions is part of the result), stores that another lane reads, inner loops whose bounds
depend on the lane, calls with effects.
"""

from __future__ import annotations

from typing import Any

from tedsl.errors import LoweringError
from tedsl.ir import build
from tedsl.ir.calls.lanes import OF_KIND, neutral
from tedsl.ir.expr import BinaryOp, Broadcast, Call, Expr, IntImm, Load, Ramp, Select, Var
from tedsl.ir.func import PrimFunc
from tedsl.ir.node import FrozenDict
from tedsl.ir.ops import SUM_LANES
from tedsl.ir.script import shown
from tedsl.ir.stmt import (
    COMBINED,
    EXTERN_SCOPE,
    Allocate,
    AssertStmt,
    AttrStmt,
    Evaluate,
    For,
    ForKind,
    IfThenElse,
    LetStmt,
    SeqStmt,
    Stmt,
    Store,
    While,
    is_no_op,
    no_op,
    seq,
)
from tedsl.ir.walk.contents import contains
from tedsl.ir.walk.equal import structural_equal
from tedsl.ir.walk.rewriter import Rewriter, ScopedRewriter
from tedsl.ir.walk.substitute import copy_var
from tedsl.ir.walk.visitor import post_order, statements, uses
from tedsl.passes.facts.conjunctions import conjunction, conjuncts, without_likely
from tedsl.passes.folding import fold_with, folded_copy
from tedsl.passes.loops.vectorize_expr import LaneExpressions, NotVectorizable, opposite
from tedsl.passes.loops.vectors_in_a_row import in_a_row
from tedsl.passes.races.lane_order import must_run_in_order


def vectorize_loops(func: PrimFunc, *, enable: bool = True) -> PrimFunc:
    """Returns `func` without vectorized loops. enable=False makes all of them serial."""
    return func.with_body(_Vectorizer(enable, not func.attrs.get("from_legacy_te_schedule"))(func.body))


class _Vectorizer(ScopedRewriter):
    def __init__(self, enable: bool, by_hand: bool) -> None:
        self.enable, self.by_hand = enable, by_hand
        self.around: list[For] = []

    def expr(self, expr: Expr) -> Expr:
        return expr

    def stmt(self, stmt: Stmt) -> Stmt:
        if isinstance(stmt, (Store, Evaluate)):
            return stmt
        if isinstance(stmt, AttrStmt) and stmt.attr_key == EXTERN_SCOPE:
            outside, self.by_hand = self.by_hand, True
            new = self.descend(stmt)
            self.by_hand = outside
            return new
        if not isinstance(stmt, For):
            return self.descend(stmt)
        if stmt.kind != ForKind.VECTORIZED:
            return self.serial(stmt, stmt.kind)
        lanes = build.as_int(stmt.extent)
        if not self.enable:
            return self.serial(stmt)
        if lanes is None:
            raise LoweringError(f"loop {stmt.loop_var.name} is marked vectorized, and its extent {shown(stmt.extent)} is not "
                                "a constant",
                                hint="split it by a constant factor first, then vectorize the inner loop",
                                about=stmt)
        if lanes <= 1:
            return self.stmt(fold_with(stmt.body, {stmt.loop_var: stmt.min})) if lanes == 1 else no_op()
        return self.vectorized(stmt, lanes)

    def serial(self, loop: For, kind: ForKind = ForKind.SERIAL) -> Stmt:
        self.around.append(loop)
        new = self.descend(loop if kind is loop.kind else _of_kind(loop, kind))
        self.around.pop()
        return new

    def vectorized(self, loop: For, lanes: int) -> Stmt:
        combined = COMBINED in loop.annotations
        body = _widen_allocations(loop.body, loop.loop_var, build.sub(loop.loop_var, loop.min), lanes)
        if body is None or (not combined and must_run_in_order(
                body, loop.loop_var, loop.min, lanes, self.around, self.by_hand)):
            return self.serial(loop)
        try:
            return (_CombinedLanes(self, loop, lanes, body) if combined else _LaneStatements(self, loop, lanes))(body)
        except NotVectorizable:
            return self.serial(loop)


def _widen_allocations(body: Stmt, loop_var: Var, lane: Expr, lanes: int) -> Stmt | None:
    """Returns `body` with one element per lane for each element of the memory that it allocates; None where that is
    impossible.
    """
    if not contains(body, Allocate):
        return body
    inside = [stmt for stmt in statements(body) if isinstance(stmt, Allocate)]
    if any(loop_var in set(post_order(extent)) for node in inside for extent in node.extents):
        return None
    memory = {node.buffer_var for node in inside}
    if any(node in memory for node in post_order(body)):
        return None  # a function gets its address, and knows nothing of lanes
    return _Widener(memory, lane, lanes)(body)  # type: ignore[no-any-return]


class _Widener(Rewriter):
    def __init__(self, memory: set[Var], lane: Expr, lanes: int) -> None:
        super().__init__()
        self.memory, self.lane, self.lanes = memory, lane, lanes

    def rewrite(self, node: Any) -> Any:
        match node:
            case Load(buffer_var=v) | Store(buffer_var=v) if v in self.memory:
                index = build.mul(node.index, self.lanes)
                return node.replace(index=build.add(index, build.cast(index.dtype.element, self.lane)))
            case Allocate():
                return node.replace(extents=(*node.extents, IntImm(node.extents[-1].dtype, self.lanes)))
            case _:
                return node


def _of_kind(loop: For, kind: ForKind) -> For:
    """Returns `loop` as one of `kind`, whose lanes, if it had some, are not combined any more."""
    kept = {key: value for key, value in loop.annotations.items() if key != COMBINED}
    return loop.replace(kind=kind, annotations=FrozenDict(kept))


class _LaneStatements:
    """Vectorizes the body of one loop over all its lanes.

    conditions: the guards around the current statement, for one lane. may_split: whether the current statement may become a
    loop over the lanes (not inside a let, whose value is a vector).
    """

    def __init__(self, outside: _Vectorizer, loop: For, lanes: int) -> None:
        self.outside, self.loop, self.lanes = outside, loop, lanes
        ramp = Ramp(loop.min, IntImm(loop.min.dtype, 1), lanes)
        self.expr = LaneExpressions(lanes, {loop.loop_var: ramp})
        self.mask: Expr | None = None
        self.conditions: list[Expr] = []
        self.may_split = True

    def __call__(self, stmt: Stmt) -> Stmt:
        if not self.may_split or isinstance(stmt, SeqStmt):
            return self.vector(stmt)
        try:
            return self.vector(stmt)
        except NotVectorizable:
            return self.lane_by_lane(stmt)

    def lane_by_lane(self, stmt: Stmt) -> Stmt:
        """Returns a serial loop over the lanes around `stmt` alone."""
        var = copy_var(self.loop.loop_var)
        guarded = stmt if not self.conditions else IfThenElse(conjunction(map(without_likely, self.conditions)), stmt)
        body = folded_copy(guarded, {self.loop.loop_var: var})
        return self.outside(For(var, self.loop.min, self.loop.extent, ForKind.SERIAL, body))

    def vector(self, stmt: Stmt) -> Stmt:
        match stmt:
            case SeqStmt():
                return seq(*map(self, stmt.seq))
            case Store():
                return self.store(stmt)
            case For():
                return self.inner_loop(stmt)
            case IfThenElse():
                return self.branch(stmt)
            case LetStmt():
                return self.let(stmt)
            case Allocate():
                return stmt.replace(body=self(stmt.body))
            case AttrStmt():
                return stmt.replace(value=self.uniform(stmt.value), body=self(stmt.body))
            case Evaluate() if is_no_op(stmt):
                return no_op()
            case While() | AssertStmt() if self.mask is None:
                return stmt.replace(condition=self.uniform(stmt.condition), body=self(stmt.body))
            case _:
                raise NotVectorizable(type(stmt).__name__)

    def uniform(self, expr: Expr) -> Expr:
        """Returns `expr`; raises NotVectorizable unless it is the same for all lanes."""
        new = self.expr(expr, self.mask)
        if new.dtype.lanes != expr.dtype.lanes:
            raise NotVectorizable("differs among the lanes")
        return new

    def store(self, store: Store) -> Stmt:
        if store.index.dtype.lanes > 1 and store.predicate is None and self.mask is None and uses(store, self.loop.loop_var):
            return in_a_row(store, self.loop, self.lanes)
        index, value = self.expr(store.index, self.mask), self.expr(store.value, self.mask)
        if index.dtype.lanes == store.index.dtype.lanes and value.dtype.lanes == store.value.dtype.lanes and self.mask is None:
            return store.replace(index=index, value=value)  # the same for each lane: once is enough
        if store.index.dtype.lanes > 1 or store.predicate is not None or index.dtype.lanes == 1:
            raise NotVectorizable("a vector of vectors")
        return Store(store.buffer_var, self.expr.widen(value), index, self.mask)

    def inner_loop(self, loop: For) -> Stmt:
        kind = loop.kind if loop.kind == ForKind.UNROLLED else ForKind.SERIAL
        return _of_kind(loop, kind).replace(min=self.uniform(loop.min), extent=self.uniform(loop.extent), body=self(loop.body))

    def branch(self, branch: IfThenElse) -> Stmt:
        """Vectorizes a branch: parts of its condition that are the same for all lanes stay a branch, the others become a
        mask.
        """
        parts = conjuncts(branch.condition)
        vectors = [self.expr(part, self.mask) for part in parts]
        if all(v.dtype.lanes == 1 for v in vectors):
            return IfThenElse(conjunction(vectors), self.under(branch.then_case, self.mask, parts),
                              None if branch.else_case is None else
                              self.under(branch.else_case, self.mask, [build.logical_not(branch.condition)]))
        alone = branch.else_case is None
        uniform = [v for v in vectors if alone and v.dtype.lanes == 1]
        masks = [without_likely(v) for v in vectors if not (alone and v.dtype.lanes == 1)]
        mask = self.expr.widen(masks[0])
        for more in masks[1:]:
            mask = build.logical_and(mask, self.expr.widen(more))
        done = self.masked(branch, mask, parts)
        return IfThenElse(conjunction(uniform), done) if uniform else done

    def masked(self, branch: IfThenElse, mask: Expr, parts: list[Expr]) -> Stmt:
        """Returns the sides of `branch` under `mask`. A mask that reads memory is bound by a let first, since the sides may
        write there.
        """
        bound = None
        if any(isinstance(node, Load) for node in post_order(mask)):
            bound = Var("mask", mask.dtype)
        chosen: Expr = mask if bound is None else bound
        before = self.may_split
        self.may_split = before and bound is None
        body = self.under(branch.then_case, self.expr.both(self.mask, chosen), parts)
        if branch.else_case is not None:
            otherwise = self.under(branch.else_case, self.expr.both(self.mask, opposite(chosen)),
                                   [build.logical_not(branch.condition)])
            body = seq(body, otherwise)
        self.may_split = before
        return body if bound is None else LetStmt(bound, mask, body)

    def under(self, stmt: Stmt, mask: Expr | None, conditions: list[Expr]) -> Stmt:
        outer, count = self.mask, len(self.conditions)
        self.mask = mask
        self.conditions += conditions
        try:
            return self(stmt)
        finally:
            self.mask = outer
            del self.conditions[count:]

    def let(self, let: LetStmt) -> Stmt:
        value = self.expr(let.value, self.mask)
        before, self.may_split = self.may_split, False
        try:
            if value.dtype.lanes == let.value.dtype.lanes:
                return LetStmt(let.var, value, self(let.body))
            var = Var(let.var.name, value.dtype)
            self.expr.varying[let.var] = var
            return LetStmt(var, value, self(let.body))
        finally:
            self.may_split = before


class _CombinedLanes(_LaneStatements):
    """Vectorizes the body of a reduction loop whose lanes are combined before they reach the element that all of them write.

        B[i] = B[i] + A[k]   →   B[i] = B[i] + sum_lanes(A[ramp(0, 1, 8)])

    What is computed inside, in memory of each lane's own, is computed in vectors. Nothing but these elements is written for all
    lanes, and nothing but their sums reads them, so that the lanes may run in any order.
    """

    def __init__(self, outside: _Vectorizer, loop: For, lanes: int, body: Stmt) -> None:
        super().__init__(outside, loop, lanes)
        self.may_split = False
        inside = [*statements(body)]
        self.own = {stmt.buffer_var for stmt in inside if isinstance(stmt, Allocate)}
        self.shared = {stmt.buffer_var for stmt in inside if isinstance(stmt, Store)} - self.own

    def vector(self, stmt: Stmt) -> Stmt:
        if isinstance(stmt, LetStmt) or (isinstance(stmt, (IfThenElse, For)) and self._reads_shared(stmt)):
            raise NotVectorizable("a loop or a condition that depends on what the lanes write")
        return super().vector(stmt)

    def _reads_shared(self, stmt: IfThenElse | For) -> bool:
        read = (stmt.condition,) if isinstance(stmt, IfThenElse) else (stmt.min, stmt.extent)
        return any(uses(expr, self.shared) for expr in read)

    def store(self, store: Store) -> Stmt:
        if store.buffer_var in self.own:
            if uses(store.value, self.shared) or uses(store.index, self.shared):
                raise NotVectorizable("an element that all lanes write, before it is finished")
            return super().store(store)
        index, value, memory = self.expr(store.index, self.mask), store.value, store.buffer_var
        op = OF_KIND.get(type(value))
        if op is None or not isinstance(value, BinaryOp):
            raise NotVectorizable("a reduction of another kind")
        if index.dtype.lanes > 1 or value.dtype.lanes > 1 or store.predicate is not None or value.dtype.is_bool:
            raise NotVectorizable("a reduction of another kind")
        kept, source = value.a, value.b
        if not _is_kept(kept, store):
            kept, source = source, kept
        if not _is_kept(kept, store) or value.dtype.is_custom or uses(source, self.shared):
            raise NotVectorizable("a reduction of another kind")
        lanes = self.expr.widen(self.expr(source, self.mask))
        if self.mask is not None and not (op is SUM_LANES and isinstance(lanes, Load) and lanes.predicate is self.mask):
            lanes = Select(self.mask, lanes, Broadcast(neutral(op, value.dtype), self.lanes))  # a lane that is off loads 0
        kind: Any = type(value)
        return Store(memory, kind(kept, Call(value.dtype, op, (lanes,))), index)


def _is_kept(value: Expr, store: Store) -> bool:
    """Whether `value` is what the element that `store` writes held before."""
    return isinstance(value, Load) and value.buffer_var is store.buffer_var and structural_equal(value.index, store.index)
