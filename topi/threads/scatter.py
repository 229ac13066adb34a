"""Stores at positions that data holds, by threads, with the results of one loop over the updates, bit for bit.

Where there are many lines of updates of different elements, a thread goes through each. Else the updates are sorted by their
positions, in a stable order; of those with one position the first one's thread joins all, in their order.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tedsl import te
from tedsl.record import record
from topi.extents import as_int, product
from topi.ordering.keys import coding_of
from topi.ordering.rows import Rows
from topi.statements import loops
from topi.threads.launch import each, indices_of, row_place
from topi.threads.sort import each_word, sorted_words

_LINES = 1024  # so many occupy a device
_SHORT = 32  # updates of a line that one thread goes through at once
_NONE = 2**31 - 1  # the position of an update that is left out


@record
class Scatter:
    """Updates of a target, one for each index of `shape`.

    Those of a line, which runs along dimension `along`, may meet in one element; others do not. position(at) is the position of
    the update at indices `at` in its line of the target, negative where it is left out. `cells` are the extents of what stands
    at a position: element x of it is read by old(at, position, x) and new(at, x), joined by joined(old, new), and stored by
    store(at, position, x, value).
    """

    ib: Any
    shape: Sequence[Any]
    along: int
    position: Callable[[tuple[Any, ...]], Any]
    old: Callable[[tuple[Any, ...], Any, tuple[Any, ...]], Any]
    new: Callable[[tuple[Any, ...], tuple[Any, ...]], Any]
    joined: Callable[[Any, Any], Any]
    store: Callable[[tuple[Any, ...], Any, tuple[Any, ...], Any], None]
    cells: Sequence[Any] = ()

    @property
    def others(self) -> list[Any]:
        return [*self.shape[:self.along], *self.shape[self.along + 1:]]


@record
class _Positions:
    """The positions of updates, as a tensor that can be sorted."""

    scatter: Scatter

    def __getitem__(self, at: tuple[Any, ...]) -> Any:
        position = self.scatter.ib.let("position", self.scatter.position(at))
        return te.select(position < 0, te.const(_NONE, "int32"), position)


def store_updates(scatter: Scatter, threads: int, shared: int) -> None:
    """Launches kernels that store all updates in a target, which has its old values."""
    lines, count = as_int(product([*scatter.others, *scatter.cells])), as_int(scatter.shape[scatter.along])
    if (count is not None and count <= _SHORT) or (lines is not None and lines >= _LINES):
        _line_by_thread(scatter, threads)
    else:
        _in_order(scatter, threads, shared)


def _line_by_thread(scatter: Scatter, threads: int) -> None:
    """A kernel with a thread for each line."""
    ib = scatter.ib
    with each(ib, product([*scatter.others, *scatter.cells]), threads) as number:
        found = indices_of(number, [*scatter.others, *scatter.cells])
        other, x = found[:len(scatter.others)], found[len(scatter.others):]
        with ib.for_range(0, scatter.shape[scatter.along], name="t") as t:
            at = (*other[:scatter.along], t, *other[scatter.along:])
            position = ib.let("position", scatter.position(at))
            with ib.if_scope(position >= 0):
                scatter.store(at, position, x, scatter.joined(scatter.old(at, position, x), scatter.new(at, x)))


def _in_order(scatter: Scatter, threads: int, shared: int) -> None:
    """Kernels that sort the updates by position, and one with a thread for each of them."""
    ib, along, extent = scatter.ib, scatter.along, scatter.shape[scatter.along]
    coding = coding_of(te.const(0, "int32").dtype, True, True, as_int(extent))
    rows = Rows(ib, _Positions(scatter), scatter.shape, along, coding, lambda place, t, word: None)
    for words in sorted_words(rows, threads, shared):
        with each_word(rows, threads) as (row, t):
            place = row_place(scatter.shape, along, row)
            key = ib.let("key", coding.key_of(words.load((row, t))))
            before = ib.let("before", coding.key_of(words.load((row, te.max(t - 1, 0)))))
            with ib.if_scope(te.all(key != _NONE, te.any(t == 0, before != key))), loops(ib, scatter.cells, name="x") as x:
                total = ib.allocate(scatter.old(place(0), key, x).dtype, (1,), name="total", scope="local")
                total[0] = scatter.old(place(0), key, x)
                end = ib.allocate("int32", (1,), name="end", scope="local")
                end[0] = t
                with ib.while_loop(end[0] < extent):
                    word = words.load((row, end[0]))
                    with ib.if_scope(coding.key_of(word) == key):
                        total[0] = scatter.joined(total[0], scatter.new(place(coding.place(word)), x))
                        end[0] = end[0] + 1
                    with ib.else_scope():
                        end[0] = extent
                scatter.store(place(0), key, x, total[0])
