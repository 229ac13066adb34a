"""The processors of the machine that threads are held to."""

from __future__ import annotations

import os
from typing import Any

from tedsl.errors import ArgumentError


def held_cores(what: str, numbers: Any) -> frozenset[int]:
    """The numbers of processors that the thread `what` of this process is to be held to. Raises ArgumentError for those that
    the process may not use, and where the system does not hold threads.
    """
    if not hasattr(os, "sched_setaffinity"):
        raise ArgumentError(f"{what}: this system does not hold threads to processors", hint="leave out cores=")
    there = sorted(os.sched_getaffinity(0))
    if not isinstance(numbers, (set, frozenset, list, tuple, range)) or not numbers or not set(numbers) <= set(there):
        raise ArgumentError(f"{what} are {numbers!r}; those that this process may use: {', '.join(map(str, there))}",
                            hint=f"cores=[{there[0]}]")
    return frozenset(numbers)
