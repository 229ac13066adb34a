"""Sorting rows by blocks of threads: chunks by a bitonic network in shared memory, then runs merged in kernels, two by two.

    chunks of a row      3 1 4 1 | 5 9 2 6 | 5 3          each a block; several short rows share one
    sorted               1 1 3 4 | 2 5 6 9 | 3 5
    merged               1 1 2 3 4 5 6 9 | 3 5            a thread for each word, which finds its rank in the other run by
                         1 1 2 3 3 4 5 5 6 9              bisection

Words are those of `topi.ordering.keys`. Of rows of which only the first ranks are wanted, runs are cut off behind these.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from tedsl import te, tir
from tedsl.record import record
from topi.extents import as_int, product
from topi.ordering.keys import Coding, Word, chosen, less
from topi.ordering.rows import Rows
from topi.threads.launch import TRUST, as_data, each, indices_of, launch

_CHUNK = 2048  # words of a chunk at most
_THREADS = 256  # of a block at most: more would wait for each other longer


@record
class Words:
    """Words in memory, an array for each part."""

    ib: Any
    parts: tuple[Any, ...]

    def load(self, at: Any) -> Word:
        return tuple([self.ib.let("word", part[at]) for part in self.parts])

    def store(self, at: Any, word: Word) -> None:
        for part, value in zip(self.parts, word):
            part[at] = value


@record
class _Tile:
    """What a block sorts: `rows` rows of `size` words each (both powers of two), by `threads` threads."""

    rows: int
    size: int
    threads: int

    @property
    def words(self) -> int:
        return self.rows * self.size


def allocated(ib: Any, coding: Coding, shape: Sequence[Any], name: str, scope: str = "global") -> Words:
    """Memory for as many words as a tensor of `shape` has."""
    parts = tuple([ib.allocate(dtype, tuple(shape), name=name, scope=scope) for dtype in coding.dtypes])
    for part in parts:
        ib.scope_attr(part, *TRUST)
    return Words(ib, parts)


def sort_rows(rows: Rows, threads: int, shared: int) -> None:
    """Launches kernels that pass the words of each row in order to `rows.emit`."""
    extent, chunk = as_int(rows.extent), _chunk(rows.coding, shared)
    if extent is not None and extent <= chunk:
        _whole_rows(rows, _tile(extent, as_int(product(rows.others)), threads, chunk))
        return
    for words in sorted_words(rows, threads, shared):
        with each_word(rows, _power(threads)) as (row, t):
            place = rows.place(indices_of(row, rows.others))
            count = rows.counted(place)
            with rows.ib.if_scope(_below(rows, t, rows.last(count))):
                rows.emit(place, t, words.load((row, t)))
            if rows.rest is not None:
                with rows.ib.if_scope(t == 0):
                    rows.finish(place, count)


def sorted_words(rows: Rows, threads: int, shared: int) -> Iterator[Words]:
    """Launches kernels that sort all rows; passes the memory in which they are then, a word for each element of each row. Of
    rows of symbolic extents these are two, one after the other, for whoever has to launch what reads them.
    """
    ib, chunk = rows.ib, _chunk(rows.coding, shared)
    known = as_int(rows.extent)
    chunk = chunk if known is None else max(4, min(chunk, 1 << max(0, known - 1).bit_length()))
    halves = [allocated(ib, rows.coding, (product(rows.others), rows.extent), name) for name in ("words", "others")]
    passes = _passes(rows.extent, chunk)
    _chunks(rows, halves[0], _Tile(1, chunk, min(_power(threads), chunk // 2)))
    with ib.for_range(0, (passes + 1) // 2, name="merge") as pair:
        _merge(rows, halves[0], halves[1], te.const(chunk, "int32") << 2 * pair, _power(threads))
        with ib.if_scope(2 * pair + 1 < passes):
            _merge(rows, halves[1], halves[0], te.const(2 * chunk, "int32") << 2 * pair, _power(threads))
    if isinstance(passes, int):
        yield halves[passes % 2]
        return
    with ib.if_scope(passes % 2 == 0):
        yield halves[0]
    with ib.else_scope():
        yield halves[1]


@contextmanager
def each_word(rows: Rows, threads: int) -> Iterator[tuple[Any, Any]]:
    """A kernel with a thread for each element of each row; passes the number of the row and the place in it."""
    with each(rows.ib, product(rows.shape), threads) as number:
        row, t = number // rows.extent, rows.ib.let("t", number % rows.extent)
        yield (row, t) if as_int(product(rows.shape)) is not None else as_data(rows.ib, row, t)


def _passes(extent: Any, chunk: int) -> Any:
    """How often runs are merged, two by two, until one is left of the chunks of a row."""
    known = as_int(extent)
    if known is not None:
        return max(0, -(-known // chunk) - 1).bit_length()
    chunks = (extent + (chunk - 1)) // chunk
    return te.select(chunks > 1, 32 - te.clz(te.max(chunks - 1, 1)), 0)


def _power(threads: int) -> int:
    """The number of threads of a block: a power of two."""
    return 1 << min(threads, _THREADS).bit_length() - 1


def _chunk(coding: Coding, shared: int) -> int:
    """The words of a chunk: two times as many fit into half of the shared memory of a block, so that two blocks run at once."""
    size = sum(te.const(0, dtype).dtype.bits // 8 for dtype in coding.dtypes)
    return 1 << max(2, min(_CHUNK, shared // (4 * size)).bit_length() - 1)


def _tile(extent: int, rows: int | None, threads: int, chunk: int) -> _Tile:
    """The tile for whole rows: as many as occupy the threads of a block."""
    size = max(2, 1 << max(0, extent - 1).bit_length())
    most = max(1, min(chunk, 2 * _power(threads)) // size)
    count = most if rows is None else min(most, 1 << max(0, rows - 1).bit_length())
    return _Tile(count, size, min(_power(threads), count * size))


# --- in shared memory -------------------------------------------------------------------------------------------------

def _whole_rows(rows: Rows, tile: _Tile) -> None:
    """A kernel that sorts whole rows, `tile.rows` in each block."""
    ib, number_of_rows = rows.ib, product(rows.others)
    with launch(ib, (number_of_rows + (tile.rows - 1)) // tile.rows, tile.threads) as (block, thread):
        halves = tuple([allocated(ib, rows.coding, (tile.words,), name, "shared") for name in ("ping", "pong")])
        for pass_number in range(2):
            with ib.for_range(0, tile.words // tile.threads, name="k") as k:
                at = k * tile.threads + thread
                row = block * tile.rows + at // tile.size
                t = ib.let("t", at % tile.size)
                place = rows.place(indices_of(row, rows.others))
                if pass_number == 0:
                    _fill(rows, halves[0], at, t, place, row < number_of_rows)
                else:
                    with ib.if_scope(row < number_of_rows):
                        count = rows.counted(place)
                        with ib.if_scope(_below(rows, t, rows.last(count))):
                            rows.emit(place, t, halves[1].load(at))
                        if rows.rest is not None:
                            with ib.if_scope(t == 0):
                                rows.finish(place, count)
            if pass_number == 0:
                halves = (halves[0], _network(ib, halves, tile, thread))


def _chunks(rows: Rows, words: Words, tile: _Tile) -> None:
    """A kernel that sorts each chunk of each row into `words`."""
    ib = rows.ib
    count = ib.let("chunks", (rows.extent + (tile.size - 1)) // tile.size)
    with launch(ib, product(rows.others) * count, tile.threads) as (block, thread):
        halves = tuple([allocated(ib, rows.coding, (tile.size,), name, "shared") for name in ("ping", "pong")])
        row = ib.let("row", block // count)
        first = ib.let("first", block % count * tile.size)
        place = rows.place(indices_of(row, rows.others))
        with ib.for_range(0, tile.size // tile.threads, name="k") as k:
            at = k * tile.threads + thread
            _fill(rows, halves[0], at, ib.let("t", first + at), place, True)
        done = _network(ib, halves, tile, thread)
        with ib.for_range(0, tile.size // tile.threads, name="k") as k:
            at = k * tile.threads + thread
            with ib.if_scope(first + at < rows.extent):
                words.store(as_data(ib, row, first + at), done.load(at))


def _fill(rows: Rows, words: Words, at: Any, t: Any, place: Any, exists: Any) -> None:
    """Stores the word at position t of a row; behind the elements that are sorted, one that comes last."""
    ib = rows.ib

    def stored() -> None:
        count = rows.counted(place)
        with ib.if_scope(_below(rows, t, count)):
            words.store(at, rows.coding.words(rows.source[place(t)], t))
        with ib.else_scope():
            words.store(at, rows.coding.last(t))

    if exists is True:
        stored()
        return
    with ib.if_scope(exists):
        stored()
    with ib.else_scope():
        words.store(at, rows.coding.last(t))


def _below(rows: Rows, t: Any, count: Any) -> Any:
    """Whether a place is below `count`; where data says it, also that it is inside of the row."""
    return t < count if rows.count is None else tir.all(t < rows.extent, t < count)


def _network(ib: Any, halves: tuple[Words, ...], tile: _Tile, thread: Any) -> Words:
    """Sorts rows of `tile.size` words, which stand in the first of two memories; returns the one in which they are then.

    Each step compares words in one memory and stores the smaller or the greater in the other, at the place of the thread: one
    barrier for each step.
    """
    source, target = halves
    for step in range(tile.size.bit_length() - 1):
        for bit in reversed(range(step + 1)):
            mask = (2 << step) - 1 if bit == step else 1 << bit
            with ib.for_range(0, tile.words // tile.threads, name="k") as k:
                at = ib.let("at", k * tile.threads + thread)
                own, other = source.load(at), source.load((at ^ mask) & tile.words - 1)
                target.store(at, _kept(ib, own, other, (at & 1 << bit) != 0))
            source, target = target, source
    return source


def _kept(ib: Any, own: Word, other: Word, upper: Any) -> Word:
    """The greater of two words if `upper`, else the smaller."""
    if len(own) == 1:
        return (tir.Select(upper, te.max(own[0], other[0]), te.min(own[0], other[0])),)
    return chosen(tir.NE(ib.let("smaller", less(other, own)), upper), other, own)


# --- in global memory -------------------------------------------------------------------------------------------------

def _merge(rows: Rows, source: Words, target: Words, run: Any, threads: int) -> None:
    """A kernel that merges runs of `run` words into runs of twice the length."""
    ib, extent = rows.ib, rows.extent
    kept, joined = (run, 2 * run) if rows.wanted is None else (te.min(run, rows.wanted), te.min(2 * run, rows.wanted))
    with each_word(rows, threads) as (row, t):
        begin = ib.let("begin", t // (2 * run) * (2 * run))
        right = ib.let("right", t - begin >= run)
        own = ib.let("own", t - begin - te.select(right, run, 0))  # its place in its run
        first = ib.let("first", begin + te.select(right, 0, run))  # of the other run
        with ib.if_scope(own < kept):
            word = source.load((row, t))
            rank = _rank(ib, source, word, row, (first, te.min(first + kept, extent)), right)
            goal = ib.let("goal", own + rank - first)
            with ib.if_scope(goal < joined):
                target.store((row, begin + goal), word)


def _rank(ib: Any, words: Words, word: Word, row: Any, span: tuple[Any, Any], right: Any) -> Any:
    """The first place in the sorted words from span[0] to span[1] of a row that stands behind `word`, or, if it comes from the
    right run, not before it.
    """
    bounds = ib.allocate("int32", (2,), name="bounds", scope="local")
    bounds[0], bounds[1] = span[0], te.max(span[0], span[1])
    with ib.while_loop(bounds[0] < bounds[1]):
        middle = ib.let("middle", (bounds[0] + bounds[1]) // 2)
        here = words.load((row, middle))
        before = tir.any(less(here, word), tir.all(right, tir.Not(less(word, here))))
        with ib.if_scope(before):
            bounds[0] = middle + 1
        with ib.else_scope():
            bounds[1] = middle
    return ib.let("rank", bounds[0])
