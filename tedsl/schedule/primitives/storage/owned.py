"""Which stages keep their values in memory of our own, so that a directive may say how."""

from __future__ import annotations

from tedsl.schedule.scan.stages import scans_of
from tedsl.schedule.state import AttachType, StageState


def must_own_memory(stage: StageState, directive: str, what: str) -> None:
    """Refuses placeholders and outputs, whose memory is the caller's, stages that are inlined, and rows of a scan."""
    if stage.is_placeholder:
        raise stage.refuse(directive, f"{stage.name} is a placeholder: the caller decides how its memory is laid out",
                           hint=f'make a copy that is {what}: s.cache_read({stage.tensor_written}, "global", readers)')
    if stage.is_output:
        raise stage.refuse(directive, f"{stage.name} is an output of the schedule: its memory is the caller's",
                           hint=f's.cache_write({stage.tensor_written}, "global") computes into memory of our own, '
                                f"which can be {what}")
    if stage.attach_type in (AttachType.INLINE, AttachType.INLINED):
        raise stage.refuse(directive, f"{stage.name} is computed inline: it has no memory",
                           hint=f"call {stage.written}.compute_root() first")
    scans = scans_of(stage.schedule)
    scan = scans.updates.get(stage, scans.inits.get(stage))
    if scan is not None:
        raise stage.refuse(directive, f"{stage.name} has no memory of its own: its rows are computed into {scan.name}",
                           hint=f's.cache_write({stage.tensor_written}, "local") computes into memory of our own, '
                                f"which can be {what}")
