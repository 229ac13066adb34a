"""Work for all cores of the machine: forked processes take numbers from one queue and leave results in the cache on disk.

LLVM's library in Python has one lock for the whole process, so threads would compile one after the other. A forked process
has what this one has loaded, so that it begins at once. This process works too. What a worker leaves undone, since it failed
or was ended, the caller finds missing in the cache and does itself, with the errors that this gives.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable
from contextlib import suppress

from tedsl.processors import usable_processors

_NUMBER = 4  # bytes of a number in the queue


def share(count: int, work: Callable[[int], object]) -> None:
    """Calls `work` with each number below `count`, small ones first, in this process and in forked ones; in this one alone
    where there is one core, or where processes cannot be forked. Raises what `work` raises in this process.
    """
    workers = min(usable_processors(), count) - 1 if can_share() else 0
    if workers < 1 or count * _NUMBER > 4096:  # what is written to a pipe at once
        for number in range(count):
            work(number)
        return
    take, put = os.pipe()
    os.write(put, b"".join(number.to_bytes(_NUMBER, "little") for number in range(count)))
    os.close(put)
    children: list[int] = []
    try:
        for _ in range(workers):
            children.append(_forked(take, work))
        _work_off(take, work)
        for child in children:
            os.waitpid(child, 0)
        children.clear()
    finally:
        os.close(take)
        for child in children:
            with suppress(OSError):
                os.kill(child, signal.SIGKILL)
                os.waitpid(child, 0)


def _forked(take: int, work: Callable[[int], object]) -> int:
    """A process that works off the queue and ends."""
    child = os.fork()
    if child:
        return child
    status = 1
    try:
        _work_off(take, work)
        status = 0
    finally:
        os._exit(status)  # neither handlers of the program nor its buffered output belong to this process


def _work_off(take: int, work: Callable[[int], object]) -> None:
    while number := os.read(take, _NUMBER):
        work(int.from_bytes(number, "little"))


def can_share() -> bool:
    """Whether other processes can take part: forked while another thread of the program compiles, one would find what that
    thread has locked, and nobody to release it.
    """
    return usable_processors() > 1 and hasattr(os, "fork") and threading.active_count() == 1
