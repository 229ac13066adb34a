"""parallel: the iterations of a loop are distributed over threads."""

from __future__ import annotations

from typing import Any

from tedsl.ir.iters import IterType
from tedsl.schedule.primitives.marks import for_elements, mark, must_be_markable, stays_bound
from tedsl.schedule.scan.checks import must_not_be_steps
from tedsl.schedule.script_loops import check_independent
from tedsl.schedule.state import StageState, show
from tedsl.schedule.tails import must_not_recompute
from tedsl.schedule.vector_guests import must_not_share_lanes


def parallel(stage: StageState, loop: Any) -> None:
    """Mark `loop` to be run by several threads."""
    directive = f"parallel({show(loop)})"
    must_be_markable(stage, loop, directive)
    if stays_bound(stage, loop, directive):
        return
    if loop.is_reduction:
        raise stage.refuse(
            directive, f"{loop.name} is a reduction loop: all its iterations write one element, threads would race",
            hint=for_elements(stage, loop, "parallelize"))
    must_not_be_steps(stage, loop, directive)
    check_independent(stage, [loop], directive)
    must_not_recompute(stage, loop, directive)
    must_not_share_lanes(stage, loop, directive, "parallel")
    mark(stage, loop, IterType.PARALLELIZED, directive)
