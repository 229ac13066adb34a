"""The processors that this process may use, and the threads by which parallel loops use them.

`TEDSL_NUM_THREADS` sets the number of threads; without it there is one for each processor.
"""

from __future__ import annotations

import os

from tedsl.errors import ArgumentError

MAX_THREADS = 255  # eight bits of the generation word of the thread pool
_DIGITS = 20  # of a number that is read, and shown
_QUOTA = "/sys/fs/cgroup/cpu.max"  # microseconds in a period, or "max", and the period


def usable_processors() -> int:
    """Returns the number of processors that the system lets this process run on."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def default_threads() -> int:
    """Returns the number of threads that parallel loops have at first, the caller included.

    Raises ArgumentError if TEDSL_NUM_THREADS is no number from 1 to MAX_THREADS.
    """
    given = os.environ.get("TEDSL_NUM_THREADS", "").strip()
    if not given:
        return min(usable_processors(), _container_limit(), MAX_THREADS)
    if not given.isdecimal() or len(given) > _DIGITS or not 1 <= int(given) <= MAX_THREADS:
        raise ArgumentError(f"TEDSL_NUM_THREADS is {given[:_DIGITS]!r}, not a number from 1 to {MAX_THREADS}")
    return int(given)


def _container_limit() -> int:
    """Returns the number of processors that a container's quota grants: more threads would only compete for them."""
    try:
        with open(_QUOTA, encoding="ascii") as file:
            quota, period = file.read().split()
        return MAX_THREADS if quota == "max" else max(1, -(-int(quota) // int(period)))
    except (OSError, ValueError):
        return MAX_THREADS
