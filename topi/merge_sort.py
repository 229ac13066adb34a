"""The order of a row, as statements: a stable merge sort of its elements together with their places."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tedsl import te, tir


@dataclass(frozen=True)
class Order:
    """The sorted elements of a row: the one of rank t is `key(t)` and stood at `place(t)`."""

    keys: Any
    places: Any
    begin: Any

    def key(self, t: Any) -> Any:
        return self.keys[self.begin + t]

    def place(self, t: Any) -> Any:
        return self.places[self.begin + t]


def sort_row(ib: Any, read: Any, dtype: Any, extent: Any, count: Any, ascending: bool) -> Order:
    """Sorts the elements read(0) to read(count - 1) of a row of `extent`; equal ones keep their order, NaN counts as greatest.

    Runs of 1, 2, 4, ... elements are merged from one half of a workspace into the other.
    """
    keys = ib.allocate(dtype, (2 * extent + 1,), name="keys")
    places = ib.allocate("int32", (2 * extent + 1,), name="places")
    state = ib.allocate("int32", (2,), name="state", scope="local")  # the length of runs; where the half with them begins
    with ib.for_range(0, count, name="t") as t:
        keys[t] = read(t)
        places[t] = t.astype("int32")
    keys[2 * extent] = te.const(0, dtype)
    places[2 * extent] = 0
    state[0], state[1] = 1, 0
    with ib.while_loop(state[0] < count):
        run, begin = ib.let("run", state[0]), ib.let("begin", state[1])
        other = ib.let("other", tir.Select(begin == 0, te.const(0, "int32") + extent, te.const(0, "int32")))
        with ib.for_range(0, (count + 2 * run - 1) // (2 * run), name="pair") as pair:
            _merge(ib, keys, places, begin, other, pair * 2 * run, run, count, ascending)
        state[0], state[1] = run * 2, other
    return Order(keys, places, ib.let("sorted_at", state[1]))


def _merge(ib: Any, keys: Any, places: Any, begin: Any, other: Any, low: Any, run: Any, count: Any, ascending: bool) -> None:
    """Merges the runs [low, low + run) and [low + run, low + 2 * run) of the half at `begin` into the half at `other`."""
    middle, end = ib.let("middle", te.min(low + run, count)), ib.let("end", te.min(low + 2 * run, count))
    at = ib.allocate("int32", (2,), name="at", scope="local")
    at[0], at[1] = low, middle
    with ib.for_range(low, end, name="t") as t:
        i, j = ib.let("i", at[0]), ib.let("j", at[1])
        left, right = ib.let("left", keys[begin + i]), ib.let("right", keys[begin + j])
        first = ib.let("first", tir.all(i < middle, tir.any(j >= end, tir.Not(precedes(right, left, ascending)))))
        keys[other + t] = tir.Select(first, left, right)
        places[other + t] = tir.Select(first, places[begin + i], places[begin + j])
        at[0] = i + first.astype("int32")
        at[1] = j + tir.Not(first).astype("int32")


def precedes(a: Any, b: Any, ascending: bool) -> Any:
    """Whether `a` stands strictly before `b`; NaN is greater than all numbers, as numpy.sort has it."""
    low, high = (a, b) if ascending else (b, a)
    if low.dtype == "bool":
        low, high = low.astype("int8"), high.astype("int8")
    if not low.dtype.is_float:
        return low < high
    return tir.any(low < high, tir.all(tir.isnan(high), tir.Not(tir.isnan(low))))
