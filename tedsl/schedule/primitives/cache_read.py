"""cache_read: some readers of a tensor read a copy of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tedsl.errors import TedslError
from tedsl.ir import build
from tedsl.ir.container import Array
from tedsl.ir.dtype import DType, dtype, holds
from tedsl.ir.expr import Var
from tedsl.ir.iters import IterVar, Range
from tedsl.ir.node import FrozenDict
from tedsl.lang.operation import ComputeOp, note_axis
from tedsl.lang.reads import loads_of
from tedsl.lang.tensor import Tensor, load
from tedsl.schedule.group import join_group
from tedsl.schedule.primitives.storage.owned import check_scope
from tedsl.schedule.state import ScheduleState, StageState, describe, show


def cache_read(source: StageState, tensor: Any, scope: Any, readers: Sequence[StageState], wide: Any = None) -> Tensor:
    """Inserts a stage that copies `tensor`, and makes `readers` read the copy, of the dtype `wide` if that is given.

    C[i] = A[i] + 1   →   A.local[ax0] = A[ax0];  C[i] = A.local[i] + 1
    """
    schedule: ScheduleState = source.schedule
    directive = f"cache_read({show(tensor)}, {show(scope)}, {show(readers)}{'' if wide is None else f', dtype={wide!r}'})"
    if not isinstance(tensor, Tensor):
        raise source.refuse(directive, f"the first argument is a tensor, got {describe(tensor)}",
                            hint=f"for an operation write {source.name}.output(0)")
    check_scope(source, directive, scope)
    if not readers:
        raise source.refuse(directive, "no reader is given", hint="list the operations that are to read the copy")
    current = source.op.output(tensor.value_index)
    for reader in readers:
        if _gives_only_ranges(source, current, reader):
            raise source.refuse(directive, f"{reader.name} reads {tensor.name} only for the range of its reduction, which is "
                                "read from the tensor itself", hint=f"leave {reader.name} out, or compute {source.name} where "
                                f"it is used: {source.written}.compute_at({reader.written}, loop)" if not source.is_placeholder
                                else f"leave {reader.name} out, or have it read a te.compute that copies {tensor.name}")
        if current not in reader.op.input_tensors:
            actual = [s.name for s in schedule.stages if current in s.op.input_tensors]
            raise source.refuse(directive, f"{reader.name} does not read {tensor.name}",
                                hint=f"{tensor.name} is read by {', '.join(actual) or 'nobody'}")
        if wide is not None and type(reader.op) is not ComputeOp:
            raise source.refuse(directive, f"{reader.name} is not made by a formula of te.compute, in which what it reads "
                                "could be cast", hint="leave dtype out")
    name = f"{source.origin_op.output(current.value_index).name}.{scope}"
    cache = _copy_of(current, _dtype_of_copy(source, directive, current, wide), name)
    schedule.rewire(schedule.rewired({reader: reader.op.reading({current: cache.output(0)}) for reader in readers}))
    join_group(schedule.add_stage(cache, schedule.position(source) + 1, scope=scope), source)
    return cache.output(0)


def _gives_only_ranges(source: StageState, tensor: Tensor, reader: StageState) -> bool:
    """Whether `reader` reads `tensor` only in the ranges of its reduction, not in its formula."""
    op = reader.op
    if type(op) is not ComputeOp or any(one.producer == tensor for one in loads_of(op.body)):
        return False
    return any(source.schedule.stage_map[one.producer.op] is source and one.producer.value_index == tensor.value_index
               for one in loads_of((), *op.reduce_axis))


def _dtype_of_copy(source: StageState, directive: str, tensor: Tensor, wide: Any) -> DType:
    """The dtype of the copy: one that holds every value of the tensor's."""
    if wide is None:
        return tensor.dtype
    try:
        chosen = dtype(wide)
    except TedslError as error:
        raise source.refuse(directive, f"dtype is {describe(wide)}, which is none", hint='for example "float32"') from error
    if not holds(chosen, tensor.dtype):
        raise source.refuse(directive, f"{chosen} does not hold every value of {tensor.name}, which is {tensor.dtype}",
                            hint="a copy changes no value: take a dtype with more bits, or leave dtype out")
    return chosen


def _copy_of(tensor: Tensor, of: DType, name: str) -> ComputeOp:
    axis = Array([note_axis(IterVar(Range.from_min_extent(build.const(0, n.dtype), n), Var(f"ax{at}", n.dtype)))
                  for at, n in enumerate(tensor.shape)])
    return ComputeOp(name, "", FrozenDict(), axis, (), (build.cast(of, load(tensor, axis)),))
