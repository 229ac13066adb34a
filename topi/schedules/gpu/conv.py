"""Convolutions: a block of threads computes a tile of channels and pixels from shared memory that its threads fill."""

from __future__ import annotations

from typing import Any

from tedsl import te
from topi.schedules.formulas import constant, extent_of
from topi.schedules.gpu.injective import fused_axes
from topi.schedules.gpu.reduce import schedule_reduce
from topi.schedules.kernel import Kernel

_PIXELS, _CHANNELS, _STEP = 32, 8, 4


def schedule_conv(kernel: Kernel) -> None:
    """Bind threadIdx.x along the width and threadIdx.y along the output channels; shared memory holds some input channels at a
    time.
    """
    if kernel.record.layout != "NCHW" or any(extent_of(axis) is None for axis in kernel.tail.axis) \
            or constant(kernel.record.kernel.shape[1]) is None:
        schedule_reduce(kernel)
        return
    s = kernel.schedule
    data = s.cache_read(kernel.record.padded, "shared", [kernel.anchor])
    weights = s.cache_read(kernel.record.kernel, "shared", [kernel.anchor])
    sums = kernel.anchor if kernel.fused else s.cache_write(kernel.tail.output(0), "local").op
    if kernel.fused:
        s[sums].set_scope("local")
    tail = s[kernel.tail]
    n, o, y, x = tail.op.axis
    pixels, channels = min(extent_of(x) or 1, _PIXELS), min(extent_of(o) or 1, _CHANNELS)
    oo, oi = tail.split(o, factor=channels)
    xo, xi = tail.split(x, factor=pixels)
    tail.reorder(n, oo, y, xo, oi, xi)
    for loop, name in ((tail.fuse(n, oo), "blockIdx.z"), (y, "blockIdx.y"), (xo, "blockIdx.x"), (oi, "threadIdx.y"),
                       (xi, "threadIdx.x")):
        tail.bind(loop, te.thread_axis(name))
    stage = s[sums]
    stage.compute_at(tail, xi)
    rc, *window = stage.op.reduce_axis
    ro, ri = stage.split(rc, factor=_STEP)
    stage.reorder(ro, ri, *window, *stage.op.axis)
    for shared in (data, weights):
        _fill(s[shared], stage, ro, channels, pixels)


def _fill(stage: te.Stage, reader: te.Stage, loop: Any, rows: int, columns: int) -> None:
    """Let the threads of the block fill shared memory together, each every n-th element."""
    stage.compute_at(reader, loop)
    rest, column = stage.split(fused_axes(stage), factor=columns)
    _, row = stage.split(rest, factor=rows)
    stage.bind(row, te.thread_axis("threadIdx.y"))
    stage.bind(column, te.thread_axis("threadIdx.x"))
