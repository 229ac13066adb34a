"""No garbage collection while a program is lowered or built.

A build makes nodes by the hundred thousand, and nearly all of them are freed as soon as nobody refers to them. Collections in
between look again and again at those that are still in use: 2 to 4 % of the time of an operator, 10 % of that of a network.
"""

from __future__ import annotations

import gc
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager

_pausing: set[int] = set()  # threads that have switched collections off


@contextmanager
def no_collection() -> Iterator[None]:
    """Context manager in which garbage is not collected, in any thread; afterwards it is again.

    Changes nothing where collections are off already, by the program or by another build: that one switches them on again,
    maybe before this one ends.
    """
    if not gc.isenabled():
        yield
        return
    me = threading.get_ident()
    gc.disable()
    _pausing.add(me)
    try:
        yield
    finally:
        _pausing.discard(me)
        gc.enable()


def _go_on() -> None:
    """In a child process, which has one thread: collects garbage again if another thread had switched that off."""
    if _pausing and threading.get_ident() not in _pausing:
        _pausing.clear()
        gc.enable()


os.register_at_fork(after_in_child=_go_on)
