"""Whether operations are recorded: one setting for each thread."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from inspect import isgeneratorfunction
from types import TracebackType
from typing import Any, TypeVar, cast

from tedsl.errors import ArgumentTypeError, type_in_words

F = TypeVar("F", bound=Callable[..., Any])


class _Mode(threading.local):
    recording: bool = True


MODE = _Mode()


def is_grad_enabled() -> bool:
    """Whether operations on tensors that require a gradient are recorded in this thread."""
    return MODE.recording


class Setting:
    """Context manager, and decorator: inside it operations are recorded, or not."""

    def __init__(self, mode: bool) -> None:
        self.mode = bool(mode)
        self.before: list[bool] = []

    def __enter__(self) -> None:
        self.before.append(MODE.recording)
        MODE.recording = self.mode

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        MODE.recording = self.before.pop()

    def __call__(self, function: F) -> F:
        if not callable(function) or isgeneratorfunction(function):
            raise ArgumentTypeError(f"{type(self).__name__} decorates functions, not "
                                    + ("generators, which run later" if callable(function) else type_in_words(function)),
                                    hint=f"write `with {type(self).__name__}(...):` around what it holds for")
        mode = self.mode

        def inside(*args: Any, **kwargs: Any) -> Any:
            with Setting(mode):
                return function(*args, **kwargs)

        return cast(F, functools.wraps(function)(inside))


class set_grad_enabled(Setting):
    """Sets whether operations are recorded in this thread from now on; as a context manager, or decorator, inside of it."""

    def __init__(self, mode: bool) -> None:
        super().__init__(mode)
        self.outside: bool | None = MODE.recording  # until it is entered
        MODE.recording = self.mode

    def __enter__(self) -> None:
        self.before.append(MODE.recording if self.outside is None else self.outside)
        self.outside = None
        MODE.recording = self.mode

    def __call__(self, function: F) -> F:
        MODE.recording = MODE.recording if self.outside is None else self.outside
        self.outside = None
        return super().__call__(function)


class no_grad(Setting):
    """Context manager, and decorator: inside it nothing is recorded, and results require no gradient."""

    def __init__(self) -> None:
        super().__init__(False)


class enable_grad(Setting):
    """Context manager, and decorator: inside it operations are recorded, also inside of `no_grad`."""

    def __init__(self) -> None:
        super().__init__(True)
