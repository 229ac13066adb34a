"""The order of a row, as statements: a stable merge sort of its elements together with their positions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tedsl import te, tir


@dataclass(frozen=True)
class Order:
    """The sorted elements of a row: the element of rank t is `key(t)` and was at `place(t)`."""

    keys: Any
    places: Any
    begin: Any = 0

    def key(self, t: Any) -> Any:
        return self.keys[self.begin + t]

    def place(self, t: Any) -> Any:
        return self.places[self.begin + t]

    def choose(self, target: Any, condition: Any, one: Any, other: Any) -> None:
        """Copies element `one` of the workspace to `target` if the condition holds, else `other`; without a branch."""
        for memory in (self.keys, self.places):
            memory[target] = tir.Select(condition, memory[one], memory[other])


def sort_row(ib: Any, read: Any, dtype: Any, extent: Any, count: Any, ascending: bool) -> Order:
    """Sorts the elements read(0) to read(count - 1) of a row of `extent`; equal ones keep their order, NaN counts as greatest.

    Runs of 1, 2, 4, ... elements are merged from one half of a workspace into the other.
    """
    keys = ib.allocate(dtype, (2 * extent + 1,), name="keys")
    places = ib.allocate("int32", (2 * extent + 1,), name="places")
    row = Order(keys, places)
    state = ib.allocate("int32", (2,), name="state", scope="local")  # the length of runs; where the half with them begins
    with ib.for_range(0, count, name="t") as t:
        keys[t] = read(t)
        places[t] = t.astype("int32")
    keys[2 * extent], places[2 * extent] = te.const(0, dtype), 0  # read, and not used, where a run ends with the workspace
    state[0], state[1] = 1, 0
    with ib.while_loop(state[0] < count):
        run, begin = ib.let("run", state[0]), ib.let("begin", state[1])
        other = ib.let("other", tir.Select(begin == 0, te.const(0, "int32") + extent, te.const(0, "int32")))
        with ib.for_range(0, (count + 2 * run - 1) // (2 * run), name="pair") as pair:
            low = ib.let("low", pair * 2 * run)
            with ib.if_scope(low + 2 * run <= count):
                _merge_whole(ib, row, begin + low, other + low, run, ascending)
            with ib.else_scope():
                _merge_last(ib, row, begin, other, low, run, count, ascending)
        state[0], state[1] = run * 2, other
    return Order(keys, places, ib.let("sorted_at", state[1]))


def _merge_whole(ib: Any, row: Order, source: Any, target: Any, run: Any, ascending: bool) -> None:
    """Merges two runs of equal length from both ends at once, in `run` steps from each end; neither run can be exhausted
    before.
    """
    at = ib.allocate("int32", (4,), name="at", scope="local")
    at[0], at[1], at[2], at[3] = source, source + run, source + run - 1, source + 2 * run - 1
    with ib.for_range(0, run, name="t") as t:
        i, j, p, q = (ib.let(name, at[n]) for n, name in enumerate("ijpq"))
        first = ib.let("first", tir.Not(precedes(row.keys[j], row.keys[i], ascending)))
        last = ib.let("last", tir.Not(precedes(row.keys[q], row.keys[p], ascending)))
        row.choose(target + t, first, i, j)
        row.choose(target + 2 * run - 1 - t, last, q, p)
        at[0], at[1] = i + first.astype("int32"), j + 1 - first.astype("int32")
        at[2], at[3] = p - 1 + last.astype("int32"), q - last.astype("int32")


def _merge_last(ib: Any, row: Order, begin: Any, other: Any, low: Any, run: Any, count: Any, ascending: bool) -> None:
    """Merges the run at `low` with the remaining elements after it, which are fewer than a run, or none."""
    middle = ib.let("middle", te.min(low + run, count))
    at = ib.allocate("int32", (2,), name="at", scope="local")
    at[0], at[1] = low, middle
    with ib.for_range(low, count, name="t") as t:
        i, j = ib.let("i", at[0]), ib.let("j", at[1])
        smaller = tir.Not(precedes(row.keys[begin + j], row.keys[begin + i], ascending))
        first = ib.let("first", tir.all(i < middle, tir.any(j >= count, smaller)))
        row.choose(other + t, first, begin + i, begin + j)
        at[0], at[1] = i + first.astype("int32"), j + 1 - first.astype("int32")


def best_of_row(ib: Any, read: Any, dtype: Any, extent: Any, k: int, ascending: bool) -> Order:
    """The first `k` elements of the order, for small k: inserts each element that precedes the last of the k best so far."""
    row = Order(ib.allocate(dtype, (k,), name="best"), ib.allocate("int32", (k,), name="places"))
    at = ib.allocate("int32", (1,), name="at", scope="local")
    with ib.for_range(0, extent, name="t") as t:
        value = ib.let("value", read(t))
        with ib.if_scope(tir.any(t < k, precedes(value, row.keys[k - 1], ascending))):
            at[0] = te.min(t, k - 1).astype("int32")
            with ib.while_loop(tir.all(at[0] > 0, precedes(value, row.keys[te.max(at[0] - 1, 0)], ascending))):
                row.keys[at[0]], row.places[at[0]] = row.keys[at[0] - 1], row.places[at[0] - 1]
                at[0] = at[0] - 1
            row.keys[at[0]] = value
            row.places[at[0]] = t.astype("int32")
    return row


def precedes(a: Any, b: Any, ascending: bool) -> Any:
    """Whether `a` stands strictly before `b`; NaN is greater than all numbers, as numpy.sort has it."""
    low, high = (a, b) if ascending else (b, a)
    if low.dtype == "bool":
        low, high = low.astype("int8"), high.astype("int8")
    if not low.dtype.is_float:
        return low < high
    return tir.all(tir.Not(tir.isnan(low)), tir.Not(high <= low))
