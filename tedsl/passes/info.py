"""What a pass says about itself."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class PassInfo:
    """The name of a pass, and the level of a PassContext from which on it runs. required: kept for programs that ask."""

    opt_level: int
    name: str
    required: tuple[str, ...] = ()
