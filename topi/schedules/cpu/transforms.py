"""Products of small constant matrices with parts of a tensor, as in winograd: unrolled code for vectors of the last axis.

for tile, block of channels {  rows[0..6, 0..6] = ...;   out[0..6, 0..6] = ...  }      all of it unrolled, in registers
"""

from __future__ import annotations

import math
from typing import Any

from tedsl import te
from topi.schedules.cpu.parallel import share_out
from topi.schedules.formulas import extent_of, product
from topi.schedules.kernel import Kernel

_UNROLLED = 128  # entries of a result
_FEW_SETS = 4  # planes that begin so many lines apart share few of the sets


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
    share_out(stage, outer, 0 if kernel.within else work)
    read = kernel.record.stages[0].op.input_tensors if kernel.record.stages else []
    for op in (*([kernel.tail] if kernel.record.small[0] == 0 else []), *(tensor.op for tensor in read)):
        _spread_planes(kernel, op, len(small))


def _spread_planes(kernel: Kernel, op: Any, small: int) -> None:
    """Let the planes of `op`, one for each entry of its first `small` axes, begin in different sets of the nearest cache: what
    is transformed together lies in all of them.
    """
    machine, stage = kernel.target.machine, kernel.schedule[op]
    axes = list(stage.op.axis) if type(stage.op) is te.ComputeOp else []
    plane = product([extent_of(axis) for axis in axes[small:]]) if len(axes) > small else None
    if not plane or op in kernel.schedule.outputs or stage.attach_type != te.schedule.AttachType.ROOT:
        return
    element = op.output(0).dtype.bytes
    if math.gcd(plane * element, machine.l1.size // machine.l1.ways) >= _FEW_SETS * machine.line:
        stage.storage_align(axes[small - 1], 2 * machine.line // element, machine.line // element)


def schedule_exchange(kernel: Kernel) -> None:
    """Turn weights in tiles: vectors of the last dimension for what is its neighbour in memory, which are read by rows."""
    stage = kernel.schedule[kernel.tail]
    first, *near, last = stage.op.axis
    loop = stage.fuse(*near) if len(near) > 1 else near[0]
    block, lane = stage.split(last, factor=kernel.lanes(kernel.tail))
    stage.reorder(first, block, loop, lane)
    stage.vectorize(lane)
    share_out(stage, [first], product([extent_of(axis) for axis in (first, *near, last)]))
