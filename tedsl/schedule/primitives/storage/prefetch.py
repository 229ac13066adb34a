"""prefetch: data that a later iteration reads is loaded into the cache."""

from __future__ import annotations

from typing import Any

from tedsl.ir import build
from tedsl.ir.iters import IterType, IterVar
from tedsl.lang.tensor import Tensor
from tedsl.schedule.memory_options import Prefetched
from tedsl.schedule.state import StageState, describe, show


def prefetch(stage: StageState, tensor: Any, loop: Any, offset: Any, is_spread: bool = False, into: Any = None) -> None:
    """In each iteration of `loop`, prefetch what the iteration `offset` later reads of `tensor`.

        for i: B[i] = f(A[i, :])   →   for i: prefetch(A[i + offset, :]); B[i] = f(A[i, :])

    is_spread: whether the loops inside ask for some lines in each of their iterations, not for all at the beginning.
    into: an output, whose places are asked for instead, in order to write them: prefetch(C[i + offset, :]).
    """
    directive = f"prefetch({show(tensor)}, {show(loop)}, {show(offset)}{'' if into is None else f', into={show(into)}'})"
    stage.position_of(loop, directive)
    if not isinstance(tensor, Tensor):
        raise stage.refuse(directive, f"the first argument is a tensor, got {describe(tensor)}",
                           hint="for an operation write op.output(0)")
    source = stage.schedule.stage_map.get(tensor.op)
    if source is None:
        names = ", ".join(one.name for one in stage.schedule.stages)
        raise stage.refuse(directive, f"{tensor.name} is not part of this schedule", hint=f"stages of this schedule: {names}")
    if source is stage:
        raise stage.refuse(directive, f"{tensor.name} is what {stage.name} writes",
                           hint=f"prefetch a tensor that it reads: {', '.join(t.name for t in stage.op.input_tensors)}")
    if stage.attr_of(loop).iter_type == IterType.VECTORIZED:
        raise stage.refuse(directive, f"{loop.name} is vectorized: its iterations run at once",
                           hint="prefetch at a loop around it")
    try:
        ahead = None if isinstance(offset, (bool, str, IterVar)) else build.as_expr(offset)
    except (TypeError, ValueError):
        ahead = None
    if ahead is None or not ahead.dtype.is_integer or ahead.dtype.lanes != 1:
        raise stage.refuse(directive, f"the offset is a number of iterations, got {describe(offset)}", hint="for example 1")
    if into is not None:
        _check_written(stage, tensor, into, directive)
        if is_spread:
            raise stage.refuse(directive, "lines that are written are asked for at once", hint="leave out spread")
    prefetched = Prefetched(tensor, build.cast(loop.dtype, ahead), bool(is_spread), into)
    stage.set_attr(loop, prefetched=(*stage.attr_of(loop).prefetched, prefetched))


def _check_written(stage: StageState, tensor: Tensor, into: Any, directive: str) -> None:
    """Refuses what is not an output with as many dimensions as `tensor`."""
    if not isinstance(into, Tensor):
        raise stage.refuse(directive, f"into is a tensor, got {describe(into)}", hint="for an operation write op.output(0)")
    if into.op not in stage.schedule.outputs:
        outputs = ", ".join(op.name for op in stage.schedule.outputs)
        raise stage.refuse(directive, f"{into.name} is not an output: its values are in the cache when they are written",
                           hint=f"use it for a stage given to create_schedule: {outputs}")
    if len(into.shape) != len(tensor.shape):
        raise stage.refuse(directive, f"{into.name} has {len(into.shape)} dimensions, {tensor.name} has {len(tensor.shape)}: "
                           "there are no places that are the same", hint="name a tensor of the shape of the output")
