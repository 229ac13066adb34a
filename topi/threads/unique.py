"""The distinct values of a vector, by threads: words are sorted, and running sums of where a group begins are their numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tedsl import te, tir
from tedsl.record import record
from topi.ordering.keys import Coding
from topi.ordering.rows import Rows
from topi.threads.launch import TRUST, each
from topi.threads.scan import Scan, scan_rows
from topi.threads.sort import Words, sorted_words


@record
class _Unique:
    """The outputs while they are being filled. first: for each group the place of its first element, of all the smallest;
    begin: its rank.
    """

    ib: Any
    source: Any
    extent: Any
    coding: Coding
    values: Any
    indices: Any
    inverse: Any
    number: Any
    counts: tuple[Any, ...]
    first: Any
    begin: Any
    threads: int
    shared: int


def find_unique(ib: Any, ins: Sequence[tir.Buffer], outs: Sequence[tir.Buffer], coding: Coding, is_sorted: bool, threads: int,
                shared: int) -> None:
    """Launches the kernels of `topi.unique`."""
    source, extent = ib.buffer_ptr(ins[0]), ins[0].shape[0]
    values, indices, inverse, number, *counts = (ib.buffer_ptr(buffer) for buffer in outs)
    first, begin = (ib.allocate("int32", (extent,), name=name) for name in ("first", "begin"))
    for memory in (values, indices, inverse, *counts, first, begin):
        ib.scope_attr(memory, *TRUST)
    found = _Unique(ib, source, extent, coding, values, indices, inverse, number, tuple(counts), first, begin, threads,
                    shared)
    with each(ib, extent, threads) as i:
        values[i], indices[i] = te.const(0, values.dtype), extent.astype("int32")
        for memory in counts:
            memory[i] = 0
    rows = Rows(ib, source, (extent,), 0, coding, lambda place, t, word: None)
    for words in sorted_words(rows, threads, shared):
        _groups(found, words)
    if is_sorted:
        with each(ib, extent, threads) as i, ib.if_scope(i < number[0]):
            values[i], indices[i] = source[first[i]], first[i]
            for memory in counts:
                memory[i] = _size(found, i)
    else:
        _by_first_occurrence(found)


def _groups(found: _Unique, words: Words) -> None:
    """Stores the group of each element, by value, their number, and where each group begins."""
    ib, coding = found.ib, found.coding

    def begins(t: Any) -> Any:
        key, before = coding.key_of(words.load((0, t))), coding.key_of(words.load((0, te.max(t - 1, 0))))
        return te.all(t > 0, key != before)

    def write(at: tuple[Any, ...], group: Any) -> None:
        (t,) = at
        place = ib.let("place", coding.place(words.load((0, t))))
        group = ib.let("group", group)
        found.inverse[place] = group
        with ib.if_scope(te.any(t == 0, begins(t))):
            found.first[group], found.begin[group] = place, t
        with ib.if_scope(t == found.extent - 1):
            found.number[0] = group + 1

    scan_rows(Scan(ib, (found.extent,), 0, lambda at: te.select(begins(at[0]), 1, 0), write, lambda a, b: a + b,
                   te.const(0, "int32")), found.threads, found.shared)


def _size(found: _Unique, group: Any) -> Any:
    """The number of elements of a group."""
    after = te.min(group + 1, found.number[0] - 1)
    return te.select(group + 1 < found.number[0], found.begin[after], found.extent) - found.begin[group]


def _by_first_occurrence(found: _Unique) -> None:
    """Numbers the groups in the order of their first elements."""
    ib = found.ib
    label = ib.allocate("int32", (found.extent,), name="label")
    ib.scope_attr(label, *TRUST)

    def is_first(i: Any) -> Any:
        return found.first[found.inverse[i]] == i

    def write(at: tuple[Any, ...], number: Any) -> None:
        (i,) = at
        with ib.if_scope(is_first(i)):
            group, own = ib.let("group", found.inverse[i]), ib.let("number", number)
            label[group], found.values[own], found.indices[own] = own, found.source[i], i
            for memory in found.counts:
                memory[own] = _size(found, group)

    scan_rows(Scan(ib, (found.extent,), 0, lambda at: te.select(is_first(at[0]), 1, 0), write, lambda a, b: a + b,
                   te.const(0, "int32"), exclusive=True), found.threads, found.shared)
    with each(ib, found.extent, found.threads) as i:
        found.inverse[i] = label[found.inverse[i]]
