"""Recursion beyond Python's limit, without changing that limit: a new thread starts with an empty stack.

Statements nest as deep as the number of live buffers: a chain of a thousand stages is a thousand nested allocations. Passes
recurse over statements, and continue in a new thread every LEVELS levels.
"""

from __future__ import annotations

import contextvars
import sys
import threading
from collections.abc import Callable
from typing import Any, TypeVar

T = TypeVar("T")
LEVELS = 40  # of a recursion that takes up to some ten Python frames a level


def is_deep() -> bool:
    """Tells whether LEVELS more levels might reach Python's limit on this stack: a thread takes longer than to look."""
    try:
        sys._getframe(max(0, sys.getrecursionlimit() - 15 * LEVELS))
    except ValueError:  # the stack is not so deep
        return False
    return True


def on_fresh_stack(function: Callable[..., T], *args: Any) -> T:
    """`function(*args)`, run by another thread while this one waits; its exception is raised here."""
    context = contextvars.copy_context()
    outcome: list[T] = []
    failure: list[BaseException] = []

    def run() -> None:
        try:
            outcome.append(context.run(function, *args))
        except BaseException as error:
            failure.append(error)

    thread = threading.Thread(target=run, name="tedsl-deep")
    thread.start()
    thread.join()
    if failure:
        raise failure[0]
    return outcome[0]


class Descent:
    """A deep recursion: each level calls `descent(function, *args)`, which at every LEVELS-th level continues in a fresh thread
    if the stack is deep."""

    __slots__ = ("_levels",)

    def __init__(self) -> None:
        self._levels = 0

    def __call__(self, function: Callable[..., T], *args: Any) -> T:
        self._levels += 1
        try:
            return function(*args) if self._levels % LEVELS or not is_deep() else on_fresh_stack(function, *args)
        finally:
            self._levels -= 1
