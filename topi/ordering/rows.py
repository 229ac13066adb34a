"""Sorting each row of a tensor: by a network in vectors if rows are short enough to stay in the cache, else by quick sort where
the machine has an instruction for it, or digit by digit.

    rows along the last dimension    the network sorts one row at a time, as lanes of vectors that it merges
    other rows                       the network sorts neighbouring rows at a time, one in each lane
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from functools import partial
from typing import Any

from tedsl import te, tir
from tedsl.record import record
from topi.extents import as_int, product
from topi.ordering.keys import Coding, Word
from topi.ordering.network import Columns, fill, in_its_lane, sort_columns, transpose, vectors
from topi.ordering.quick_sort import quick_sort, quick_sorted
from topi.ordering.radix_sort import TRUST, radix_sort, target
from topi.statements import loops, rows_kind

Place = Callable[[Any], tuple[Any, ...]]  # from a position in a row to the indices of the element
Emit = Callable[[Place, Any, Word], None]  # stores the word of rank t of a row
CHUNK = 1 << 15  # words that one thread sorts faster than several
PLACED, PLACED_FLOATS = 1 << 14, 1 << 16  # words with places, of integers and of floats, that are faster sorted by digits
CHUNKS = 16  # at most: their counters are added up one after the other


@record
class Rows:
    """The rows of `source`, of `shape`, along dimension `along`, of which the first `count(place)` elements are sorted.

    emit(place, t, word) writes what is done with the word of rank t in a row, for the first `wanted` ranks (None: all) in any
    order; the loops around it may be vectorized. rest(place, count) writes what is done about the elements behind the first
    `count`. ahead(place, t): the element that `emit` writes.
    """

    ib: Any
    source: Any
    shape: Sequence[Any]
    along: int
    coding: Coding
    emit: Emit
    count: Callable[[Place], Any] | None = None
    rest: Callable[[Place, Any], None] | None = None
    wanted: Any = None
    ahead: Callable[[Place, Any], Any] | None = None

    @property
    def extent(self) -> Any:
        return self.shape[self.along]

    @property
    def others(self) -> list[Any]:
        """The extents of the other dimensions."""
        return [*self.shape[:self.along], *self.shape[self.along + 1:]]

    def counted(self, place: Place) -> Any:
        """How many elements of a row are sorted."""
        return self.extent if self.count is None else self.ib.let("count", self.count(place))

    def last(self, count: Any) -> Any:
        """How many ranks of a row of `count` elements are wanted."""
        return count if self.wanted is None else te.min(self.wanted, count)

    def finish(self, place: Place, count: Any) -> None:
        if self.rest is not None:
            self.rest(place, count)

    def place(self, other: Sequence[Any]) -> Place:
        """The places of the row at indices `other` of the other dimensions."""
        return lambda t: (*other[:self.along], t, *other[self.along:])


def sort_rows(rows: Rows) -> None:
    """Sorts all rows."""
    lanes = native_lanes(rows.coding.word)
    extent, last = as_int(rows.extent), as_int(rows.shape[-1])
    if extent is None or extent > 16 * lanes**3:  # measured: where a row by digits takes the time of the network
        _in_memory(rows)
    elif rows.along < len(rows.shape) - 1 and rows.count is None and last is not None and 2 * last >= lanes:
        _by_columns(rows, lanes)
    elif extent > 32 * (_quick(rows) or extent):  # measured: where quick sort takes the time of the network
        _in_memory(rows)
    else:
        _row_by_row(rows, lanes)


def _quick(rows: Rows) -> int | None:
    """The words that quick sort sorts in registers, if it pays; else None.

    Words with places are as wide as two keys, and no two are equal: long rows of them are sorted faster by digits, unless few
    ranks are wanted.
    """
    extent, coding = as_int(rows.extent), rows.coding
    placed = coding.with_places and rows.wanted is None
    if placed and (extent is None or extent >= (PLACED_FLOATS if coding.dtype.is_float else PLACED)):
        return None
    return quick_sorted(coding)


def native_lanes(dtype: str) -> int:
    """The elements of one vector of the machine that is compiled for."""
    return max(2, target().vector_lanes(dtype))


def _in_memory(rows: Rows) -> None:
    elements = as_int(product(rows.others))
    few = len(rows.shape) == 1 or (elements is not None and elements < 4)
    several = few and chunks_of(rows.extent) is not None
    chunks = chunks_of(rows.extent) if several else None
    with loops(rows.ib, rows.others, "serial" if several else rows_kind(rows.shape), "o") as other:
        place = rows.place(other)
        count = rows.counted(place)

        def emit(t: Any, word: Word) -> None:
            with ExitStack() as guard:
                if rows.wanted is not None:
                    guard.enter_context(rows.ib.if_scope(t < rows.last(count)))
                rows.emit(place, t, word)

        with rows.ib.new_scope():
            if _quick(rows):
                quick_sort(rows.ib, rows.coding, lambda t: rows.source[place(t)], rows.extent, count, chunks, emit,
                           rows.last(count), None if rows.ahead is None else partial(rows.ahead, place))
            else:
                radix_sort(rows.ib, rows.coding, lambda t: rows.source[place(t)], rows.extent, count, chunks, emit,
                           None if rows.ahead is None else partial(rows.ahead, place))
        rows.finish(place, count)


def chunks_of(extent: Any) -> Any:
    """In how many chunks a long row is sorted, one for each core; None: as a whole."""
    known, cores = as_int(extent), min(target().machine.cores, CHUNKS)
    if cores == 1 or (known is not None and known < 2 * CHUNK):
        return None
    return te.max(te.min(extent // CHUNK, cores), 1)


def _row_by_row(rows: Rows, native: int) -> None:
    """Sorts rows one after the other. A short row fills as many vectors as there are lanes, for which these may be narrower."""
    extent = as_int(rows.extent)
    assert extent is not None
    size = max(16, 1 << (extent - 1).bit_length())
    with loops(rows.ib, rows.others, rows_kind(rows.shape), "o") as other:
        place = rows.place(other)
        words, ordered = (row_memory(rows.ib, rows.coding, name, size, native) for name in ("words", "ordered"))
        count = rows.counted(place)
        fill(rows.coding, words, count)
        with vectors(rows.ib, count, words.lanes) as t:
            words.put(t, in_its_lane(rows.coding.words(rows.source[place(t)], t), t))
        sort_columns(words, words.lanes)
        transpose(words, ordered)
        with vectors(rows.ib, rows.last(count), words.lanes) as t:
            rows.emit(place, t, ordered.word(t))
        rows.finish(place, count)


def _by_columns(rows: Rows, lanes: int) -> None:
    """Sorts as many rows at a time as a vector has lanes, those that are neighbours in the last dimension."""
    ib, extent = rows.ib, as_int(rows.extent)
    assert extent is not None
    count = max(4, 1 << (extent - 1).bit_length())
    with neighbours(rows, lanes) as elements:
        words = _columns(ib, rows.coding, "words", count * lanes, lanes)
        with ib.for_range(extent if as_int(rows.shape[-1] % lanes) == 0 else 0, count, name="t") as t:
            words.store(t, rows.coding.last(tir.Broadcast(t, lanes)))
        with ib.for_range(0, extent, name="t") as t, elements() as (place, lane):
            words.put(t * lanes + lane, rows.coding.words(rows.source[place(t)], t))
        sort_columns(words)
        with ib.for_range(0, rows.last(extent), name="t") as t, elements() as (place, lane):
            rows.emit(place, t, words.word(t * lanes + lane))


@contextmanager
def neighbours(rows: Rows, lanes: int) -> Iterator[Callable[[], AbstractContextManager[tuple[Place, Any]]]]:
    """Loops over the rows, as many at a time as there are `lanes`, neighbours in the last dimension.

    It passes a function that makes a vectorized loop over them, which passes the places of a row and its lane.
    """
    ib, last = rows.ib, rows.shape[-1]
    *outer, _ = rows.others
    with loops(ib, [*outer, (last + lanes - 1) // lanes], rows_kind(rows.shape), "o") as (*other, group):
        first = ib.let("first", group * lanes)

        @contextmanager
        def elements() -> Iterator[tuple[Place, Any]]:
            with ib.for_range(0, lanes, name="lane", kind="vectorize") as lane, ib.if_scope(first + lane < last):
                yield rows.place((*other, first + lane)), lane

        yield elements


def row_memory(ib: Any, coding: Coding, name: str, size: int, native: int) -> Columns:
    """Memory for a row of `size` words in vectors, of which there are at least as many as lanes."""
    lanes = max([2, *(lanes for lanes in (4, 8, 16, 32, 64) if lanes <= native and lanes * lanes <= size)])
    return _columns(ib, coding, name, size, lanes)


def _columns(ib: Any, coding: Coding, name: str, size: int, lanes: int) -> Columns:
    parts = tuple([ib.allocate(dtype, (size,), name=name) for dtype in coding.dtypes])
    for part in parts:
        ib.scope_attr(part, *TRUST)
    return Columns(ib, parts, lanes, size // lanes)
