"""Ctrl-C that is not lost: Python ignores exceptions in callbacks of weak references and in `__del__`, also KeyboardInterrupt.
"""

from __future__ import annotations

import signal
import threading
from types import FrameType


class Interrupts:
    """Context manager that remembers Ctrl-C, which raises KeyboardInterrupt at once, as it does without it; `check` raises it
    for one that was ignored. Only in the main thread, and where the program has no handler of its own.
    """

    def __init__(self) -> None:
        self._waiting = self._active = False

    def __enter__(self) -> Interrupts:
        own = signal.getsignal(signal.SIGINT) is not signal.default_int_handler
        if threading.current_thread() is threading.main_thread() and not own:
            signal.signal(signal.SIGINT, self._note)
            self._active = True
        return self

    def __exit__(self, *exc: object) -> None:
        if self._active:
            signal.signal(signal.SIGINT, signal.default_int_handler)
        self._waiting = self._active = False

    def check(self) -> None:
        """Raises KeyboardInterrupt if Ctrl-C was pressed and ignored."""
        if self._waiting:
            self._waiting = False
            raise KeyboardInterrupt

    def _note(self, number: int, frame: FrameType | None) -> None:
        self._waiting = True
        signal.default_int_handler(number, frame)
