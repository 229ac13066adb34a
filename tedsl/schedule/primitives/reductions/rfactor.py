"""rfactor: a reduction in two stages, so that one of its loops can run in parallel or in vectors."""

from __future__ import annotations

from functools import reduce
from typing import Any

from tedsl.ir import build
from tedsl.ir.container import Array
from tedsl.ir.expr import Expr, ProducerLoad, Reduce, Var
from tedsl.ir.iters import IterType, IterVar, Range
from tedsl.ir.script import shown
from tedsl.ir.walk.substitute import copy_var, substitute
from tedsl.ir.walk.visitor import post_order
from tedsl.lang.operation import ComputeOp, note_axis, root_axes
from tedsl.lang.tensor import Tensor, load
from tedsl.record import record
from tedsl.schedule.domains import extent_of, guards, indices_up, written_tiling
from tedsl.schedule.given_numbers import whole_number
from tedsl.schedule.group import join_group
from tedsl.schedule.primitives.marks import drop_marks
from tedsl.schedule.primitives.reductions.checks import must_be_rewritable, must_be_tensor
from tedsl.schedule.primitives.reductions.equal_parts import EqualParts, along_axis, equal_parts
from tedsl.schedule.relations import touched_by
from tedsl.schedule.state import StageState, describe, show


def rfactor(stage: StageState, tensor: Any, loop: Any, factor_axis: Any = 0, along: Any = None) -> list[Tensor]:
    """Adds a stage with a partial result for each iteration of the reduction loop `loop`; `stage` reduces these.

        B[i] = sum(A[i, k], k)  with ko, ki = split(k, 16)   → rfactor(B, ki) →
        B.rf[k.inner, i] = sum(A[i, k.outer * 16 + k.inner], k.outer);  B[ax0] = sum(B.rf[k.inner.v, ax0], k.inner.v)

    `factor_axis` is the position of the new axis in B.rf. Iterations beyond the extent of a split are excluded by the condition
    of the reduction. Start values (init) are those of the reduction that is left in `stage`. Loops that other axes were split
    or fused into are given up: both stages begin with the axes of their formulas.

    along: an axis along which windows overlap. Partial results that are equal are one element of B.rf, which has an axis for
    them in the place of that one:

        B[y] = max(A[y * 2 + ky, kx], (ky, kx))   → rfactor(B, ky, along=y) →
        B.rf[r] = max(A[r, kx], kx);  B[ax0] = max(B.rf[ax0 * 2 + ky.v], ky.v)
    """
    named = "" if whole_number(factor_axis) == 0 else f", factor_axis={show(factor_axis)}"
    named += "" if along is None else f", along={show(along)}"
    directive = f"rfactor({show(tensor)}, {show(loop)}{named})"
    op, whole = _check(stage, tensor, loop, directive)
    place = _place(stage, op, factor_axis, directive)
    axis = None if along is None else along_axis(stage, op, along, place, directive)
    plan = _plan(stage, op, loop)
    terms, condition = _terms(whole, plan)
    parts = None if axis is None else equal_parts(stage, [*terms, condition], axis, plan.own, directive)
    factored = _factored(op, whole, plan, terms, condition, parts, place)
    final = _final(op, whole, factored, plan, parts, place)
    drop_marks(stage, stage.leaf_iter_vars, directive)
    stage.schedule.rewire(stage.schedule.rewired({stage: final}))
    join_group(stage.schedule.add_stage(factored, stage.schedule.position(stage)), stage)
    for old in stage.all_iter_vars:
        stage.retire(old, f"belongs to the old operation: rfactor moved it to stage {factored.name}")
    stage.factored += ((op, tuple(stage.relations)),)
    stage.restart(final)
    return [factored.output(v) for v in range(factored.num_outputs)]


# --- checks ---------------------------------------------------------------------------------------------------------

def _check(stage: StageState, tensor: Any, loop: Any, directive: str) -> tuple[ComputeOp, Reduce]:
    must_be_tensor(stage, tensor, directive)
    op = stage.op
    whole = op.reduction if isinstance(op, ComputeOp) else None
    if not isinstance(op, ComputeOp) or type(op) is not ComputeOp or whole is None:
        moved = f"; the reduction is in stage {where}" if (where := _moved_to(stage)) else ""
        raise stage.refuse(directive, f"{stage.name} is not a reduction{moved}",
                           hint="rfactor takes a tensor made by te.sum, te.max, te.comm_reducer(...), ...")
    stage.position_of(loop, directive)
    if not loop.is_reduction:
        reducing = [one.name for one in stage.leaf_iter_vars if one.is_reduction]
        raise stage.refuse(directive, f"{loop.name} is a loop over elements, not a reduction loop",
                           hint=f"choose one of {', '.join(reducing)}")
    _check_rest(stage, op, loop, directive)
    return op, whole


def _check_rest(stage: StageState, op: ComputeOp, loop: IterVar, directive: str) -> None:
    must_be_rewritable(stage, directive, "call rfactor first, then annotate the loops of both stages")
    both = touched_by(op.axis, stage.relations)
    if loop in both:
        raise stage.refuse(directive, f"{loop.name} runs over elements and over the reduction at once",
                           hint="call rfactor first, then fuse the loops of both stages")
    extent = extent_of(stage, loop)
    own = {axis.var for axis in op.axis}
    if extent is None or any(isinstance(node, ProducerLoad) or node in own for node in post_order(extent)):
        raise stage.refuse(
            directive, f"the extent of {loop.name} is {shown(extent)}, which differs from element to element",
            hint=f"split it by a constant, _, inner = {stage.written}.split({loop.name}, 16), and factor the inner loop")


