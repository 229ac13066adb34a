"""The stages inside the steps of a scan: the memory that they share."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from tedsl.errors import LoweringError
from tedsl.findings import refuse_to_run
from tedsl.lang.scan.operation import ScanOp
from tedsl.lower.plan import Key, StagePlan
from tedsl.schedule.causes import said
from tedsl.schedule.scan.stages import scans_of
from tedsl.schedule.state import ScheduleState


def shared_memory(schedule: ScheduleState, given: Collection[Key]) -> dict[Key, Key]:
    """Maps each output that is stored in the memory of a scan to that output of the scan: states, updates, and first rows that
    are computed for the scan alone, unless `given` by the caller.
    """
    scans, shared = scans_of(schedule), dict[Key, Key]()
    for scan in dict.fromkeys(scans.updates.values()):
        op = scan.op
        assert isinstance(op, ScanOp)
        for number, (first, update, state) in enumerate(zip(op.init, op.update, op.state_placeholder)):
            for tensor in (update, state):
                stage = schedule.stage_map.get(tensor.op)
                shared[tensor.op if stage is None else stage.op, tensor.value_index] = op, number
            stage = schedule.stage_map[first.op]
            if scans.inits.get(stage) is scan and (stage.op, first.value_index) not in given \
                    and op.init.count(first) == 1:
                shared[stage.op, first.value_index] = op, number
    return shared


def check_shared(schedule: ScheduleState, shared: Mapping[Key, Key], given: Collection[Key]) -> None:
    """Refuses directives that would give separate memory to an output that is stored in the memory of a scan, and to run with
    arguments that would.
    """
    for (op, index), (scan, number) in shared.items():
        stage, result = schedule.stage_map.get(op), scan.output(number).name
        if (op, index) in given:
            refuse_to_run(LoweringError(f"{op.name} is an argument, and its rows are part of {result}: it has no memory of its "
                                        "own", hint=f"pass {result} instead"))
        if stage is not None and (stage.storage.alignments or stage.storage.double_buffer or stage.storage.rolling):
            raise LoweringError(f"{op.name} is computed into {result}, and has directives on its memory",
                                hint=f"give them to {schedule.stage_map[scan].written}, or to a copy made by cache_write")


def check_rows(plan: StagePlan) -> None:
    """Refuses a padded stage that is stored in a scan: its padding would overwrite the next row of the scan."""
    if plan.padded:
        axis = next(iter(plan.padded))
        raise LoweringError(f"{plan.name} is computed into the memory of a scan, and the split of {axis.name} with round_up "
                            "writes beyond the end of a row", hint="use another tail, such as mask or guard, or compute it by "
                            f's.cache_write({plan.name}, "local") and pad that', about=said(plan.stage, "relations"))
