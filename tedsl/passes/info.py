"""The description of a pass: its name and level."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class PassInfo:
    """The name of a pass, and the lowest opt_level of a PassContext at which it runs.

    required: accepted for programs that pass it.
    """

    opt_level: int
    name: str
    required: tuple[str, ...] = ()
