"""Element by element: one thread for each element."""

from __future__ import annotations

from typing import Any

from tedsl import te
from topi.schedules.formulas import extent_of, product
from topi.schedules.kernel import Kernel

THREADS = 256


def schedule_injective(kernel: Kernel) -> None:
    """Fuse all axes and bind the loop to blocks and threads."""
    bind_elements(kernel.schedule[kernel.tail])


def bind_elements(stage: te.Stage) -> Any:
    """Bind all elements of `stage`; returns the loop over the threads of a block."""
    op: Any = stage.op
    count = product([extent_of(axis) for axis in op.axis])
    block, thread = stage.split(fused_axes(stage), factor=THREADS if count is None else max(1, min(count, THREADS)))
    stage.bind(block, te.thread_axis("blockIdx.x"))
    stage.bind(thread, te.thread_axis("threadIdx.x"))
    return thread


def fused_axes(stage: te.Stage) -> Any:
    """Fuse the axes of `stage`; of no axes, one loop of one iteration."""
    stage_op: Any = stage.op
    axes = list(stage_op.axis)
    return axes[0] if len(axes) == 1 else stage.fuse(*axes)
