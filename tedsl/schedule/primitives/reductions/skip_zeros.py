"""skip_zeros: iterations of a sum that add only zeros do not run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tedsl.ir.expr import Reduce
from tedsl.ir.iters import IterType, IterVar
from tedsl.lang.operation import ComputeOp
from tedsl.lang.reads import is_ragged
from tedsl.lang.zeros.borders import conditions_of
from tedsl.lang.zeros.terms import is_sum
from tedsl.schedule.primitives.reductions.decompose_reduction import first_reduction
from tedsl.schedule.state import StageState, show


def skip_zeros(stage: StageState, loop: Any) -> None:
    """Run an iteration of `loop` only where what it adds may differ from zero by the formula of what the sum reads.

        for k: B[y] += P[y + k] * W[k]   →   for k: if 1 <= y + k: B[y] += P[y + k] * W[k]    (P[i] = 0 for i < 1)
    """
    directive = f"skip_zeros({show(loop)})"
    at = stage.position_of(loop, directive)
    op, first = stage.op, first_reduction(stage.leaf_iter_vars)
    if first is None or not isinstance(op, ComputeOp) or not isinstance(op.body[0], Reduce) or not is_sum(op.body[0]):
        raise stage.refuse(directive, f"{stage.name} is not a sum", hint="use it on a stage made by te.sum")
    if at < first:
        raise stage.refuse(directive, f"{loop.name} is outside of the sum, which begins at loop "
                           f"{stage.leaf_iter_vars[first].name}",
                           hint=f"choose one of {', '.join(stage.loop_names()[first:])}")
    if is_ragged(op):
        raise stage.refuse(directive, f"the sum of {stage.name} has extents that differ from element to element",
                           hint="leave skip_zeros out")
    said = stage.annotation_of(loop)
    if said is not None and stage.attr_of(loop).iter_type != IterType.UNROLLED:
        raise stage.refuse(directive, f"{loop.name} is {said}", hint="skip zeros at a loop around it, which runs one by one")
    if not conditions_of(op.body[0].source[0]):
        read = ", ".join(tensor.name for tensor in op.input_tensors) or "no tensor"
        raise stage.refuse(directive, f"no factor of what {stage.name} adds is zero by a formula: it reads {read}",
                           hint="read data with a border that te.if_then_else(inside, value, 0) makes, as topi.nn.pad does")
    stage.set_attr(loop, skips_zeros=True)


def check_skips(stage: StageState, directive: str, after: Sequence[IterVar]) -> None:
    """Refuses an order of the loops in which a loop that skips zeros is outside of the sum: it would skip start values, too."""
    first = first_reduction(after) or 0
    outside = next((loop for loop in after[:first] if stage.attr_of(loop).skips_zeros), None)
    if outside is not None:
        raise stage.refuse(directive, f"afterwards {outside.name}, which skips zeros, is outside of the sum, which begins at "
                           f"loop {after[first].name}: the start values of {stage.name} would be skipped, too",
                           hint=f"keep {outside.name} inside of {after[first].name}, or reorder first and then skip zeros at a "
                                "loop of the sum")
