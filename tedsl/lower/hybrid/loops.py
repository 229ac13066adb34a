"""Lowering of a hybrid script: its statements over the real memory, its loops as transformed by directives.

before:  for i { for j { c[i, j] = a[i]*b[j] } }        split(i, 4), reorder(i.inner, i.outer)
after:   for i.inner { for i.outer { for j { c[i.outer*4 + i.inner, j] = ... } } }

Loops that stand directly inside one another are one nest: its loops are built anew, the statements inside stay.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tedsl.errors import LoweringError
from tedsl.ir import build
from tedsl.ir.buffer import Buffer
from tedsl.ir.expr import BufferLoad, Expr, StringImm, Var
from tedsl.ir.func import Accesses
from tedsl.ir.iters import IterVar, Range
from tedsl.ir.source_line import SCRIPT_LINE
from tedsl.ir.stmt import EXTERN_SCOPE, AttrStmt, BufferStore, For, IfThenElse, SeqStmt, Stmt
from tedsl.ir.walk.rewriter import Rewriter, ScopedRewriter
from tedsl.ir.walk.substitute import fresh_copy, substitute
from tedsl.lang.hybrid.nests import chain_at
from tedsl.lang.hybrid.operation import HybridOp
from tedsl.lang.inline import Inliner
from tedsl.lower.checks import Requirement
from tedsl.lower.nest import Nest
from tedsl.lower.plan import Computation, Read, StagePlan
from tedsl.lower.regions.propagate import compared
from tedsl.lower.site import Site
from tedsl.lower.threads.written_memory import check_launches, check_own_memory
from tedsl.lower.written.function import checked_accesses
from tedsl.schedule.script_loops import axes_of
from tedsl.schedule.state import StageState


def hybrid_computation(stage: StageState, inliner: Inliner | None, domains: Mapping[IterVar, Range], accesses: Accesses) \
        -> tuple[Computation, tuple[Requirement, ...]]:
    """Returns the computation of a hybrid script, which reads its inputs whole, and no requirements."""
    op = stage.op
    assert isinstance(op, HybridOp)
    if stage.store_predicate is not None or stage.env_threads:
        raise LoweringError(f"{op.name} is a hybrid script: its stores stand under the conditions that it has itself",
                            hint="leave set_store_predicate and env_threads out")
    for tensor in (*op.input_tensors, op.output(0)):
        if stage.schedule.stage_map[tensor.op].storage.rolling:
            raise LoweringError(f"{op.name} is a hybrid script, which uses the whole of {tensor.name}, and {tensor.name} is in "
                                "a rolling buffer", hint="leave rolling_buffer out")
    reads = tuple(Read(tensor, (None,) * tensor.ndim) for tensor in op.input_tensors)
    return Computation(op, (), reads, accesses=accesses), ()


def hybrid_statements(site: Site) -> Stmt:
    """The body over the real buffers, with its nests replaced by the loops of the stage."""
    plan, op, buffers = site.plan, site.plan.op, site.buffers
    assert isinstance(op, HybridOp)
    inputs = [site.buffer_of(tensor) for tensor in op.inputs]
    real = dict(zip((*op.input_placeholders, *op.output_placeholders), (*inputs, *buffers)))
    check_launches(plan, op.body, buffers)
    check_own_memory(plan)
    nest = Nest(site)
    body = _Loops(plan, nest)(_Placed(op)(op.body))
    body = fresh_copy(_Real(real)(body))
    try:
        used = tuple(dict.fromkeys((*inputs, *buffers)))
        body = nest.marked(checked_accesses(body, used, accesses=plan.accesses))
    except LoweringError as error:
        if error.problem.startswith("hybrid script "):
            raise
        raise LoweringError(f"{op.line_of()}: {error.problem}", hint=error.hint, about=error.about) from error
    return AttrStmt(build.const(0, "int32"), EXTERN_SCOPE, build.const(0, "int32"), body)


class _Placed(ScopedRewriter):
    """Puts an attribute with its line of the script around each statement except the loops of nests, which stay adjacent."""

    def __init__(self, op: HybridOp) -> None:
        self.op, self.axes = op, {axis.var for axis in op.axis}

    def stmt(self, stmt: Stmt) -> Stmt:
        placed = self.descend(stmt)
        if stmt not in self.op.lines or isinstance(stmt, SeqStmt) or (isinstance(stmt, For) and stmt.loop_var in self.axes):
            return placed
        return AttrStmt(build.const(0, "int32"), SCRIPT_LINE, StringImm(self.op.lines[stmt]), placed)


class _Real(Rewriter):
    """Replaces placeholder buffers by the real ones."""

    def __init__(self, real: Mapping[Buffer, Buffer]) -> None:
        super().__init__()
        self.real = real

    def rewrite(self, node: Any) -> Any:
        if isinstance(node, (BufferLoad, BufferStore)) and node.buffer in self.real:
            return node.replace(buffer=self.real[node.buffer])
        if isinstance(node, Var):
            return next((new.data for old, new in self.real.items() if old.data is node), node)
        return node


class _Loops(ScopedRewriter):
    """Replaces the nests of the script by the loops of the schedule."""

    def __init__(self, plan: StagePlan, nest: Nest) -> None:
        assert isinstance(plan.op, HybridOp)
        self.plan, self.nest = plan, nest
        self.axes = {axis.var: axis for axis in plan.op.axis}
        self.roots = {loop.leaf: axes_of(plan.stage, loop.leaf) for loop in plan.loops}
        self.compared = [(axes_of(plan.stage, iv), build.less(plan.offsets[iv], plan.extents[iv]))
                         for iv in compared(plan, nest.starts())]
        lost = [leaf.name for leaf, roots in self.roots.items() if not set(roots) <= set(plan.op.axis)]
        if lost:
            raise LoweringError(f"{plan.name} is a hybrid script and has no place for the loop {', '.join(lost)}",
                                hint="split and fuse the loops that the script has")

    def stmt(self, stmt: Stmt) -> Stmt:
        chain = chain_at(stmt, self.axes)
        if not chain:
            return self.descend(stmt)
        axes = [self.axes[loop.loop_var] for loop in chain]
        body = self.stmt(chain[-1].body)
        values: dict[Var, Expr] = {axis.var: self.nest.translate.values[axis.var] for axis in axes}
        body = substitute(body, {v: e for v, e in values.items() if v is not e})
        for roots, condition in reversed(self.compared):
            if set(roots) <= set(axes) and not build.is_true(condition):
                body = IfThenElse(build.likely(condition), body)
        for loop in reversed(self.plan.loops):
            if set(self.roots[loop.leaf]) <= set(axes):
                body = self.nest.around_copy(loop, body)
        return body


