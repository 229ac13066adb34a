"""Which stages keep their values in memory of our own, so that a directive may say how."""

from __future__ import annotations

from tedsl.schedule.state import AttachType, StageState


def must_own_memory(stage: StageState, directive: str, what: str) -> None:
    """Refuses placeholders and outputs, whose memory is the caller's, and stages that are inlined."""
    if stage.is_placeholder:
        raise stage.refuse(directive, f"{stage.name} is a placeholder: the caller decides how its memory is laid out",
                           hint=f'make a copy that is {what}: s.cache_read({stage.name}, "global", readers)')
    if stage.is_output:
        raise stage.refuse(directive, f"{stage.name} is an output of the schedule: its memory is the caller's",
                           hint=f's.cache_write({stage.name}, "global") computes into memory of our own, which can be {what}')
    if stage.attach_type in (AttachType.INLINE, AttachType.INLINED):
        raise stage.refuse(directive, f"{stage.name} is computed inline: it has no memory",
                           hint=f"call s[{stage.name}].compute_root() first")
