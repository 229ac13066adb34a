"""cache_write: a stage is computed in another memory, and copied from there."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tedsl.ir import build
from tedsl.ir.container import Array
from tedsl.ir.expr import Expr, Reduce, Var
from tedsl.ir.iters import IterType, IterVar, Range
from tedsl.ir.node import FrozenDict
from tedsl.ir.walk.substitute import substitute
from tedsl.lang.intrinsics.tensor_compute import TensorComputeOp
from tedsl.lang.intrinsics.tensor_intrin import Region
from tedsl.lang.operation import ComputeOp, note_axis
from tedsl.lang.tensor import Tensor, load
from tedsl.schedule.domains import guards, indices_down, indices_up, written_tiling
from tedsl.schedule.group import join_group
from tedsl.schedule.index_map import range_inside, reduction_inside, value_inside
from tedsl.schedule.primitives.storage.owned import check_scope
from tedsl.schedule.scan.domains import needed_rows
from tedsl.schedule.scan.mixed import must_not_mix_steps
from tedsl.schedule.state import AttachType, StageState, describe, show
from tedsl.schedule.tails import must_have_plain_tails


def cache_write(stages: Sequence[StageState], tensors: Sequence[Any], scope: Any) -> list[Tensor]:
    """Moves the computation of `tensors`, outputs of one operation, to a new stage, from which the old stage copies. Outputs
    that are not among `tensors` are computed there too, since the operation computes all of them together.

        C[i] = sum(A[i, k], k)   →   C.local[i.c] = sum(A[i.c, k], k);  C[i] = C.local[i]

    If the loops over elements were split, fused or reordered before, the new tensor is laid out in the order of the loops.
    """
    stage = stages[0]
    directive = f"cache_write({show(tensors[0]) if len(tensors) == 1 else show(tensors)}, {show(scope)})"
    op = _check(stages, tensors, scope, directive)
    cache, copy = _cache_of(stage, op, scope)
    stage.schedule.rewire(stage.schedule.rewired({stage: copy}))
    join_group(stage.schedule.add_stage(cache, stage.schedule.position(stage), scope=scope), stage)
    _retire(stage, copy, cache)
    return [cache.output(t.value_index) for t in tensors]


def _check(stages: Sequence[StageState], tensors: Sequence[Any], scope: Any, directive: str) -> ComputeOp:
    stage, op = stages[0], stages[0].op
    stage.must_have_loops(directive)
    check_scope(stage, directive, scope)
    for tensor in tensors:
        if not isinstance(tensor, Tensor):
            raise stage.refuse(directive, f"the first argument is a tensor or a list of tensors, got {describe(tensor)}",
                               hint=f"for an operation write {stage.name}.output(0)")
    if type(op) not in (ComputeOp, TensorComputeOp):
        raise stage.refuse(directive, f"{stage.name} is not made by te.compute",
                           hint="write a te.compute that copies it instead")
    assert isinstance(op, ComputeOp)
    other = [s.name for s in stages if s is not stage]
    if other:
        raise stage.refuse(directive, f"{stage.name} and {other[0]} are made by different operations",
                           hint="call cache_write once for each operation")
    if len({t.value_index for t in tensors}) != len(tensors):
        raise stage.refuse(directive, f"an output of {stage.name} is given twice", hint="give each output once")
    _check_loops(stage, directive)
    must_not_mix_steps(stage, directive)
    if isinstance(op, TensorComputeOp) and stage.relations:
        raise stage.refuse(directive, f"the loops over the calls of {stage.name}'s intrinsic are split or fused",
                           hint="call cache_write first, then split the loops of the new stage")
    return op


def _check_loops(stage: StageState, directive: str) -> None:
    if stage.attach_type == AttachType.INLINE:
        raise stage.refuse(directive, f"{stage.name} is computed inline: it has no values to keep",
                           hint=f"call {stage.written}.compute_root() first")
    stage.must_have_no_guests(stage.leaf_iter_vars, directive)
    must_have_plain_tails(stage, directive)
    for loop in stage.leaf_iter_vars:
        stage.must_be_plain(loop, directive, "call cache_write first, then annotate the loops of both stages")
    split_reduction = [loop.name for loop in stage.leaf_iter_vars
                       if loop.is_reduction and not any(loop is k for k in getattr(stage.op, "reduce_axis", ()))]
    if split_reduction:
        raise stage.refuse(directive, f"the reduction loop {split_reduction[0]} was made by split or fuse and would be lost",
                           hint="call cache_write first, then split the reduction loops of the new stage")


def _cache_of(stage: StageState, op: ComputeOp, scope: str) -> tuple[ComputeOp, ComputeOp]:
    """The operation of the cache, and the new operation of the stage, which copies from it."""
    relations = stage.relations
    tiling = written_tiling(stage)
    extents = tiling.extents
    loops = [loop for loop in stage.leaf_iter_vars if not loop.is_reduction]
    axes = [note_axis(IterVar(Range.from_min_extent(0, extents[loop]), Var(f"{loop.name}.c", loop.dtype), IterType.DATA_PAR))
            for loop in loops]
    if isinstance(op, TensorComputeOp):
        return _calls_of(op, loops, axes, scope)
    up = indices_up(relations, tiling, {loop: axis.var for loop, axis in zip(loops, axes)})
    conditions = guards(relations, tiling, up)
    conditions += needed_rows(stage, up, axes, conditions)
    mapping = {axis: build.cast(axis.dtype, up[axis]) for axis in op.axis}
    reduced = Array([range_inside(axis.map_children(lambda dom: substitute(dom, mapping)), conditions)  # 0..i + 1 is legal
                     for axis in op.reduce_axis])
    body = _with_axes(op.body, mapping, reduced, conditions)
    cache = ComputeOp(f"{op.name}.{scope}", op.tag, op.attrs, Array(axes), reduced, tuple(body), op.info,
                      op.source)
    down = indices_down(relations, extents, {axis: axis.var for axis in op.axis})
    indices = tuple([down[loop] for loop in loops])
    copies = tuple([load(cache.output(v), indices) for v in range(op.num_outputs)])
    return cache, op.replace(reduce_axis=(), body=copies)


def _calls_of(op: TensorComputeOp, loops: Sequence[IterVar], axes: Sequence[IterVar], scope: str) \
        -> tuple[TensorComputeOp, ComputeOp]:
    """The same of calls of an intrinsic: the cache is computed by the calls, with dimensions in the order of the loops and then
    those inside a call; the stage copies every element by itself.
    """
    inner = [note_axis(IterVar(axis.dom, Var(f"{axis.name}.c", axis.dtype), axis.iter_type))
             for axis in op.axis[op.schedulable_ndim:]]
    order = [*loops, *op.axis[op.schedulable_ndim:]]
    mapping: dict[IterVar, Expr] = {old: new.var for old, new in zip(order, (*axes, *inner))}
    reduced = {axis: range_inside(axis.map_children(lambda dom: substitute(dom, mapping)), ()) for axis in op.reduce_axis}
    cache = op.replace(
        name=f"{op.name}.{scope}", axis=(*axes, *inner), reduce_axis=tuple(reduced.values()),
        body=tuple(_with_axes(op.body, mapping, tuple(reduced.values()), ())),
        inner_reduce=tuple([reduced[axis] for axis in op.inner_reduce]),
        regions=tuple([Region(region.tensor, tuple([substitute(low, mapping) for low in region.mins]), region.dims)
                       for region in op.regions]),
        output_dims=tuple([order.index(op.axis[dim]) for dim in op.output_dims]),
        symbols=FrozenDict({var: substitute(value, mapping) for var, value in op.symbols.items()}))
    own = (*op.axis[:op.schedulable_ndim],
           *[note_axis(IterVar(axis.dom, axis.var, IterType.DATA_PAR)) for axis in op.axis[op.schedulable_ndim:]])
    at = {axis: axis.var for axis in op.axis}
    copies = tuple([load(cache.output(v), tuple([at[axis] for axis in order])) for v in range(op.num_outputs)])
    return cache, ComputeOp(op.name, op.tag, op.attrs, own, (), copies, op.info, op.source)


def _with_axes(body: Sequence[Expr], mapping: dict[IterVar, Expr], reduced: tuple[IterVar, ...],
               conditions: Sequence[Expr]) -> list[Expr]:
    """The formulas over the new axes. The values of a tuple reduction keep sharing their subexpressions."""
    first = body[0]
    if isinstance(first, Reduce):
        changed = reduction_inside(substitute(first, mapping).replace(axis=reduced), conditions)
        return [changed.replace(value_index=index) for index in range(len(body))]
    return [value_inside(substitute(expr, mapping), conditions) for expr in body]


def _retire(stage: StageState, copy: ComputeOp, cache: ComputeOp) -> None:
    """Gives the copying stage fresh loops, and records, for errors, what became of the old ones."""
    old = stage.all_iter_vars
    stage.restart(copy)
    for loop in old:
        if loop.is_reduction:
            stage.retire(loop, f"belongs to the old operation: cache_write moved the reduction to stage {cache.name}")
        else:
            stage.retire(loop, "belongs to the old operation, which cache_write replaced")
    stage.retired = {loop: fate for loop, fate in stage.retired.items() if loop not in copy.axis}
