"""Propagation along the relations of one stage: extents and indices from axes to loops, indices from loops to axes, and the
guards of uneven splits.

Directives ask while the schedule is being written, for the extents known then; lowering asks again for the region of the stage
that is computed. Two rules determine how many iterations the loops of a split get: `as_written` and `Fitted`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import TypeVar

from tedsl.arith.analyzer import Analyzer
from tedsl.arith.conditions import conjuncts
from tedsl.ir import build
from tedsl.ir.expr import EQ, Expr, IntImm, Var
from tedsl.ir.iters import IterVar
from tedsl.ir.walk.substitute import substitute
from tedsl.lang.operation import root_axes
from tedsl.record import record
from tedsl.schedule.relations import ROUND_UP, SHIFT_INWARDS, Fuse, Rebase, Relation, Singleton, Split, children_of, parents_of
from tedsl.schedule.state import StageState

T = TypeVar("T")


# --- extents, from the axes down to the loops -------------------------------------------------------------------------

@record(eq=False)
class Division:
    """How a split divides its parent.

    part: the extent of the loop whose size was given; count: the extent of the other loop; None: unknown. even: whether their
    product is the extent of the parent. lead: how much earlier than multiples of `part` the tiles begin; None: 0.
    """

    part: Expr | None
    count: Expr | None
    even: bool
    lead: Expr | None = None


LeadOf = Callable[[Split], Expr | None]  # how much earlier than multiples of its factor the tiles of a split begin; None: 0
Rounding = Callable[[Split, Expr | None], Division]  # of a split whose parent has that extent (None: not known)


def as_written(split: Split, extent: Expr | None) -> Division:
    """The rule while a schedule is written: the factor (nparts) as given, the other extent rounded up, so that no later
    directive can make a loop longer.
    """
    if extent is None:
        return Division(split.given, None, False)
    if (lead := some_lead(split)) is not None:
        return Division(split.given, _tiles_from_lines(split, extent, split.given), False, lead)
    return Division(split.given, build.ceil_div(extent, split.given), is_multiple(extent, split.given, Analyzer()))


def some_lead(split: Split) -> Var | None:
    """A variable for the lead of a split with lines_of, before it is known whether the memory is that of a call."""
    return Var("lead", split.parent.dtype) if split.line > 1 else None


def _tiles_from_lines(split: Split, extent: Expr, part: Expr) -> Expr:
    """The number of tiles of `extent` iterations if the first tile may begin up to a line, less one element, before them."""
    return build.ceil_div(build.add(extent, split.line - 1), part)


@record(eq=False)
class Fitted:
    """The rule of lowering: a factor (nparts) above the extent is reduced to the extent if both are constants.

    kept: the loops whose factor is not reduced, because threads count them (`counted_by_threads`). A single tile has no lead.
    """

    analyzer: Analyzer
    kept: Collection[IterVar] = ()
    lead_of: LeadOf = some_lead

    def __call__(self, split: Split, extent: Expr | None) -> Division:
        given, keep = build.cast(split.parent.dtype, split.given), split.sized in self.kept
        if extent is None:
            return Division(given if keep else None, None, False)
        plain = fitted(extent, given, self.analyzer, keep)
        lead = None if plain.count is not None and build.as_int(plain.count) in (0, 1) else self.lead_of(split)
        if lead is None:
            return plain
        return Division(given, self.analyzer.simplify(_tiles_from_lines(split, extent, given)), False, lead)


def fitted(extent: Expr, part: Expr, analyzer: Analyzer, keep: bool = False) -> Division:
    """The division of `extent` iterations into parts of `part`, which is reduced to the extent unless `keep`."""
    whole, size = build.as_int(extent), build.as_int(part)
    if whole is not None and size is not None:
        size = size if keep else min(size, whole)
        count = -(-whole // size) if size else 0
        return Division(build.const(size, extent.dtype), build.const(count, extent.dtype), size * count == whole)
    if is_multiple(extent, part, analyzer):
        return Division(part, analyzer.simplify(build.floordiv(extent, part)), True)
    return Division(part, analyzer.simplify(build.ceil_div(extent, part)), False)


def is_multiple(value: Expr, part: Expr, analyzer: Analyzer) -> bool:
    """Whether `part` is known to divide `value`."""
    whole, size = build.as_int(value), build.as_int(part)
    if whole is not None and size is not None:
        return size != 0 and whole % size == 0
    return build.as_int(analyzer.simplify(build.floormod(value, part))) == 0


def counted_by_threads(stage: StageState) -> set[IterVar]:
    """The loops that are bound to threads, and the iteration variables that these are derived from. Their splits keep a factor
    above the extent, since it was written to get that many threads.
    """
    counted = {leaf for leaf in stage.leaf_iter_vars if stage.attr_of(leaf).bind_thread is not None}
    for relation in reversed(stage.relations):
        if counted.intersection(children_of(relation)):
            counted.update(parents_of(relation))
    return counted


@record(eq=False)
class Tiling:
    """The extents of the iteration variables of a stage, the parents of splits that divide evenly, and those whose tiles begin
    earlier than multiples of the factor.
    """

    extents: Mapping[IterVar, Expr]
    even: frozenset[IterVar]
    leads: Mapping[IterVar, Expr]

    def shifts(self, split: Split) -> bool:
        """Whether the last tile of `split` is moved inwards, and perhaps the first."""
        return split.tail == SHIFT_INWARDS and split.parent not in self.even


def tile_down(relations: Iterable[Relation], roots: Mapping[IterVar, Expr], rounding: Rounding = as_written) -> Tiling:
    """The extents of all iteration variables given those of `roots`; a variable is left out where its extent is unknown."""
    known, even, leads = dict(roots), set[IterVar](), dict[IterVar, Expr]()
    for relation in relations:
        match relation:
            case Split(parent=p, outer=o, inner=i):
                division = rounding(relation, known.get(p))
                extents = {relation.sized: division.part, relation.counted: division.count}
                known.update((loop, extent) for loop in (o, i) if (extent := extents[loop]) is not None)
                if division.even:
                    even.add(p)
                if division.lead is not None:
                    leads[p] = division.lead
            case Fuse(outer=o, inner=i, fused=f):
                if o in known and i in known:
                    known[f] = build.product_of_extents(known[o], known[i])
            case Rebase(parent=p, rebased=r):
                if p in known:
                    known[r] = known[p]
            case Singleton(iter=one):
                known[one] = build.const(1, one.dtype)
    return Tiling(known, frozenset(even), leads)


def written_tiling(stage: StageState) -> Tiling:
    """The extents of all loops as written, for a stage that is computed whole."""
    return tile_down(stage.relations, root_extents(stage))


def extent_of(stage: StageState, loop: IterVar) -> Expr | None:
    """The extent of a loop as written, for a stage that is computed whole; None where it is unknown."""
    return written_tiling(stage).extents.get(loop)


def root_extents(stage: StageState) -> dict[IterVar, Expr]:
    """The extents of the axes of the operation before any directive."""
    values = known_values(() if stage.condition is None else (stage.condition,))
    return {iv: substitute(iv.dom.extent, values) for iv in root_axes(stage.op)
            if iv.dom is not None and iv.dom.extent is not None}


def known_values(conditions: Iterable[Expr]) -> dict[Var, Expr]:
    """The variables that have a single value where `conditions` hold, with that value: 64 for n where n == 64."""
    values: dict[Var, Expr] = {}
    for condition in conditions:
        for part in conjuncts(condition):
            if isinstance(part, EQ):
                for var, value in ((part.a, part.b), (part.b, part.a)):
                    if isinstance(var, Var) and isinstance(value, IntImm):
                        values.setdefault(var, value)
    return values


# --- indices ----------------------------------------------------------------------------------------------------------

def pass_up(relations: Sequence[Relation], loops: Mapping[IterVar, T], tiled: Callable[[Split, T, T], T],
            unfused: Callable[[Fuse, T], tuple[T, T]]) -> dict[IterVar, T]:
    """The values of type T for all iteration variables, computed from those of `loops` to the axes; relations whose children
    have no value are skipped.

    tiled: the value for the parent of a split from those for its outer and inner loop. unfused: the values for the outer and
    the inner loop of a fuse from that of the fused loop.
    """
    known = dict(loops)
    for relation in reversed(relations):
        match relation:
            case Split(parent=p, outer=o, inner=i) if o in known and i in known:
                known[p] = tiled(relation, known[o], known[i])
            case Fuse(outer=o, inner=i, fused=f) if f in known:
                known[o], known[i] = unfused(relation, known[f])
            case Rebase(parent=p, rebased=r) if r in known:
                known[p] = known[r]
    return known


def indices_up(relations: Sequence[Relation], tiling: Tiling, values: Mapping[IterVar, Expr]) -> dict[IterVar, Expr]:
    """The values of the parents, counted from the start of their ranges, in terms of `values` of loops."""
    extents = tiling.extents

    def tiled(split: Split, outer: Expr, inner: Expr) -> Expr:
        return build.add(tile_start(split, tiling, outer), inner)

    def unfused(fuse: Fuse, fused: Expr) -> tuple[Expr, Expr]:
        return build.floordiv(fused, extents[fuse.inner]), build.floormod(fused, extents[fuse.inner])

    return pass_up(relations, values, tiled, unfused)


def tile_start(split: Split, tiling: Tiling, outer: Expr) -> Expr:
    """Where tile number `outer` of a split begins."""
    size, start = tiling.extents[split.inner], build.mul(outer, tiling.extents[split.inner])
    if split.parent in tiling.leads:
        return build.maximum(inwards(build.sub(start, tiling.leads[split.parent]), tiling.extents[split.parent], size), 0)
    return inwards(start, tiling.extents[split.parent], size) if tiling.shifts(split) else start


def inwards(start: Expr, whole: Expr, part: Expr) -> Expr:
    """The start of a tile of `part` elements, moved from `start` so that the tile does not end beyond `whole`; at least 0."""
    last = build.sub(whole, part)
    moved = build.minimum(start, last)
    known = build.as_int(last)
    return moved if known is not None and known >= 0 else build.maximum(moved, build.const(0, last.dtype))


def indices_down(relations: Iterable[Relation], extents: Mapping[IterVar, Expr], values: Mapping[IterVar, Expr]) \
        -> dict[IterVar, Expr]:
    """The values of the loops in terms of `values` of the axes, counted from the start of their ranges."""
    known = dict(values)
    for relation in relations:
        match relation:
            case Split(parent=p, outer=o, inner=i) if p in known:
                known[o] = build.floordiv(known[p], extents[i])
                known[i] = build.floormod(known[p], extents[i])
            case Fuse(outer=o, inner=i, fused=f) if o in known and i in known:
                known[f] = build.add(build.mul(known[o], extents[i]), known[i])
            case Rebase(parent=p, rebased=r) if p in known:
                known[r] = known[p]
            case Singleton(iter=one):
                known[one] = build.const(0, one.dtype)
    return known


# --- which iterations exist -------------------------------------------------------------------------------------------

def overrunning(relations: Sequence[Relation], even: Collection[IterVar], start: Iterable[IterVar]) \
        -> dict[IterVar, tuple[Split, ...]]:
    """The iteration variables that may exceed their extents in loops over `start` and so must be compared with them, each with
    the splits that cause it, outermost first; in the order in which they were divided.

    A split that is not in `even` lets its parent exceed the extent. That carries over through the outer part of further splits
    (y*f + x is too large if y is) and ends at an inner part, a fused loop or an axis, which is compared. A tile that is moved
    inwards or rounded up does not exceed.
    """
    splits: dict[IterVar, tuple[Split, ...]] = dict.fromkeys(start, ())
    passed_on: set[IterVar] = set()
    for relation in reversed(relations):
        match relation:
            case Split(parent=p, outer=o, inner=i, tail=tail) if o in splits and i in splits:
                if p in even:
                    splits[p] = splits[o]
                else:
                    splits[p] = () if tail in (SHIFT_INWARDS, ROUND_UP) else (relation, *splits[o])
                if p in even or tail != ROUND_UP:
                    passed_on.add(o)
            case Fuse(outer=o, inner=i, fused=f) if f in splits:
                splits[o] = splits[i] = ()
            case Rebase(parent=p, rebased=r) if r in splits:
                splits[p] = splits[r]
                passed_on.add(r)
    return {iv: causes for iv, causes in reversed(splits.items()) if causes and iv not in passed_on}


def guards(relations: Sequence[Relation], tiling: Tiling, values: Mapping[IterVar, Expr]) -> list[Expr]:
    """The conditions under which the loops are at existing iterations; `values` are the result of `indices_up`."""
    parents = {parent for relation in relations for parent in parents_of(relation)}
    compared = overrunning(relations, tiling.even, [iv for iv in values if iv not in parents])
    return [build.less(values[iv], tiling.extents[iv]) for iv in compared]
