"""Schedules that take the target first."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from tedsl import te
from tedsl.errors import entry
from tedsl.target import as_target


def for_target(schedule: Callable[..., te.Schedule], name: str) -> Callable[..., te.Schedule]:
    """Returns `schedule` of (outs, ...) as a function of (target, outs, ...), called `name` in topi.cpp."""
    def call(target: Any, *args: Any, **options: Any) -> te.Schedule:
        with as_target(target):
            return schedule(*args, **options)

    given = inspect.signature(schedule)
    first = inspect.Parameter("target", inspect.Parameter.POSITIONAL_OR_KEYWORD)
    call.__name__ = call.__qualname__ = name.rpartition(".")[2]
    call.__doc__ = f"topi.{name} for a target."
    call.__dict__["__signature__"] = given.replace(parameters=[first, *given.parameters.values()])
    return entry(call, f"topi.cpp.{name}")
