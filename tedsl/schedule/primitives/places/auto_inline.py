"""Inlining of all stages whose formulas are element-wise, broadcasts, or without reductions."""

from __future__ import annotations

import itertools
from collections.abc import Callable

from tedsl.errors import ArgumentTypeError, type_in_words
from tedsl.ir.expr import ProducerLoad, Var
from tedsl.ir.walk.visitor import post_order
from tedsl.lang.operation import ComputeOp, root_axes
from tedsl.schedule.handles import Schedule
from tedsl.schedule.state import AttachType, StageState


def auto_inline_elementwise(sch: Schedule) -> None:
    """Inline every stage that reads its inputs at its own element: B[i, j] = A[i, j] + 1.

    Example (chain):
        te.schedule.AutoInlineElemWise(s)
    """
    _inline(sch, is_elementwise)


def auto_inline_broadcast(sch: Schedule) -> None:
    """Inline every stage that reads its inputs at some of its own indices, in order: B[i, j] = A[j] + 1.

    Example (chain):
        te.schedule.AutoInlineBroadcast(s)
    """
    _inline(sch, is_broadcast)


def auto_inline_injective(sch: Schedule) -> None:
    """Inline every stage that is not a reduction: B[i, j] = A[j, i // 2].

    Example (chain):
        te.schedule.AutoInlineInjective(s)
    """
    _inline(sch, is_injective)


def _inline(sch: Schedule, fits: Callable[[ComputeOp], bool]) -> None:
    if not isinstance(sch, Schedule):
        raise ArgumentTypeError(f"a schedule is inlined into, not {type_in_words(sch)}", hint="s = te.create_schedule(C.op)")
    for stage in sch.stages:
        op = stage.op
        if type(op) is ComputeOp and _may_inline(stage.state) and fits(op):
            stage.compute_inline()


def _may_inline(stage: StageState) -> bool:
    """Whether no directive has changed the stage and compute_inline would accept it."""
    readers = stage.schedule.consumers()[stage]
    return not (stage.is_output or is_scheduled(stage) or stage.op.num_outputs > 1 or stage.guests()
                or stage in stage.schedule.group_hosts.values()) \
        and all(type(reader.op) is ComputeOp for reader in readers)


def is_scheduled(stage: StageState) -> bool:
    """Whether a directive changed the loops or the place of this stage."""
    axes = root_axes(stage.op)
    moved = any(a is not b for a, b in zip(stage.leaf_iter_vars, axes))
    return bool(stage.relations or stage.iter_var_attrs or stage.versions) or stage.attach_type != AttachType.ROOT or moved


def is_elementwise(op: ComputeOp) -> bool:
    """Whether every read is at the element that is computed."""
    axes = [axis.var for axis in op.axis]
    return not op.reduce_axis and all(len(indices) == len(axes) and all(a is b for a, b in zip(indices, axes))
                                      for indices in _reads(op))


def is_broadcast(op: ComputeOp) -> bool:
    """Whether every read is at some of the indices of the element that is computed, in their order, or the tag says so."""
    if op.tag == "broadcast" and not op.reduce_axis:
        return True
    places = {axis.var: at for at, axis in enumerate(op.axis)}
    for indices in _reads(op):
        positions = [places.get(index, -1) if isinstance(index, Var) else -1 for index in indices]
        if -1 in positions or any(a >= b for a, b in itertools.pairwise(positions)):
            return False
    return not op.reduce_axis


def is_injective(op: ComputeOp) -> bool:
    """Whether the operation has no reduction."""
    return not op.reduce_axis


def _reads(op: ComputeOp) -> list[tuple[object, ...]]:
    return [node.indices for body in op.body for node in post_order(body) if type(node) is ProducerLoad]
