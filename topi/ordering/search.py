"""Operators that look for values in ordered data."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tedsl import te, tir
from tedsl.errors import DTypeError, ShapeError
from topi.arguments import checked
from topi.extents import as_int, differ, opening, product, require_integers, require_one_dtype, shown
from topi.kinds import SortOp
from topi.ordering.keys import coding_of
from topi.ordering.radix_sort import TRUST, radix_sort
from topi.ordering.rows import chunks_of, native_lanes
from topi.statements import fill, loops, rows_kind
from topi.threads.launch import each, indices_of
from topi.threads.unique import find_unique

_TOGETHER = 4  # vectors of values that are looked for at the same time


@checked
def searchsorted(sorted_sequence: te.Tensor, values: te.Tensor, right: bool = False, out_dtype: Any = "int64") -> te.Tensor:
    """For each value the first (right: the last) position in the ascending sequence at which it can be inserted. Same as
    numpy.searchsorted.

    sorted_sequence: a vector (n,), or (..., n) with one sequence for each row of values (..., m). The result has the shape of
    `values`.
    """
    where = opening("searchsorted", values)
    require_one_dtype([sorted_sequence, values], where)
    if not te.const(0, out_dtype).dtype.is_integer:
        raise DTypeError(f"{where}: positions are integers, not {out_dtype}", hint='out_dtype="int32" or "int64"')
    rows = sorted_sequence.ndim - 1
    if not values.ndim:
        raise ShapeError(f"{where}: values {values.name} is a scalar", hint=f"topi.expand_dims({values.name}, 0)")
    if rows < 0 or (rows and (values.ndim != rows + 1 or any(map(differ, sorted_sequence.shape[:rows], values.shape)))):
        raise ShapeError(f"{where}: the sequence {sorted_sequence.name} has the shape {shown(sorted_sequence.shape)}, the "
                         f"values {shown(values.shape)}", hint="give one vector, or one for each row of values")

    def find(ib: Any, ins: Sequence[tir.Buffer], outs: Sequence[tir.Buffer], i: tuple[Any, ...]) -> None:
        ordered, wanted, target = (ib.buffer_ptr(buffer) for buffer in (*ins, *outs))
        found = _position(ib, sorted_sequence.shape[-1], lambda t: ordered[(*i[:rows], t)], wanted[i], right)
        target[i] = found.astype(out_dtype)

    def body(ins: Sequence[tir.Buffer], outs: Sequence[tir.Buffer]) -> tir.Stmt:
        ib = tir.ir_builder.create()
        ordered, wanted, positions = (ib.buffer_ptr(buffer) for buffer in (*ins, *outs))
        *others, extent = values.shape
        count = _TOGETHER * native_lanes(str(values.dtype))
        with loops(ib, [*others, extent // count], rows_kind(values.shape)) as (*i, group):
            found = _positions(ib, sorted_sequence.shape[-1], lambda t: ordered[(*i[:rows], t)],
                               lambda l: wanted[(*i, group * count + l)], count, right)
            with ib.for_range(0, count, name="l", kind="vectorize") as l:
                positions[(*i, group * count + l)] = found[l].astype(out_dtype)
        with loops(ib, [*others, extent % count], rows_kind(values.shape) if others else "serial") as (*i, rest):
            find(ib, ins, outs, (*i, extent - extent % count + rest))
        return ib.get()

    def by_threads(ins: Sequence[tir.Buffer], outs: Sequence[tir.Buffer], threads: int, shared: int) -> tir.Stmt:
        ib = tir.ir_builder.create()
        with each(ib, product(values.shape), threads) as number:
            find(ib, ins, outs, indices_of(number, values.shape))
        return ib.get()

    output: te.Tensor = te.extern([values.shape], [sorted_sequence, values], body, by_threads=by_threads, name="searchsorted",
                                  dtype=out_dtype, tag="searchsorted", info=SortOp("searchsorted", sorted_sequence, rows))
    return output


def binary_search(ib: Any, sequence_offset: Any, search_range: Any, sorted_sequence: Any, value: Any, right: bool,
                  out_dtype: Any) -> Any:
    """The first (right: the last) position, of `out_dtype`, at which a value can be inserted into an ascending part of memory.

    Writes statements with `ib`: the part is the search_range elements of the memory `sorted_sequence`, a buffer of
    ib.buffer_ptr taken as flat, from sequence_offset on.
    """
    return _position(ib, search_range, lambda t: sorted_sequence[sequence_offset + t], value, right).astype(out_dtype)


def _position(ib: Any, extent: Any, element: Callable[[Any], Any], value: Any, right: bool) -> Any:
    """Where a value can be inserted among `extent` ascending elements, int32."""
    value = ib.let("value", value)
    span = ib.allocate("int32", (2,), name="span", scope="local")
    span[0], span[1] = 0, extent.astype("int32") if isinstance(extent, tir.PrimExpr) else extent
    with ib.while_loop(span[0] < span[1]):
        middle = ib.let("middle", (span[0] + span[1]) // 2)
        here = ib.let("here", element(middle))
        behind = tir.Not(precedes(value, here, True)) if right else precedes(here, value, True)
        with ib.if_scope(behind):
            span[0] = middle + 1
        with ib.else_scope():
            span[1] = middle
    return span[0]


def _positions(ib: Any, extent: Any, element: Callable[[Any], Any], wanted: Callable[[Any], Any], count: int,
               right: bool) -> Any:
    """Memory of the places, int32, where `count` values can be inserted among `extent` ascending elements.

    All are looked for in the same steps, which depend on `extent` alone, in vectors: their loads do not wait for each other.
    """
    places = ib.allocate("int32", (count,), name="places", scope="local")
    span = ib.allocate("int32", (1,), name="span", scope="local")

    def step(ahead: Any) -> None:
        """Moves the place of each value that is behind the last of the next `ahead` elements behind these."""
        with ib.for_range(0, count, name="l", kind="vectorize") as l:
            here, value = element(places[l] + (ahead - 1)), wanted(l)
            behind = tir.Not(precedes(value, here, True)) if right else precedes(here, value, True)
            places[l] = tir.Select(behind, places[l] + ahead, places[l])

    with ib.for_range(0, count, name="l", kind="vectorize") as l:
        places[l] = 0
    span[0] = extent.astype("int32") if isinstance(extent, tir.PrimExpr) else extent
    with ib.while_loop(span[0] > 1):
        half = ib.let("half", span[0] // 2)
        step(half)
        span[0] = span[0] - half
    with ib.if_scope(span[0] > 0):
        step(1)
    return places


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
    coding = coding_of(data.dtype, True, True, as_int(data.shape[0]))

    def body(ins: Sequence[tir.Buffer], outs: Sequence[tir.Buffer]) -> tir.Stmt:
        ib = tir.ir_builder.create()
        source = ib.buffer_ptr(ins[0])
        found = _Found(ib, outs, data)
        extent = data.shape[0]
        sort = radix_sort(ib, coding, lambda t: source[t], extent, extent, chunks_of(extent))
        first = found.indices if is_sorted else ib.allocate("int32", data.shape, name="first")
        ib.scope_attr(first, *TRUST)
        group = ib.allocate("int32", (2,), name="group", scope="local")  # its number; where it begins
        key = ib.allocate(coding.key_dtype, (1,), name="key", scope="local")
        group[0], group[1], key[0] = -1, 0, te.const(0, coding.key_dtype)
        begin = ib.let("begin", sort.state[0])
        with ib.for_range(0, extent, name="t") as t:
            word = sort.load(begin + t)
            place, own = ib.let("place", coding.place(word)), ib.let("own", coding.key_of(word))
            with ib.if_scope(tir.any(t == 0, own != key[0])):
                if is_sorted:
                    found.count(group, t)
                key[0], group[0], group[1] = own, group[0] + 1, t
                first[group[0]] = place
                if is_sorted:
                    found.values[group[0]] = coding.element(word)
            found.inverse[place] = group[0]
        if is_sorted:
            found.count(group, extent)
        found.number[0] = group[0] + 1
        if not is_sorted:
            _by_first_occurrence(ib, source, first, found, data)
        return ib.get()

    def by_threads(ins: Sequence[tir.Buffer], outs: Sequence[tir.Buffer], threads: int, shared: int) -> tir.Stmt:
        ib = tir.ir_builder.create()
        find_unique(ib, ins, outs, coding, is_sorted, threads, shared)
        return ib.get()

    shapes = [data.shape, data.shape, data.shape, (1,), *([data.shape] if return_counts else [])]
    dtypes = [data.dtype, "int32", "int32", "int32", *(["int32"] if return_counts else [])]
    outputs: list[te.Tensor] = te.extern(shapes, [data], body, by_threads=by_threads, name="unique", dtype=dtypes, tag="unique",
                                      info=SortOp("unique", data, 0))
    return outputs


class _Found:
    """The outputs of `unique` while they are being filled."""

    def __init__(self, ib: Any, outs: Sequence[tir.Buffer], data: te.Tensor) -> None:
        self.values, self.indices, self.inverse, self.number, *self.counts = (ib.buffer_ptr(buffer) for buffer in outs)
        for memory in (self.values, self.indices, self.inverse, *self.counts):
            ib.scope_attr(memory, *TRUST)
        fill(ib, self.values, data.shape, te.const(0, data.dtype))
        fill(ib, self.indices, data.shape, data.shape[0].astype("int32"))
        for counts in self.counts:
            fill(ib, counts, data.shape, 0)
        self.ib = ib

    def count(self, group: Any, end: Any) -> None:
        """Stores the number of elements of the group before position `end`, if there is one."""
        for counts in self.counts:
            with self.ib.if_scope(group[0] >= 0):
                counts[group[0]] = (end - group[1]).astype("int32")


def _by_first_occurrence(ib: Any, source: Any, first: Any, found: _Found, data: te.Tensor) -> None:
    """Renumbers the groups in the order of their first elements."""
    label = ib.allocate("int32", data.shape, name="label")
    ib.scope_attr(label, *TRUST)
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
        for counts in found.counts:
            counts[label[group]] = counts[label[group]] + 1


def precedes(a: Any, b: Any, ascending: bool) -> Any:
    """Whether `a` stands strictly before `b`; NaN is greater than all numbers, as numpy.sort has it."""
    low, high = (a, b) if ascending else (b, a)
    if low.dtype == "bool":
        low, high = low.astype("int8"), high.astype("int8")
    if not low.dtype.is_float:
        return low < high
    return tir.all(tir.Not(tir.isnan(low)), tir.Not(high <= low))
