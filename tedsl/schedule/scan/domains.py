"""Which rows of the stages in the steps of a scan are needed, and the conditions that say it of a copy."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from contextlib import ExitStack
from typing import Any

from tedsl.arith.analyzer import Analyzer
from tedsl.ir import build
from tedsl.ir.expr import Expr
from tedsl.ir.iters import IterVar, Range
from tedsl.ir.walk.equal import structural_equal
from tedsl.lang.operation import ComputeOp, Operation, extent_of
from tedsl.lang.reads import guarded_loads
from tedsl.lang.scan.order import Ends, Place
from tedsl.schedule.relations import parents_of
from tedsl.schedule.scan.stages import scans_of
from tedsl.schedule.state import ScheduleState, StageState


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
            scan: Any = scans.updates[stage].op
            dom = scan.scan_axis.dom
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


def needed_rows(stage: StageState, values: Mapping[IterVar, Expr], dimensions: Sequence[IterVar], exist: Sequence[Expr]) \
        -> list[Expr]:
    """The conditions under which a stage in the steps of a scan needs an element of a copy: where the axes of the stage, which
    have the `values`, are in the ranges that `step_domains` gives to them.

    dimensions: of the copy, one for each loop of the stage. exist: what holds for those elements of it that the stage has.
    The range of a dimension that is part of a split or fused axis cannot leave out the first row, which is one row of the first
    tile, and there the formula would read the row before it.
    """
    divided = {parent for relation in stage.relations for parent in parents_of(relation)}
    axes = [axis for axis in getattr(stage.op, "axis", ()) if axis in divided]
    domains = step_domains(stage.schedule) if axes else {}
    if not any(axis in domains for axis in axes):
        return []
    analyzer, conditions = Analyzer(), list[Expr]()
    for dimension in dimensions:
        assert dimension.dom is not None
        analyzer.bind(dimension.var, dimension.dom)
    with ExitStack() as known:
        for condition in exist:
            known.enter_context(analyzer.constraint_scope(condition))
        for axis in axes:
            dom, value = domains.get(axis, axis.dom), values[axis]
            assert dom is not None and dom.extent is not None
            ends = build.greater_equal(value, dom.min), build.less(value, build.add(dom.min, dom.extent))
            conditions += [end for end in ends if not analyzer.can_prove(end)]
    return conditions
