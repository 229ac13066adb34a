"""Pooling: each result by one thread, or long windows across the threads of a warp; the border is computed where it is read."""

from __future__ import annotations

from topi.schedules.formulas import extent_of, product
from topi.schedules.gpu.block_tiles import element_threads
from topi.schedules.gpu.limits import limits_of
from topi.schedules.gpu.reduce import is_short, reduce_by_one, reduce_by_rows, schedule_reduce
from topi.schedules.kernel import Kernel


def schedule_pool(kernel: Kernel) -> None:
    """Reduce the windows; neighbours in memory are in neighbouring threads. How many a block has is that of the model
    (`block_tiles.py`).
    """
    count, limits = product([extent_of(axis) for axis in kernel.tail.axis]), limits_of(kernel.target)
    if count is None or count < 2:
        schedule_reduce(kernel)
    elif is_short(kernel):
        reduce_by_one(kernel, element_threads(count, 1, limits))
    else:
        width = min(limits.warp, limits.threads)
        reduce_by_rows(kernel, width, element_threads(count, width, limits))
