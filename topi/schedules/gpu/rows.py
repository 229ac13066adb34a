"""softmax and normalizations: a warp works on one row in its registers, or a block in its shared memory."""

from __future__ import annotations

from typing import Any

from tedsl import te
from topi.kinds import SoftmaxOp
from topi.schedules.formulas import constant, extent_of, product
from topi.schedules.gpu.injective import bind_elements, fused_axes
from topi.schedules.gpu.limits import limits_of
from topi.schedules.kernel import Kernel

_THREADS = 64
_OF_A_THREAD = 64  # elements of a row that a thread of a warp keeps: 1024 threads of a processor have that many registers


def schedule_rows(kernel: Kernel) -> None:
    """Give each row a warp if it fits into its registers, else a block if it fits into shared memory, else a kernel per step.
    """
    limits = limits_of(kernel.target)
    if kernel.fused:
        kernel.schedule[kernel.anchor].compute_inline()
    row = product([extent_of(kernel.tail.axis[axis]) for axis in reduced_axes(kernel)])
    if row is None or any(extent_of(axis) is None for axis in kernel.tail.axis):
        _stage_by_stage(kernel)
    elif limits.warp > 1 and row % limits.warp == 0 and row <= limits.warp * _OF_A_THREAD and _is_plain_softmax(kernel):
        _by_warp(kernel, row, limits.warp)
    elif _shared_bytes(kernel, row) <= limits.shared:
        _by_block(kernel)
    else:
        _stage_by_stage(kernel)


def reduced_axes(kernel: Kernel) -> tuple[int, ...]:
    """The dimensions that make up a row."""
    record = kernel.record
    axes: tuple[int, ...] = record.axes if hasattr(record, "axes") else (record.axis,)
    return axes


def _is_plain_softmax(kernel: Kernel) -> bool:
    """Whether the steps are a maximum, exponentials and their sum, with one quotient for all of a row."""
    stages = kernel.record.stages
    return isinstance(kernel.record, SoftmaxOp) and len(stages) == 4 and stages[0].dtype == "float32"


def _shared_bytes(kernel: Kernel, row: int) -> int:
    """The bytes of shared memory in which the steps of one row are kept."""
    stages = kernel.record.stages
    return sum((row if len(stage.shape) == len(kernel.tail.axis) and not stage.op.reduce_axis else 1) * stage.dtype.bits // 8
               for stage in stages)


def _by_warp(kernel: Kernel, row: int, warp: int) -> None:
    """Each thread of a warp keeps a part of the row; maximum and sum are reduced across the warp."""
    s, tail = kernel.schedule, kernel.schedule[kernel.tail]
    peak, exponentials, total, scale = kernel.record.stages
    s[scale].compute_inline()
    thread = te.thread_axis((0, warp), "threadIdx.x")
    kept = [axis for d, axis in enumerate(kernel.tail.axis) if d != kernel.record.axis]
    tail.reorder(*kept, kernel.tail.axis[kernel.record.axis])
    block = tail.fuse(*kept) if len(kept) != 1 else kept[0]
    tail.bind(block, te.thread_axis("blockIdx.x"))
    part = _in_parts(tail, kernel.tail.axis[kernel.record.axis], row, thread)
    s[total].compute_at(tail, part)
    _reduced_by_warp(s[total], thread)
    s[exponentials].compute_at(tail, block)
    s[exponentials].set_scope("warp")
    part = _in_parts(s[exponentials], s[exponentials].op.axis[kernel.record.axis], row, thread)
    s[peak].compute_at(s[exponentials], part)
    _reduced_by_warp(s[peak], thread)


def _in_parts(stage: te.Stage, axis: Any, row: int, thread: Any) -> Any:
    """Give each thread a part of the row, computed in vectors; returns the loop over the threads."""
    threads = constant(thread.dom.extent) or 1
    part, inside = stage.split(axis, nparts=threads)
    lanes = next(n for n in (4, 2, 1) if row // threads % n == 0)
    if lanes > 1:
        stage.vectorize(stage.split(inside, factor=lanes)[1])
    stage.bind(part, thread)
    return part


def _reduced_by_warp(stage: te.Stage, thread: Any) -> None:
    op: Any = stage.op
    part, _ = stage.split(op.reduce_axis[0], nparts=constant(thread.dom.extent))
    stage.bind(part, thread)


def _by_block(kernel: Kernel) -> None:
    """Values stay in shared memory between the steps, reductions run across the threads of a block."""
    s, tail = kernel.schedule, kernel.schedule[kernel.tail]
    axes = reduced_axes(kernel)
    kept = [axis for d, axis in enumerate(kernel.tail.axis) if d not in axes]
    along = [axis for d, axis in enumerate(kernel.tail.axis) if d in axes]
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
    """Launch each step as a kernel of its own, for symbolic shapes and long rows."""
    s, limits = kernel.schedule, limits_of(kernel.target)
    for tensor in kernel.record.stages:
        bind_elements(s[tensor], limits)
    bind_elements(s[kernel.tail], limits)
