"""From the stages of a schedule to plans: every read checked, inlined formulas written into their readers.

before:  stage B (inline) = A[i] + 1;  stage C = B[i] * 2        after:  stage C = (A[i] + 1) * 2
"""

from __future__ import annotations

from tedsl.errors import LoweringError
from tedsl.ir.expr import Expr, ProducerLoad
from tedsl.ir.func import Accesses
from tedsl.lang.inline import Inliner
from tedsl.lang.operation import ComputeOp
from tedsl.lower.checks import Requirement, check_reads
from tedsl.lower.kinds import kind_of
from tedsl.lower.plan import StagePlan
from tedsl.lower.scan.stages import step_domains
from tedsl.lower.versions import with_versions
from tedsl.schedule.attach import misplaced
from tedsl.schedule.causes import attached
from tedsl.schedule.scan.stages import scans_of
from tedsl.schedule.state import AttachType, ScheduleState, StageState, find


def make_plans(schedule: ScheduleState, *, accesses: Accesses = Accesses.PROVED) -> tuple[list[StagePlan], list[Requirement]]:
    """A plan for each stage with loops of its own, producers first and attached to one another; what shapes must satisfy.

    accesses: what holds of indices that depend on data.
    """
    plans: dict[StageState, StagePlan] = {}
    formulas: dict[StageState, tuple[ComputeOp, tuple[Expr, ...]]] = {}

    def formula_of(load: ProducerLoad) -> tuple[ComputeOp, tuple[Expr, ...]] | None:
        stage = schedule.stage_map.get(load.producer.op)
        return formulas.get(stage) if stage is not None else None

    inliner, domains = Inliner(formula_of), step_domains(schedule)
    requirements: list[Requirement] = []
    for stage in schedule.stages:
        if stage.is_placeholder:
            continue
        if stage.attach_type in (AttachType.INLINE, AttachType.INLINED):
            assert isinstance(stage.op, ComputeOp), "compute_inline refuses all others"
            checked = check_reads(stage.op, domains, accesses=accesses)
            requirements.extend(checked.requirements)
            formulas[stage] = stage.op, checked.bodies
        else:
            plans[stage], needed = kind_of(stage.op).plan(stage, inliner if formulas else None, domains, accesses)
            requirements.extend(needed)
    _attach(schedule, plans)
    return with_versions(plans), requirements


def _attach(schedule: ScheduleState, plans: dict[StageState, StagePlan]) -> None:
    """Connect each attached plan to its host; refuse places that do not cover every reader."""
    scans = scans_of(schedule)
    for stage, plan in plans.items():
        place = scans.place_of(stage)
        if place is None:
            continue
        host, loop = plans.get(place[0]), place[1]
        if host is None:
            inlined = place[0].name
            raise LoweringError(f"{plan.name} is computed at loop {loop.name} of {inlined}, which is inlined and has no loops",
                                hint=f"attach {plan.name} to the stage that {inlined} is inlined into",
                                about=attached(place[0]))
        at = find(host.stage.leaf_iter_vars, loop)
        if at is None:
            raise LoweringError(f"{plan.name} is computed at loop {loop.name} of {host.name}, which has no such loop any more\n"
                                f"  loops now: {', '.join(host.stage.loop_names())}",
                                hint=f"call {plan.stage.written}.compute_at again, with one of these", about=attached(stage))
        plan.host, plan.position = host, at
        host.guests.setdefault(at, []).append(plan)
    _refuse_cycles(plans)
    for wrong in misplaced(schedule):
        raise LoweringError(f"{wrong.reason}: it would find nothing there",
                            hint=f"attach {wrong.consumer.name} inside that loop too, or move {wrong.producer.name} out: "
                                 f"{wrong.producer.written}.compute_root()", about=attached(wrong.producer))


def _refuse_cycles(plans: dict[StageState, StagePlan]) -> None:
    for plan in plans.values():
        at, steps = plan.host, 0
        while at is not None:
            steps += 1
            if at is plan or steps > len(plans):
                raise LoweringError(f"{plan.name} is computed inside itself: the stages are attached in a circle",
                                    hint=f"call {plan.stage.written}.compute_root()", about=attached(plan.stage))
            at = at.host
