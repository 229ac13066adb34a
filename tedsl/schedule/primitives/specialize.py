"""specialize: a second version of the loops of a stage, for the calls in which a condition holds."""

from __future__ import annotations

from typing import Any

from tedsl.ir import build
from tedsl.ir.dtype import BOOL
from tedsl.ir.expr import Expr
from tedsl.lang.operation import ComputeOp
from tedsl.schedule.given_numbers import OF_A_CALL, why_many
from tedsl.schedule.scan.stages import scans_of
from tedsl.schedule.state import AttachType, StageState, describe, show


def specialize(stage: StageState, condition: Any) -> StageState:
    """Adds a version of `stage` for calls in which `condition` holds, with the present loops, and returns it.

        for i in 0..n: body   →   if n % 8 == 0 { for i in 0..n: body } else { for i in 0..n: body }

    From then on directives on the version change it alone, and directives on the stage change the general loops alone. Of
    several versions the first one whose condition holds runs. A constant condition is decided when the schedule is lowered.
    """
    directive = f"specialize({show(condition)})"
    stage.must_have_loops(directive)
    holds = _condition(stage, condition, directive)
    _check_stage(stage, directive)
    version = stage.version(holds)
    stage.versions += (version,)
    return version


def _condition(stage: StageState, given: Any, directive: str) -> Expr:
    example = f"for example {stage.written}.specialize(n % 8 == 0)"
    try:
        condition = build.const(given) if isinstance(given, bool) else build.as_expr(given)
    except (TypeError, ValueError):
        condition = None
    if condition is None or condition.dtype is not BOOL:
        raise stage.refuse(directive, f"a condition is a comparison of numbers, got {describe(given)}", hint=example)
    why = why_many(condition, stage.schedule)
    if why:
        raise stage.refuse(directive, why, hint=f"compare {OF_A_CALL}; {example}")
    return condition


def _check_stage(stage: StageState, directive: str) -> None:
    if type(stage.op) is not ComputeOp:
        raise stage.refuse(directive, f"{stage.name} is not made by a formula of te.compute: its loops have one version")
    if stage.attach_type in (AttachType.INLINE, AttachType.INLINED):
        raise stage.refuse(directive, f"{stage.name} is computed inline: it has no loops of its own",
                           hint=f"specialize the stage that reads it, or call {stage.written}.compute_root() first")
    scans = scans_of(stage.schedule)
    if any(stage in part for part in (scans.steps, scans.inits, scans.states)):
        raise stage.refuse(directive, f"{stage.name} is part of a scan: its steps have one version")
    bound = [one.name for one in (stage, *stage.guests()) for loop in one.leaf_iter_vars
             if one.attr_of(loop).bind_thread is not None]
    if bound or stage.env_threads:
        raise stage.refuse(directive, f"{(bound or [stage.name])[0]} runs on threads of a device, which are launched once",
                           hint="specialize stages of serial and parallel loops")
    if stage.storage.double_buffer or stage.storage.rolling:
        raise stage.refuse(directive, f"{stage.name} is kept from one iteration to the next: one version fills what the other "
                           "reads", hint=f"specialize the stage that reads {stage.name}")
