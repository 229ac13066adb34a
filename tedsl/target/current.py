"""The target in force: of a `with Target(...)` block of this thread, else the host."""

from __future__ import annotations

import contextvars
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tedsl.target.target import Target

_STACK: contextvars.ContextVar[tuple[Any, ...]] = contextvars.ContextVar("tedsl_targets", default=())


def enter(target: Target) -> None:
    """`target` is the current one from here on."""
    _STACK.set((*_STACK.get(), target))


def leave() -> None:
    """The target before the last `enter` is current again."""
    _STACK.set(_STACK.get()[:-1])


def current_target() -> Target | None:
    """The innermost target of a `with` block, if any."""
    stack = _STACK.get()
    return stack[-1] if stack else None


def as_target(given: Any = None) -> Target:
    """A Target from a str, a dict or a Target; None is the current one, else the host."""
    from tedsl.target.host import host_target
    from tedsl.target.target import Target

    if isinstance(given, Target):
        return given
    if given is None:
        return current_target() or host_target()
    return Target(given)
