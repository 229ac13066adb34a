"""Normalizations of groups of channels, whose result is written with the channels as they are: in the loops over the groups.

    made[n, g, c, y, x] = (a[n, g * 8 + c, y, x] - mean[n, g]) * scale[n, g]
    out[n, c, y, x] = relu(made[n, c // 8, c % 8, y, x])            for n, g {  mean, scale;  out of the 8 channels  }
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tedsl import te, tir
from topi.kinds import InjectiveOp, RowScaleOp
from topi.schedules.formulas import constant, extent_of, formula_of
from topi.schedules.kernel import Kernel
from topi.schedules.row_groups import readers_of


def join_groups(kernels: Sequence[Kernel], outputs: set[Any]) -> list[Kernel]:
    """`kernels`, producers first, without those that end a normalization of groups: they are its tail."""
    left = list(kernels)
    for kernel in kernels:
        if isinstance(kernel.record, RowScaleOp) and not (kernel.fused or kernel.inside) and kernel.tail not in outputs:
            end = _end(kernel, left)
            if end is not None:
                kernel.tail = end.tail
                left.remove(kernel)
                left[left.index(end)] = kernel
    return left


def _end(kernel: Kernel, left: Sequence[Kernel]) -> Kernel | None:
    """The element-wise kernel that alone reads the result of `kernel`, with the groups and their channels in one dimension."""
    readers = readers_of(kernel.tail, left, kernel.inlined, ())
    end = next((other for other in left if [other.tail] == readers and other.anchor is other.tail), None)
    if end is None or end.inside or end.tail.reduce_axis or end.tail.num_outputs != 1:
        return None
    if end.record is not None and not isinstance(end.record, (te.ElementwiseOp, InjectiveOp)):
        return None
    rank, (first, *_) = len(end.tail.axis), kernel.record.axes
    size = extent_of(kernel.tail.axis[first])
    if first == 0 or size is None or kernel.record.axes != tuple(range(first, rank + 1)):
        return None
    own = [axis.var for axis in kernel.inlined(end.tail).axis]
    loads = formula_of(kernel.inlined(end.tail).body).reads_of(kernel.inlined(kernel.tail))
    return end if loads and all(_in_one_dimension(load.indices, own, first - 1, size) for load in loads) else None


def _in_one_dimension(indices: Sequence[Any], own: Sequence[Any], channel: int, size: int) -> bool:
    """Whether `indices` are `own`, of which the one numbered `channel` is taken apart into a group and one of its `size`
    channels.
    """
    group, member = indices[channel:channel + 2]
    plain = [*indices[:channel], *indices[channel + 2:]], [*own[:channel], *own[channel + 1:]]
    parts = isinstance(group, tir.FloorDiv) and isinstance(member, tir.FloorMod) and all(
        part.a is own[channel] and constant(part.b) == size for part in (group, member))
    return parts and len(plain[0]) == len(plain[1]) and all(a is b for a, b in zip(*plain))
