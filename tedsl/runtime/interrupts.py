"""Ctrl-C during a build: the interrupt ends the build, but never in the middle of a destructor.

Python raises KeyboardInterrupt between any two instructions of the main thread. In a destructor (those of LLVM's objects take
milliseconds) the exception is printed and lost, and the build goes on. Here such an interrupt is postponed until the destructor
returns.
"""

from __future__ import annotations

import _thread
import signal
import sys
import threading
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

_AGAIN = 0.002  # seconds: how soon an interrupt that waits is tried again
_CALLBACKS = weakref.finalize.__call__.__code__.co_filename  # callbacks of weak references: their exceptions are printed too


class _Interrupts:
    """The handler of SIGINT during a build. waiting: a postponed interrupt that came in a destructor; `timer` raises it
    again.
    """

    def __init__(self) -> None:
        self.waiting = False
        self.timer: threading.Timer | None = None

    def handle(self, number: int, frame: FrameType | None) -> None:
        """Raises KeyboardInterrupt, or postpones it where it would be lost in a destructor."""
        self.waiting = _in_destructor(frame)
        if not self.waiting:
            raise KeyboardInterrupt
        self.timer = threading.Timer(_AGAIN, _thread.interrupt_main)
        self.timer.daemon = True
        self.timer.start()

    def finish(self) -> None:
        """Raises the postponed interrupt, unless this call is itself inside a destructor; then the timer raises it."""
        if not self.waiting or _in_destructor(sys._getframe(1)):
            return
        if self.timer is not None:
            self.timer.cancel()
            self.timer.join()
        raise KeyboardInterrupt


@contextmanager
def whole_destructors() -> Iterator[None]:
    """Context manager in which Ctrl-C interrupts no destructor. Changes nothing for programs that handle SIGINT themselves."""
    if threading.current_thread() is not threading.main_thread() or \
            signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield
        return
    interrupts = _Interrupts()
    signal.signal(signal.SIGINT, interrupts.handle)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        interrupts.finish()


def _in_destructor(frame: FrameType | None) -> bool:
    """Tells whether `frame` was called from a destructor, or from llvmlite's code that releases an object and must not be
    interrupted.
    """
    while frame is not None:
        name = frame.f_code.co_name
        if name == "__del__" or frame.f_code.co_filename == _CALLBACKS or (
                name in ("close", "detach") and frame.f_globals.get("__name__") == "llvmlite.binding.ffi"):
            return True
        frame = frame.f_back
    return False
