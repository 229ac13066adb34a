"""Whether operations are recorded: one setting for each thread."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from types import TracebackType
from typing import Any, TypeVar, cast

F = TypeVar("F", bound=Callable[..., Any])


class _Mode(threading.local):
    recording: bool = True


MODE = _Mode()


def is_grad_enabled() -> bool:
    """Whether operations on tensors that require a gradient are recorded in this thread."""
    return MODE.recording


class set_grad_enabled:
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
        mode = self.mode

        def inside(*args: Any, **kwargs: Any) -> Any:
            with set_grad_enabled(mode):
                return function(*args, **kwargs)

        return cast(F, functools.wraps(function)(inside))


class no_grad(set_grad_enabled):
    """Context manager, and decorator: inside it nothing is recorded, and results require no gradient."""

    def __init__(self) -> None:
        super().__init__(False)


class enable_grad(set_grad_enabled):
    """Context manager, and decorator: inside it operations are recorded, also inside of `no_grad`."""

    def __init__(self) -> None:
        super().__init__(True)
