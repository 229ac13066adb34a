"""What directives that rewrite the formula of a reduction ask of its stage."""

from __future__ import annotations

from typing import Any

from tedsl.lang.tensor import Tensor
from tedsl.schedule.state import AttachType, StageState, describe
from tedsl.schedule.tails import must_have_plain_tails


def must_be_tensor(stage: StageState, tensor: Any, directive: str) -> None:
    """Refuses what is no tensor of a stage with loops."""
    stage.must_have_loops(directive)
    if not isinstance(tensor, Tensor):
        raise stage.refuse(directive, f"the first argument is a tensor, got {describe(tensor)}",
                           hint=f"for an operation write {stage.name}.output(0)")


def must_be_rewritable(stage: StageState, directive: str, hint: str) -> None:
    """Refuses a stage that is inlined, has others computed in its loops, or has loops that are more than split and reordered.
    hint: what to do about annotated loops.
    """
    if stage.attach_type == AttachType.INLINE:
        raise stage.refuse(directive, f"{stage.name} is computed inline")
    stage.must_have_no_guests(stage.leaf_iter_vars, directive)
    must_have_plain_tails(stage, directive)
    for one in stage.leaf_iter_vars:
        stage.must_be_plain(one, directive, hint, but_for_marks=True)
