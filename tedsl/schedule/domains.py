"""Ranges and indices passed over the relations of one stage, as far as they are known while the schedule is written.

Bound inference proper, with regions that depend on where a stage is computed, is the business of `lower`.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence

from tedsl.arith.analyzer import Analyzer
from tedsl.arith.conditions import conjuncts
from tedsl.ir import build
from tedsl.ir.expr import EQ, Expr, IntImm, Var
from tedsl.ir.iters import IterVar
from tedsl.ir.walk.substitute import substitute
from tedsl.lang.operation import root_axes
from tedsl.schedule.relations import Fuse, Rebase, Relation, Singleton, Split
from tedsl.schedule.state import StageState


def extents_down(relations: Iterable[Relation], roots: Mapping[IterVar, Expr]) -> dict[IterVar, Expr]:
    """The extents of all loops that follow from those of `roots`; of some although their root is unknown."""
    known = dict(roots)
    for relation in relations:
        match relation:
            case Split(parent=p, outer=o, inner=i, factor=f, nparts=n):
                if f is not None:
                    known[i] = f
                    if p in known:
                        known[o] = build.ceil_div(known[p], f)
                elif n is not None:
                    known[o] = n
                    if p in known:
                        known[i] = build.ceil_div(known[p], n)
            case Fuse(outer=o, inner=i, fused=f):
                if o in known and i in known:
                    known[f] = build.product_of_extents(known[o], known[i])
            case Rebase(parent=p, rebased=r):
                if p in known:
                    known[r] = known[p]
            case Singleton(iter=one):
                known[one] = build.const(1, one.dtype)
    return known


def indices_up(relations: Sequence[Relation], extents: Mapping[IterVar, Expr], values: Mapping[IterVar, Expr],
               shifted: Container[IterVar] = ()) -> dict[IterVar, Expr]:
    """The values of the parents, counted from the start of their ranges, in terms of `values` of loops.

    Relations whose children are unknown are passed over. shifted: the parents of splits whose last tile is moved inwards.
    """
    known = dict(values)
    for relation in reversed(relations):
        match relation:
            case Split(parent=p, outer=o, inner=i) if o in known and i in known:
                start = build.mul(known[o], extents[i])
                known[p] = build.add(inwards(start, extents[p], extents[i]) if p in shifted else start, known[i])
            case Fuse(outer=o, inner=i, fused=f) if f in known:
                known[o] = build.floordiv(known[f], extents[i])
                known[i] = build.floormod(known[f], extents[i])
            case Rebase(parent=p, rebased=r) if r in known:
                known[p] = known[r]
    return known


def inwards(start: Expr, whole: Expr, part: Expr) -> Expr:
    """Where a tile of `part` that would begin at `start` begins if it may not end beyond `whole`: at 0 at the least."""
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


def guards(relations: Sequence[Relation], extents: Mapping[IterVar, Expr], values: Mapping[IterVar, Expr]) -> list[Expr]:
    """The conditions under which the loops stand for existing iterations; `values` are those of `indices_up`.

    A split that does not come out even lets its parent run too far. That shows in the parent of a further split whose outer
    part it is (y*f + x is too far if y is), so it is compared there; an inner part, a fused loop and an axis are compared
    themselves.
    """
    too_far: dict[IterVar, None] = {}
    for relation in reversed(relations):
        match relation:
            case Split(parent=p, outer=o, inner=i) if p in values:
                if o in too_far or not _comes_out_even(extents[p], extents[o], extents[i]):
                    too_far[p] = None
                too_far.pop(o, None)
            case Rebase(parent=p, rebased=r) if r in too_far:
                too_far[p] = too_far.pop(r)
    return [build.less(values[iv], extents[iv]) for iv in reversed(too_far)]


def _comes_out_even(whole: Expr, outer: Expr, inner: Expr) -> bool:
    covered, wanted = build.as_int(build.product_of_extents(outer, inner)), build.as_int(whole)
    if covered is not None and wanted is not None:
        return covered == wanted
    return build.as_int(Analyzer().simplify(build.sub(build.mul(outer, inner), whole))) == 0


def root_extents(stage: StageState) -> dict[IterVar, Expr]:
    """The extents of the axes of the operation, as it was written."""
    values = known_values(() if stage.condition is None else (stage.condition,))
    return {iv: substitute(iv.dom.extent, values) for iv in root_axes(stage.op)
            if iv.dom is not None and iv.dom.extent is not None}


def known_values(conditions: Iterable[Expr]) -> dict[Var, Expr]:
    """The variables that have one value where `conditions` hold: 64 where n == 64."""
    found: dict[Var, Expr] = {}
    for condition in conditions:
        for part in conjuncts(condition):
            if isinstance(part, EQ):
                for var, value in ((part.a, part.b), (part.b, part.a)):
                    if isinstance(var, Var) and isinstance(value, IntImm):
                        found.setdefault(var, value)
    return found


def extent_of(stage: StageState, loop: IterVar) -> Expr | None:
    """The extent of a loop if the whole of the stage is computed; None where it is not known."""
    return extents_down(stage.relations, root_extents(stage)).get(loop)
