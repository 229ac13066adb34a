"""Lowering of te.compute: its computation, and its statements in one iteration (init, update, store).

    B[i] = sum(A[i, k])      init: B[i] = 0      update: B[i] = B[i] + A[i, k]
    tuple reductions         update: let v0 = ..., v1 = ... (all sources first), then the stores
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Protocol

from tedsl.ir import build
from tedsl.ir.buffer import Buffer
from tedsl.ir.expr import BufferLoad, Expr, ProducerLoad, Reduce, Var
from tedsl.ir.func import Accesses
from tedsl.ir.iters import IterVar, Range
from tedsl.ir.stmt import BufferStore, IfThenElse, LetStmt, Stmt, seq
from tedsl.ir.walk.rewriter import Rewriter
from tedsl.ir.walk.substitute import substitute
from tedsl.lang.inline import Inliner
from tedsl.lang.operation import ComputeOp
from tedsl.lang.reads import loads_of
from tedsl.lower.checks import Requirement, check_reads
from tedsl.lower.plan import Computation, Read, StagePlan
from tedsl.lower.reductions.order import Decided
from tedsl.schedule.state import StageState


class BufferOf(Protocol):
    """Maps each tensor to its buffer."""

    def __call__(self, tensor: Any) -> Buffer: ...


class Translator(Rewriter):
    """Translates formulas to the loop IR: axes become `values`, loads of tensors become loads of buffers."""

    def __init__(self, values: Mapping[Var, Expr], buffer_of: BufferOf) -> None:
        super().__init__()
        self.values, self.buffer_of = values, buffer_of

    def rewrite(self, node: Any) -> Any:
        if isinstance(node, Var):
            return self.values.get(node, node)
        if type(node) is ProducerLoad:
            return BufferLoad(self.buffer_of(node.producer), node.indices)
        return node


def formula_computation(stage: StageState, inliner: Inliner | None, domains: Mapping[IterVar, Range], accesses: Accesses) \
        -> tuple[Computation, tuple[Requirement, ...]]:
    """Returns the computation of a te.compute, with inlined producers and bounds-checked reads, and the requirements that the
    reads put on the shapes.
    """
    op = stage.op
    assert isinstance(op, ComputeOp)
    checked = check_reads(op, domains, accesses=accesses)
    bodies = checked.bodies if inliner is None else tuple(inliner(body) for body in checked.bodies)
    ranges = {axis: axis.dom if inliner is None else axis.dom.map_children(inliner) for axis in op.reduce_axis if axis.dom}
    reads = tuple(Read(load.producer, tuple((i, i) for i in load.indices)) for load in loads_of(bodies, *ranges.values()))
    own = {axis: domains[axis] for axis in op.axis if axis in domains}
    own.update((axis, dom) for axis, dom in ranges.items() if dom is not axis.dom)
    return Computation(op, bodies, reads, own, accesses), checked.requirements


def store_values(plan: StagePlan, buffers: Sequence[Buffer], place: tuple[Expr, ...], translate: Translator) -> Stmt:
    """The stores of a formula without reduction."""
    return seq(*[BufferStore(buffer, translate(body), place) for buffer, body in zip(buffers, plan.bodies)])


def store_init(reduce: Reduce, buffers: Sequence[Buffer], place: tuple[Expr, ...], translate: Translator) -> Stmt:
    """The stores of the initial values of a reduction."""
    start = reduce.init or reduce.combiner.identity_element
    return seq(*[BufferStore(buffer, translate(value), place) for buffer, value in zip(buffers, start)])


def store_update(plan: StagePlan, reduce: Reduce, buffers: Sequence[Buffer], place: tuple[Expr, ...],
                 translate: Translator, in_order: Collection[int] = ()) -> Stmt:
    """The update of one step of a reduction, under its `where` condition.

    in_order: the numbers of the components of which each source is known to be greater than what was kept before.
    """
    combiner = reduce.combiner
    values: dict[Var, Expr] = {left: BufferLoad(buffer, place) for left, buffer in zip(combiner.lhs, buffers)}
    values.update((right, translate(source)) for right, source in zip(combiner.rhs, reduce.source))
    decided = Decided({(combiner.lhs[at], combiner.rhs[at]) for at in in_order})
    results = [substitute(translate(decided(result)), values) for result in combiner.result]  # they may use axes
    stmt = BufferStore(buffers[0], results[0], place) if len(results) == 1 else _store_all(plan, results, buffers, place)
    condition = translate(reduce.condition)
    return stmt if build.is_true(condition) else IfThenElse(condition, stmt)


def _store_all(plan: StagePlan, results: Sequence[Expr], buffers: Sequence[Buffer], place: tuple[Expr, ...]) -> Stmt:
    """The stores of all `results`. All values are computed before the first store, since each may use all the old elements."""
    kept = [Var(f"{plan.op.name}.v{at}.new", result.dtype) for at, result in enumerate(results)]
    stmt = seq(*[BufferStore(buffer, var, place) for buffer, var in zip(buffers, kept)])
    for var, result in zip(reversed(kept), reversed(results)):
        stmt = LetStmt(var, result, stmt)
    return stmt
