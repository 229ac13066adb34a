"""The targets of the `with Target(...)` blocks that this thread is in."""

from __future__ import annotations

import contextvars
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tedsl.target.target import Target

_STACK: contextvars.ContextVar[tuple[Any, ...]] = contextvars.ContextVar("tedsl_targets", default=())


def enter(target: Target) -> None:
    """Makes `target` the current one."""
    _STACK.set((*_STACK.get(), target))


def leave() -> None:
    """Restores the target that was current before the last `enter`."""
    _STACK.set(_STACK.get()[:-1])


def current_target() -> Target | None:
    """Returns the target of the innermost `with` block, if any."""
    stack = _STACK.get()
    return stack[-1] if stack else None
