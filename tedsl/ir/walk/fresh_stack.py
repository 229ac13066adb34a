"""Recursion beyond Python's limit, without changing that limit: a new thread starts with an empty stack.

Statements nest as deep as the number of live buffers: a chain of a thousand stages is a thousand nested allocations. Passes
recurse over statements, and continue in a new thread every LEVELS levels.
"""

from __future__ import annotations

import contextvars
import threading
from collections.abc import Callable
from typing import Any, TypeVar

T = TypeVar("T")
LEVELS = 40  # of a recursion that takes up to some ten Python frames a level


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
    """A deep recursion: each level calls `descent(function, *args)`, which every LEVELS levels continues in a fresh thread."""

    __slots__ = ("_levels",)

    def __init__(self) -> None:
        self._levels = 0

    def __call__(self, function: Callable[..., T], *args: Any) -> T:
        self._levels += 1
        try:
            return function(*args) if self._levels % LEVELS else on_fresh_stack(function, *args)
        finally:
            self._levels -= 1
