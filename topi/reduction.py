"""Reductions over dimensions of a tensor, with numpy's rules: `axis` an int, a tuple or None (all), negative from the end.

Sums and products of float16 and bfloat16 are accumulated in float32 and rounded once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tedsl import te
from tedsl.errors import DTypeError, ShapeError
from topi.elementwise import full, identity
from topi.extents import as_int, axes_of, opening, shown
from topi.kinds import ReduceOp
from topi.tag import COMM_REDUCE, COMM_REDUCE_IDX, ELEMWISE

Axis = int | Sequence[int] | None


def sum(data: te.Tensor, axis: Axis = None, keepdims: bool = False) -> te.Tensor:
    """The sum, in the dtype of `data`; over no dimension (axis=(), a scalar) a copy of `data`."""
    return _accumulate("sum", te.sum, data, axis, keepdims)


def _get_real_axis(ndim: int, axis: Axis) -> list[int]:
    """The axes of a reduction, sorted and counted from 0, as operators of programs ask for them; all where none is given."""
    return sorted(axes_of(range(ndim) if axis is None else axis, ndim, "_get_real_axis"))


def collapse_sum(data: te.Tensor, target_shape: Sequence[Any]) -> te.Tensor:
    """The sums of `data` in the shape of what was broadcast to its shape: over the first dimensions, and where it has 1."""
    where, target = opening("collapse_sum", data), tuple(target_shape)
    more = data.ndim - len(target)
    extents = [(as_int(own), as_int(wanted)) for own, wanted in zip(data.shape[more if more > 0 else 0:], target)]
    if more < 0 or [wanted for own, wanted in extents if wanted not in (1, None) and own not in (wanted, None)]:
        raise ShapeError(f"{where}: {shown(target)} cannot be broadcast to its shape {shown(data.shape)}",
                         hint="each extent is that of the data, counted from the last dimension, or 1")
    narrow = [more + d for d, (own, wanted) in enumerate(extents) if wanted == 1 and own != 1]
    kept = sum(data, tuple(narrow), True) if narrow else data
    if more:
        return sum(kept, tuple(range(more)))
    return identity(data) if kept is data else kept


def prod(data: te.Tensor, axis: Axis = None, keepdims: bool = False) -> te.Tensor:
    """The product, in the dtype of `data`."""
    return _accumulate("prod", te.prod, data, axis, keepdims)


def max(data: te.Tensor, axis: Axis = None, keepdims: bool = False) -> te.Tensor:
    """The largest element; NaN if any element is NaN."""
    return _reduce("max", te.max, data, axis, keepdims)


def min(data: te.Tensor, axis: Axis = None, keepdims: bool = False) -> te.Tensor:
    """The smallest element; NaN if any element is NaN."""
    return _reduce("min", te.min, data, axis, keepdims)


def all(data: te.Tensor, axis: Axis = None, keepdims: bool = False) -> te.Tensor:
    """Whether all elements are true, of bool."""
    return _reduce("all", te.all, data, axis, keepdims)


def any(data: te.Tensor, axis: Axis = None, keepdims: bool = False) -> te.Tensor:
    """Whether any element is true, of bool."""
    return _reduce("any", te.any, data, axis, keepdims)


def argmax(data: te.Tensor, axis: Axis = None, keepdims: bool = False, select_last_index: bool = False) -> te.Tensor:
    """The place of the largest element as int32, counted over the reduced dimensions in row-major order.

    Of several equal ones the first, or the last with select_last_index. NaN counts as the largest, as in numpy.argmax.

    Raises DTypeError for bool, ShapeError for a dimension without elements.
    """
    return _place_of("argmax", data, axis, keepdims, select_last_index)


def argmin(data: te.Tensor, axis: Axis = None, keepdims: bool = False, select_last_index: bool = False) -> te.Tensor:
    """The place of the smallest element; the rest as in `argmax`. NaN counts as the smallest, as in numpy.argmin.

    Raises DTypeError for bool, ShapeError for a dimension without elements.
    """
    return _place_of("argmin", data, axis, keepdims, select_last_index)


def reduced_axes(axis: Axis, rank: int, where: str) -> tuple[int, ...]:
    """The dimensions that `axis` names, sorted, from 0; ShapeError if there is no such dimension or one is named twice."""
    return tuple(range(rank)) if axis is None else tuple(sorted(axes_of(axis, rank, where)))


def _accumulate(operator: str, reducer: Callable[..., Any], data: te.Tensor, axis: Axis, keepdims: bool) -> te.Tensor:
    """The reduction, accumulated in float32 if the dtype is too narrow."""
    where = opening(operator, data)
    if data.dtype not in ("float16", "bfloat16") or not reduced_axes(axis, data.ndim, where):
        return _reduce(operator, reducer, data, axis, keepdims)
    name = f"{data.op.name}_red"
    wide = _reduce(operator, lambda e, axis: reducer(e.astype("float32"), axis=axis), data, axis, keepdims, f"{name}_float32")
    return te.compute(wide.shape, lambda *i: wide(*i).astype(data.dtype), name=name, tag=ELEMWISE,
                      info=te.ElementwiseOp("cast"), axes="ax")


def _reduce(operator: str, reducer: Callable[..., Any], data: te.Tensor, axis: Axis, keepdims: bool,
            name: str = "") -> te.Tensor:
    where = opening(operator, data)
    axes = reduced_axes(axis, data.ndim, where)
    if not axes:
        copy: te.Tensor = identity(data)
        return copy
    output: te.Tensor = _reduced(data, axes, keepdims, lambda e, loops: reducer(e, axis=loops), name or f"{data.op.name}_red",
                                 COMM_REDUCE, operator)
    return output


def _reduced(data: te.Tensor, axes: tuple[int, ...], keepdims: bool, combine: Callable[..., Any], name: str, tag: str,
             operator: str) -> Any:
    """The compute `combine(element, reduce axes)` of `data` over its dimensions `axes`."""
    loops = {d: te.reduce_axis((0, data.shape[d]), name=f"k{d}") for d in axes}
    kept = [d for d in range(data.ndim) if d not in loops]
    shape = [1 if d in loops else data.shape[d] for d in range(data.ndim)] if keepdims else [data.shape[d] for d in kept]

    def formula(*i: Any) -> Any:
        outer = {d: i[d] for d in kept} if keepdims else dict(zip(kept, i))
        return combine(data(*[loops[d] if d in loops else outer[d] for d in range(data.ndim)]), list(loops.values()))

    return te.compute(shape, formula, name=name, tag=tag, info=ReduceOp(operator, data, axes, keepdims), axes="ax")


def _place_of(operator: str, data: te.Tensor, axis: Axis, keepdims: bool, last: bool) -> te.Tensor:
    """Reduces pairs (index, value) under a total order, so that the result does not depend on the order of the steps.

    They start from place -1 and the worst value: -1 is left where all elements have that value, of which the first is at 0.
    """
    where = opening(operator, data)
    axes = reduced_axes(axis, data.ndim, where)
    if data.dtype == "bool":
        raise DTypeError(f"{where}: bool values have no order", hint="cast to a number: topi.cast(x, 'int8')")
    for d in axes:
        if getattr(data.shape[d], "value", 1) == 0:
            raise ShapeError(f"{where}: dimension {d} of shape {tuple(data.shape)} is empty, it has no element to point at")
    if not axes:
        return full(data.shape, "int32", 0)
    reducer = te.comm_reducer(lambda x, y: _better(operator, x, y, last),
                              lambda t, of: (te.const(-1, "int32"), _worst(operator, of)), name=operator)
    name = f"{data.op.name}_red"
    place, _ = _reduced(data, axes, keepdims, lambda e, loops: reducer((_flat(loops), e), axis=loops), f"{name}_temp",
                        COMM_REDUCE_IDX, operator)
    output: te.Tensor = te.compute(place.shape, lambda *i: te.max(place(*i), te.const(0, "int32")), name=name, tag=COMM_REDUCE,
                                   info=te.ElementwiseOp("identity"), axes="ax")
    return output


def _flat(loops: Sequence[Any]) -> Any:
    """The row-major position of an element within the reduced dimensions, int32."""
    number = loops[0].var
    for loop in loops[1:]:
        number = number * loop.dom.extent + loop.var
    return number.astype("int32")


def _worst(operator: str, of: Any) -> Any:
    lowest = operator == "argmax"
    if of.is_float:
        return -te.infinity(of) if lowest else te.infinity(of)
    return te.min_value(of) if lowest else te.max_value(of)


def _better(operator: str, x: Any, y: Any, last: bool) -> tuple[Any, Any]:
    """The pair (place, value) that comes first in the order: NaN, the better value, the earlier (or later) place.

    Whether y is NaN is asked first: that does not wait for x, which was combined just before.
    """
    keeps, worse = _at_least(operator, x[1], y[1]), ~_is_as_good(operator, y[1], x[1])
    if y[1].dtype.is_float:
        worse = te.all(~te.isnan(y[1]), worse)
    chosen = te.all(keeps, te.any(worse, x[0] > y[0] if last else x[0] < y[0]))
    return te.select(chosen, x[0], y[0]), te.select(chosen, x[1], y[1])


def _at_least(operator: str, a: Any, b: Any) -> Any:
    """Whether the value `a` is as good as `b`, or NaN."""
    best = _is_as_good(operator, a, b)
    return te.any(best, te.isnan(a)) if a.dtype.is_float else best


def _is_as_good(operator: str, a: Any, b: Any) -> Any:
    return a >= b if operator == "argmax" else a <= b
