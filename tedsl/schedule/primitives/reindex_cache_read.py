"""reindex_cache_read: a reader of a tensor reads a copy that has an index for each of its axes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tedsl.arith.analyzer import Analyzer
from tedsl.ir import build
from tedsl.ir.expr import Expr, ProducerLoad, Var
from tedsl.ir.iters import IterVar, Range
from tedsl.ir.node import FrozenDict
from tedsl.ir.script import shown
from tedsl.ir.walk.equal import structural_equal
from tedsl.ir.walk.rewriter import Rewriter
from tedsl.ir.walk.substitute import substitute
from tedsl.ir.walk.visitor import post_order, variables
from tedsl.lang.operation import ComputeOp, note_axis
from tedsl.lang.reads import guarded_loads, has_load, is_ragged
from tedsl.lang.tensor import Tensor
from tedsl.schedule.group import join_group
from tedsl.schedule.primitives.storage.owned import check_scope
from tedsl.schedule.state import StageState, describe, show


def reindex_cache_read(source: StageState, tensor: Any, scope: Any, reader: StageState) -> Tensor:
    """Inserts a stage with what `reader` reads of `tensor`, in the order of its axes, and makes it read that.

    C[i] = sum(A[i * 2 + k], k)   →   A.reindex[i, k] = A[i * 2 + k];  C[i] = sum(A.reindex[i, k], k)
    """
    schedule = source.schedule
    directive = f"reindex_cache_read({show(tensor)}, {show(scope)}, {show([reader])[1:-1]})"
    if not isinstance(tensor, Tensor):
        raise source.refuse(directive, f"the first argument is a tensor, got {describe(tensor)}",
                            hint=f"for an operation write {source.name}.output(0)")
    check_scope(source, directive, scope)
    current, op = source.op.output(tensor.value_index), _formula(reader, directive)
    loads = _loads(source, current, reader, op, directive)
    axes = [axis for axis in (*op.axis, *op.reduce_axis) if any(v is axis.var for i in loads[0].indices for v in variables(i))]
    cache = _copy_of(loads[0], axes, f"{source.origin_op.output(current.value_index).name}.reindex")
    own = ProducerLoad(cache.output(0), tuple([build.sub(axis.var, _start(axis)) for axis in axes]))
    rewrite = _Instead(loads, own)
    changed = op.replace(body=tuple([rewrite(value) for value in op.body]))
    schedule.rewire(schedule.rewired({reader: changed}))
    last = max(schedule.position(schedule.stage_map[read]) for read in cache.sources)  # indices may read other tensors
    join_group(schedule.add_stage(cache, last + 1, scope=scope), source)
    return cache.output(0)


def _formula(reader: StageState, directive: str) -> ComputeOp:
    op = reader.op
    if type(op) is not ComputeOp:
        raise reader.refuse(directive, f"{reader.name} is not made by a formula of te.compute", hint="use cache_read")
    if is_ragged(op):
        raise reader.refuse(directive, f"the range of a reduction of {reader.name} depends on data or on another axis: a copy "
                            "by its axes has no shape", hint="use cache_read")
    return op


def _loads(source: StageState, tensor: Tensor, reader: StageState, op: ComputeOp, directive: str) -> list[ProducerLoad]:
    """The loads of `tensor`, all at the same indices, which lie inside of it wherever the axes are."""
    found = [(load, list(facts or ())) for body in op.body for load, facts in guarded_loads(body) if load.producer == tensor]
    if not found:
        raise source.refuse(directive, f"{reader.name} does not read {tensor.name}",
                            hint="give the operation that reads it, after cache_write the new one")
    first = found[0][0]
    for load, _ in found[1:]:
        if not all(structural_equal(a, b) for a, b in zip(load.indices, first.indices)):
            raise source.refuse(directive, f"{reader.name} reads both {shown(first)} and {shown(load)}: a copy by its axes "
                                "holds one element for each of their values", hint="use cache_read")
    if any(facts for _, facts in found):
        _check_inside(source, reader, op, first, directive)
    return [load for load, _ in found]


def _check_inside(source: StageState, reader: StageState, op: ComputeOp, load: ProducerLoad, directive: str) -> None:
    """Refuses a load whose conditions keep it, or a load in its indices, inside of the tensor: the copy is made for all values
    of the axes.
    """
    analyzer = Analyzer()
    for axis in (*op.axis, *op.reduce_axis):
        assert axis.dom is not None
        analyzer.bind(axis.var, axis.dom)
    for one in [node for node in post_order(load) if isinstance(node, ProducerLoad)]:
        for index, extent in zip(one.indices, one.producer.shape):
            inside = build.logical_and(build.greater_equal(index, build.const(0, index.dtype)), build.less(index, extent))
            if not has_load(index) and not analyzer.can_prove(inside):
                where = source.name if one is load else one.producer.name
                raise source.refuse(directive, f"{reader.name} reads {shown(one)} only where a condition holds, and elsewhere "
                                    f"that is not known to lie inside of {where}", hint="use cache_read")


def _start(axis: IterVar) -> Expr:
    assert axis.dom is not None
    return axis.dom.min


def _copy_of(load: ProducerLoad, axes: Sequence[IterVar], name: str) -> ComputeOp:
    """The operation that holds `load` for all values of `axes`."""
    own, values = [], {}
    for axis in axes:
        assert axis.dom is not None and axis.dom.extent is not None
        extent = axis.dom.extent
        own.append(note_axis(IterVar(Range.from_min_extent(build.const(0, extent.dtype), extent), Var(axis.name, axis.dtype))))
        values[axis.var] = build.add(own[-1].var, _start(axis))
    return ComputeOp(name, "", FrozenDict(), tuple(own), (), (substitute(load, values),))


class _Instead(Rewriter):
    """Replaces some loads by another."""

    def __init__(self, loads: Sequence[ProducerLoad], own: ProducerLoad) -> None:
        super().__init__()
        self.loads, self.own = set(loads), own

    def rewrite(self, node: Any) -> Any:
        return self.own if node in self.loads else node
