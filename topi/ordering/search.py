"""Operators that look for values in ordered data."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tedsl import te, tir
from tedsl.errors import ShapeError
from topi.arguments import checked
from topi.extents import differ, opening, require_integers, require_one_dtype, shown
from topi.kinds import SortOp
from topi.ordering.merge_sort import precedes
from topi.ordering.sort import argsort
from topi.statements import fill, loops, rows_kind


@checked
def searchsorted(sorted_sequence: te.Tensor, values: te.Tensor, right: bool = False, out_dtype: Any = "int64") -> te.Tensor:
    """For each value the first (right: the last) position in the ascending sequence at which it can be inserted. Same as
    numpy.searchsorted.

    sorted_sequence: a vector (n,), or (..., n) with one sequence for each row of values (..., m). The result has the shape of
    `values`.
    """
    where = opening("searchsorted", values)
    require_one_dtype([sorted_sequence, values], where)
    rows = sorted_sequence.ndim - 1
    if not values.ndim:
        raise ShapeError(f"{where}: values {values.name} is a scalar", hint=f"topi.expand_dims({values.name}, 0)")
    if rows < 0 or (rows and (values.ndim != rows + 1 or any(map(differ, sorted_sequence.shape[:rows], values.shape)))):
        raise ShapeError(f"{where}: the sequence {sorted_sequence.name} has the shape {shown(sorted_sequence.shape)}, the "
                         f"values {shown(values.shape)}", hint="give one vector, or one for each row of values")

    def body(ins: Sequence[tir.Buffer], outs: Sequence[tir.Buffer]) -> tir.Stmt:
        ib = tir.ir_builder.create()
        ordered, wanted, target = (ib.buffer_ptr(buffer) for buffer in (*ins, *outs))
        with loops(ib, values.shape, rows_kind(values.shape)) as i:
            value = ib.let("value", wanted[i])
            span = ib.allocate("int32", (2,), name="span", scope="local")
            span[0], span[1] = 0, sorted_sequence.shape[-1].astype("int32")
            with ib.while_loop(span[0] < span[1]):
                middle = ib.let("middle", (span[0] + span[1]) // 2)
                here = ib.let("here", ordered[(*i[:rows], middle)])
                behind = tir.Not(precedes(value, here, True)) if right else precedes(here, value, True)
                with ib.if_scope(behind):
                    span[0] = middle + 1
                with ib.else_scope():
                    span[1] = middle
            target[i] = span[0].astype(out_dtype)
        return ib.get()

    output: te.Tensor = te.extern([values.shape], [sorted_sequence, values], body, name="searchsorted", dtype=out_dtype,
                                  tag="searchsorted", info=SortOp("searchsorted", sorted_sequence, rows))
    return output


def unique(data: te.Tensor, is_sorted: bool = True, return_counts: bool = False) -> list[te.Tensor]:
    """The distinct values of a vector, in ascending order, or in that of their first occurrence if is_sorted is False.

    data: (n,) of integers. Returns [values, indices, inverse_indices, num_unique] and with return_counts also counts. Only the
    first num_unique[0] of the n elements of values, indices (of the first occurrence, int32) and counts (int32) are valid;
    behind them values and counts are 0 and indices n. inverse_indices: for each element its position in values, int32;
    num_unique: (1,) int32.
    """
    where = opening("unique", data)
    require_integers(data, where, "data")
    if data.ndim != 1:
        raise ShapeError(f"{where}: the shape is {shown(data.shape)}, not that of a vector", hint="topi.reshape(it, (-1,))")
    order = argsort(data, dtype="int32")

    def body(ins: Sequence[tir.Buffer], outs: Sequence[tir.Buffer]) -> tir.Stmt:
        ib = tir.ir_builder.create()
        source, ranked = (ib.buffer_ptr(buffer) for buffer in ins)
        buffers = _Found(ib, outs, data)
        group = ib.allocate("int32", (1,), name="group", scope="local")
        group[0] = -1
        first = buffers.indices if is_sorted else ib.allocate("int32", data.shape, name="first")
        with ib.for_range(0, data.shape[0], name="t") as t:
            place = ib.let("place", ranked[t])
            before = ranked[te.max(t - 1, 0)]
            with ib.if_scope(tir.any(t == 0, source[place] != source[before])):
                group[0] = group[0] + 1
                first[group[0]] = place
                if is_sorted:
                    buffers.values[group[0]] = source[place]
            buffers.inverse[place] = group[0]
            if is_sorted:
                buffers.count(group[0])
        buffers.number[0] = group[0] + 1
        if not is_sorted:
            _by_first_occurrence(ib, source, first, buffers, data)
        return ib.get()

    shapes = [data.shape, data.shape, data.shape, (1,), *([data.shape] if return_counts else [])]
    dtypes = [data.dtype, "int32", "int32", "int32", *(["int32"] if return_counts else [])]
    outputs: list[te.Tensor] = te.extern(shapes, [data, order], body, name="unique", dtype=dtypes, tag="unique",
                                      info=SortOp("unique", data, 0))
    return outputs


class _Found:
    """The outputs of `unique` while they are being filled."""

    def __init__(self, ib: Any, outs: Sequence[tir.Buffer], data: te.Tensor) -> None:
        self.values, self.indices, self.inverse, self.number, *self.counts = (ib.buffer_ptr(buffer) for buffer in outs)
        fill(ib, self.values, data.shape, te.const(0, data.dtype))
        fill(ib, self.indices, data.shape, data.shape[0].astype("int32"))
        for counts in self.counts:
            fill(ib, counts, data.shape, 0)

    def count(self, group: Any) -> None:
        for counts in self.counts:
            counts[group] = counts[group] + 1


def _by_first_occurrence(ib: Any, source: Any, first: Any, found: _Found, data: te.Tensor) -> None:
    """Renumbers the groups in the order of their first elements."""
    label = ib.allocate("int32", data.shape, name="label")
    seen = ib.allocate("int32", (1,), name="seen", scope="local")
    seen[0] = 0
    with ib.for_range(0, data.shape[0], name="i") as i:
        group = ib.let("group", found.inverse[i])
        with ib.if_scope(first[group] == i):
            label[group] = seen[0]
            found.values[seen[0]] = source[i]
            found.indices[seen[0]] = i.astype("int32")
            seen[0] = seen[0] + 1
        found.inverse[i] = label[group]
        found.count(label[group])
