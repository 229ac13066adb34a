"""by_threads: a stage of te.extern is computed by its statements for blocks of threads."""

from __future__ import annotations

from typing import Any

from tedsl.lang.extern import ExternOp
from tedsl.schedule.given_numbers import whole_number
from tedsl.schedule.state import StageState, describe, show


def by_threads(stage: StageState, threads: Any, shared: Any) -> None:
    """Compute `stage` by statements that launch blocks of at most `threads` threads and `shared` bytes of shared memory."""
    directive = f"by_threads({show(threads)}, {show(shared)})"
    stage.must_have_loops(directive)
    if not isinstance(stage.op, ExternOp):
        raise stage.refuse(directive, f"{stage.name} is computed by a formula, not by the statements of te.extern",
                           hint=f'split its loops and bind them: {stage.written}.bind(loop, te.thread_axis("threadIdx.x"))')
    if stage.op.by_threads is None:
        raise stage.refuse(directive, f"{stage.name} has no statements for threads",
                           hint="te.extern(..., by_threads=f), where f(ins, outs, threads, shared) returns them")
    count, size = whole_number(threads), whole_number(shared)
    if count is None or count < 1 or size is None or size < 0:
        raise stage.refuse(directive, f"the threads and bytes of a block are whole numbers, got {describe(threads)} and "
                           f"{describe(shared)}", hint=f"for example {stage.written}.by_threads(256, 48 * 1024)")
    stage.statements = stage.op.by_threads(count, size)
