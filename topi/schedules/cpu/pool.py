"""Pooling of images whose rows are contiguous: the border is computed for one channel at a time, while it is in cache."""

from __future__ import annotations

from typing import Any

from tedsl import te
from topi.kinds import PoolOp
from topi.schedules.cpu.parallel import share_out
from topi.schedules.cpu.reduce import schedule_reduce
from topi.schedules.formulas import extent_of, product
from topi.schedules.kernel import Kernel

_NEAR = 256 * 1024  # elements of one channel with its border, which have to stay in cache
_INLINE = 2  # what a stage says that is computed where it is read
_WIDE = 128  # elements of a row that are one vector


def border_of(op: Any) -> tuple[Any, ...]:
    """The operation that makes the border of a pool, if that is computed for each channel; () for other operations."""
    info = getattr(op, "info", None)
    if not isinstance(info, PoolOp) or type(info.padded.op) is not te.ComputeOp or info.padded is info.data:
        return ()
    if not info.layout.startswith("NC") or info.layout[-1].islower():
        return ()
    extents = [getattr(extent, "value", None) for extent in info.padded.shape[2:]]
    size = product([extent if isinstance(extent, int) else None for extent in extents])
    width = extent_of(op.axis[-1])
    fits = size is not None and size <= _NEAR and width is not None and width <= _WIDE
    return (info.padded.op,) if fits and len(op.axis) == len(info.layout) else ()


def schedule_pool(kernel: Kernel) -> None:
    """Rows of results as vectors, each place of the window after the other; other pools as any reduction."""
    border = border_of(kernel.anchor)
    if not border or kernel.schedule[border[0]].attach_type != _INLINE or _others_read(kernel, border[0]):
        schedule_reduce(kernel)
        return
    s, tail, pool = kernel.schedule, kernel.schedule[kernel.tail], kernel.schedule[kernel.anchor]
    axes, window = list(kernel.anchor.axis), list(kernel.anchor.reduce_axis)
    points = product([extent_of(axis) for axis in (*axes, *window)])
    rows = list(kernel.tail.axis)
    channel = share_out(tail, rows[:2], points)
    if kernel.fused:
        tail.vectorize(rows[-1])
        pool.compute_at(tail, rows[-2] if len(rows) > 3 else channel)
    pool.reorder(*axes[2:-1], *window, axes[-1])
    pool.vectorize(axes[-1])
    padded = s[border[0]]
    padded.compute_at(tail, channel)
    _, lane = padded.split(padded.op.axis[-1], factor=kernel.lanes(kernel.anchor))
    padded.vectorize(lane)


def _others_read(kernel: Kernel, border: Any) -> bool:
    """Whether an operation besides the pool reads its border, as the gradient of a maximum does."""
    return any(stage.op is not kernel.anchor and any(tensor.op is border for tensor in stage.op.input_tensors)
               for stage in kernel.schedule.stages)
