"""Propagation along the relations of one stage: the guards of uneven splits, and the offsets that iterations reach.

Offsets count from 0: the offset of an axis is its value minus the start of its region.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from tedsl.arith.analyzer import Analyzer
from tedsl.ir import build
from tedsl.ir.expr import Expr
from tedsl.ir.iters import IterVar
from tedsl.lower.plan import StagePlan
from tedsl.record import record
from tedsl.schedule.domains import is_multiple, overrunning, pass_up, tile_start
from tedsl.schedule.relations import Fuse, Split, children_of


def compared(plan: StagePlan, start: Iterable[IterVar]) -> dict[IterVar, tuple[Split, ...]]:
    """The iteration variables whose offsets must be compared with their extents, in loops over `start`, each with the splits
    that let it exceed the extent: the axes first, then derived variables, the last derived first.
    """
    causes = overrunning(plan.stage.relations, plan.tiling.even, start)
    parts = (part for relation in reversed(plan.stage.relations) for part in children_of(relation))
    return {iv: causes[iv] for iv in (*plan.axes, *parts) if iv in causes}


@record(eq=False)
class Reach:
    """An interval of offsets, `low` to `high` inclusive. full: it is the whole extent."""

    low: Expr
    high: Expr
    full: bool = False


def whole(extent: Expr) -> Reach:
    """The interval of all offsets of an extent, 0 .. extent - 1."""
    if build.as_int(extent) == 1:
        return point(build.const(0, extent.dtype), extent)
    return Reach(build.const(0, extent.dtype), build.sub(extent, 1), full=True)


def point(value: Expr, extent: Expr) -> Reach:
    """The interval of the single offset `value`; full if the extent is 1."""
    return Reach(value, value, full=build.as_int(extent) == 1)


def reaches_up(plan: StagePlan, loops: Mapping[IterVar, Reach], analyzer: Analyzer) -> dict[IterVar, Reach]:
    """The interval of offsets of each axis, given the intervals of the loops; it may exceed the extent where a split is
    uneven.
    """
    extents = plan.extents

    def tiled(split: Split, outer: Reach, inner: Reach) -> Reach:
        if outer.full and inner.full:
            return whole(extents[split.parent])
        low = build.add(tile_start(split, plan.tiling, outer.low), inner.low)
        single = outer.low is outer.high and inner.low is inner.high
        return Reach(low, low if single else build.add(tile_start(split, plan.tiling, outer.high), inner.high))

    def unfused(fuse: Fuse, fused: Reach) -> tuple[Reach, Reach]:
        return _unfused(fused, extents[fuse.outer], extents[fuse.inner], analyzer)

    return pass_up(plan.stage.relations, loops, tiled, unfused)


def _unfused(fused: Reach, outer: Expr, inner: Expr, analyzer: Analyzer) -> tuple[Reach, Reach]:
    """The intervals of the outer and the inner part of a fused loop; whole rows if the interval may cross a row."""
    if fused.full:
        return whole(outer), whole(inner)
    first_row = build.floordiv(fused.low, inner)
    column = build.floormod(fused.low, inner)
    if fused.low is fused.high:
        return Reach(first_row, first_row), Reach(column, column)
    span = build.as_int(analyzer.simplify(build.add(build.sub(fused.high, fused.low), 1)))
    row = build.as_int(inner)
    if span is not None and row is not None and span > 0 and row % span == 0 \
            and is_multiple(fused.low, build.const(span, inner.dtype), analyzer):
        return Reach(first_row, first_row), Reach(column, build.add(column, span - 1))
    return Reach(first_row, build.floordiv(fused.high, inner)), whole(inner)

