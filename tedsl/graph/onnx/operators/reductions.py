"""Reductions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy

from tedsl.graph.onnx.call import Call
from tedsl.graph.onnx.operators.elementwise import cast, number
from tedsl.graph.onnx.refusal import Unsupported
from tedsl.graph.trace import ops
from tedsl.graph.value import Value

Axes = tuple[int, ...]


def _over(reduce: Callable[[Value, Axes, bool], Any]) -> Callable[[Call], Any]:
    """A reduction over the axes of a node: an attribute or an input; all if there are none, unless the node says otherwise."""
    def translate(call: Call) -> Any:
        x = call[0]
        axes = call.axes("axes", 1)
        if not axes:
            if call.attribute("noop_with_empty_axes", 0):
                return reduce(x, (), True)
            axes = tuple(range(len(x.shape)))
        axes = tuple(axis % len(x.shape) for axis in axes)
        return reduce(x, axes, bool(call.attribute("keepdims", 1)))
    return translate


def _count(x: Value, axes: Sequence[int]) -> int:
    total = 1
    for axis in axes:
        extent = x.shape[axis]
        if not isinstance(extent, int):
            raise Unsupported(f"the mean over a symbolic extent of {x.spec}")
        total *= extent
    return total


def _sum(x: Value, axes: Axes, keep: bool) -> Any:
    return ops.sum(x, axes, keep) if axes else x


def _mean(x: Value, axes: Axes, keep: bool) -> Any:
    if not axes:
        return x
    return ops.divide(ops.sum(x, axes, keep), number(_count(x, axes), x))


def mean_over(x: Value, axes: Axes) -> Any:
    """The mean over some axes, which stay with extent 1."""
    return _mean(x, axes, True)


def _extreme(name: str) -> Callable[[Value, Axes, bool], Any]:
    def reduce(x: Value, axes: Axes, keep: bool) -> Any:
        if not axes:
            return x
        if str(x.dtype) == "bool":
            return (ops.any if name == "max" else ops.all)(x, axes, keep)
        if x.spec.is_static and x.spec.size == 0:
            return _of_nothing(x, axes, keep, name)
        return getattr(ops, name)(x, axes, keep)
    return reduce


def _of_nothing(x: Value, axes: Axes, keep: bool, name: str) -> Any:
    """The extreme of no elements: the neutral element."""
    shape = [1 if d in axes else extent for d, extent in enumerate(x.shape) if keep or d not in axes]
    if x.dtype.is_float:
        value: Any = -numpy.inf if name == "max" else numpy.inf
    else:
        limits = numpy.iinfo(str(x.dtype))
        value = limits.min if name == "max" else limits.max
    return ops.full(tuple(shape), str(x.dtype), value)


def _product(x: Value, axes: Axes, keep: bool) -> Any:
    return ops.prod(x, axes, keep) if axes else x


def _l1(x: Value, axes: Axes, keep: bool) -> Any:
    return _sum(ops.abs(x), axes, keep)


def _squares(x: Value, axes: Axes, keep: bool) -> Any:
    return _sum(ops.multiply(x, x), axes, keep)


def _l2(x: Value, axes: Axes, keep: bool) -> Any:
    wide = x if x.dtype.is_float else cast(x, "float64")
    return cast(ops.sqrt(_squares(wide, axes, keep)), str(x.dtype))


def _log_sum(x: Value, axes: Axes, keep: bool) -> Any:
    wide = x if x.dtype.is_float else cast(x, "float64")
    return cast(ops.log(_sum(wide, axes, keep)), str(x.dtype))


def _log_sum_exp(x: Value, axes: Axes, keep: bool) -> Any:
    """log(sum(exp(x - max))) + max, which does not overflow."""
    wide = x if x.dtype.is_float else cast(x, "float64")
    if not axes or (x.spec.is_static and x.spec.size == 0):
        return cast(ops.log(_sum(ops.exp(wide), axes, keep)), str(x.dtype))
    peak = ops.max(wide, axes, True)
    peak = ops.where(ops.isfinite(peak), peak, number(0, wide))
    total = ops.log(ops.sum(ops.exp(ops.subtract(wide, peak)), axes, True))
    made = ops.add(total, peak)
    return cast(made if keep else ops.squeeze(made, axes), str(x.dtype))


def _place(name: str) -> Callable[[Call], Any]:
    def translate(call: Call) -> Any:
        x = call[0]
        axis = call.attribute("axis", 0) % len(x.shape)
        found = getattr(ops, name)(x, axis, bool(call.attribute("keepdims", 1)), bool(call.attribute("select_last_index", 0)))
        return cast(found, "int64")
    return translate


def _running(name: str) -> Callable[[Call], Any]:
    def translate(call: Call) -> Any:
        x, axis = call[0], call.number(1, 0)
        axis %= len(x.shape)
        back = call.attribute("reverse", 0)
        made = getattr(ops, name)(ops.flip(x, axis) if back else x, axis, str(x.dtype), bool(call.attribute("exclusive", 0)))
        return ops.flip(made, axis) if back else made
    return translate


OPERATORS: dict[str, Callable[[Call], Any]] = {
    "ReduceSum": _over(_sum), "ReduceMean": _over(_mean), "ReduceMax": _over(_extreme("max")),
    "ReduceMin": _over(_extreme("min")), "ReduceProd": _over(_product), "ReduceL1": _over(_l1), "ReduceL2": _over(_l2),
    "ReduceSumSquare": _over(_squares), "ReduceLogSum": _over(_log_sum), "ReduceLogSumExp": _over(_log_sum_exp),
    "ArgMax": _place("argmax"), "ArgMin": _place("argmin"), "CumSum": _running("cumsum"), "CumProd": _running("cumprod"),
}
