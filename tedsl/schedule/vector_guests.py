"""Stages that are computed inside a vectorized loop: each lane has a copy of their memory, and their loops run for all lanes.

    for v in 0..8 (vectorized): { for k: P += A[v, k];  B[v] = P }   →   for k: P[0:8] += A[0:8, k];  B[0:8] = P[0:8]
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tedsl.ir.iters import IterType, IterVar
from tedsl.lang.operation import ComputeOp
from tedsl.schedule.state import AttachType, StageState, find

SHARED = (IterType.VECTORIZED, IterType.PARALLELIZED)


def why_not_in_lanes(stage: StageState) -> str:
    """The reason why `stage` and its guests cannot be computed for several lanes at a time; "" if they can."""
    if type(stage.op) is not ComputeOp:
        return f"{stage.name} is not made by a formula of te.compute, and vectors have no place for its statements"
    for loop in stage.leaf_iter_vars:
        attr = stage.attr_of(loop)
        if attr.iter_type in SHARED or attr.bind_thread is not None or attr.tensor_intrin is not None:
            said = stage.annotation_of(loop) or "tensorized"
            return f"{loop.name} of {stage.name} is {said}, and a vector has room for plain loops only"
    if stage.storage.double_buffer or stage.storage.rolling:
        return f"{stage.name} is kept from one iteration to the next, and lanes run at once"
    return next((why for guest in stage.guests() if (why := why_not_in_lanes(guest))), "")


def vector_around(stage: StageState) -> tuple[StageState, IterVar] | None:
    """The vectorized loop inside which `stage` is computed, and its stage."""
    while stage.attach_type == AttachType.SCOPE and stage.attach_stage is not None and stage.attach_ivar is not None:
        host = stage.attach_stage
        at = find(host.leaf_iter_vars, stage.attach_ivar)
        loop = vectorized(host, host.leaf_iter_vars[:0 if at is None else at + 1])
        if loop is not None:
            return host, loop
        stage = host
    return None


def vectorized(stage: StageState, loops: Iterable[IterVar]) -> IterVar | None:
    """The first of `loops` that is vectorized."""
    return next((loop for loop in loops if stage.attr_of(loop).iter_type == IterType.VECTORIZED), None)


def must_fit_in_lanes(stage: StageState, order: Sequence[IterVar], directive: str) -> None:
    """Refuses an order of the loops of `stage` that moves a stage computed inside into a vectorized loop where it cannot be
    computed.
    """
    first = vectorized(stage, order)
    inside = order[find(order, first) or 0:] if first is not None else []
    for guest in stage.guests():
        why = why_not_in_lanes(guest) if guest.attach_ivar is not None and find(inside, guest.attach_ivar) is not None else ""
        if why and first is not None:
            raise stage.refuse(directive, f"afterwards {guest.name} is computed inside {first.name}, which is vectorized: "
                               f"{why}", hint=f"keep {first.name} inside of the loop at which {guest.name} is computed")


def must_not_share_lanes(stage: StageState, loop: IterVar, directive: str, what: str) -> None:
    """Refuses an annotation of a loop that is run for several lanes at a time."""
    around = vector_around(stage)
    if around is not None:
        host, vector = around
        raise stage.refuse(directive, f"{stage.name} is computed inside {vector.name} of {host.name}, which is vectorized: its "
                           f"loops run for all lanes at once and cannot be {what}",
                           hint=f"compute {stage.name} at a loop outside of {vector.name}")
