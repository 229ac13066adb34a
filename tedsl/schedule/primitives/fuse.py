"""fuse: neighbouring loops become one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tedsl.ir import build
from tedsl.ir.expr import Expr
from tedsl.ir.iters import IterVar
from tedsl.lang.operation import ComputeOp
from tedsl.lang.reads import is_ragged
from tedsl.schedule.domains import extent_of, written_tiling
from tedsl.schedule.primitives.marks import drop_marks
from tedsl.schedule.primitives.places.moved import guests_must_be_movable, move_guests
from tedsl.schedule.relations import ROUND_UP, SHIFT_INWARDS, Fuse, Split, fused_of, singleton, touched_by
from tedsl.schedule.relations import Singleton as SingletonRelation
from tedsl.schedule.script_loops import check_nest, check_new_loop
from tedsl.schedule.state import StageState, find, show


def fuse(stage: StageState, loops: Sequence[Any]) -> IterVar:
    """Turns neighbouring loops, given from the outermost to the innermost, into one.

        for i in 0..n: for j in 0..m: body(i, j)   →   for f in 0..n * m: body(f // m, f % m)

    Loops over elements and loops of their reduction may become one: the start values stand before it then.
    A single loop is returned unchanged; without loops a new outermost loop of one iteration is added. Stages that are computed
    at one of `loops` are computed at the new loop then.
    """
    directive = f"fuse({', '.join(map(show, loops))})"
    stage.must_have_loops(directive)
    if not loops:
        stage.must_not_be_extern(directive)
        check_new_loop(stage, "a loop of one iteration", directive)
        return _add_singleton(stage)
    for loop in loops:
        stage.position_of(loop, directive)
    if len(loops) == 1:
        return loops[0]  # type: ignore[no-any-return]
    _check_loops(stage, directive, loops)
    leaves, relations, fused = list(stage.leaf_iter_vars), [], loops[0]
    extents = dict(written_tiling(stage).extents)
    for loop in loops[1:]:
        relation = _fuse_two(stage, directive, leaves, fused, loop, extents)
        relations.append(relation)
        fused = relation.fused
    drop_marks(stage, loops, directive)
    stage.leaf_iter_vars = tuple(leaves)
    stage.all_iter_vars += tuple([r.fused for r in relations])
    stage.relations += tuple(relations)
    move_guests(stage, loops, fused)
    return fused  # type: ignore[no-any-return]


def _check_loops(stage: StageState, directive: str, loops: Sequence[IterVar]) -> None:
    if len(set(loops)) != len(loops):
        twice = next(loop for at, loop in enumerate(loops) if find(loops[:at], loop) is not None)
        raise stage.refuse(directive, f"{twice.name} is named twice", hint="name each loop once")
    for loop in loops:
        stage.must_be_plain(loop, directive, "fuse first, then annotate the fused loop", but_for_marks=True)
    guests_must_be_movable(stage, loops, directive)
    check_nest(stage, loops, directive)
    reducing = [loop for loop in loops if loop.is_reduction]
    if reducing and len(reducing) < len(loops):
        data = next(loop for loop in loops if not loop.is_reduction)
        for loop in reducing:
            _check_both(stage, directive, data, loop)


def _check_both(stage: StageState, directive: str, data: IterVar, reducing: IterVar) -> None:
    """Refuses one loop over elements and over their reduction where the start values could not stand before it."""
    why = ""
    connected = touched_by((reducing,), stage.relations)  # a part of an empty axis has the iterations that were asked for
    behind = [axis for axis in getattr(stage.op, "reduce_axis", ()) if axis in connected]
    empty = next((loop for loop in (*behind, reducing) if (build.as_int(extent_of(stage, loop)) or 0) < 1), None)
    if type(stage.op) is not ComputeOp or is_ragged(stage.op):
        why = "how far the reduction goes differs from element to element"
    elif empty is not None:
        why = f"{empty.name} may have no iteration"
    elif any(stage.attr_of(loop).tensor_intrin is not None for loop in stage.leaf_iter_vars):
        why = f"an intrinsic computes {stage.name}"
    elif stage.init_at is not None:
        why = f"decompose_reduction put the start values at {stage.init_at.name}"
    elif stage.versions or stage.version_of is not None:
        why = f"{stage.name} has versions"
    elif any(isinstance(one, Split) and one.tail in (SHIFT_INWARDS, ROUND_UP) for one in stage.relations):
        why = "a split computes elements again, or beyond the tensor"
    if why:
        raise stage.refuse(
            directive, f"{reducing.name} is a reduction loop and {data.name} a loop over elements, and {why}: one loop cannot "
            "be both", hint="fuse loops over elements with each other and reduction loops with each other; reorder brings "
            "them together")


def _fuse_two(stage: StageState, directive: str, leaves: list[IterVar], first: IterVar, second: IterVar,
              extents: dict[IterVar, Expr]) -> Fuse:
    """Fuses two neighbours in `leaves`, also given as (inner, outer). The new loop is named in the order given.

    If the extents of both are known, that of the new loop is added to `extents`.
    """
    a, b = find(leaves, first), find(leaves, second)
    assert a is not None and b is not None
    if abs(a - b) != 1:
        between = [loop.name for loop in leaves[min(a, b) + 1:max(a, b)]]
        raise stage.refuse(directive, f"{first.name} and {second.name} are not neighbours: {', '.join(between)} stands "
                           "between them", hint=f"reorder first, so that {second.name} follows {first.name}")
    both = [extents[loop] for loop in (first, second) if loop in extents]
    extent = build.product_of_extents(*both) if len(both) == 2 else None
    fused = fused_of(first, second, extent)
    if extent is not None:
        extents[fused] = extent
    outer, inner = (first, second) if a < b else (second, first)
    leaves[min(a, b):max(a, b) + 1] = [fused]
    return Fuse(outer, inner, fused)


def _add_singleton(stage: StageState) -> IterVar:
    loop = singleton()
    stage.leaf_iter_vars = (loop, *stage.leaf_iter_vars)
    stage.all_iter_vars += (loop,)
    stage.relations += (SingletonRelation(loop),)
    return loop
