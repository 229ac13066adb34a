"""What becomes of parallel, vectorize and unroll at loops that a directive replaces by others."""

from __future__ import annotations

import warnings
from collections.abc import Iterable

from tedsl.ir.iters import IterType, IterVar
from tedsl.ir.source_line import user_level
from tedsl.schedule.state import ANNOTATIONS, MARKS, StageState


def drop_marks(stage: StageState, loops: Iterable[IterVar], directive: str) -> None:
    """Takes parallel, vectorize and unroll from `loops`, which `directive` replaces, with a warning for each."""
    marked = [(loop, kind) for loop in loops if (kind := stage.attr_of(loop).iter_type) in MARKS]
    for loop, kind in marked:
        again = f"call {MARKS[kind]} after {directive.partition('(')[0]}, on a new loop"
        warnings.warn(f"{directive} on stage {stage.name}: {loop.name} was {ANNOTATIONS[kind]}, and what replaces it is not, "
                      f"as in TVM; {again}", stacklevel=user_level())
    for loop, _ in marked:
        stage.set_attr(loop, iter_type=IterType.DATA_PAR)
