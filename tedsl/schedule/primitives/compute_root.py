"""compute_root: a stage is computed on its own, before its readers."""

from __future__ import annotations

from tedsl.schedule.state import AttachType, StageState


def compute_root(stage: StageState) -> None:
    """Take back compute_at and compute_inline. Harmless on a placeholder, which is there from the start."""
    stage.attach_type, stage.attach_stage, stage.attach_ivar = AttachType.ROOT, None, None
