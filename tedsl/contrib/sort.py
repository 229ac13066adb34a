"""Sorting by the names of TVM's functions `tvm.contrib.sort.*`, which `te.extern` calls: numpy sorts.

    out = te.extern(data.shape, [data, valid], lambda ins, outs: tir.call_packed("tvm.contrib.sort.argsort_nms", ins[0], ins[1],
                                                                                 outs[0], axis, is_ascend), dtype="int32")

`topi.argsort`, `sort` and `topk` are compiled with the rest of the program. Equal elements keep their order.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tedsl.errors import ArgumentError
from tedsl.runtime.array import NDArray
from tedsl.runtime.functions import register_func


def _order(values: Any, axis: int, is_ascend: Any) -> Any:
    """The positions of elements along an axis in their order; where it descends, equal ones are in order of position too."""
    if is_ascend:
        return np.argsort(values, axis=axis, kind="stable")
    backwards = np.flip(np.argsort(np.flip(values, axis), axis=axis, kind="stable"), axis)
    return values.shape[axis] - 1 - backwards


def _axis(function: str, values: Any, axis: Any) -> int:
    rank = int(values.ndim)
    if not -rank <= int(axis) < rank:
        raise ArgumentError(f"tvm.contrib.sort.{function}: there is no axis {int(axis)} in an array of {rank} dimensions")
    return int(axis) % rank


@register_func("tvm.contrib.sort.argsort")
def _argsort(data: NDArray, out: NDArray, axis: int = -1, is_ascend: bool = True) -> None:
    values = data.numpy()
    out[:] = _order(values, _axis("argsort", values, axis), is_ascend)


@register_func("tvm.contrib.sort.sort")
def _sort(data: NDArray, out: NDArray, axis: int = -1, is_ascend: bool = True) -> None:
    values = data.numpy()
    along = _axis("sort", values, axis)
    out[:] = np.take_along_axis(values, _order(values, along, is_ascend), along)


@register_func("tvm.contrib.sort.argsort_nms")
def _argsort_nms(data: NDArray, sort_num: NDArray, out: NDArray, axis: int, is_ascend: bool) -> None:
    """As argsort, of the first `sort_num` elements; those behind them keep their places."""
    values = data.numpy()
    along = _axis("argsort_nms", values, axis)
    lines = np.moveaxis(values, along, -1)
    orders = np.broadcast_to(np.arange(lines.shape[-1]), lines.shape).copy()
    for place, count in np.ndenumerate(sort_num.numpy().reshape(lines.shape[:-1])):
        orders[place][:count] = _order(lines[place][:count], 0, is_ascend)
    out[:] = np.moveaxis(orders, -1, along)


@register_func("tvm.contrib.sort.topk")
def _topk(data: NDArray, *rest: Any) -> None:
    """topk(data, values, indices, k, axis, ret_type, is_ascend); one of the results where ret_type is "values" or "indices"."""
    *outs, k, axis, ret_type, is_ascend = rest
    wanted = ["values", "indices"] if ret_type == "both" else [ret_type]
    if wanted[0] not in ("values", "indices") or len(outs) != len(wanted):
        raise ArgumentError(f"tvm.contrib.sort.topk: ret_type {ret_type!r} with {len(outs)} results",
                            hint='ret_type is "both", "values" or "indices", and each has its array')
    values = data.numpy()
    along = _axis("topk", values, axis)
    order = _order(values, along, is_ascend)
    order = np.take(order, range(min(int(k), values.shape[along]) if k >= 1 else values.shape[along]), along)
    for out, name in zip(outs, wanted):
        out[:] = order if name == "indices" else np.take_along_axis(values, order, along)
