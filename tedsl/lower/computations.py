"""From the stages of a schedule to placements: every read checked, inlined formulas written into their readers.

before:  stage B (inline) = A[i] + 1;  stage C = B[i] * 2        after:  stage C = (A[i] + 1) * 2
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from tedsl.errors import LoweringError
from tedsl.findings import refuse_to_run
from tedsl.ir.expr import Expr, ProducerLoad
from tedsl.ir.func import Accesses
from tedsl.lang.inline import Inliner
from tedsl.lang.operation import ComputeOp
from tedsl.lower.checks import Requirement, check_reads
from tedsl.lower.kinds import kind_of
from tedsl.lower.plan import Computation, Placement
from tedsl.lower.versions import HostLoop, placements
from tedsl.schedule.attach import misplaced
from tedsl.schedule.causes import attached
from tedsl.schedule.scan.domains import step_domains
from tedsl.schedule.scan.stages import scans_of
from tedsl.schedule.state import AttachType, ScheduleState, StageState, find


def placed_computations(schedule: ScheduleState, *, accesses: Accesses = Accesses.PROVED) \
        -> tuple[list[Placement], list[Requirement]]:
    """Returns the placements of all stages with loops of their own, producers first, and the requirements on the shapes.

    accesses: how indices that depend on data are kept inside their tensors.
    """
    computations: dict[StageState, Computation] = {}
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
            kind = kind_of(stage.op)
            computations[stage], needed = kind.computation(stage, inliner if formulas else None, domains, accesses)
            requirements.extend(needed)
    return placements(computations, _places(schedule, computations)), requirements


def _places(schedule: ScheduleState, stages: Collection[StageState]) -> dict[StageState, HostLoop]:
    """The host and loop number that each attached stage is computed at; refuses places that do not cover every reader."""
    scans = scans_of(schedule)
    places: dict[StageState, HostLoop] = {}
    for stage in stages:
        place = scans.place_of(stage)
        if place is None:
            continue
        host, loop = place
        where = f"{stage.name} is computed at loop {loop.name} of {host.name}"
        if host not in stages:
            raise LoweringError(f"{where}, which is inlined and has no loops",
                                hint=f"attach {stage.name} to the stage that {host.name} is inlined into",
                                about=attached(host))
        at = find(host.leaf_iter_vars, loop)
        if at is None:
            raise LoweringError(f"{where}, which has no such loop any more\n"
                                f"  loops now: {', '.join(host.loop_names())}",
                                hint=f"call {stage.written}.compute_at again, with one of these", about=attached(stage))
        places[stage] = host, at
    _refuse_cycles(places)
    for wrong in misplaced(schedule):
        refuse_to_run(LoweringError(
            f"{wrong.reason}: it would find nothing there",
            hint=f"attach {wrong.consumer.name} inside that loop too, or move {wrong.producer.name} out: "
                 f"{wrong.producer.written}.compute_root()", about=attached(wrong.producer)))
    return places


def _refuse_cycles(places: Mapping[StageState, HostLoop]) -> None:
    for stage in places:
        place, steps = places.get(stage), 0
        while place is not None:
            steps += 1
            if place[0] is stage or steps > len(places):
                raise LoweringError(f"{stage.name} is computed inside itself: the stages are attached in a circle",
                                    hint=f"call {stage.written}.compute_root()", about=attached(stage))
            place = places.get(place[0])
