"""transform_layout: a tensor is stored in another layout."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from typing import Any

from tedsl.arith.analyzer import Analyzer
from tedsl.errors import TedslError
from tedsl.ir import build
from tedsl.ir.expr import Expr, ProducerLoad, Reduce, Var
from tedsl.ir.iters import IterVar, Range
from tedsl.ir.script import shown
from tedsl.ir.walk.rewriter import Rewriter
from tedsl.ir.walk.substitute import substitute
from tedsl.ir.walk.visitor import post_order
from tedsl.lang.operation import ComputeOp, Operation, PlaceholderOp, note_axis
from tedsl.lang.reads import guarded_loads, has_load
from tedsl.lang.tensor import Tensor
from tedsl.record import record
from tedsl.schedule.index_map import (
    Layout,
    MapParameters,
    NotInvertible,
    layout_of,
    parameters_of,
    range_inside,
    reduction_inside,
    value_inside,
)
from tedsl.schedule.memory_options import AXIS_SEPARATOR
from tedsl.schedule.scan.checks import must_leave_steps
from tedsl.schedule.state import AttachType, StageState, describe, outputs_of
from tedsl.schedule.tails import must_have_plain_tails

DIRECTIVE = "transform_layout(...)"


@record(eq=False)
class Mapped:
    """The result of calling a layout function: the `function`, the variables passed to it, and the indices that it returned,
    separators included.
    """

    function: Any
    axes: tuple[Var, ...]
    finals: tuple[Any, ...]


def call_map(stage: StageState, fn: Any) -> Mapped:
    """Calls `fn` with variables for the indices of `stage`; refuses a function that is not a map of indices."""
    if not callable(fn):
        raise stage.refuse(DIRECTIVE, f"the map is a function of the indices, got {describe(fn)}",
                           hint="for example lambda n, c: [n, c // 4, c % 4]")
    op = stage.op
    shape = op.shape_of(0)
    taken = parameters_of(fn)
    own = (*taken.by_position, *taken.by_name) if taken.rest is None else ()
    names = [axis.name for axis in getattr(op, "axis", ())] or own
    axes = tuple([Var(names[k] if k < len(names) else f"i{k}", dim.dtype) for k, dim in enumerate(shape)])
    if not taken.takes(len(axes)):
        least = "at least " if taken.rest is not None else ""
        raise stage.refuse(DIRECTIVE, f"the map takes {least}{taken.fixed} indices, and {stage.name} has {len(axes)} "
                           "dimensions",
                           hint=f"write lambda {', '.join(v.name for v in axes)}: [...]")
    given = _called(stage, taken, fn, axes)
    if not isinstance(given, (list, tuple)):
        raise stage.refuse(DIRECTIVE, f"the map returns a list of indices, got {describe(given)}",
                           hint="for example lambda i, j: [j, i]")
    finals = tuple([one if one is AXIS_SEPARATOR else _index(stage, one) for one in given])
    return Mapped(fn, axes, finals)


def _called(stage: StageState, taken: MapParameters, fn: Callable[..., Any], axes: Sequence[Var]) -> Any:
    """The result of `fn`; an exception raised by it is reported as a mistake in the map."""
    try:
        return taken.called(fn, axes)
    except TedslError as error:
        raise stage.refuse(DIRECTIVE, f"the map fails: {error.problem}", hint=error.hint) from error
    except Exception as error:
        name = getattr(fn, "__name__", type(fn).__name__)
        raise stage.refuse(DIRECTIVE, f"the map {name} raised {type(error).__name__}: {error}",
                           hint="it is called once, with variables that stand for the indices") from error


def _index(stage: StageState, value: Any) -> Expr:
    try:
        index = None if isinstance(value, (bool, str)) else build.as_expr(value.var if isinstance(value, IterVar) else value)
    except (TypeError, ValueError):
        index = None
    if index is None or not index.dtype.is_integer or index.dtype.lanes != 1:
        raise stage.refuse(DIRECTIVE, f"an index of the map is an integer expression, got {describe(value)}",
                           hint="use +, *, // and % of the parameters, and te.AXIS_SEPARATOR between them")
    return index


def transform_layout(stage: StageState, mapped: Mapped) -> list[IterVar] | None:
    """Stores the element of the tensor at indices `axes` at indices `finals` of its memory, and computes it in the order of the
    memory.

        for c: B[c] = f(c)   with lambda c: [c // 4, c % 4]   →   for c_0: for c_1: B[c_0, c_1] = f(c_0*4 + c_1)

    Readers read B[c // 4, c % 4]. Where the map leaves gaps (4 does not divide the extent of c), the memory holds zeros. The
    caller passes an input or output in its new shape. Returns the new loops over elements; None for a placeholder.
    """
    _check(stage)
    op = stage.op
    try:
        layout = layout_of(mapped.axes, op.shape_of(0), [one for one in mapped.finals if one is not AXIS_SEPARATOR])
    except NotInvertible as error:
        raise stage.refuse(DIRECTIVE, str(error), hint=error.hint) from None
    must_leave_steps(stage, layout.inverse, DIRECTIVE)
    new = _placeholder(op, layout) if isinstance(op, PlaceholderOp) else _relaid(op, layout)
    outputs, schedule = outputs_of(op, new), stage.schedule
    readers = {reader: _reading(stage, reader.op, outputs, layout) for reader in schedule.readers_of(op)}
    schedule.rewire(schedule.rewired({stage: new, **readers}))
    if isinstance(new, PlaceholderOp):
        stage.op = new
        return None
    assert isinstance(new, ComputeOp)
    old = stage.all_iter_vars
    stage.restart(new)
    for loop in old:
        if loop not in new.reduce_axis:
            stage.retire(loop, f"belongs to the old layout of {stage.name}, which transform_layout replaced")
    return list(new.axis)


# --- checks -------------------------------------------------------------------------------------------------------------

def _check(stage: StageState) -> None:
    if stage.scan_of_state is not None:
        raise stage.refuse(DIRECTIVE, f"{stage.name} is a state of a scan: it is laid out as the scan says")
    if isinstance(stage.op, PlaceholderOp):
        return
    if type(stage.op) is not ComputeOp:
        raise stage.refuse(DIRECTIVE, f"{stage.name} is not made by a formula of te.compute",
                           hint="write a te.compute that copies it, and transform that")
    if stage.attach_type in (AttachType.INLINE, AttachType.INLINED):
        raise stage.refuse(DIRECTIVE, f"{stage.name} is computed inline: it has no memory",
                           hint=f"call {stage.written}.compute_root() first")
    if stage.storage.alignments:
        raise stage.refuse(DIRECTIVE, f"{stage.name} has strides that storage_align asked for: they belong to the old axes",
                           hint="call transform_layout first, then storage_align with the new axes")
    said = "decompose_reduction" if stage.init_at is not None else ""
    said = "set_store_predicate" if stage.store_predicate is not None else said
    if said:
        raise stage.refuse(DIRECTIVE, f"{stage.name} has a word about its old loops, by {said}",
                           hint=f"call transform_layout first, then {said}")
    stage.must_have_no_guests(stage.leaf_iter_vars, DIRECTIVE)
    must_have_plain_tails(stage, DIRECTIVE)
    first = "call transform_layout first, then split and annotate the loops that it returns"
    for loop in stage.leaf_iter_vars:
        stage.must_be_plain(loop, DIRECTIVE, first)
    if stage.relations:
        parent = next(iter(loop for loop in stage.all_iter_vars if loop not in stage.leaf_iter_vars), stage.leaf_iter_vars[0])
        raise stage.refuse(DIRECTIVE, f"{parent.name} was split or fused: these loops would be lost", hint=first)


# --- the operation over its new axes ------------------------------------------------------------------------------------

def _placeholder(op: PlaceholderOp, layout: Layout) -> PlaceholderOp:
    return op.replace(shape=layout.extents)


def _relaid(op: Operation, layout: Layout) -> ComputeOp:
    assert isinstance(op, ComputeOp)
    axis = tuple([note_axis(IterVar(Range.from_min_extent(build.const(0, extent.dtype), extent), place))
                  for place, extent in zip(layout.places, layout.extents)])
    values = {old.var: build.cast(old.dtype, value) for old, value in zip(op.axis, layout.inverse)}
    reduced = tuple([range_inside(k.map_children(lambda dom: substitute(dom, values)), layout.conditions)
                     for k in op.reduce_axis])
    body = [substitute(expr, values) for expr in op.body]
    first = body[0]
    if isinstance(first, Reduce):  # the values of a tuple reduction stay one reduction
        whole = reduction_inside(first.replace(axis=reduced), layout.conditions)
        body = [whole.replace(value_index=v) for v in range(len(body))]
    else:
        body = [value_inside(expr, layout.conditions) for expr in body]
    return op.replace(axis=axis, reduce_axis=reduced, body=tuple(body))


# --- its readers --------------------------------------------------------------------------------------------------------

def _reading(stage: StageState, op: Operation, outputs: Mapping[Tensor, Tensor], layout: Layout) -> Operation:
    """`op` with its reads of the tensor at the indices of the new layout."""
    if type(op) is not ComputeOp:
        raise stage.refuse(DIRECTIVE, f"{op.name} reads {stage.name} in memory as it was laid out, not by a formula",
                           hint=f"have {op.name} read a te.compute that copies {stage.name}")
    if any(isinstance(node, ProducerLoad) and node.producer in outputs for axis in op.reduce_axis for node in post_order(axis)):
        raise stage.refuse(DIRECTIVE, f"{stage.name} gives the extents of a reduction of {op.name}",
                           hint="leave the tensor that extents are read from as it is")
    analyzer = _known(op)
    for body in op.body if op.reduction is None else op.body[:1]:  # the values of a reduction share their sources
        for load, facts in guarded_loads(body):
            if load.producer in outputs:
                _check_inside(stage, op, load, list(facts or ()), analyzer)
    rewrite = _Places(outputs, layout, analyzer)
    return op.replace(body=tuple([rewrite(expr) for expr in op.body]))


def _check_inside(stage: StageState, op: Operation, load: ProducerLoad, facts: Sequence[Expr], analyzer: Analyzer) -> None:
    """Refuses a read that may be out of bounds: in the new layout it could hit another element of the memory."""
    for index, extent in zip(load.indices, load.producer.shape):
        if has_load(index):
            continue  # it is sent to the nearest element, as ever
        low, high = analyzer.bounds(index)
        limit = build.as_int(extent)
        if low is not None and low >= 0 and high is not None and limit is not None and high < limit:
            continue
        with ExitStack() as known:
            for fact in facts:
                if not has_load(fact):
                    known.enter_context(analyzer.constraint_scope(fact))
            inside = build.logical_and(build.greater_equal(index, build.const(0, index.dtype)), build.less(index, extent))
            if not analyzer.can_prove(inside):
                raise stage.refuse(DIRECTIVE, f"{op.name} reads {shown(load)}, and that is not known to lie inside of "
                                   f"{stage.name} for all shapes",
                                   hint=f"have {op.name} read a te.compute that copies {stage.name}")


def _known(op: ComputeOp) -> Analyzer:
    """An analyzer that knows the ranges of the axes of `op`."""
    analyzer = Analyzer()
    for axis in (*op.axis, *op.reduce_axis):
        if axis.dom is not None and not any(isinstance(node, ProducerLoad) for node in post_order(axis.dom)):
            analyzer.bind(axis.var, axis.dom)
    return analyzer


def _clamped(index: Expr, extent: Expr) -> Expr:
    """`index`, which is read from a tensor, clamped to the extent."""
    last = build.sub(build.cast(index.dtype, extent), 1)
    return build.maximum(build.minimum(index, last), build.const(0, index.dtype))


class _Places(Rewriter):
    """Rewrites loads of the old tensors to loads of the same elements of the new ones."""

    def __init__(self, outputs: Mapping[Tensor, Tensor], layout: Layout, analyzer: Analyzer) -> None:
        super().__init__()
        self.outputs, self.layout, self.analyzer = outputs, layout, analyzer

    def rewrite(self, node: Any) -> Any:
        if type(node) is ProducerLoad and node.producer in self.outputs:
            indices = [_clamped(index, extent) if has_load(index) else index
                       for index, extent in zip(node.indices, node.producer.shape)]
            return ProducerLoad(self.outputs[node.producer], self.layout.forward(indices, self.analyzer))
        return node
