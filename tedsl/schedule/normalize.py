"""`Schedule.normalize`: a copy in which inlined formulas are written into their readers and loops start at 0.

Programs written for TVM call it before they infer bounds. Lowering does not: it inlines into its own copies of the formulas
(`lower/computations.py`) and leaves the schedule unchanged.
"""

from __future__ import annotations

from tedsl.ir.expr import Expr, ProducerLoad, Reduce
from tedsl.ir.iters import IterVar
from tedsl.lang.graph import replace_inputs
from tedsl.lang.inline import Inliner
from tedsl.lang.operation import ComputeOp, Operation, root_axes
from tedsl.lang.tensor import Tensor
from tedsl.schedule.relations import Rebase, derived
from tedsl.schedule.state import AttachType, ScheduleState, StageState, find, outputs_of


def normalized(state: ScheduleState) -> ScheduleState:
    """A copy of `state` with stages inlined and loops rebased; `state` stays as it is."""
    normal = state.copy()
    _inline(normal)
    _rebase(normal)
    normal.recorder.history.settle(normal)
    return normal


def _inline(state: ScheduleState) -> None:
    """Writes the formula of every inlined stage into its readers. Producers come first, so one walk covers chains."""
    formulas: dict[Tensor, ComputeOp] = {}
    replaced: dict[Tensor, Tensor] = {}

    def formula_of(load: ProducerLoad) -> tuple[ComputeOp, tuple[Expr, ...]] | None:
        op = formulas.get(load.producer)
        return (op, op.body) if op is not None else None

    inliner = Inliner(formula_of)
    for stage in state.stages:
        if not formulas and stage.attach_type != AttachType.INLINE:
            continue
        op = _inlined_into(replace_inputs(stage.op, replaced), inliner)
        if stage.attach_type == AttachType.INLINE:
            assert isinstance(op, ComputeOp), "compute_inline refuses all others"
            stage.attach_type = AttachType.INLINED
            formulas.update((stage.op.output(v), op) for v in range(op.num_outputs))
        elif op is not stage.op:
            replaced.update(outputs_of(stage.op, op))
        if op is not stage.op:
            stage.become(op)
            state.stage_map[op] = stage


def _inlined_into(op: Operation, inliner: Inliner) -> Operation:
    if not isinstance(op, ComputeOp):
        return op
    if isinstance(op.body[0], Reduce):  # the values of a tuple reduction stay one reduction
        first = inliner(op.body[0])
        body: tuple[Expr, ...] = tuple([first.replace(value_index=v) for v in range(len(op.body))])
        return op if first is op.body[0] else op.replace(body=body)
    body = tuple([inliner(expr) for expr in op.body])
    return op if all(a is b for a, b in zip(body, op.body)) else op.replace(body=body)


def _rebase(state: ScheduleState) -> None:
    """Gives each axis that is still a loop a twin that starts at 0, since the region of an attached stage may start
    elsewhere.
    """
    twins: dict[tuple[StageState, IterVar], IterVar] = {}
    for stage in state.with_versions():
        if stage.attach_type == AttachType.INLINED:
            continue
        for axis in root_axes(stage.op):
            at = find(stage.leaf_iter_vars, axis)
            if at is None or stage.attr_of(axis).bind_thread is not None:
                continue
            general = twins.get((stage.version_of, axis)) if stage.version_of is not None else None
            twin = general if general is not None else derived(axis, "")  # what is computed at the loop is so in all versions
            stage.relations += (Rebase(axis, twin),)
            stage.all_iter_vars += (twin,)
            stage.leaf_iter_vars = (*stage.leaf_iter_vars[:at], twin, *stage.leaf_iter_vars[at + 1:])
            if axis in stage.iter_var_attrs:
                stage.iter_var_attrs = {**stage.iter_var_attrs, twin: stage.iter_var_attrs[axis]}
            if stage.init_at is axis:
                stage.init_at = twin
            twins[stage, axis] = twin
    for stage in state.stages:
        if stage.attach_stage is not None and stage.attach_ivar is not None:
            stage.attach_ivar = twins.get((stage.attach_stage, stage.attach_ivar), stage.attach_ivar)
