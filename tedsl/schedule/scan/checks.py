"""What a schedule with scans must satisfy: states are read in their steps only, and the steps run one after the other."""

from __future__ import annotations

from collections.abc import Sequence

from tedsl.errors import ScheduleError
from tedsl.ir.expr import Expr, Var
from tedsl.ir.iters import IterType, IterVar
from tedsl.lang.scan.operation import ScanOp
from tedsl.schedule.scan.stages import Scans, needed_first, scans_of, step_axes
from tedsl.schedule.state import ScheduleState, StageState


def check_scans(schedule: ScheduleState) -> None:
    """Refuses a program in which a state or an update is read outside of the steps; called when a schedule is created."""
    scans = scans_of(schedule)
    if not scans.updates:
        return
    _check_owners(schedule)
    consumers = schedule.consumers()
    for stage in (*scans.states, *scans.steps):
        scan = scans.states.get(stage) or scans.steps[stage]
        for reader in consumers[stage]:
            if reader is not scan and scans.steps.get(reader) is not scan:
                raise _outside(stage, scan, f"{reader.name} reads {stage.name}", scans)
        if stage.is_output:
            raise _outside(stage, scan, f"{stage.name} is to be an output", scans)


def _check_owners(schedule: ScheduleState) -> None:
    owners: dict[StageState, StageState] = {}
    for scan in schedule.stages:
        if isinstance(scan.op, ScanOp):
            for tensor in (*scan.op.update, *scan.op.state_placeholder):
                stage = schedule.stage_map.get(tensor.op)
                if stage is not None and owners.setdefault(stage, scan) is not scan:
                    raise ScheduleError("create_schedule", stage.name, f"{stage.name} belongs to {owners[stage].name} and to "
                                        f"{scan.name}", loops=(), hint="give each scan states and updates of its own")


def _outside(stage: StageState, scan: StageState, what: str, scans: Scans) -> ScheduleError:
    part = "a state" if stage in scans.states else "the update" if stage in scans.updates else "a part of the steps"
    return ScheduleError("create_schedule", stage.name, f"{what}, which is {part} of {scan.name} and exists in its steps only",
                         loops=(), hint=f"use the result of te.scan, {scan.name}: it has all the rows")


# --- directives -------------------------------------------------------------------------------------------------------

def check_place(stage: StageState, host: StageState, loop: IterVar, directive: str) -> None:
    """Refuses a place that a step, or the first rows, of a scan cannot have."""
    scans = scans_of(stage.schedule)
    own = scans.steps.get(stage)
    if own is not None and host is not own and scans.steps.get(host) is not own:
        raise host.refuse(directive, f"{stage.name} is computed in the steps of {own.name}, {host.name} outside of them",
                          hint=f"compute it at {own.written}.op.scan_axis, or at a loop of a stage of the same steps")
    if stage in scans.updates and host is not scans.updates[stage]:
        raise host.refuse(directive, f"{stage.name} is an update: its row is part of the result of the scan, and computed once",
                          hint=f"attach what {stage.name} reads; the update stays in the steps itself")
    if stage in scans.stateful and host is scans.stateful[stage] and loop is not host.leaf_iter_vars[-1]:
        raise host.refuse(directive, f"{stage.name} depends on the state, and would be computed steps ahead of it",
                          hint=f"compute it at the innermost loop, {host.leaf_iter_vars[-1].name}")
    if needed_first(stage, host, scans):
        raise host.refuse(directive, f"{stage.name} is needed for the first rows of {host.name}, before its loops",
                          hint=f"leave {stage.name} at the root; {host.written}.compute_at takes the first rows along")


def must_not_be_steps(stage: StageState, loop: IterVar, directive: str) -> None:
    """Refuses a directive that would run the steps of a scan at the same time."""
    if loop.iter_type == IterType.ORDERED and isinstance(stage.op, ScanOp):
        updates = " and ".join(stage.schedule.stage_map[tensor.op].written for tensor in stage.op.update)
        raise stage.refuse(directive, f"{loop.name} is the loop over the steps of {stage.name}: each needs the rows of those "
                           "before it", hint=f"take a loop over the elements of a row, of {updates}")


def must_leave_steps(stage: StageState, inverse: Sequence[Expr], directive: str) -> None:
    """Refuses a layout that interleaves the rows of different steps: a step would compute rows of other steps.

    inverse: each axis of the stage as an expression of the indices of the memory.
    """
    for at in step_axes(stage):
        if not isinstance(inverse[at], Var):
            axis, scan = stage.op.axis[at].name, scans_of(stage.schedule).steps[stage]  # type: ignore[attr-defined]
            raise stage.refuse(directive, f"{axis} counts the steps of {scan.name}, and each step computes one row of "
                               f"{stage.name}: a map that does not keep {axis} as an index of its own mixes rows that are not "
                               "there yet", hint=f"leave {axis} alone, at any place: [..., {axis}, ...]; or copy the result, "
                               f"{scan.name}, by a te.compute and transform that")


def must_keep_steps_in_order(stage: StageState, after: Sequence[IterVar], directive: str) -> None:
    """Refuses an order of loops in which later steps come before earlier ones."""
    if isinstance(stage.op, ScanOp):
        before = [loop for loop in stage.leaf_iter_vars if loop.iter_type == IterType.ORDERED]
        if any(a is not b for a, b in zip(before, [loop for loop in after if loop.iter_type == IterType.ORDERED])):
            raise stage.refuse(directive, f"the steps of {stage.name} would run in another order, and each needs the rows of "
                               "those before it", hint="leave the loops over the steps as they are nested")
