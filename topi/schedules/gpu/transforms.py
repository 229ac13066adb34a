"""Products of small constant matrices with parts of a tensor, as in winograd: a thread for each part, all in registers."""

from __future__ import annotations

from topi.schedules.formulas import extent_of, product
from topi.schedules.gpu.injective import bind_loops
from topi.schedules.gpu.limits import limits_of
from topi.schedules.kernel import Kernel


def schedule_transform(kernel: Kernel) -> None:
    """Give each thread one part; its entries are unrolled, and the sums that they share are local."""
    s, stage = kernel.schedule, kernel.schedule[kernel.tail]
    axes = list(kernel.tail.axis)
    small = [axes[number] for number in kernel.record.small]
    outer = [axis for axis in axes if axis not in small]
    stage.reorder(*outer, *small)
    count = product([extent_of(axis) for axis in outer])
    place = bind_loops(stage, outer, limits_of(kernel.target), count)
    for axis in small:
        stage.unroll(axis)
    for op in [tensor.op for tensor in kernel.record.stages] + ([kernel.anchor] if kernel.fused else []):
        s[op].compute_at(stage, place)
        s[op].set_scope("local")
        for axis in op.axis:
            s[op].unroll(axis)
