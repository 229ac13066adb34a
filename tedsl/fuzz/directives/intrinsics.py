"""tensorize, with an intrinsic that copies or sums up a constant number of elements."""

from __future__ import annotations

from tedsl.fuzz.directives.sites import constant_extents, operation
from tedsl.fuzz.scheduler import Scheduler
from tedsl.ir.expr import Add, ProducerLoad, Reduce
from tedsl.lang.operation import ComputeOp
from tedsl.schedule.state import StageState


def tensorize(s: Scheduler) -> str | None:
    """The innermost loop of a stage that copies, or sums up, elements that lie side by side."""
    name = s.pick_stage(lambda stage: _fitting(stage) is not None)
    if name is None:
        return None
    stage = s.state(name)
    fitting = _fitting(stage)
    at = len(stage.leaf_iter_vars) - 1
    return f"s[{name}].tensorize(loop({name}, {at}), intrinsics.{fitting}({_count(stage)}, '{stage.op.dtype_of(0)}'))"


def _count(stage: StageState) -> int:
    return constant_extents(stage).get(stage.leaf_iter_vars[-1], 0) if stage.leaf_iter_vars else 0


def _fitting(stage: StageState) -> str | None:
    """The name of the intrinsic that computes the innermost loop of the stage; None if there is none."""
    op = operation(stage)
    if type(op) is not ComputeOp or not 1 < _count(stage) <= 16 or op.num_outputs != 1:
        return None
    if any(stage.attr_of(leaf).tensor_intrin is not None for leaf in stage.leaf_iter_vars):
        return None
    loop, body = stage.leaf_iter_vars[-1], op.body[0]
    if stage.annotation_of(loop) is not None or any(guest.attach_ivar is loop for guest in stage.guests()):
        return None
    if isinstance(body, ProducerLoad) and not loop.is_reduction:
        return "copy_of"
    simple = isinstance(body, Reduce) and not body.init and isinstance(body.combiner.result[0], Add) \
        and isinstance(body.source[0], ProducerLoad)
    return "sum_of" if simple and loop.is_reduction else None
