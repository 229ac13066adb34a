"""Checks of the finished schedule: memory that is not accessible where it is read, side effects that would occur twice.

Other illegal schedules are refused where they arise: places that do not cover all readers in computations.py,
loops on threads in threads/, stages inside of vectors in in_vectors.py, tiles that are computed twice in uneven_splits.py.
"""

from __future__ import annotations

from collections.abc import Iterable

from tedsl.arith.analyzer import Analyzer
from tedsl.errors import LoweringError
from tedsl.findings import refuse_to_run
from tedsl.ir import build
from tedsl.ir.expr import Call, Expr, ProducerLoad, StringImm, Var
from tedsl.ir.types import memory_kind
from tedsl.ir.walk.contents import of_kinds
from tedsl.ir.walk.visitor import post_order
from tedsl.lang.operation import ComputeOp, Operation, extent_of
from tedsl.lower.plan import Launch, Program, StagePlan
from tedsl.lower.threads.predicates import check_predicates
from tedsl.schedule.attach import at_reader
from tedsl.schedule.causes import attached, related, said
from tedsl.schedule.relations import ROUND_UP, SHIFT_INWARDS, Split
from tedsl.schedule.state import AttachType, ScheduleState, StageState
from tedsl.schedule.thread_ranks import memory_owner, memory_rank


def check_legality(schedule: ScheduleState, program: Program, analyzer: Analyzer) -> None:
    """Refuse a schedule whose loops would not compute what its formulas say."""
    _check_scopes(schedule, program)
    check_predicates(program, analyzer)
    effects = {stage: call for stage in schedule.stages if (call := _effect_of(stage.op)) is not None}
    for stage in effects:
        if stage.attach_type in (AttachType.INLINE, AttachType.INLINED):
            _check_inlined(schedule, stage, effects[stage])
    for plan in program.plans:
        if plan.stage in effects:
            _check_once(plan, effects[plan.stage], analyzer)


# --- memory ---------------------------------------------------------------------------------------------------------------

def _check_scopes(schedule: ScheduleState, program: Program) -> None:
    """Refuses reads of shared or local memory outside of the kernel that computes it."""
    by_op, launches = {plan.stage.op: plan for plan in program.plans}, program.launches
    for reader in program.plans:
        for read in reader.reads:
            producer = by_op.get(schedule.stage_map[read.tensor.op].op)
            if producer is None or launches.get(producer) is launches.get(reader):
                continue
            kept = memory_owner(producer.stage)
            if memory_rank(kept.scope) == 0:
                continue
            refuse_to_run(LoweringError(
                f"{kept.name} is kept in {kept.scope} memory, which {_whose(kept.scope)}: it is "
                f"computed by {_threads_of(producer, launches.get(producer))} and read by "
                f"{_threads_of(reader, launches.get(reader))}",
                hint=f'{_inside(kept)}, or keep it in memory of all: {kept.written}.set_scope("global")',
                about=said(kept, "scope")))


def _whose(scope: str) -> str:
    return {"shared": "the threads of one block share", "warp": "the threads of one warp share"}.get(
        memory_kind(scope), "each thread has for itself")


def _inside(stage: StageState) -> str:
    """The hint for moving `stage` into the kernel whose threads read it."""
    if stage.attach_type == AttachType.SCOPE and stage.attach_stage is not None:
        return f"move {stage.name} inside of the threads that read it, to a loop of {stage.attach_stage.name} within those " \
               "that are bound"
    return f"compute it inside of the threads that read it, {at_reader(stage)}"


def _threads_of(plan: StagePlan, launch: Launch | None) -> str:
    inside = "" if launch is None or launch.root is plan else f", inside of {launch.root.name}"
    return f"{plan.name} without threads" if launch is None else f"the threads of {plan.name}{inside}"


# --- effects --------------------------------------------------------------------------------------------------------------

def _effect_of(op: Operation) -> Call | None:
    """A call in the formula of `op` that may have side effects; None if there is none."""
    bodies: Iterable[Expr] = op.body if type(op) is ComputeOp else ()
    return next((node for body in bodies for node in of_kinds(body, Call)
                 if isinstance(node, Call) and node.op.effect == "opaque"), None)


def _named(call: Call) -> str:
    first = call.args[0] if call.args else None
    return first.value if isinstance(first, StringImm) else call.op.name


def _refused(stage: StageState, call: Call, why: str, about: object) -> LoweringError:
    return LoweringError(
        f"{stage.name} calls {_named(call)}, which may have effects, and {why}: more than one call for an element",
        hint=f"leave {stage.name} at the root, {stage.written}.compute_root(); for a function without effects write "
             "tir.call_pure_extern", about=about)


def _check_inlined(schedule: ScheduleState, stage: StageState, call: Call) -> None:
    """Refuses to inline a formula with effects, unless one reader reads it in one place and computes each element once."""
    uses = [(reader, load) for reader in schedule.stages for body in getattr(reader.op, "body", ())
            if isinstance(body, Expr) for load in dict.fromkeys(post_order(body))
            if isinstance(load, ProducerLoad) and schedule.stage_map.get(load.producer.op) is stage]
    readers = [other for other in schedule.stages if stage in {schedule.stage_map[t.op] for t in other.op.input_tensors}]
    plain = len(uses) == len(readers) == 1 and uses[0][0].attach_type == AttachType.ROOT \
        and _is_each_once(uses[0][0].op, uses[0][1])
    if not plain:
        raise _refused(stage, call, f"is written into {', '.join(reader.name for reader in readers)}", attached(stage))


def _is_each_once(op: Operation, load: ProducerLoad) -> bool:
    own = [axis.var for axis in getattr(op, "axis", ())]
    indices = [index for index in load.indices if isinstance(index, Var)]
    return not getattr(op, "reduce_axis", ()) and len(indices) == len(load.indices) == len(own) \
        and all(any(index is var for index in indices) for var in own)


def _check_once(plan: StagePlan, call: Call, analyzer: Analyzer) -> None:
    """Refuses a stage with effects that has more iterations than elements: some would be computed twice."""
    for relation in plan.stage.relations:
        if isinstance(relation, Split) and relation.tail in (SHIFT_INWARDS, ROUND_UP):
            raise _refused(plan.stage, call, f'{relation.parent.name} is split with tail="{relation.tail}"',
                           related(plan.stage, relation))
    done: Expr = build.const(1, "int64")
    whole: Expr = done
    for axis in plan.data_axes:
        done = build.mul(done, build.cast("int64", plan.extents[axis]))
        whole = build.mul(whole, build.cast("int64", extent_of(axis)))
    at = plan
    while at.host is not None:
        for loop in at.host.loops[:at.position + 1]:
            done = build.mul(done, build.cast("int64", loop.extent))
        at = at.host
    if at is not plan and not analyzer.can_prove(build.less_equal(done, whole)):
        assert plan.host is not None
        raise _refused(plan.stage, call, f"is computed at loop {plan.host.loops[plan.position].leaf.name} of {plan.host.name}",
                       attached(plan.stage))
