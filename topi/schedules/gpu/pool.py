"""Pooling: each result by one thread, or long windows across threads; the border is computed where it is read."""

from __future__ import annotations

from topi.schedules.gpu.reduce import schedule_reduce
from topi.schedules.kernel import Kernel


def schedule_pool(kernel: Kernel) -> None:
    """Reduce the windows; neighbours in memory are in neighbouring threads."""
    schedule_reduce(kernel)
