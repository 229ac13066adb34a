"""unroll: a loop becomes copies of its body."""

from __future__ import annotations

from typing import Any

from tedsl.ir.iters import IterType
from tedsl.schedule.primitives.marks import mark, must_be_markable
from tedsl.schedule.state import StageState, show


def unroll(stage: StageState, loop: Any) -> None:
    """Mark `loop` to be replaced by copies of its body.

        for i in 0..2: body(i)   →   body(0); body(1)

    A loop that is bound to threads stays bound: no loop is left to be copied.
    """
    directive = f"unroll({show(loop)})"
    must_be_markable(stage, loop, directive)
    mark(stage, loop, IterType.UNROLLED, directive)
