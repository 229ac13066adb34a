"""Ctrl-C while machine code is made: it ends the build, and never a destructor.

Python raises KeyboardInterrupt between any two instructions of the main thread. In a destructor (LLVM's objects have some,
which take milliseconds) the exception is printed and forgotten, and the build goes on. Here such an interrupt waits until
the destructor is left.
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
    """The handler of SIGINT during a build. waiting: one has come in a destructor, and is tried again when `timer` ends."""

    def __init__(self) -> None:
        self.waiting = False
        self.timer: threading.Timer | None = None

    def handle(self, number: int, frame: FrameType | None) -> None:
        """Raises KeyboardInterrupt, or comes again soon where that would be lost."""
        self.waiting = _in_destructor(frame)
        if not self.waiting:
            raise KeyboardInterrupt
        self.timer = threading.Timer(_AGAIN, _thread.interrupt_main)
        self.timer.daemon = True
        self.timer.start()

    def finish(self) -> None:
        """Raises the interrupt that still waits, if this is not itself in a destructor: after that the timer has it raised."""
        if not self.waiting or _in_destructor(sys._getframe(1)):
            return
        if self.timer is not None:
            self.timer.cancel()
            self.timer.join()
        raise KeyboardInterrupt


@contextmanager
def whole_destructors() -> Iterator[None]:
    """A block in which Ctrl-C interrupts no destructor; nothing changes for programs that handle SIGINT themselves."""
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
    """Whether `frame` runs below a destructor, or below what llvmlite does there and also when it is called: half of it done
    makes the destructor fail."""
    while frame is not None:
        name = frame.f_code.co_name
        if name == "__del__" or frame.f_code.co_filename == _CALLBACKS or (
                name in ("close", "detach") and frame.f_globals.get("__name__") == "llvmlite.binding.ffi"):
            return True
        frame = frame.f_back
    return False
