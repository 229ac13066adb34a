"""Stages that are computed at a loop which split or fuse replaces: they move to the loop that covers it.

    B at i of C;  split(i) -> io, ii          B at ii: an iteration of ii needs what an iteration of i needed
    B at i of C;  fuse(i, j) -> f             B at f: each iteration computes what it reads
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tedsl.ir.iters import IterVar
from tedsl.lang.scan.operation import ScanOp
from tedsl.schedule.scan.stages import scans_of
from tedsl.schedule.state import StageState, find


def guests_must_be_movable(stage: StageState, loops: Iterable[IterVar], directive: str) -> None:
    """Refuses `loops` at which stages are computed, if more than one loop may be meant: versions of `stage` have loops of their
    own, and the steps of a scan are computed in order.
    """
    if stage.versions or stage.version_of is not None or isinstance(stage.op, ScanOp) \
            or stage in scans_of(stage.schedule).steps:
        stage.must_have_no_guests(loops, directive)


def move_guests(stage: StageState, loops: Sequence[IterVar], to: IterVar) -> None:
    """Computes at `to` what is computed at one of `loops` of `stage`: stages, and groups with those that return to them."""
    for guest in stage.guests():
        if guest.attach_ivar is not None and find(loops, guest.attach_ivar) is not None:
            guest.attach_ivar = to
    schedule = stage.schedule
    for group, loop in schedule.group_loops.items():
        if schedule.group_hosts[group] is stage and find(loops, loop) is not None:
            schedule.put_group(group, stage, to)
