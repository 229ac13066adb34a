"""unroll: a loop becomes copies of its body."""

from __future__ import annotations

from typing import Any

from tedsl.ir.iters import IterType
from tedsl.schedule.state import StageState, show


def unroll(stage: StageState, loop: Any) -> None:
    """Mark `loop` to be replaced by copies of its body.

        for i in 0..2: body(i)   →   body(0); body(1)
    """
    directive = f"unroll({show(loop)})"
    check_annotation(stage, loop, directive, again=IterType.UNROLLED)
    stage.set_attr(loop, iter_type=IterType.UNROLLED)


def check_annotation(stage: StageState, loop: Any, directive: str, again: IterType | None = None) -> int:
    """The position of `loop`. Refuses a variable that is not a loop now, and a loop that is bound or annotated as other than
    `again`.
    """
    at = stage.position_of(loop, directive)
    said, attr = stage.annotation_of(loop), stage.attr_of(loop)
    if said is not None and (attr.bind_thread is not None or attr.iter_type != again):
        raise stage.refuse(directive, f"{loop.name} is already {said}: a loop has one annotation",
                           hint=f"split {loop.name} before annotating, and annotate the two loops differently")
    return at
