"""From the stages of a schedule to plans: every read checked, inlined formulas written into their readers.

before:  stage B (inline) = A[i] + 1;  stage C = B[i] * 2        after:  stage C = (A[i] + 1) * 2
"""

from __future__ import annotations

from typing import Any

from tedsl.errors import LoweringError
from tedsl.ir import build
from tedsl.ir.expr import Expr, Let, ProducerLoad
from tedsl.ir.node import Node
from tedsl.ir.rewriter import Rewriter
from tedsl.ir.substitute import copy_var, substitute
from tedsl.ir.visitor import post_order
from tedsl.lang.operation import ComputeOp, Operation
from tedsl.lower.checks import Requirement, check_reads
from tedsl.lower.plan import StagePlan
from tedsl.lower.reads import loads_of
from tedsl.schedule.attach import misplaced
from tedsl.schedule.state import AttachType, ScheduleState, StageState, find


def make_plans(schedule: ScheduleState) -> tuple[list[StagePlan], list[Requirement]]:
    """A plan for each stage with loops of its own, producers first and attached to one another; what shapes must satisfy."""
    plans: dict[StageState, StagePlan] = {}
    inliner = _Inliner(schedule)
    requirements: list[Requirement] = []
    for stage in schedule.stages:
        if stage.is_placeholder:
            continue
        op = _formula(stage.op)
        checked = check_reads(op)
        requirements.extend(checked.requirements)
        if stage.attach_type in (AttachType.INLINE, AttachType.INLINED):
            inliner.formulas[stage] = op, checked.bodies
        else:
            bodies = tuple(inliner(body) for body in checked.bodies) if inliner.formulas else checked.bodies
            domains = [axis.dom for axis in op.reduce_axis if axis.dom is not None]
            plans[stage] = StagePlan(stage, op, bodies, loads_of(bodies, *domains))
    _attach(schedule, plans)
    return list(plans.values()), requirements


def _formula(op: Operation) -> ComputeOp:
    if not isinstance(op, ComputeOp):
        raise LoweringError(f"{op.name} is a {type(op).__name__}, which cannot be lowered to loops")
    return op


class _Inliner:
    """Replaces loads of inlined stages by their formulas at those indices, and loads in these again.

    Explicit stack; each shared node once. Loads of one element share one copy of its formula: x[i] * x[i] in a chain of
    inlined stages stays as large as it was written.
    """

    def __init__(self, schedule: ScheduleState) -> None:
        self.schedule = schedule
        self.formulas: dict[StageState, tuple[ComputeOp, tuple[Expr, ...]]] = {}
        self.done: dict[Node, Any] = {}
        self.elements: dict[tuple[Any, ...], Expr] = {}

    def __call__(self, root: Expr) -> Expr:
        done = self.done
        replaced: dict[Node, Expr] = {}  # loads by formulas that are still to be looked through
        stack: list[Node] = [root]
        while stack:
            node = stack[-1]
            if node in done:
                stack.pop()
                continue
            pending = [child for child in node.child_nodes() if child not in done]
            if node in replaced:
                pending = [replaced[node]] if replaced[node] not in done else []
            if pending:
                stack.extend(reversed(pending))
                continue
            if node in replaced:
                done[node] = done[replaced[node]]
                continue
            new = node.map_children(done.__getitem__)
            formula = self.formula(new) if type(new) is ProducerLoad else None
            if formula is None:
                done[node] = new
            else:
                replaced[node] = formula
        return done[root]  # type: ignore[no-any-return]

    def formula(self, load: ProducerLoad) -> Expr | None:
        """The formula of an element of an inlined stage; its indices are looked through already. None for other stages."""
        stage = self.schedule.stage_map.get(load.producer.op)
        if stage is None or stage not in self.formulas:
            return None
        key = (stage, load.producer.value_index, *load.indices)
        if key not in self.elements:
            op, bodies = self.formulas[stage]
            values = {axis.var: build.cast(axis.dtype, index) for axis, index in zip(op.axis, load.indices)}
            self.done.update((value, value) for value in values.values())
            self.elements[key] = _with_own_lets(substitute(bodies[load.producer.value_index], values))
        return self.elements[key]


def _with_own_lets(body: Expr) -> Expr:
    """`body` with new variables for its lets: a Var is bound once in a function."""
    bound = {node.var: copy_var(node.var) for node in post_order(body) if isinstance(node, Let)}
    return _LetRenamer(bound)(body) if bound else body


class _LetRenamer(Rewriter):
    def __init__(self, bound: dict[Any, Any]) -> None:
        super().__init__()
        self.bound = bound

    def rewrite(self, node: Node) -> Any:
        if isinstance(node, Let):
            return node.replace(var=self.bound[node.var])
        return self.bound.get(node, node)


def _attach(schedule: ScheduleState, plans: dict[StageState, StagePlan]) -> None:
    """Connect each attached plan to its host; refuse places that do not cover every reader."""
    for stage, plan in plans.items():
        if stage.attach_type != AttachType.SCOPE:
            continue
        assert stage.attach_stage is not None and stage.attach_ivar is not None
        host, loop = plans.get(stage.attach_stage), stage.attach_ivar
        if host is None:
            inlined = stage.attach_stage.name
            raise LoweringError(f"{plan.name} is computed at loop {loop.name} of {inlined}, which is inlined and has no loops",
                                hint=f"attach {plan.name} to the stage that {inlined} is inlined into")
        at = find(host.stage.leaf_iter_vars, loop)
        if at is None:
            raise LoweringError(f"{plan.name} is computed at loop {loop.name} of {host.name}, which has no such loop any more\n"
                                f"  loops now: {', '.join(host.stage.loop_names())}",
                                hint=f"call s[{plan.name}].compute_at again, with one of these")
        plan.host, plan.position = host, at
        host.guests.setdefault(at, []).append(plan)
    _refuse_cycles(plans)
    for wrong in misplaced(schedule):
        raise LoweringError(f"{wrong.reason}: it would find nothing there",
                            hint=f"attach {wrong.consumer.name} inside that loop too, or move {wrong.producer.name} out: "
                                 f"s[{wrong.producer.name}].compute_root()")


def _refuse_cycles(plans: dict[StageState, StagePlan]) -> None:
    for plan in plans.values():
        at, steps = plan.host, 0
        while at is not None:
            steps += 1
            if at is plan or steps > len(plans):
                raise LoweringError(f"{plan.name} is computed inside itself: the stages are attached in a circle",
                                    hint=f"call s[{plan.name}].compute_root()")
            at = at.host
