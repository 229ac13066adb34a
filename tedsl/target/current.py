"""The target in force: that of this thread's innermost `with Target(...)` block, else the host."""

from __future__ import annotations

import functools
from typing import Any

from tedsl.target.stack import current_target
from tedsl.target.target import Target


@functools.lru_cache(maxsize=1)
def host_target() -> Target:
    """Returns the target of this machine, `Target("llvm")`."""
    return Target("llvm")


def as_target(given: Any = None) -> Target:
    """Returns a Target from a str, a dict or a Target; for None the current one, else the host.

    Raises ArgumentError for unknown kinds, options and processors, ArgumentTypeError for objects of other types.
    """
    if isinstance(given, Target):
        return given
    if given is None:
        return current_target() or host_target()
    return Target(given)
