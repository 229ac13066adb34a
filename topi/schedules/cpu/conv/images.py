"""Convolutions of several images that read a copy of the data: with a border, or without what a stride skips.

    for image:                                             one after the other: its copy is read while it is in the caches
        for channel, row, in parallel:     copy = ...
        for tiles, in parallel:            the convolution of the image

Copies of all images before the tiles are in memory by the time they are read.
"""

from __future__ import annotations

from typing import Any

from tedsl import te
from topi.schedules.cpu.conv.operands import work_of
from topi.schedules.cpu.parallel import SERIAL, keep_cores_busy
from topi.schedules.formulas import extent_of, product
from topi.schedules.kernel import Kernel

_OFTEN = 64  # times the work that is worth sharing, beside which two more parallel loops for each image are little
_PART = 4  # of the second cache, which copies that are read while they are there do not exceed beside what they are made of


def is_by_image(kernel: Kernel, copy: Any, tasks: int) -> bool:
    """Whether the images are computed one after the other, each after its part of `copy`, an operation of which the first
    dimension is that of the images. tasks: those of one image.
    """
    stage, images = kernel.schedule[copy], extent_of(kernel.tail.axis[0])
    size, work = product([extent_of(axis) for axis in copy.axis]), work_of(kernel)
    if type(copy) is not te.ComputeOp or stage.attach_type != te.schedule.AttachType.ROOT or copy in kernel.schedule.outputs:
        return False
    if images is None or images == 1 or size is None or work is None or work < images * _OFTEN * SERIAL:
        return False
    is_large = size * copy.output(0).dtype.bits // 8 > kernel.target.machine.l2.size // _PART
    return is_large and keep_cores_busy(kernel.target, tasks) and _is_read_alone(kernel, copy)


def _is_read_alone(kernel: Kernel, copy: Any) -> bool:
    """Whether nothing but the sums read `copy`."""
    readers = [stage.op for stage in kernel.schedule.stages if any(tensor.op is copy for tensor in stage.op.input_tensors)]
    return len(readers) == 1 and bool(readers[0].reduce_axis)
