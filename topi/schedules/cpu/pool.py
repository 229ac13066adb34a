"""Pools: windows over rows, and any reduction."""

from __future__ import annotations

from topi.schedules.cpu.reduce import schedule_reduce
from topi.schedules.cpu.windows import reads_alone, schedule_windows
from topi.schedules.kernel import Kernel


def schedule_pool(kernel: Kernel) -> None:
    """Schedule a pool: of images whose rows are contiguous by rows, others as any reduction."""
    if reads_alone(kernel):
        schedule_windows(kernel)
    else:
        schedule_reduce(kernel)
