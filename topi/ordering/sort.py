"""Operators that put elements in order. All are stable, and NaN counts as greater than every number, as in numpy."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tedsl import te, tir
from tedsl.errors import ArgumentError, ShapeError
from tedsl.tir import Expr
from topi.extents import as_int, axis_of, differ, opening, product, require_integers, shown
from topi.kinds import SortOp
from topi.ordering.merge_sort import Order, best_of_row, sort_row
from topi.statements import loops, rows_kind
from topi.transform.dims import reshape

FEW = 16  # so many of the first elements are found without sorting all


def sort(data: te.Tensor, axis: int | None = -1, is_ascend: Any = 1) -> te.Tensor:
    """The elements in ascending order along `axis` (descending where is_ascend is 0); of all as a vector where axis is None.

    The shape and dtype of `data`. Same as numpy.sort.
    """
    data, along = _row(data, axis, "sort")

    def body(ins: Sequence[tir.Buffer], outs: Sequence[tir.Buffer]) -> tir.Stmt:
        def store(ib: Any, at: Callable[[Any], Any], order: Order) -> None:
            target = ib.buffer_ptr(outs[0])
            with ib.for_range(0, data.shape[along], name="t") as t:
                target[at(t)] = order.key(t)

        return _by_rows(ins[0], along, bool(is_ascend), store)

    output: te.Tensor = te.extern([data.shape], [data], body, name="sort_cpu", dtype=data.dtype, tag="sort_cpu",
                                  info=SortOp("sort", data, along))
    return output


def argsort(data: te.Tensor, valid_count: te.Tensor | None = None, axis: int | None = -1, is_ascend: Any = 1,
            dtype: Any = "float32") -> te.Tensor:
    """The places along `axis` of the elements in ascending (is_ascend 0: descending) order, of `dtype`. As numpy.argsort.

    valid_count: (data.shape[0],) of integers; of row b only the first valid_count[b] elements are sorted, the others keep their
    places, and the result is int32.
    """
    data, along = _row(data, axis, "argsort")
    if valid_count is not None:
        require_integers(valid_count, opening("argsort", data), "valid_count")
        if along == 0 or valid_count.ndim != 1 or differ(valid_count.shape[0], data.shape[0]):
            raise ShapeError(f"argsort of {data.name}: valid_count {valid_count.name} has the shape {shown(valid_count.shape)},"
                             f" the data {shown(data.shape)} is sorted along axis {along}", hint="give one count for each row")
    of = te.const(0, dtype).dtype if valid_count is None else "int32"
    name = "argsort_cpu" if valid_count is None else "argsort_nms_cpu"

    def body(ins: Sequence[tir.Buffer], outs: Sequence[tir.Buffer]) -> tir.Stmt:
        def store(ib: Any, at: Callable[[Any], Any], order: Order) -> None:
            target = ib.buffer_ptr(outs[0])
            with ib.for_range(0, data.shape[along], name="t") as t:
                if valid_count is None:
                    target[at(t)] = order.place(t).astype(of)
                else:
                    target[at(t)] = tir.if_then_else(t < _valid(ib, ins[1], data, along, at), order.place(t), t.astype("int32"))

        counts = ins[1] if valid_count is not None else None
        return _by_rows(ins[0], along, bool(is_ascend), store, counts)

    inputs = [data] if valid_count is None else [data, valid_count]
    output: te.Tensor = te.extern([data.shape], inputs, body, name=name, dtype=of, tag=name,
                                  info=SortOp("argsort", data, along))
    return output


def topk(data: te.Tensor, k: Any = 1, axis: int = -1, ret_type: str = "both", is_ascend: bool = False,
         dtype: Any = "int64") -> Any:
    """The k largest elements along `axis` in descending order (is_ascend: the smallest, ascending) and their places.

    ret_type: "both" gives a list of values and places, "values" or "indices" one tensor. The places are of `dtype`. k: an int
    or an integer expression; less than 1 means all. Of equal elements the first comes first. Same as torch.topk.

    Raises ArgumentError for an unknown ret_type, ShapeError for a k beyond the extent.
    """
    where = opening("topk", data)
    data, along = _row(data, axis, "topk")
    if ret_type not in ("both", "values", "indices"):
        raise ArgumentError(f"{where}: there is no ret_type {ret_type!r}", hint="choose 'both', 'values' or 'indices'")
    count, extent = as_int(k), as_int(data.shape[along])
    if count is not None and extent is not None and count > extent:
        raise ShapeError(f"{where}: k is {count}, axis {along} of {shown(data.shape)} has {extent} elements")
    kept = te.size_var("k") if isinstance(k, te.Tensor) else data.shape[along] if count is not None and count < 1 else k
    shape = (*data.shape[:along], kept, *data.shape[along + 1:])
    wanted = ["values", "indices"] if ret_type == "both" else [ret_type]

    def body(ins: Sequence[tir.Buffer], outs: Sequence[tir.Buffer]) -> tir.Stmt:
        def store(ib: Any, at: Callable[[Any], Any], order: Order) -> None:
            targets = [ib.buffer_ptr(buffer) for buffer in outs]
            with ib.for_range(0, te.min(kept, data.shape[along]), name="t") as t:
                for what, target in zip(wanted, targets):
                    target[at(t)] = order.key(t) if what == "values" else order.place(t).astype(target.dtype)

        few = count if count is not None and 0 < count <= FEW else None
        return _by_rows(ins[0], along, bool(is_ascend), store, few=few)

    dtypes = [data.dtype if what == "values" else dtype for what in wanted]
    return te.extern([shape] * len(wanted), [data], body, name="topk_cpu", dtype=dtypes, tag="topk_cpu",
                     info=SortOp("topk", data, along))


def _row(data: te.Tensor, axis: int | None, operator: str) -> tuple[te.Tensor, int]:
    """The tensor and the dimension to sort; where axis is None all elements as a vector."""
    where = opening(operator, data)
    if axis is None:
        return reshape(data, (product(data.shape),)), 0
    return data, axis_of(axis, data.ndim, where)


def _by_rows(buffer: tir.Buffer, along: int, ascending: bool, store: Callable[..., None],
             counts: tir.Buffer | None = None, few: int | None = None) -> tir.Stmt:
    """Sorts each row of dimension `along` and stores it.

    counts: the number of elements of each row to sort; few: how many of the first are needed, if not all.
    """
    ib = tir.ir_builder.create()
    source = ib.buffer_ptr(buffer)
    extent = buffer.shape[along]
    with loops(ib, [*buffer.shape[:along], *buffer.shape[along + 1:]], rows_kind(buffer.shape)) as o:
        def at(t: Any) -> tuple[Any, ...]:
            return (*o[:along], t, *o[along:])

        count = extent if counts is None else ib.let("count", _clamped(ib.buffer_ptr(counts)[o[0]], extent))
        def read(t: Any) -> Expr:
            return source[at(t)]

        order = sort_row(ib, read, buffer.dtype, extent, count, ascending) if few is None \
            else best_of_row(ib, read, buffer.dtype, extent, few, ascending)
        store(ib, at, order)
    return ib.get()


def _valid(ib: Any, counts: tir.Buffer, data: te.Tensor, along: int, at: Callable[[Any], Any]) -> Any:
    return _clamped(ib.buffer_ptr(counts)[at(0)[0]], data.shape[along])


def _clamped(count: Any, extent: Any) -> Any:
    return te.max(te.min(count.astype("int32"), extent), 0)
