"""softmax and layer_norm: the threads of a block work on one row together."""

from __future__ import annotations

from typing import Any

from tedsl import te
from topi.schedules.formulas import extent_of
from topi.schedules.gpu.injective import bind_elements, fused_axes
from topi.schedules.kernel import Kernel

_THREADS = 64


def schedule_rows(kernel: Kernel) -> None:
    """Give each row a block of threads: values stay in shared memory between the steps, reductions run across the threads."""
    s, tail = kernel.schedule, kernel.schedule[kernel.tail]
    if kernel.fused:
        s[kernel.anchor].compute_inline()
    axes = reduced_axes(kernel)
    kept = [axis for d, axis in enumerate(kernel.tail.axis) if d not in axes]
    along = [axis for d, axis in enumerate(kernel.tail.axis) if d in axes]
    if any(extent_of(axis) is None for axis in kernel.tail.axis):
        _stage_by_stage(kernel)
        return
    tail.reorder(*kept, *along)
    row = tail.fuse(*kept) if len(kept) != 1 else kept[0]
    tail.bind(row, te.thread_axis("blockIdx.x"))
    thread = te.thread_axis((0, _THREADS), "threadIdx.x")
    for tensor in kernel.record.stages:
        stage = s[tensor]
        stage.compute_at(tail, row)
        stage.set_scope("shared")
        if stage.op.reduce_axis:
            _across(s, tensor, thread)
        else:
            _spread(stage, fused_axes(stage), thread)
    _spread(tail, tail.fuse(*along) if len(along) > 1 else along[0], thread)


def reduced_axes(kernel: Kernel) -> tuple[int, ...]:
    """The dimensions that make up a row."""
    record = kernel.record
    axes: tuple[int, ...] = record.axes if hasattr(record, "axes") else (record.axis,)
    return axes


def _across(s: te.Schedule, tensor: te.Tensor, thread: Any) -> None:
    """Reduce in two steps: within each thread, then across the threads of the block."""
    stage = s[tensor]
    op: Any = stage.op
    loop = stage.fuse(*op.reduce_axis) if len(op.reduce_axis) > 1 else op.reduce_axis[0]
    _, inner = stage.split(loop, factor=_THREADS)
    partial = s.rfactor(tensor, inner)
    made: Any = stage.op
    stage.bind(made.reduce_axis[0], thread)
    stage.set_store_predicate(thread.var.equal(0))
    s[partial].compute_at(stage, made.reduce_axis[0])


def _spread(stage: te.Stage, loop: Any, thread: Any) -> None:
    """Bind the iterations of `loop` to the threads of the block."""
    _, inner = stage.split(loop, factor=_THREADS)
    stage.bind(inner, thread)


def _stage_by_stage(kernel: Kernel) -> None:
    """Launch each step as a kernel of its own, for symbolic shapes."""
    s = kernel.schedule
    for tensor in kernel.record.stages:
        bind_elements(s[tensor])
    bind_elements(s[kernel.tail])
