"""Element by element: a thread for each element, or for every n-th one where there are more than the device runs at a time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tedsl import te
from topi.schedules.formulas import constant, extent_of, product
from topi.schedules.gpu.limits import Limits, limits_of
from topi.schedules.kernel import Kernel

_BYTES, _WIDE = 16, ("float16", "float32", "int32")  # of the widest load; dtypes that are loaded so
_BLOCKS = 256  # of a launch that has more elements than threads: each thread takes several


def schedule_injective(kernel: Kernel) -> None:
    """Fuse all axes and bind the loop to blocks and threads; of many neighbours in memory, each thread takes a vector."""
    stage, limits = kernel.schedule[kernel.tail], limits_of(kernel.target)
    lanes = _lanes(kernel, limits)
    if lanes == 1:
        bind_elements(stage, limits)
        return
    vectors, lane = stage.split(fused_axes(stage), factor=lanes)
    stage.vectorize(lane)
    bind_loops(stage, [vectors], limits, (product([extent_of(axis) for axis in kernel.tail.axis]) or 0) // lanes)


def _lanes(kernel: Kernel, limits: Limits) -> int:
    """How many elements a thread loads at once: 16 bytes of them where all that is read has one dtype and follows the loops, or
    is the same for all of a row, and where so many elements are left that all processors have threads; else one.
    """
    op = kernel.tail
    formula, dtype = kernel.formula(op), op.output(0).dtype
    extents = [extent_of(axis) for axis in op.axis]
    count = product(extents)
    if str(dtype) not in _WIDE or not extents or count is None or kernel.fused or op.num_outputs > 1 or \
            op.axis[-1].var in formula.entangled or any(load.producer.dtype != dtype for load in formula.loads):
        return 1
    lanes: int = _BYTES * 8 // dtype.bits
    enough = count >= lanes * limits.threads * limits.processors and (extents[-1] or 1) % lanes == 0
    return lanes if enough and all(_follows(load, op.axis) for load in formula.loads) else 1


def _follows(load: Any, axes: Sequence[Any]) -> bool:
    """Whether neighbours along the last axis read neighbours in memory, or all the same element."""
    if all(index is not axes[-1].var for index in load.indices):
        return True
    own = axes[len(axes) - len(load.indices):]
    return len(own) == len(load.indices) and all(
        index is axis.var and constant(dim) == extent_of(axis)
        for index, axis, dim in zip(load.indices, own, load.producer.shape))


def bind_elements(stage: te.Stage, limits: Limits, threads: int = 0) -> Any:
    """Bind all elements of `stage` to blocks of `threads` threads, 0 for as many as divide them well; returns the loop inside
    of which there is one element of one thread.
    """
    op: Any = stage.op
    return bind_loops(stage, list(op.axis), limits, product([extent_of(axis) for axis in op.axis]), threads)


def bind_loops(stage: te.Stage, axes: Sequence[Any], limits: Limits, count: int | None, threads: int = 0) -> Any:
    """Bind all `count` iterations of `axes`, which are neighbours and outermost, as `bind_elements` does."""
    blocks = limits.threads * _BLOCKS // threads if threads else _BLOCKS  # smaller blocks are more
    threads = threads or (limits.threads if count is None else threads_for(count, limits))
    at_once = threads * blocks
    fused = axes[0] if len(axes) == 1 else stage.fuse(*axes)
    again = None
    if count is not None and count > at_once:
        again, fused = stage.split(fused, factor=at_once)
    block, thread = stage.split(fused, factor=threads)
    if again is not None:
        stage.reorder(block, thread, again)
    stage.bind(block, te.thread_axis("blockIdx.x"))
    stage.bind(thread, te.thread_axis("threadIdx.x"))
    return thread if again is None else again


def threads_for(count: int, limits: Limits) -> int:
    """The number of threads of a block for `count` elements: the largest divisor that fills warps well, so that no thread has
    to be guarded; else as many as there may be.
    """
    most = max(1, min(count, limits.threads))
    divisor = next(k for k in range(most, 0, -1) if count % k == 0)
    return divisor if divisor >= min(most, 4 * limits.warp) else most


def fused_axes(stage: te.Stage) -> Any:
    """Fuse the axes of `stage`; of no axes, one loop of one iteration."""
    stage_op: Any = stage.op
    axes = list(stage_op.axis)
    return axes[0] if len(axes) == 1 else stage.fuse(*axes)
