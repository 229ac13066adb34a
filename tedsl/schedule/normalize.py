"""What lowering asks for first: inlined formulas written into their readers, and loops that start at 0."""

from __future__ import annotations

from typing import Any

from tedsl.ir import build
from tedsl.ir.expr import Expr, Let, ProducerLoad, Reduce
from tedsl.ir.rewriter import Rewriter
from tedsl.ir.substitute import copy_var, substitute
from tedsl.ir.visitor import post_order
from tedsl.lang.operation import ComputeOp, Operation
from tedsl.lang.tensor import Tensor
from tedsl.schedule.relations import Rebase, derived
from tedsl.schedule.state import AttachType, ScheduleState, find, outputs_of, root_axes


def normalized(state: ScheduleState) -> ScheduleState:
    """A copy of `state` with stages inlined and loops rebased; `state` stays as it is."""
    made = state.copy()
    _inline(made)
    _rebase(made)
    return made


def _inline(state: ScheduleState) -> None:
    """Writes the formula of every inlined stage into its readers. Producers come first, so one walk does chains too."""
    formulas: dict[Tensor, ComputeOp] = {}
    replaced: dict[Tensor, Tensor] = {}
    for stage in state.stages:
        if not formulas and stage.attach_type != AttachType.INLINE:
            continue
        op = _inlined_into(stage.op, formulas, replaced)
        if stage.attach_type == AttachType.INLINE:
            assert isinstance(op, ComputeOp), "compute_inline refuses all others"
            stage.attach_type = AttachType.INLINED
            formulas[stage.op.output(0)] = op
        elif op is not stage.op:
            replaced.update(outputs_of(stage.op, op))
        if op is not stage.op:
            stage.op = op
            state.stage_map[op] = stage


def _inlined_into(op: Operation, formulas: dict[Tensor, ComputeOp], replaced: dict[Tensor, Tensor]) -> Operation:
    if not isinstance(op, ComputeOp) or not any(t in formulas or t in replaced for t in op.input_tensors):
        return op
    rewrite = _Inliner(formulas, replaced)
    if isinstance(op.body[0], Reduce):  # the values of a tuple reduction stay one reduction
        first = rewrite(op.body[0])
        body: tuple[Expr, ...] = tuple([first.replace(value_index=v) for v in range(len(op.body))])
    else:
        body = tuple([rewrite(expr) for expr in op.body])
    return op.replace(body=body)


class _Inliner(Rewriter):
    """Replaces reads of inlined tensors by their formula at the index, and redirects reads of rebuilt stages."""

    def __init__(self, formulas: dict[Tensor, ComputeOp], replaced: dict[Tensor, Tensor]) -> None:
        super().__init__()
        self.formulas, self.replaced = formulas, replaced

    def rewrite(self, node: Any) -> Any:
        if type(node) is not ProducerLoad:
            return node
        if node.producer in self.formulas:
            op = self.formulas[node.producer]
            values = {axis: build.cast(axis.dtype, index) for axis, index in zip(op.axis, node.indices)}
            return _with_own_lets(substitute(op.body[0], values))
        if node.producer in self.replaced:
            return ProducerLoad(self.replaced[node.producer], node.indices)
        return node


def _with_own_lets(body: Expr) -> Expr:
    """`body` with new variables for its lets: a Var is bound once in a function."""
    bound = {node.var: copy_var(node.var) for node in post_order(body) if isinstance(node, Let)}
    return _LetRenamer(bound)(body) if bound else body


class _LetRenamer(Rewriter):
    def __init__(self, bound: dict[Any, Any]) -> None:
        super().__init__()
        self.bound = bound

    def rewrite(self, node: Any) -> Any:
        return node.replace(var=self.bound[node.var]) if isinstance(node, Let) else self.bound.get(node, node)


def _rebase(state: ScheduleState) -> None:
    """Gives each axis that is still a loop a twin that starts at 0: the region of an attached stage need not."""
    twins = {}
    for stage in state.stages:
        if stage.attach_type == AttachType.INLINED:
            continue
        for axis in root_axes(stage.op):
            at = find(stage.leaf_iter_vars, axis)
            if at is None or stage.attr_of(axis).bind_thread is not None:
                continue
            twin = derived(axis, "")
            stage.relations.append(Rebase(axis, twin))
            stage.all_iter_vars.append(twin)
            stage.leaf_iter_vars[at] = twin
            if axis in stage.iter_var_attrs:
                stage.iter_var_attrs[twin] = stage.iter_var_attrs[axis]
            twins[stage, axis] = twin
    for stage in state.stages:
        if stage.attach_stage is not None and stage.attach_ivar is not None:
            stage.attach_ivar = twins.get((stage.attach_stage, stage.attach_ivar), stage.attach_ivar)
