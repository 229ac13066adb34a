"""Reductions over dimensions of a tensor, with numpy's rules: `axis` an int, a tuple or None (all), negative from the end."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tedsl import te
from tedsl.errors import ShapeError
from topi.kinds import ReduceOp
from topi.tag import COMM_REDUCE

Axis = int | Sequence[int] | None


def sum(data: te.Tensor, axis: Axis = None, keepdims: bool = False) -> te.Tensor:
    """The sum, in the dtype of `data`."""
    return _reduce("sum", te.sum, data, axis, keepdims)


def prod(data: te.Tensor, axis: Axis = None, keepdims: bool = False) -> te.Tensor:
    """The product, in the dtype of `data`."""
    return _reduce("prod", te.prod, data, axis, keepdims)


def max(data: te.Tensor, axis: Axis = None, keepdims: bool = False) -> te.Tensor:
    """The largest element; NaN if there is one."""
    return _reduce("max", te.max, data, axis, keepdims)


def min(data: te.Tensor, axis: Axis = None, keepdims: bool = False) -> te.Tensor:
    """The smallest element; NaN if there is one."""
    return _reduce("min", te.min, data, axis, keepdims)


def all(data: te.Tensor, axis: Axis = None, keepdims: bool = False) -> te.Tensor:
    """Whether all elements hold, of bool."""
    return _reduce("all", te.all, data, axis, keepdims)


def any(data: te.Tensor, axis: Axis = None, keepdims: bool = False) -> te.Tensor:
    """Whether any element holds, of bool."""
    return _reduce("any", te.any, data, axis, keepdims)


def reduced_axes(axis: Axis, rank: int, where: str) -> tuple[int, ...]:
    """The dimensions that `axis` names, sorted, from 0; ShapeError where there is none such or one is named twice."""
    given = range(rank) if axis is None else (axis,) if isinstance(axis, int) else axis
    axes = []
    for item in given:
        if not -rank <= item < rank:
            raise ShapeError(f"{where}: axis {item} of a tensor of rank {rank}", hint=f"axes are {-rank} to {rank - 1}" if rank
                             else "a scalar has no axes")
        axes.append(item % rank)
    if len(set(axes)) != len(axes):
        raise ShapeError(f"{where}: axis={tuple(given)} names a dimension twice")
    return tuple(sorted(axes))


def _reduce(operator: str, reducer: Callable[..., Any], data: te.Tensor, axis: Axis, keepdims: bool) -> te.Tensor:
    axes = reduced_axes(axis, data.ndim, f"{operator} of {data.name}")
    if not axes:
        return data
    loops = {d: te.reduce_axis((0, data.shape[d]), name=f"k{position}") for position, d in enumerate(axes)}
    kept = [d for d in range(data.ndim) if d not in loops]
    shape = [1 if d in loops else data.shape[d] for d in range(data.ndim)] if keepdims else [data.shape[d] for d in kept]

    def formula(*i: Any) -> Any:
        outer = {d: i[d] for d in kept} if keepdims else dict(zip(kept, i))
        return reducer(data(*[loops[d] if d in loops else outer[d] for d in range(data.ndim)]), axis=list(loops.values()))

    made: te.Tensor = te.compute(shape, formula, name=f"{data.op.name}_red", tag=COMM_REDUCE,
                                 info=ReduceOp(operator, data, axes, keepdims))
    return made
