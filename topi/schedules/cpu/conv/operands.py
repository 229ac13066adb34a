"""The parts of a convolution that its schedules ask for: weights, sums, and the amount of work."""

from __future__ import annotations

from typing import Any

from tedsl import te
from topi.kinds import TransposedConvOp
from topi.schedules.formulas import extent_of, product
from topi.schedules.kernel import Kernel


def work_of(kernel: Kernel) -> int | None:
    """The number of multiply-adds, None if an extent is symbolic."""
    return product([extent_of(axis) for axis in (*kernel.anchor.axis, *kernel.anchor.reduce_axis)])


def image_at(kernel: Kernel) -> int:
    """The first dimension of the image: that of its rows, if it has two."""
    return 1 if kernel.record.layout.endswith("C") else 2


def weights_of(kernel: Kernel) -> te.Tensor:
    """The tensor that the reduction reads as weights."""
    tensor: te.Tensor = kernel.record.flipped if isinstance(kernel.record, TransposedConvOp) else kernel.record.kernel
    return tensor


def sums_of(kernel: Kernel) -> Any:
    """The operation that holds the reduction, which may be cached apart from the stage that stores the result."""
    if kernel.fused:
        return kernel.anchor
    return kernel.schedule.cache_write(kernel.tail.output(0), "local").op
