"""decompose_reduction: a reduction is initialized in loops of its own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tedsl.ir.iters import IterVar
from tedsl.schedule.state import StageState, find, show


def decompose_reduction(stage: StageState, loop: Any) -> None:
    """Initialize the results in a loop nest of their own, right before `loop`; by default before the first reduction loop.

        for i: { B[i] = 0; for k: B[i] += A[i, k] }   →   for i: B[i] = 0;  for i: for k: B[i] += A[i, k]        (at i)
    """
    directive = f"decompose_reduction({show(loop)})"
    at = stage.position_of(loop, directive)
    first = first_reduction(stage.leaf_iter_vars)
    if first is None:
        reducing = getattr(stage.op, "reduce_axis", ())
        why = "its reduction loops are gone" if reducing else "it has no start values"
        raise stage.refuse(directive, f"{stage.name} is not a reduction: {why}",
                           hint="use it on a stage made by te.sum, te.max, te.comm_reducer(...), ...")
    if at > first:
        outer = stage.leaf_iter_vars[first].name
        raise stage.refuse(directive, f"{loop.name} is inside of the reduction loop {outer}: the start values would wipe out "
                           f"what earlier iterations of {outer} added",
                           hint=f"choose one of {', '.join(stage.loop_names()[:first + 1])}, or reorder first")
    _must_stay_in_threads(stage, directive, stage.leaf_iter_vars[at:])
    if stage.init_at is not None and stage.init_at is not loop:
        raise stage.refuse(directive, f"the start values stand before {stage.init_at.name} already",
                           hint="call decompose_reduction once")
    stage.init_at = loop


def first_reduction(loops: Sequence[IterVar]) -> int | None:
    """The number of the outermost reduction loop."""
    return next((at for at, loop in enumerate(loops) if loop.is_reduction), None)


def check_init_place(stage: StageState, directive: str, after: Sequence[IterVar]) -> None:
    """Refuses an order of the loops in which the initialization would be inside the reduction, or outside of threads."""
    first = first_reduction(after)
    if first is None:
        return
    at = None if stage.init_at is None else find(after, stage.init_at)
    _must_stay_in_threads(stage, directive, after[first if at is None else at:])
    if stage.init_at is None:
        return
    if at is not None and at > first:
        raise stage.refuse(directive, f"afterwards the start values, which stand before {stage.init_at.name}, "
                           f"are inside of the reduction loop {after[first].name}",
                           hint=f"keep {stage.init_at.name} outside of the reduction loops")


def _must_stay_in_threads(stage: StageState, directive: str, inside: Sequence[IterVar]) -> None:
    """Refuses an initialization outside the threads that are launched around the stage. inside: the loops after its place."""
    thread = next((one for one in inside if one in stage.env_threads), None)
    if thread is not None:
        raise stage.refuse(directive, f"the start values would stand outside of the threads {thread.name}, which env_threads "
                           "launched around the stage: each of them would add to the same elements, from where the others are",
                           hint=f"keep {thread.name} outside of the reduction loops and of the place of the start values, so "
                                "that each thread does all of it")
