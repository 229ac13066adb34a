"""compute_root: a stage is computed on its own, before its readers."""

from __future__ import annotations

from tedsl.schedule.group import return_to_group
from tedsl.schedule.state import StageState


def compute_root(stage: StageState) -> None:
    """Take back compute_at and compute_inline. Harmless on a placeholder, which is there from the start.

    A stage of a group that has a place goes to that place.
    """
    return_to_group(stage)
