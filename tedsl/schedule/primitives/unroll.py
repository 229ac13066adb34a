"""unroll: a loop becomes copies of its body."""

from __future__ import annotations

from typing import Any

from tedsl.ir.iters import IterType
from tedsl.schedule.state import StageState, show


def unroll(stage: StageState, loop: Any) -> None:
    """Mark `loop` to be replaced by copies of its body.

        for i in 0..2: body(i)   →   body(0); body(1)

    A loop that is bound to threads stays bound: no loop is left to be copied.
    """
    directive = f"unroll({show(loop)})"
    stage.position_of(loop, directive)
    if stage.attr_of(loop).bind_thread is None:
        check_annotation(stage, loop, directive, INSTEAD_OF_EACH_OTHER)
    stage.set_attr(loop, iter_type=IterType.UNROLLED)


INSTEAD_OF_EACH_OTHER = (IterType.UNROLLED, IterType.VECTORIZED)  # the last one of these directives holds, as in TVM


def check_annotation(stage: StageState, loop: Any, directive: str, replaced: tuple[IterType, ...] = ()) -> int:
    """The position of `loop`. Refuses a variable that is not a loop now, and a loop that is bound or whose annotation
    is not one of `replaced`.
    """
    at = stage.position_of(loop, directive)
    stage.must_not_be_joined([loop], directive)
    said, attr = stage.annotation_of(loop), stage.attr_of(loop)
    if said is not None and (attr.bind_thread is not None or attr.iter_type not in replaced):
        raise stage.refuse(directive, f"{loop.name} is already {said}: a loop has one annotation",
                           hint=f"split {loop.name} before annotating, and annotate the two loops differently")
    return at
