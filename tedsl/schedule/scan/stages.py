"""Scans in a schedule: which stages are computed step by step, and which hold the rows of a state.

The result is computed anew at each call, since cache_read, cache_write and rfactor change the graph.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import field

from tedsl.ir.iters import IterVar
from tedsl.ir.walk.visitor import variables
from tedsl.lang.operation import ComputeOp, Operation
from tedsl.lang.reads import guarded_loads
from tedsl.lang.scan.operation import ScanOp
from tedsl.record import record
from tedsl.schedule.state import AttachType, ScheduleState, StageState


@record(eq=False)
class Scans:
    """The roles of stages in the scans of a schedule. Each field maps stages of one role to the stage of their scan.

    steps: computed in each step, inside the innermost loop of the scan unless attached elsewhere; updates among them.
    stateful: those of the steps that depend on the state. updates, states: the stages of the updates and the placeholders.
    inits: stages that compute first rows for the scan alone. They write into its memory, and stand right before it.
    """

    steps: dict[StageState, StageState] = field(default_factory=dict)
    stateful: dict[StageState, StageState] = field(default_factory=dict)
    updates: dict[StageState, StageState] = field(default_factory=dict)
    states: dict[StageState, StageState] = field(default_factory=dict)
    inits: dict[StageState, StageState] = field(default_factory=dict)

    def place_of(self, stage: StageState) -> tuple[StageState, IterVar] | None:
        """The stage and the loop of it inside which `stage` is computed; None for a stage at the root."""
        if stage.attach_type == AttachType.SCOPE:
            assert stage.attach_stage is not None and stage.attach_ivar is not None
            return stage.attach_stage, stage.attach_ivar
        if stage.attach_type != AttachType.ROOT:
            return None
        scan = self.steps.get(stage)
        if scan is not None:
            return scan, scan.leaf_iter_vars[-1]
        scan = self.inits.get(stage)
        return None if scan is None else self.place_of(scan)


NONE = Scans()


def scans_of(schedule: ScheduleState) -> Scans:
    """The roles of the stages of `schedule` in its scans."""
    scans = [stage for stage in schedule.stages if isinstance(stage.op, ScanOp)]
    if not scans:
        return NONE
    roles, consumers = Scans(), schedule.consumers()
    for scan in scans:
        op = scan.op
        assert isinstance(op, ScanOp)
        roles.updates.update((schedule.stage_map[tensor.op], scan) for tensor in op.update)
        roles.states.update((schedule.stage_map[tensor.op], scan) for tensor in op.state_placeholder
                            if tensor.op in schedule.stage_map)
        below = _below(schedule, (schedule.stage_map[tensor.op] for tensor in op.update))
        stateful = _readers(below, {stage for stage, its in roles.states.items() if its is scan}, schedule)
        roles.stateful.update(dict.fromkeys(stateful, scan))
        for stage in _steps(below, stateful, scan, consumers):
            roles.steps.setdefault(stage, scan)
    for scan in scans:
        for tensor in scan.op.init:  # type: ignore[attr-defined]
            stage = schedule.stage_map[tensor.op]
            if isinstance(stage.op, ComputeOp) and consumers[stage] == [scan] and not stage.is_output \
                    and stage.attach_type == AttachType.ROOT and stage not in roles.steps:
                roles.inits[stage] = scan
    return roles


def needed_first(stage: StageState, scan: StageState, scans: Scans) -> bool:
    """Whether the first rows of `scan` depend on `stage`, which must then be computed before the loops of the scan."""
    if not isinstance(scan.op, ScanOp) or stage in scans.steps:
        return False
    schedule = scan.schedule
    return stage in _below(schedule, (schedule.stage_map[tensor.op] for tensor in scan.op.init))


def step_axes(stage: StageState) -> dict[int, bool]:
    """The dimensions of a stage that its readers in a scan index by the step, and whether by the step alone: then a step needs
    one index of that dimension.
    """
    scans = scans_of(stage.schedule)
    axes: dict[Operation, dict[int, bool]] = {update.op: {0: True} for update in scans.updates}
    for reader in reversed(stage.schedule.stages):
        op = reader.op
        if reader not in scans.steps or not isinstance(op, ComputeOp):
            continue
        counting = {op.axis[at].var: alone for at, alone in axes.get(op, {}).items()}
        own = {axis.var for axis in (*op.axis, *op.reduce_axis)}
        for body in op.body if op.reduction is None else op.body[:1]:
            for load, _ in guarded_loads(body):
                known = axes.setdefault(load.producer.op, {})
                for at, index in enumerate(load.indices):
                    used = own.intersection(variables(index))
                    if used.intersection(counting):
                        known[at] = known.get(at, True) and all(counting.get(v, False) for v in used)
    return dict(sorted(axes.get(stage.op, {}).items())) if stage in scans.steps else {}


def _below(schedule: ScheduleState, ends: Iterable[StageState]) -> list[StageState]:
    """The stages that `ends` read, directly or not, and `ends`, producers first."""
    below, pending = set[StageState](), list(ends)
    while pending:
        stage = pending.pop()
        if stage not in below:
            below.add(stage)
            pending.extend(schedule.stage_map[tensor.op] for tensor in stage.op.input_tensors)
    return [stage for stage in schedule.stages if stage in below]


def _readers(stages: Iterable[StageState], sources: set[StageState], schedule: ScheduleState) -> list[StageState]:
    """Those of `stages`, producers first, whose formulas depend on one of `sources`."""
    readers, touched = [], set(sources)
    for stage in stages:
        if isinstance(stage.op, ComputeOp) and any(schedule.stage_map[t.op] in touched for t in stage.op.input_tensors):
            touched.add(stage)
            readers.append(stage)
    return readers


def _steps(below: list[StageState], stateful: list[StageState], scan: StageState,
           consumers: dict[StageState, list[StageState]]) -> list[StageState]:
    """The stages computed in each step, consumers first: those that depend on the state, the updates, and those that are
    computed from the inputs for these alone.
    """
    op, schedule = scan.op, scan.schedule
    assert isinstance(op, ScanOp)
    inputs = {schedule.stage_map[tensor.op] for tensor in op.inputs if tensor.op in schedule.stage_map}
    wanted = {*stateful, *(schedule.stage_map[tensor.op] for tensor in op.update)}
    of_inputs = set(_readers(below, inputs, schedule))
    steps: list[StageState] = []
    for stage in reversed(below):
        if stage in wanted or (stage in of_inputs and stage not in inputs and not stage.is_output
                               and all(reader in steps for reader in consumers[stage])):
            steps.append(stage)
    return steps