def _moved_to(stage: StageState) -> str | None:
    """The stage to which cache_write moved the reduction of `stage`, if it did."""
    sources = [stage.schedule.stage_map[t.op] for t in stage.op.input_tensors]
    reducing = [s.name for s in sources if any(axis.is_reduction for axis in root_axes(s.op))]
    return next((name for name in reducing if name.startswith(f"{stage.name}.")), None)


def _place(stage: StageState, op: ComputeOp, factor_axis: Any, directive: str) -> int:
    rank = len(op.axis)
    number = whole_number(factor_axis)
    if number is None:
        raise stage.refuse(directive, f"factor_axis is an integer, got {describe(factor_axis)}",
                           hint=f"choose from {-rank - 1} to {rank}: the place of the new axis")
    if not -rank - 1 <= number <= rank:
        raise stage.refuse(directive, f"factor_axis={number} is out of range: the new tensor has {rank + 1} dimensions",
                           hint=f"choose from {-rank - 1} to {rank}")
    return number if number >= 0 else rank + 1 + number


# --- the two operations ---------------------------------------------------------------------------------------------

@record(eq=False)
class _Plan:
    """The parts of a factored reduction: the new axis (`own`), the loops that the new stage still reduces over, the values of
    the old axes in terms of these, and the conditions that exclude iterations beyond an extent.
    """

    own: IterVar
    reduced: tuple[IterVar, ...]
    values: dict[IterVar, Expr]
    conditions: list[Expr]


def _plan(stage: StageState, op: ComputeOp, loop: IterVar) -> _Plan:
    touched = touched_by([loop], stage.relations)
    tiling = written_tiling(stage)
    extents = tiling.extents
    var = copy_var(loop.var) if any(loop is axis for axis in op.reduce_axis) else loop.var
    own = note_axis(IterVar(Range.from_min_extent(0, extents[loop]), var, IterType.DATA_PAR))
    others = [one for one in stage.leaf_iter_vars if one in touched and one is not loop]
    reduced = [axis for axis in op.reduce_axis if axis not in touched]
    reduced += [IterVar(Range.from_min_extent(0, extents[one]), one.var, IterType.COMM_REDUCE) for one in others]
    up = indices_up(stage.relations, tiling, {loop: var, **{one: one.var for one in others}})
    values = {axis: build.cast(axis.dtype, build.add(up[axis], axis.dom.min))
              for axis in op.reduce_axis if axis in touched and axis.dom is not None}
    return _Plan(own, tuple(reduced), values, guards(stage.relations, tiling, up))


def _terms(whole: Reduce, plan: _Plan) -> tuple[tuple[Expr, ...], Expr]:
    """The values that B.rf reduces, and the condition under which it does, in terms of its axes."""
    source: Reduce = substitute(whole.replace(init=()), plan.values)
    condition = source.condition
    if plan.conditions:
        condition = build.logical_and(build.likely(reduce(build.logical_and, plan.conditions)), condition)
    return source.source, condition


def _factored(op: ComputeOp, whole: Reduce, plan: _Plan, terms: tuple[Expr, ...], condition: Expr, parts: EqualParts | None,
              place: int) -> ComputeOp:
    """The operation of B.rf: the factored loop becomes a data axis, or a part of one; the other loops of the reduction axes
    stay reduction axes.
    """
    axis = (*op.axis[:place], plan.own, *op.axis[place:])
    if parts is not None:
        terms, condition = tuple(map(parts.rewritten, terms)), parts.rewritten(condition)
        axis = tuple([parts.axis if one is parts.along else one for one in op.axis])
    body: tuple[Expr, ...]
    if plan.reduced:
        body = tuple([Reduce(whole.combiner, terms, plan.reduced, condition, v, ()) for v in range(op.num_outputs)])
    else:
        body = tuple([build.if_then_else(condition, value, whole.combiner.identity_element[v])
                      for v, value in enumerate(terms)])
    return ComputeOp(f"{op.name}.rf", op.tag, op.attrs, Array(axis), plan.reduced, body, source=op.source)


def _final(op: ComputeOp, whole: Reduce, factored: ComputeOp, plan: _Plan, parts: EqualParts | None,
           place: int) -> ComputeOp:
    """The new operation of B: the reduction of B.rf over the new axis."""
    axes = Array([note_axis(IterVar(axis.dom, Var(f"ax{at}", axis.dtype))) for at, axis in enumerate(op.axis)])
    over = note_axis(IterVar(plan.own.dom, Var(f"{plan.own.name}.v", plan.own.dtype), IterType.COMM_REDUCE))
    indices: tuple[Any, ...] = (*axes[:place], over, *axes[place:])
    if parts is not None:
        indices = tuple([parts.place(new.var, over.var) if old is parts.along else new for old, new in zip(op.axis, axes)])
    partial = tuple([load(factored.output(v), indices) for v in range(op.num_outputs)])
    here = {old.var: new.var for old, new in zip(op.axis, axes)}
    first = Reduce(whole.combiner, partial, (over,), build.true(), 0, tuple([substitute(value, here) for value in whole.init]))
    body = tuple([first.replace(value_index=v) for v in range(op.num_outputs)])
    return ComputeOp(f"{op.name}.repl", op.tag, op.attrs, axes, (over,), body, op.info, op.source)
