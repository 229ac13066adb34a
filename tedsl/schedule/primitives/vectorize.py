"""vectorize: the iterations of a loop become the lanes of vectors."""

from __future__ import annotations

from typing import Any

from tedsl.ir import build
from tedsl.ir.calls.lanes import OF_KIND
from tedsl.ir.expr import BinaryOp, Reduce
from tedsl.ir.iters import IterType, IterVar
from tedsl.ir.script import shown
from tedsl.lang.operation import ComputeOp
from tedsl.schedule.domains import extent_of
from tedsl.schedule.primitives.marks import for_elements, mark, must_be_markable, stays_bound
from tedsl.schedule.relations import touched_by
from tedsl.schedule.scan.checks import must_not_be_steps
from tedsl.schedule.state import AttachType, StageState, find, show
from tedsl.schedule.vector_guests import must_not_share_lanes, why_not_in_lanes


def vectorize(stage: StageState, loop: Any) -> None:
    """Mark `loop`, whose extent is constant, to be run as vector instructions.

        for i in 0..8: B[i] = A[i] + 1   →   B[ramp(0, 1, 8)] = A[ramp(0, 1, 8)] + broadcast(1, 8)

    The lanes of a reduction loop are combined, halves of the vector again and again, and then with the element that they write:

        for k in 0..8: B[i] += A[k]      →   B[i] = B[i] + sum_lanes(A[ramp(0, 1, 8)])
    """
    directive = f"vectorize({show(loop)})"
    at = must_be_markable(stage, loop, directive)
    if stays_bound(stage, loop, directive):
        return
    why = _why_not_combined(stage, loop) if loop.is_reduction else ""
    if why:
        raise stage.refuse(
            directive, f"{loop.name} is a reduction loop: all its iterations write one element, and {why}",
            hint=for_elements(stage, loop, "vectorize"))
    must_not_be_steps(stage, loop, directive)
    extent = extent_of(stage, loop)
    if extent is not None and build.as_int(extent) is None and stage.attach_type != AttachType.SCOPE:
        raise stage.refuse(directive, f"the extent of {loop.name} is {shown(extent)}, which is not a constant",
                           hint=f"split it by a constant first: _, inner = {stage.handle}.split({loop.name}, factor=8); "
                                f"{stage.handle}.vectorize(inner)")
    must_not_share_lanes(stage, loop, directive, "vectorized")
    for guest in stage.guests():
        why = why_not_in_lanes(guest) if find(stage.leaf_iter_vars[at:], guest.attach_ivar) is not None else ""
        if why:
            raise stage.refuse(
                directive, f"{guest.name} is computed at {show(guest.attach_ivar)}, inside what would be a vector: {why}",
                hint=f"compute {guest.name} at a loop outside of {loop.name}")
    mark(stage, loop, IterType.VECTORIZED, directive)


def _why_not_combined(stage: StageState, loop: IterVar) -> str:
    """The reason why the lanes of `loop`, over a reduction of `stage`, cannot be combined; "" if they can: those of sums,
    products, largest and smallest elements of numbers.
    """
    op = stage.op
    reduce = op.body[0] if isinstance(op, ComputeOp) else None
    if not isinstance(op, ComputeOp) or not isinstance(reduce, Reduce) or loop in touched_by(op.axis, stage.relations):
        return "lanes would race"
    combiner = reduce.combiner
    if len(combiner.result) != 1:
        return f"lanes of {len(combiner.result)} values that belong together are not combined"
    (result,), of = combiner.result, reduce.dtype
    if of.is_bool or of.is_custom or of.lanes > 1:
        return f"lanes of {of} are not combined"
    if isinstance(result, BinaryOp) and type(result) in OF_KIND and {result.a, result.b} == {*combiner.lhs, *combiner.rhs}:
        return ""
    return "lanes are combined only for sums, products, largest and smallest elements"
