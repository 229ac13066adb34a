"""Operators that put elements in order. All are stable, and NaN counts as greater than every number, as in numpy."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from tedsl import te, tir
from tedsl.errors import ArgumentError, ShapeError
from topi.extents import as_int, axis_of, differ, opening, product, require_integers, shown
from topi.kinds import SortOp
from topi.ordering.keys import Word, coding_of
from topi.ordering.radix_sort import TRUST
from topi.ordering.rows import Place, Rows, sort_rows
from topi.ordering.select import select_rows
from topi.threads import sort as threads_sort
from topi.transform.dims import reshape


def sort(data: te.Tensor, axis: int | None = -1, is_ascend: Any = 1) -> te.Tensor:
    """The elements in ascending order along `axis` (descending where is_ascend is 0); of all as a vector where axis is None.

    The shape and dtype of `data`. Same as numpy.sort. -0.0 comes before 0.0 (descending: behind it); NaN come out without sign
    and payload.
    """
    data, along = _row(data, axis, "sort")
    coding = coding_of(data.dtype, bool(is_ascend), False, as_int(data.shape[along]))

    def rows(ins: Sequence[tir.Buffer], outs: Sequence[tir.Buffer]) -> Rows:
        ib = tir.ir_builder.create()
        source, target = ib.buffer_ptr(ins[0]), ib.buffer_ptr(outs[0])
        for memory in (source, target):
            ib.scope_attr(memory, *TRUST)

        def emit(place: Place, t: Any, word: Word) -> None:
            target[place(t)] = coding.element(word)

        return Rows(ib, source, data.shape, along, coding, emit, ahead=lambda place, t: target[place(t)])

    output: te.Tensor = te.extern([data.shape], [data], **_ways(rows), name="sort_cpu", dtype=data.dtype, tag="sort_cpu",
                                  info=SortOp("sort", data, along, bool(is_ascend)))
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
    coding = coding_of(data.dtype, bool(is_ascend), True, as_int(data.shape[along]))

    def rows(ins: Sequence[tir.Buffer], outs: Sequence[tir.Buffer]) -> Rows:
        ib = tir.ir_builder.create()
        source, target = ib.buffer_ptr(ins[0]), ib.buffer_ptr(outs[0])
        for memory in (source, target):
            ib.scope_attr(memory, *TRUST)

        def emit(place: Place, t: Any, word: Word) -> None:
            target[place(t)] = coding.place(word).astype(of)

        def rest(place: Place, count: Any) -> None:
            with ib.for_range(count, data.shape[along], name="t") as t:
                target[place(t)] = t.astype(of)

        whole = Rows(ib, source, data.shape, along, coding, emit, ahead=lambda place, t: target[place(t)])
        if valid_count is None:
            return whole
        counts = ib.buffer_ptr(ins[1])
        return replace(whole, rest=rest, count=lambda place: _clamped(counts[place(0)[0]], data.shape[along]))

    inputs = [data] if valid_count is None else [data, valid_count]
    output: te.Tensor = te.extern([data.shape], inputs, **_ways(rows), name=name, dtype=of, tag=name,
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
    coding = coding_of(data.dtype, is_ascend, True, extent)

    def rows(ins: Sequence[tir.Buffer], outs: Sequence[tir.Buffer]) -> Rows:
        ib = tir.ir_builder.create()
        source, targets = ib.buffer_ptr(ins[0]), [ib.buffer_ptr(buffer) for buffer in outs]
        for memory in (source, *targets):
            ib.scope_attr(memory, *TRUST)

        def emit(place: Place, t: Any, word: Word) -> None:
            at = coding.place(word)
            for what, target in zip(wanted, targets):
                target[place(t)] = source[place(at)] if what == "values" else at.astype(target.dtype)

        return Rows(ib, source, data.shape, along, coding, emit, wanted=kept)

    def some(found: Rows) -> None:
        select_rows(found, count if count is not None and count > 0 else None)

    dtypes = [data.dtype if what == "values" else dtype for what in wanted]
    return te.extern([shape] * len(wanted), [data], **_ways(rows, some), name="topk_cpu", dtype=dtypes, tag="topk_cpu",
                     info=SortOp("topk", data, along, is_ascend))


def _ways(rows: Callable[..., Rows], in_loops: Callable[[Rows], None] = sort_rows) -> dict[str, Any]:
    """The statements of a te.extern that puts rows in order, by loops and by threads."""
    def body(ins: Sequence[tir.Buffer], outs: Sequence[tir.Buffer]) -> tir.Stmt:
        found = rows(ins, outs)
        in_loops(found)
        made: tir.Stmt = found.ib.get()
        return made

    def by_threads(ins: Sequence[tir.Buffer], outs: Sequence[tir.Buffer], threads: int, shared: int) -> tir.Stmt:
        found = rows(ins, outs)
        threads_sort.sort_rows(found, threads, shared)
        made: tir.Stmt = found.ib.get()
        return made

    return {"fcompute": body, "by_threads": by_threads}


def _row(data: te.Tensor, axis: int | None, operator: str) -> tuple[te.Tensor, int]:
    """The tensor and the dimension to sort; where axis is None all elements as a vector."""
    where = opening(operator, data)
    if axis is None:
        return reshape(data, (product(data.shape),)), 0
    return data, axis_of(axis, data.ndim, where)


def _clamped(count: Any, extent: Any) -> Any:
    return te.max(te.min(count.astype("int32"), extent), 0)
