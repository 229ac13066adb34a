"""The description of a pass: its name and level."""

from __future__ import annotations

from collections.abc import Sequence

from tedsl.record import record

NAMED: set[str] = set()  # the names of the passes that were made, for the warning of a PassContext about other names


@record
class PassInfo:
    """The name of a pass, and the lowest opt_level of a PassContext at which it runs.

    required: accepted for programs that pass it.
    """

    opt_level: int
    name: str
    required: Sequence[str] | None = None

    def __post_init__(self) -> None:
        NAMED.add(self.name)
