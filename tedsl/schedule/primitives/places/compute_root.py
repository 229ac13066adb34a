"""compute_root: a stage is computed on its own, before its readers."""

from __future__ import annotations

from tedsl.schedule.group import return_to_group
from tedsl.schedule.state import StageState


def compute_root(stage: StageState) -> None:
    """Take back compute_at and compute_inline; without effect on a placeholder.

    A stage of a group that is computed at a loop is computed there.
    """
    return_to_group(stage)
