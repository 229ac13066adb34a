"""tensorize: an intrinsic does the work of a loop and of everything inside it."""

from __future__ import annotations

from typing import Any

from tedsl.ir.expr import Reduce
from tedsl.ir.iters import IterType
from tedsl.lang.intrinsics.tensor_intrin import TensorIntrin
from tedsl.lang.operation import ComputeOp
from tedsl.schedule.primitives.marks import must_be_markable
from tedsl.schedule.relations import touched_by
from tedsl.schedule.state import StageState, describe, find, show


def tensorize(stage: StageState, loop: Any, intrin: Any) -> None:
    """Replaces `loop` and all loops inside it by one use of the intrinsic `intrin`, whose formula must be what they compute.

        for yo, for yi in 0..16, for k: C[yo*16 + yi] += A[yo*16 + yi, k] * x[k]   →   for yo: gemv(16 rows of A, x, 16 of C)

    Lowering compares the formulas. If the whole reduction is inside, the intrinsic's body is used; if a loop of it is outside,
    its reduce_init before that loop and its reduce_update inside (without a reduce_init, the body in the first iteration).
    """
    directive = f"tensorize({show(loop)}, {intrin.name if isinstance(intrin, TensorIntrin) else describe(intrin)})"
    at = must_be_markable(stage, loop, directive, marked=False, bound=False)
    if not isinstance(intrin, TensorIntrin):
        raise stage.refuse(directive, f"the second argument is an intrinsic, got {describe(intrin)}",
                           hint="make one with te.decl_tensor_intrin(z.op, lambda ins, outs: ...)")
    op = stage.op
    if type(op) is not ComputeOp:
        what = "is computed by calls of an intrinsic already" if isinstance(op, ComputeOp) else "is not made by te.compute"
        raise stage.refuse(directive, f"{stage.name} {what}", hint="tensorize a stage with a formula")
    others = [one for one in stage.leaf_iter_vars if stage.attr_of(one).tensor_intrin is not None]
    if others:
        raise stage.refuse(directive, f"loop {others[0].name} is tensorized already; an intrinsic takes all loops inside it",
                           hint="tensorize one loop of a stage, the outermost that the intrinsic covers")
    _check_formula(stage, op, intrin, directive)
    both = [one.name for one in stage.leaf_iter_vars if one.is_reduction and one in touched_by(op.axis, stage.relations)]
    if both:
        raise stage.refuse(directive, f"loop {both[0]} runs over elements and over the reduction at once",
                           hint="tensorize a stage whose loops are of one sort each")
    inside = stage.leaf_iter_vars[at:]
    for one in inside[1:]:
        if stage.annotation_of(one) is not None:
            raise stage.refuse(directive, f"loop {one.name}, inside {loop.name}, is {stage.annotation_of(one)}: the intrinsic "
                               "replaces it", hint=f"leave {one.name} plain")
    guests = [s for s in stage.guests() if find(inside, s.attach_ivar) is not None]
    if guests:
        raise stage.refuse(directive, f"{guests[0].name} is computed at {show(guests[0].attach_ivar)}, inside what the "
                           "intrinsic replaces", hint=f"compute {guests[0].name} at a loop outside of {loop.name}")
    stage.set_attr(loop, iter_type=IterType.TENSORIZED, tensor_intrin=intrin)


def _check_formula(stage: StageState, op: ComputeOp, intrin: TensorIntrin, directive: str) -> None:
    """Refuses an intrinsic with other outputs, dtypes or reductions than the stage; lowering compares the formulas."""
    ours, theirs = intrin.op, op
    if ours.num_outputs != theirs.num_outputs:
        raise stage.refuse(directive, f"the intrinsic has {ours.num_outputs} outputs, {stage.name} has {theirs.num_outputs}")
    for at, (a, b) in enumerate(zip(ours.body, theirs.body)):
        if a.dtype is not b.dtype:
            raise stage.refuse(directive, f"dtype of output {at}: the intrinsic computes {a.dtype}, {stage.name} is {b.dtype}",
                               hint=f"write the formula of one of them with .astype({str(a.dtype)!r})")
    reduces = [isinstance(o.body[0], Reduce) for o in (ours, theirs)]
    if reduces[0] != reduces[1]:
        kinds = ["a reduction" if r else "not a reduction" for r in reduces]
        raise stage.refuse(directive, f"the formula of the intrinsic is {kinds[0]}, that of {stage.name} is {kinds[1]}",
                           hint="an intrinsic for one step of a reduction has a te.reduce_axis of one iteration")
