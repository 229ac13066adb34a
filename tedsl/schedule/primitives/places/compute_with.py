"""compute_with: the outer loops of two stages are one."""

from __future__ import annotations

from typing import Any

from tedsl.ir.expr import StringImm
from tedsl.ir.iters import IterVar
from tedsl.schedule.state import JOINED, StageState, describe, show


def compute_with(stage: StageState, other: Any, other_loop: Any, loop: Any) -> None:
    """Compute each iteration of `loop` of `stage` directly behind the same iteration of `other_loop` of `other`.

        for i: A[i] = f(i);  for j: B[j] = g(A[j])   →   for j: A[j] = f(j); B[j] = g(A[j])
    """
    directive = f"compute_with({show(other)}, {show(other_loop)}, {show(loop)})"
    stage.must_have_loops(directive)
    _check_other(stage, other, directive)
    at, there = stage.position_of(loop, directive), other.position_of(other_loop, f"{directive} of {stage.name}")
    if at != there:
        raise stage.refuse(directive, f"{loop.name} is loop number {at} of {stage.name}, and {other_loop.name} number {there} "
                           f"of {other.name}: the loops around them are one too",
                           hint="choose loops with as many around them; those of "
                                f"{other.name}: {', '.join(other.loop_names())}")
    pairs = list(zip(stage.leaf_iter_vars[:at + 1], other.leaf_iter_vars))
    for own, his in pairs:
        _check_kinds(stage, own, other, his, directive)
    name = _mark_of(other, pairs[0][1]) or f"{stage.schedule.stages.index(other)}.{other.name}"
    for level, (own, his) in enumerate(pairs):
        for owner, marked in ((stage, own), (other, his)):
            if _mark_of(owner, marked) is None:
                attr = owner.attr_of(marked)
                owner.set_attr(marked, pragma_keys=(*attr.pragma_keys, StringImm(JOINED)),
                               pragma_values=(*attr.pragma_values, StringImm(f"{name}/{level}")))


def _check_other(stage: StageState, other: Any, directive: str) -> None:
    if not isinstance(other, StageState):
        raise stage.refuse(directive, f"the first argument is a stage, got {describe(other)}",
                           hint=f"write {stage.written}.compute_with(s[A], loop_of_A, loop)")
    if other is stage or other.schedule is not stage.schedule:
        whose = "the stage itself" if other is stage else f"{other.name} is a stage of another schedule"
        raise stage.refuse(directive, f"{whose}: the loops of two stages of one schedule become one")
    if stage.versions or other.versions or stage.version_of is not None or other.version_of is not None:
        raise stage.refuse(directive, "a stage with specialized versions has several loops, of which one runs",
                           hint="use compute_with without specialize")
    places = [(one.attach_type, one.attach_stage, one.attach_ivar) for one in (stage, other)]
    if places[0] != places[1]:
        raise stage.refuse(directive, f"{stage.name} and {other.name} are computed at different places",
                           hint="leave both at the root, or attach both to one loop")


def _check_kinds(stage: StageState, own: IterVar, other: StageState, his: IterVar, directive: str) -> None:
    kinds = [stage.annotation_of(own), other.annotation_of(his)]
    if kinds[0] != kinds[1] or kinds[0] not in (None, "parallel"):
        said = [kind or "serial" for kind in kinds]
        raise stage.refuse(directive, f"{own.name} is {said[0]}, and {his.name} of {other.name} {said[1]}: both are serial, "
                           "or both parallel", hint="annotate both alike before compute_with")
    if _mark_of(stage, own) is not None and _mark_of(stage, own) != _mark_of(other, his):
        raise stage.refuse(directive, f"{own.name} is one with the loop of another stage already",
                           hint="write it the other way round: "
                                f"{other.written}.compute_with({stage.written}, {own.name}, {his.name})")


def _mark_of(stage: StageState, loop: IterVar) -> str | None:
    """The name of the loops that `loop` is one with, without its level; None if there are none."""
    attr = stage.attr_of(loop)
    found = [value.value for key, value in zip(attr.pragma_keys, attr.pragma_values)
             if key.value == JOINED and isinstance(value, StringImm)]
    return found[0].rpartition("/")[0] if found else None
