"""Messages along the relations of one stage: extents down, offsets and intervals up, and the guards that follow.

Everything here counts from 0: the offset of an axis is its value minus the start of its region.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from tedsl.arith.analyzer import Analyzer
from tedsl.ir import build
from tedsl.ir.expr import Expr
from tedsl.ir.iters import IterVar
from tedsl.lang.operation import extent_of
from tedsl.lower.plan import StagePlan
from tedsl.lower.threads.axes import forced_extents
from tedsl.schedule.domains import inwards
from tedsl.schedule.relations import Fuse, Rebase, Singleton, Split
from tedsl.schedule.tails import ROUND_UP, SHIFT_INWARDS


def extents_down(plan: StagePlan, analyzer: Analyzer) -> None:
    """Fill the extents of all loops of `plan` from those of its axes, and note which splits come out even."""
    known, forced = plan.extents, forced_extents(plan)
    known.update((thread, extent_of(thread)) for thread in plan.stage.env_threads)
    for relation in plan.stage.relations:
        match relation:
            case Split(parent=p, outer=o, inner=i, factor=factor, nparts=nparts):
                given = factor if factor is not None else nparts
                assert given is not None
                keep = (i if factor is not None else o) in forced
                size, count, exact = _divide(known[p], build.cast(p.dtype, given), analyzer, keep)
                known[o], known[i] = (count, size) if factor is not None else (size, count)
                if exact:
                    plan.exact.add(p)
                elif relation.tail == SHIFT_INWARDS:
                    plan.shifted.add(p)
            case Fuse(outer=o, inner=i, fused=f):
                known[f] = build.product_of_extents(known[o], known[i])
            case Rebase(parent=p, rebased=r):
                known[r] = known[p]
            case Singleton(iter=one):
                known[one] = build.const(1, one.dtype)


def _divide(extent: Expr, part: Expr, analyzer: Analyzer, keep: bool) -> tuple[Expr, Expr, bool]:
    """`part` (at most the extent, if both are known, unless `keep`), extent / part rounded up, whether it comes out even."""
    whole, size = build.as_int(extent), build.as_int(part)
    if whole is not None and size is not None:
        size = size if keep else min(size, whole)
        count = -(-whole // size) if size else 0
        return build.const(size, extent.dtype), build.const(count, extent.dtype), size * count == whole
    if _is_multiple(extent, part, analyzer):
        return part, analyzer.simplify(build.floordiv(extent, part)), True
    return part, analyzer.simplify(build.ceil_div(extent, part)), False


def _is_multiple(value: Expr, part: Expr, analyzer: Analyzer) -> bool:
    return build.as_int(analyzer.simplify(build.floormod(value, part))) == 0


def guards(plan: StagePlan, start: Iterable[IterVar]) -> list[IterVar]:
    """The iteration variables whose offsets must be compared with their extents, given loops over `start`.

    A split that does not come out even lets its parent run too far; that is passed up through the outer part of further
    splits (`y*f + x` is too far if y is) and stopped at an inner part, at a fused loop and at an axis, which are compared.
    A tile that is moved inwards or rounded up never is too far.
    """
    too_far = dict.fromkeys(start, False)
    stopped: dict[IterVar, None] = {}
    for relation in reversed(plan.stage.relations):
        match relation:
            case Split(parent=p, outer=o, inner=i) if o in too_far and i in too_far and p not in too_far:
                rounded = relation.tail == ROUND_UP and p not in plan.exact
                for part in (o, i) if rounded else (i,):
                    if too_far[part]:
                        stopped[part] = None
                too_far[p] = not rounded and p not in plan.shifted and (too_far[o] or p not in plan.exact)
            case Fuse(outer=o, inner=i, fused=f) if f in too_far:
                if too_far[f]:
                    stopped[f] = None
                too_far.setdefault(o, False)
                too_far.setdefault(i, False)
            case Rebase(parent=p, rebased=r) if r in too_far:
                too_far.setdefault(p, too_far[r])
            case Singleton(iter=one) if too_far.get(one):
                stopped[one] = None  # no axis, and of one iteration: more threads than that have none
    return [axis for axis in plan.axes if too_far.get(axis)] + list(stopped)


@dataclass(frozen=True, eq=False)
class Reach:
    """The offsets from `low` to `high`, both included. full: those of the whole extent."""

    low: Expr
    high: Expr
    full: bool = False


def whole(extent: Expr) -> Reach:
    """All offsets of that extent."""
    if build.as_int(extent) == 1:
        return point(build.const(0, extent.dtype), extent)
    return Reach(build.const(0, extent.dtype), build.sub(extent, 1), full=True)


def point(value: Expr, extent: Expr) -> Reach:
    """The offset `value` alone: of an extent of 1, that is all."""
    return Reach(value, value, full=build.as_int(extent) == 1)


def reaches_up(plan: StagePlan, loops: Mapping[IterVar, Reach], analyzer: Analyzer) -> dict[IterVar, Reach]:
    """What the axes reach when the loops reach `loops`. May go beyond an extent where a split does not come out even."""
    known, extents = dict(loops), plan.extents
    for relation in reversed(plan.stage.relations):
        match relation:
            case Split(parent=p, outer=o, inner=i):
                outer, inner = known[o], known[i]
                if outer.full and inner.full:
                    known[p] = whole(extents[p])
                else:
                    first, last = (build.mul(end, extents[i]) for end in (outer.low, outer.high))
                    if p in plan.shifted:
                        first, last = (inwards(start, extents[p], extents[i]) for start in (first, last))
                    low = build.add(first, inner.low)
                    single = outer.low is outer.high and inner.low is inner.high
                    known[p] = Reach(low, low if single else build.add(last, inner.high))
            case Fuse(outer=o, inner=i, fused=f):
                known[o], known[i] = _unfused(known[f], extents[o], extents[i], analyzer)
            case Rebase(parent=p, rebased=r):
                known[p] = known[r]
    return known


def _unfused(fused: Reach, outer: Expr, inner: Expr, analyzer: Analyzer) -> tuple[Reach, Reach]:
    """What the two parts of a fused loop reach. A span that does not stay within one row takes whole rows."""
    if fused.full:
        return whole(outer), whole(inner)
    first_row = build.floordiv(fused.low, inner)
    column = build.floormod(fused.low, inner)
    if fused.low is fused.high:
        return Reach(first_row, first_row), Reach(column, column)
    span = build.as_int(analyzer.simplify(build.add(build.sub(fused.high, fused.low), 1)))
    row = build.as_int(inner)
    if span is not None and row is not None and span > 0 and row % span == 0 \
            and _is_multiple(fused.low, build.const(span, inner.dtype), analyzer):
        return Reach(first_row, first_row), Reach(column, build.add(column, span - 1))
    return Reach(first_row, build.floordiv(fused.high, inner)), whole(inner)

