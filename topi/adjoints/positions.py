"""Adjoints of operators that store at positions which another tensor holds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tedsl import te, tir
from topi.adjoints.parts import Part, Parts
from topi.elementwise import full
from topi.extents import as_int, row_major
from topi.indexing.scatter import inside, scatter, scatter_nd, sparse_to_dense
from topi.indexing.take import from_end
from topi.injective import injective
from topi.kinds import ScatterOp
from topi.reduction import sum as sum_of

Place = Callable[[Sequence[Any]], list[Any]]  # the indices of the result at which an update is stored


def of_scatter(record: ScatterOp, op: te.Operation, head: te.Tensor) -> Parts:
    """The data gets the head where nothing replaced it; an update gets that at its place, if no later one replaced it."""
    if record.operator in ("scatter", "scatter_add"):
        return _along_axis(record, head)
    if record.operator == "scatter_nd":
        return _at_indices(record, head)
    return _into_dense(record, head) if record.operator == "sparse_to_dense" else None


def _along_axis(record: ScatterOp, head: te.Tensor) -> Parts:
    (data, indices, updates), axis = record.tensors, record.axis or 0

    def place(i: Sequence[Any]) -> list[Any]:
        return [*i[:axis], from_end(indices(*i), data.shape[axis]), *i[axis + 1:]]

    def of_data() -> te.Tensor:
        return head if record.adds else scatter(head, indices, full(updates.shape, head.dtype, 0), axis)

    def winners() -> te.Tensor:
        return scatter(full(data.shape, "int32", -1), indices, _numbers(updates.shape), axis)

    return [(data, of_data), (updates, lambda: _read_at(head, updates, place, None if record.adds else winners()))]


def _at_indices(record: ScatterOp, head: te.Tensor) -> Parts:
    data, indices, updates = record.tensors
    count, outer = as_int(indices.shape[0]) or 0, indices.ndim - 1

    def place(i: Sequence[Any]) -> list[Any]:
        return [*[from_end(indices(d, *i[:outer]), data.shape[d]) for d in range(count)], *i[outer:]]

    def of_data() -> te.Tensor:
        return head if record.adds else scatter_nd(head, indices, full(updates.shape, head.dtype, 0), "update")

    def winners() -> te.Tensor:
        return scatter_nd(full(data.shape, "int32", -1), indices, _numbers(updates.shape), "update")

    return [(data, of_data), (updates, lambda: _read_at(head, updates, place, None if record.adds else winners()))]


def _into_dense(record: ScatterOp, head: te.Tensor) -> Parts:
    indices, values, *default = record.tensors

    def place(n: Sequence[Any]) -> list[Any]:
        return [indices(*n, d) for d in range(head.ndim)] if indices.ndim == 2 else [indices(*n)]

    def stored() -> te.Tensor:
        return sparse_to_dense(indices, head.shape, full((), head.dtype, 1), 0)

    def of_values() -> te.Tensor:
        if not values.ndim:
            return sum_of(head * stored())
        numbers = sparse_to_dense(indices, head.shape, _numbers(values.shape), -1)
        return _read_at(head, values, place, numbers)

    parts: list[Part] = [(values, of_values)]
    parts += [(one, lambda: sum_of(head * (1 - stored()))) for one in default]
    return parts


def _numbers(shape: Sequence[Any]) -> te.Tensor:
    """The row-major number of each element."""
    return injective("numbers", shape, lambda *i: row_major(i, shape).astype("int32") if i else te.const(0, "int32"))


def _read_at(head: te.Tensor, updates: te.Tensor, place: Place, winners: te.Tensor | None) -> te.Tensor:
    """The head at the place of each update, 0 for those that are left out or replaced."""
    def formula(*i: Any) -> Any:
        at = place(i)
        value: Any = head(*at)
        if winners is not None:
            mine = row_major(i, updates.shape).astype("int32") if i else te.const(0, "int32")
            value = te.select(winners(*at).equal(mine), value, te.const(0, head.dtype))
        return tir.if_then_else(inside(at, head.shape), value, te.const(0, head.dtype))

    return injective("updates_adjoint", updates.shape, formula)
