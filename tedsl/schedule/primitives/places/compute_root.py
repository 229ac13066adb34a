"""compute_root: a stage is computed on its own, before its readers."""

from __future__ import annotations

from tedsl.schedule.group import put_with_group
from tedsl.schedule.state import StageState


def compute_root(stage: StageState) -> None:
    """Take back compute_at and compute_inline. Harmless on a placeholder, which is there from the start.

    A stage of a group is where its group is computed.
    """
    put_with_group(stage)
