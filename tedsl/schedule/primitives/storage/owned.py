"""Stages whose memory the kernel itself allocates, so that directives may choose its layout."""

from __future__ import annotations

from typing import Any

from tedsl.ir.types import MEMORY_SCOPES, is_scope
from tedsl.lang.operation import ComputeOp
from tedsl.schedule.record.term import text_of
from tedsl.schedule.scan.stages import scans_of
from tedsl.schedule.state import AttachType, StageState, describe


def must_own_memory(stage: StageState, directive: str, what: str) -> None:
    """Refuses placeholders and outputs, whose memory the caller allocates, inlined stages, and rows of a scan."""
    if stage.is_placeholder:
        raise stage.refuse(directive, f"{stage.name} is a placeholder: the caller decides how its memory is laid out",
                           hint=f'make a copy that is {what}: s.cache_read({stage.tensor_written}, "global", readers)')
    if stage.is_output:
        raise stage.refuse(directive, f"{stage.name} is an output of the schedule: its memory is the caller's",
                           hint=f"{copied_from(stage, 'global', 'into memory of our own')}, which can be {what}")
    if stage.attach_type in (AttachType.INLINE, AttachType.INLINED):
        raise stage.refuse(directive, f"{stage.name} is computed inline: it has no memory",
                           hint=f"call {stage.written}.compute_root() first")
    scans = scans_of(stage.schedule)
    scan = scans.updates.get(stage, scans.inits.get(stage))
    if scan is not None:
        raise stage.refuse(directive, f"{stage.name} has no memory of its own: its rows are computed into {scan.name}",
                           hint=f"{copied_from(stage, 'local', 'into memory of our own')}, which can be {what}")


def check_scope(stage: StageState, directive: str, scope: Any) -> None:
    """Refuses a value that is not the name of a memory scope."""
    if not isinstance(scope, str):
        raise stage.refuse(directive, f"the scope is a string, got {describe(scope)}", hint='for example "local"')
    if not is_scope(scope):
        raise stage.refuse(directive, f"there is no memory scope {scope!r}", hint=f"choose one of {', '.join(MEMORY_SCOPES)}")


def copied_from(stage: StageState, scope: str, where: str) -> str:
    """The text of a cache_write for a hint, which computes `stage` in memory of `scope` and copies it from there."""
    op = stage.op
    if type(op) is not ComputeOp:  # cache_write takes formulas only
        return f"put a te.compute that copies {stage.name} in its place: {stage.name} is then computed {where}"
    names = [text_of(stage.schedule.recorder.tensor(op.output(index), stage)) for index in range(op.num_outputs)]
    written = names[0] if len(names) == 1 else f"[{', '.join(names)}]"
    return f's.cache_write({written}, "{scope}") computes {where}'
