"""rolling_buffer: elements that the next iteration also reads are kept in memory instead of computed again."""

from __future__ import annotations

from dataclasses import replace

from tedsl.ir.iters import IterType
from tedsl.lang.extern import StatementsOp
from tedsl.lang.scan.operation import ScanOp
from tedsl.schedule.attach import at_reader
from tedsl.schedule.primitives.storage.owned import must_own_memory
from tedsl.schedule.state import AttachType, StageState
from tedsl.schedule.tails import must_have_one_version


def rolling_buffer(stage: StageState) -> None:
    """Computes in each iteration only the elements that the previous one has not computed, in a circular buffer.

        for y: P[y], P[y + 1], P[y + 2] = ...; use(P[y .. y + 2])
        →   P of three rows;  for y: P[(y + 2) % 3] = ... (at first all three); use(P[y % 3 .. (y + 2) % 3])

    `stage` must be computed at a loop (compute_at comes first) along which its region moves in one dimension.
    """
    directive = "rolling_buffer()"
    if isinstance(stage.op, (ScanOp, StatementsOp)):
        raise stage.refuse(directive, f"{stage.name} is not made by a formula of te.compute: all of it is computed each time",
                           hint="leave that out; a copy that others read can roll at a loop: "
                                f's.cache_read({stage.tensor_written}, "global", readers)')
    must_own_memory(stage, directive, "rolled")
    must_have_one_version(stage, directive)
    if stage.attach_type != AttachType.SCOPE:
        raise stage.refuse(directive, f"{stage.name} is computed at the root, all of it at once: there is nothing to keep",
                           hint=f"call {at_reader(stage)} first, at the loop along which "
                                "it rolls")
    if stage.storage.double_buffer:
        raise stage.refuse(directive, f"{stage.name} is double-buffered: its next iteration is computed while this one is used",
                           hint="use one of the two")
    host, loop = stage.attach_stage, stage.attach_ivar
    assert host is not None and loop is not None
    said = host.attr_of(loop)
    if said.iter_type == IterType.PARALLELIZED or said.bind_thread is not None:
        raise stage.refuse(directive, f"{stage.name} is computed at loop {loop.name} of {host.name}, which is "
                           f"{host.annotation_of(loop)}: its iterations do not follow one another",
                           hint=f"split {loop.name}, run the outer loop in parallel and compute {stage.name} at the inner one")
    stage.storage = replace(stage.storage, rolling=True)
