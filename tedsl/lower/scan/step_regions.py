"""The stages inside the steps of a scan: the memory that they share, and the part of them that is needed."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from tedsl.arith.analyzer import Analyzer
from tedsl.errors import LoweringError
from tedsl.findings import refuse_to_run
from tedsl.ir import build
from tedsl.ir.expr import Expr
from tedsl.ir.iters import IterVar, Range
from tedsl.ir.walk.equal import structural_equal
from tedsl.lang.operation import ComputeOp, Operation, extent_of
from tedsl.lang.reads import guarded_loads
from tedsl.lang.scan.operation import ScanOp
from tedsl.lang.scan.order import Ends, Place
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


# --- domains ----------------------------------------------------------------------------------------------------------

def step_domains(schedule: ScheduleState) -> dict[IterVar, Range]:
    """The range of each axis, of stages in the steps of scans, that is needed over all steps.

    An update begins at the row after the first ones, and so do the stages that it reads at an offset. More must not be
    computed: it would read rows that do not exist.
    """
    scans = scans_of(schedule)
    if not scans.steps:
        return {}
    regions: dict[Operation, list[Ends | None]] = {}
    domains: dict[IterVar, Range] = {}
    for stage in reversed(schedule.stages):
        op = stage.op
        if stage not in scans.steps or not isinstance(op, ComputeOp):
            continue
        if stage in scans.updates:
            dom = scans.updates[stage].op.scan_axis.dom  # type: ignore[attr-defined]
            regions[op] = [(dom.min, build.sub(build.add(dom.min, dom.extent), 1)), *[None] * (len(op.axis) - 1)]
        place = Place(op, _clipped(op, regions.get(op, [None] * len(op.axis))))
        for axis in op.axis:
            narrowed = _narrowed(axis, place)
            if narrowed is not None:
                domains[axis] = narrowed
        _reach_producers(op, place, regions, {other.op for other in scans.steps if other not in scans.updates})
    return domains


def _reach_producers(op: ComputeOp, place: Place, regions: dict[Operation, list[Ends | None]],
                     wanted: Collection[Operation]) -> None:
    """Extends `regions` by the regions of the operations `wanted` that `op` reads."""
    for body in op.body if op.reduction is None else op.body[:1]:
        for load, facts in guarded_loads(body):
            producer = load.producer.op
            if producer in wanted:
                region = [place.reached(index, facts) for index in load.indices]
                known = regions.get(producer)
                regions[producer] = region if known is None else list(map(place.union, known, region))


def _clipped(op: ComputeOp, region: Sequence[Ends | None]) -> list[Ends | None]:
    """`region` without the parts that lie outside the tensor: a consumer in another layout reaches them in its padding."""
    analyzer = Analyzer()
    clipped: list[Ends | None] = []
    for axis, ends in zip(op.axis, region):
        if ends is not None:
            low, high = ends
            last = build.sub(build.cast(high.dtype, extent_of(axis)), 1)
            if not analyzer.can_prove(build.greater_equal(low, 0)):
                low = analyzer.simplify(build.maximum(low, build.const(0, low.dtype)))
            if not analyzer.can_prove(build.less_equal(high, last)):
                high = analyzer.simplify(build.minimum(high, last))
            ends = low, high
        clipped.append(ends)
    return clipped


def _narrowed(axis: IterVar, place: Place) -> Range | None:
    """The range of `axis` in `place` if that is a proper part of its domain, else None."""
    low, high = place.ends[axis.var]
    low, high = build.cast(axis.dtype, low), build.cast(axis.dtype, high)
    extent: Expr = place.analyzer.simplify(build.add(build.sub(high, low), 1))
    whole = build.as_int(low) == 0 and (build.as_int(extent) == build.as_int(extent_of(axis)) is not None
                                        or structural_equal(extent, extent_of(axis), map_free_vars=False))
    return None if whole else Range.from_min_extent(low, extent)
