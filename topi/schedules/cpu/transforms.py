"""Products of small constant matrices with parts of a tensor, as in winograd: unrolled code for vectors of the last axis.

for tile, block of channels {  rows[0..6, 0..6] = ...;   out[0..6, 0..6] = ...  }      all of it unrolled, in registers
"""

from __future__ import annotations

from topi.schedules.cpu.parallel import share_out
from topi.schedules.formulas import extent_of, product
from topi.schedules.kernel import Kernel

_UNROLLED = 128  # entries of a result


def schedule_transform(kernel: Kernel) -> None:
    """Unroll products with small constant matrices; sums that rows share stay in registers."""
    s, stage, lanes = kernel.schedule, kernel.schedule[kernel.tail], kernel.lanes(kernel.anchor)
    *axes, last = stage.op.axis
    small = [axes[number] for number in kernel.record.small]
    outer = [axis for axis in axes if axis not in small]
    block, lane = stage.split(last, factor=lanes)
    stage.reorder(*outer, block, *small, lane)
    stage.vectorize(lane)
    entries = product([extent_of(axis) for axis in small])
    straight = entries is not None and entries <= _UNROLLED
    work = product([extent_of(axis) for axis in (*axes, last)])
    inner = [tensor.op for tensor in kernel.record.stages] + ([kernel.anchor] if kernel.fused else [])
    if straight:
        for axis in small:
            stage.unroll(axis)
    for op in inner:
        s[op].compute_at(stage, block)
        *others, last = op.axis
        s[op].vectorize(last)
        if straight:
            for axis in others:
                s[op].unroll(axis)
    share_out(stage, outer, work)


def schedule_exchange(kernel: Kernel) -> None:
    """Turn weights in tiles: vectors of the last dimension for what is its neighbour in memory, which are read by rows."""
    stage = kernel.schedule[kernel.tail]
    first, *near, last = stage.op.axis
    loop = stage.fuse(*near) if len(near) > 1 else near[0]
    block, lane = stage.split(last, factor=kernel.lanes(kernel.tail))
    stage.reorder(first, block, loop, lane)
    stage.vectorize(lane)
    share_out(stage, [first], product([extent_of(axis) for axis in (first, *near, last)]))
