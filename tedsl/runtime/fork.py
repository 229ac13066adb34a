"""Makes fork wait until no thread is inside LLVM.

Otherwise the child could inherit locked locks that no thread releases, and its first build would wait for ever.
"""

from __future__ import annotations

import os
import sys
import threading
from typing import Any

_guarded: list[Any] = []  # taken in this order, as builds do
_held: list[Any] = []


def guarded_lock() -> Any:
    """Returns a new lock that fork acquires before it copies the process, and releases in parent and child."""
    lock = threading.RLock()
    _guarded.append(lock)
    return lock


def _hold() -> None:
    for lock in (*_guarded, *_llvmlite_lock()):
        lock.acquire()
        _held.append(lock)


def _release() -> None:
    while _held:
        _held.pop().release()


def _llvmlite_lock() -> tuple[Any, ...]:
    """Returns, in a tuple, llvmlite's private lock around its calls into LLVM; an empty tuple where there is none by that name.
    """
    lib = getattr(sys.modules.get("llvmlite.binding.ffi"), "lib", None)
    lock = getattr(getattr(lib, "_lock", None), "_lock", None)
    return () if lock is None else (lock,)


os.register_at_fork(before=_hold, after_in_parent=_release, after_in_child=_release)
