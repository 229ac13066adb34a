"""Element by element: a thread for each element, or for every n-th one where there are more than the device runs at a time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tedsl import te
from topi.schedules.formulas import extent_of, product
from topi.schedules.gpu.limits import Limits, limits_of
from topi.schedules.kernel import Kernel

_BLOCKS = 256  # of a launch that has more elements than threads: each thread takes several


def schedule_injective(kernel: Kernel) -> None:
    """Fuse all axes and bind the loop to blocks and threads."""
    bind_elements(kernel.schedule[kernel.tail], limits_of(kernel.target))


def bind_elements(stage: te.Stage, limits: Limits) -> Any:
    """Bind all elements of `stage`; returns the loop inside of which there is one element of one thread."""
    op: Any = stage.op
    return bind_loops(stage, list(op.axis), limits)


def bind_loops(stage: te.Stage, axes: Sequence[Any], limits: Limits) -> Any:
    """Bind all iterations of `axes`, which are neighbours and outermost, as `bind_elements` does."""
    count = product([extent_of(axis) for axis in axes])
    threads = limits.threads if count is None else threads_for(count, limits)
    fused = axes[0] if len(axes) == 1 else stage.fuse(*axes)
    again = None
    if count is not None and count > threads * _BLOCKS:
        again, fused = stage.split(fused, factor=threads * _BLOCKS)
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
