"""Bound inference: each stage computes the region that its consumers read, inferred from the consumers to the producers.

A stage at the root computes its whole shape. An attached one computes what the loops of its consumers inside its place
read: the loops outside are fixed, those inside run over their extents, and the indices of the reads are relaxed over them.

    for yo, xo: { blur.x at (yo, xo):  blur.y[y, x] reads blur.x[y + dy, x], y = yo*8 + [0, 7], dy in [0, 2]
                                       -> blur.x rows yo*8 .. yo*8 + 9, ten of them: the halo is part of the region }
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from tedsl.arith.analyzer import Analyzer
from tedsl.arith.interval import Relaxation
from tedsl.ir import build
from tedsl.ir.expr import Expr, Var
from tedsl.ir.iters import IterVar, Range
from tedsl.ir.walk.equal import structural_equal
from tedsl.ir.walk.index_arithmetic import difference
from tedsl.ir.walk.substitute import substitute
from tedsl.ir.walk.visitor import variables
from tedsl.lang.operation import Operation, extent_of
from tedsl.lang.reads import has_load
from tedsl.lower.plan import Ends, Loop, Placement, Program, Read, StagePlan
from tedsl.lower.regions.propagate import Reach, point, reaches_up, whole
from tedsl.lower.threads.around import bind_outer_threads, outer_threads, spans
from tedsl.lower.threads.axes import thread_loop
from tedsl.lower.threads.launches import launches_of
from tedsl.lower.uneven_splits import padded_extents, tail_of
from tedsl.lower.versions import is_read_outside, readers_inside, specialized, under_conditions
from tedsl.record import record
from tedsl.schedule.domains import Fitted, LeadOf, Tiling, counted_by_threads, indices_up, tile_down
from tedsl.schedule.relations import Fuse
from tedsl.schedule.state import ScheduleState


def infer_bounds(schedule: ScheduleState, placements: Sequence[Placement], analyzer: Analyzer, lead_of: LeadOf) -> Program:
    """The program of `placements`, with the region and the loops of each. Loop variables are bound in `analyzer`. lead_of: how
    much earlier than multiples of its factor the tiles of a split begin.
    """
    readers = _readers(schedule, placements)
    plans: dict[Placement, StagePlan] = {}
    for placement in reversed(placements):
        with under_conditions(placement, analyzer):
            every = readers.get(placement.op, [])
            reads = None if is_read_outside(placement, every) else readers_inside(placement, every)
            host = None if placement.host is None else plans[placement.host]
            general = None if placement.general is None else plans[placement.general]
            known = None if reads is None else [(plans[reader], read) for reader, read in reads]
            plans[placement] = _plan(placement, host, general, known, analyzer, lead_of)
    return _program(tuple([plans[placement] for placement in placements]), analyzer)


def _plan(placement: Placement, host: StagePlan | None, general: StagePlan | None,
          readers: Sequence[tuple[StagePlan, Read]] | None, analyzer: Analyzer, lead_of: LeadOf) -> StagePlan:
    """`placement` inside `host` with its region, of which `readers` read a part, and its loops. readers: None if some are
    outside of `host`; the region is the whole shape then.
    """
    bind_outer_threads(host, placement.position, analyzer)
    stage, everything = placement.stage, _whole_shape(placement)
    needed = everything if host is None or readers is None else _needed(placement, host, readers, analyzer)
    region = specialized(placement, needed)
    mins: dict[IterVar, Expr] = {}
    extents: dict[IterVar, Expr] = {}
    for axis, ends, whole_axis in zip(placement.data_axes, region, everything):
        mins[axis], extents[axis] = whole_axis if axis in placement.without_loops else ends
    for axis, reduced in zip(placement.axes[len(region):], specialized(placement, _reduced(placement, len(region)))):
        mins[axis], extents[axis] = reduced
    extents.update((thread, extent_of(thread)) for thread in stage.env_threads)
    tiling = tile_down(stage.relations, extents, Fitted(analyzer, counted_by_threads(stage), lead_of))
    padded = padded_extents(placement, tiling)
    loops = tuple([_loop(placement, tiling, leaf, analyzer) for leaf in placement.leaves])
    offsets = indices_up(stage.relations, tiling, {loop.leaf: loop.value for loop in loops})
    placed = {**vars(placement), "host": host, "general": general}
    return StagePlan(**placed, mins=mins, tiling=tiling, padded=padded, loops=loops, offsets=offsets)


def _program(plans: tuple[StagePlan, ...], analyzer: Analyzer) -> Program:
    """The program of `plans`: which plans are computed inside which, their versions and their launches."""
    guests: dict[StagePlan, dict[int, list[StagePlan]]] = {}
    versions: dict[StagePlan, list[StagePlan]] = {}
    for plan in plans:
        if plan.general is not None:
            versions.setdefault(plan.general, []).append(plan)
        elif plan.host is not None:
            guests.setdefault(plan.host, {}).setdefault(plan.position, []).append(plan)
    return Program(plans, guests, versions, launches_of(plans, analyzer))


def _reduced(plan: Placement, start: int) -> list[Ends]:
    """Start and extent of each axis from number `start` on: those that are not dimensions of the outputs."""
    doms = [plan.domain(axis) for axis in plan.axes[start:]]
    return [(dom.min, dom.extent) for dom in doms if dom.extent is not None]


def _readers(schedule: ScheduleState, placements: Iterable[Placement]) -> dict[Operation, list[tuple[Placement, Read]]]:
    """For each operation that has loops, the reads of its outputs in order, each with the placement that reads."""
    readers: dict[Operation, list[tuple[Placement, Read]]] = {}
    for placement in placements:
        for read in placement.reads:
            readers.setdefault(schedule.stage_map[read.tensor.op].op, []).append((placement, read))
    return readers


def _loop(plan: Placement, tiling: Tiling, leaf: IterVar, analyzer: Analyzer) -> Loop:
    extent, attr = tiling.extents[leaf], plan.stage.attr_of(leaf)
    if attr.bind_thread is not None:
        return thread_loop(plan, leaf, attr, extent, analyzer)
    if build.as_int(extent) == 1:
        return Loop(leaf, attr, extent, None, build.const(0, leaf.dtype))
    var = Var(leaf.name, leaf.dtype)
    extent = build.cast(leaf.dtype, extent)
    if not has_load(extent):
        analyzer.bind(var, Range.from_min_extent(build.const(0, leaf.dtype), extent))
    return Loop(leaf, attr, extent, var, var, tail_of(plan.stage.relations, tiling, leaf))


def _whole_shape(plan: Placement) -> list[Ends]:
    """Start and extent of each dimension."""
    return [(build.const(0, axis.dtype), extent_of(axis)) for axis in plan.data_axes]


def _needed(plan: Placement, host: StagePlan, reads: Sequence[tuple[StagePlan, Read]], analyzer: Analyzer) -> list[Ends]:
    """Start and extent, in each dimension, of the region that `reads` touch in one iteration of the loop of `host` inside which
    `plan` is computed.

    The region is empty without reads: formulas inlined into a consumer may use only parts that do not read this stage.
    """
    if not reads:
        return [(build.const(0, axis.dtype), build.const(0, axis.dtype)) for axis in plan.data_axes]
    values: dict[StagePlan, _Values] = {}
    by_dimension: list[list[Ends | None]] = [[] for _ in plan.data_axes]
    for reader, read in reads:
        if reader not in values:
            values[reader] = _values_inside(reader, plan, host, analyzer)
        for dim, ends in enumerate(read.region[:len(by_dimension)]):
            by_dimension[dim].append(ends and values[reader].of(ends, analyzer))
    return [_union(axis, all_ends, analyzer) for axis, all_ends in zip(plan.data_axes, by_dimension)]


@record
class _Layer:
    """The intervals of variables at one place, and what gives those of indices; None if the intervals depend on data."""

    ranges: Mapping[Var, Ends]
    relaxation: Relaxation | None


@record
class _Values:
    """What the indices of a reader are in one iteration of a loop around it.

    layers: substitutions of intervals, first for the axes of the reader, then, stage by stage outwards, for the loops around
    it. indices, loops: for readers with fused loops, its axes in terms of its own loops, and the intervals of these: neighbours
    of a row of fused loops are neighbours in memory that is laid out as the loops are, though they cross rows of the axes.
    Others have none.
    """

    layers: Sequence[_Layer]
    indices: Mapping[Var, Expr]
    loops: _Layer | None

    def of(self, ends: Ends, analyzer: Analyzer) -> Ends | None:
        """The lowest and highest value between `ends`; None if it depends on data or cannot be bounded."""
        boxed = _relaxed(ends, self.layers)
        if self.loops is None or sum(v in self.indices for v in set(variables(ends[0]))) < 2:
            return boxed
        low = analyzer.simplify(substitute(ends[0], self.indices))
        high = low if ends[0] is ends[1] else analyzer.simplify(substitute(ends[1], self.indices))
        along = _relaxed((low, high), [self.loops, *self.layers[1:]])
        return along if along is not None and _is_narrower(along, boxed, analyzer) else boxed


def _is_narrower(one: Ends, other: Ends | None, analyzer: Analyzer) -> bool:
    """Whether `one` is known to be the smaller interval."""
    sizes = [None if ends is None else build.as_int(analyzer.simplify(build.sub(ends[1], ends[0]))) for ends in (one, other)]
    return sizes[0] is not None and (sizes[1] is None or sizes[0] < sizes[1])


def _values_inside(reader: StagePlan, plan: Placement, host: StagePlan, analyzer: Analyzer) -> _Values:
    """The values that an index of `reader` takes in one iteration of the loop of `host` inside which `plan` is computed."""
    fixed = plan.position if reader is host else -1
    loops = {loop.leaf: point(loop.value, loop.extent) if at <= fixed and not spans(plan, loop) else whole(loop.extent)
             for at, loop in enumerate(reader.loops)}
    reached = reaches_up(reader, loops, analyzer)
    layers = [_layer({axis.var: _shifted(reached[axis], reader.mins[axis]) for axis in reader.axes}, analyzer)]
    inner = reader
    while inner is not host:
        around, until = inner.host, inner.position
        assert around is not None, f"{inner.name} stands outside the place of {plan.name}: computations.py refuses that"
        start = plan.position + 1 if around is host else 0
        layers.append(_layer({loop.var: (build.const(0, loop.var.dtype), build.sub(loop.extent, 1))
                              for loop in around.loops[start:until + 1] if loop.var is not None}, analyzer))
        inner = around
    threads = outer_threads(plan, host, reader)
    if threads:
        layers.append(_layer(threads, analyzer))
    if not any(isinstance(relation, Fuse) for relation in reader.stage.relations):
        return _Values(layers, {}, None)
    indices = {axis.var: build.add(reader.mins[axis], reader.offsets[axis]) for axis in reader.axes}
    inside = {loop.var: (reach.low, reach.high) for loop in reader.loops
              if loop.var is not None and (reach := loops[loop.leaf]).low is not reach.high}
    return _Values(layers, indices, _layer(inside, analyzer))


def _shifted(reach: Reach, start: Expr) -> Ends:
    low = build.add(start, reach.low)
    return low, low if reach.low is reach.high else build.add(start, reach.high)


def _layer(ranges: Mapping[Var, Ends], analyzer: Analyzer) -> _Layer:
    """The intervals `ranges`, for the indices of one reader at one place."""
    if any(has_load(end) for ends in ranges.values() for end in ends):
        return _Layer(ranges, None)
    return _Layer(ranges, Relaxation(ranges, analyzer))


def _relaxed(ends: Ends, layers: Sequence[_Layer]) -> Ends | None:
    """The lowest and highest value between `ends`; None if it depends on data or cannot be bounded."""
    low, high = ends
    for layer in layers:
        if layer.relaxation is None or has_load(low) or has_load(high):
            return None
        lowest = layer.relaxation.ends(low)
        highest = lowest if low is high else layer.relaxation.ends(high)
        if lowest[0] is None or highest[1] is None:
            return None
        low, high = lowest[0], highest[1]
    gone = {v for layer in layers for v in layer.ranges}
    both = (low,) if low is high else (low, high)
    return None if any(v in gone for end in both for v in variables(end)) else (low, high)


def _union(axis: IterVar, parts: Sequence[Ends | None], analyzer: Analyzer) -> Ends:
    """Start and extent of the smallest range that contains all `parts`; the whole dimension if one is unknown (None)."""
    extent = extent_of(axis)
    everything = build.const(0, axis.dtype), extent
    lows, highs = [], []
    for ends in parts:
        if ends is None:
            return everything
        low = build.cast(axis.dtype, ends[0])
        lows.append(low)
        highs.append(low if ends[0] is ends[1] else build.cast(axis.dtype, ends[1]))
    low, high = _extreme(lows, analyzer, lowest=True), _extreme(highs, analyzer, lowest=False)
    return _trimmed(low, high, extent, analyzer)


def _trimmed(low: Expr, high: Expr, extent: Expr, analyzer: Analyzer) -> Ends:
    """Start and extent of low .. high, cut to the tensor where the ends are constants."""
    first, last, size = build.as_int(low), build.as_int(high), build.as_int(extent)
    if first is not None and first < 0:
        low = build.const(0, low.dtype)
    if last is not None and size is not None and last >= size:
        high = build.const(size - 1, high.dtype)
    if low is high:
        return low, build.const(1, low.dtype)
    count = analyzer.simplify(build.add(difference(high, low), 1))
    if isinstance(build.as_int(count), int):
        return low, build.const(max(build.as_int(count) or 0, 0), low.dtype)
    if structural_equal(count, extent):
        return low, count  # as at the root
    # Loops without iterations may make the difference negative, and memory is asked for that many elements.
    return low, count if analyzer.can_prove(build.greater_equal(count, 0)) else build.maximum(count, 0)


def _extreme(ends: Sequence[Expr], analyzer: Analyzer, lowest: bool) -> Expr:
    """The smallest (`lowest`) or largest of `ends`: one of them where it is proved, else a min(...) or max(...) expression."""
    best = ends[0]
    for end in ends[1:]:
        if end is best:
            continue
        low, high = analyzer.bounds(analyzer.simplify(build.sub(end, best)))
        if (low is not None and low >= 0) if lowest else (high is not None and high <= 0):
            continue
        if (high is not None and high <= 0) if lowest else (low is not None and low >= 0):
            best = end
        else:
            best = build.minimum(best, end) if lowest else build.maximum(best, end)
    return best
