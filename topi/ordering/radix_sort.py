"""A stable radix sort of words in memory, eight bits of their keys at a time, from the lowest on.

Each pass counts how often each digit occurs, adds the counts up to the ranks at which each digit begins, and puts word after
word to the next rank of its digit. Where all words have the same digit nothing moves.

The words may be divided into chunks, which are counted and moved in parallel. Words with one digit are ranked chunk after
chunk, so that the result does not depend on the number of chunks. One chunk alone has all its digits counted before the first
pass.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from tedsl import te, tir
from tedsl.record import record
from topi.ordering.keys import Coding, Word
from topi.statements import TRUST as TRUST

BITS = 8
DIGITS = 1 << BITS
ZERO = te.const(0, "int32")
Emit = Callable[[Any, Word], None]


@record
class RadixSort:
    """The memory of a sort of `count` words, with room for `extent`.

    words: two halves of `extent` words, an array for each part of a word. ranks: for each digit the number of its words in a
    chunk, then the rank of the next one. state: where the half with the words begins; whether all have one digit. chunks: their
    number, or None for a single one.
    """

    ib: Any
    coding: Coding
    extent: Any
    count: Any
    chunks: Any
    words: tuple[Any, ...]
    ranks: Any
    state: Any

    @property
    def passes(self) -> int:
        """The number of digits of a key."""
        return self.coding.key_bits // BITS

    def load(self, at: Any) -> Word:
        """The word at a position of the memory."""
        return tuple([self.ib.let("word", part[at]) for part in self.words])

    def store(self, at: Any, word: Word) -> None:
        for part, value in zip(self.words, word):
            part[at] = value

    def digit(self, word: Word, number: Any) -> Any:
        """Digit `number` of the key in a word. The highest bit of a key is its sign."""
        of = self.coding.word
        digit = word[0] >> (number * BITS + self.coding.place_bits).astype(of) & DIGITS - 1
        sign = tir.Select(number == self.passes - 1, te.const(DIGITS // 2, of), te.const(0, of))
        return (digit ^ sign).astype("int32")

    @contextmanager
    def chunk(self, number: Any) -> Iterator[tuple[Any, Any, Any]]:
        """A loop over the chunks: where the ranks of digit `number` begin, the first word of a chunk, and the one behind it."""
        if self.chunks is None:
            with self.ib.new_scope():
                yield number * DIGITS, ZERO, self.count
            return
        size = self.ib.let("size", (self.count + self.chunks - 1) // self.chunks)
        with self.ib.for_range(0, self.chunks, name="chunk", kind="parallel") as chunk:
            first = self.ib.let("first", te.min(chunk * size, self.count))
            yield chunk * DIGITS, first, self.ib.let("end", te.min(first + size, self.count))


def radix_sort(ib: Any, coding: Coding, read: Callable[[Any], Any], extent: Any, count: Any, chunks: Any = None,
               emit: Emit | None = None) -> RadixSort:
    """Sorts the words of the elements read(0), ..., read(count - 1).

    emit(rank, word) is called for each of them, not in order of the ranks; None: the words are left in memory, from
    `state[0]` on.
    """
    words = tuple([ib.allocate(dtype, (2 * extent,), name="words") for dtype in coding.dtypes])
    digits = coding.key_bits // BITS if chunks is None else chunks
    ranks = ib.allocate("int32", (digits * DIGITS,), name="ranks")
    state = ib.allocate("int32", (2,), name="state", scope="local")
    sort = RadixSort(ib, coding, extent, count, chunks, words, ranks, state)
    for memory in (*words, ranks):
        ib.scope_attr(memory, *TRUST)
    state[0] = ZERO
    _begin(sort, read)
    with ib.for_range(0, sort.passes - (emit is not None), name="number") as number:
        _add_up(sort, number)
        with ib.if_scope(state[1] == 0):
            _move(sort, number, None)
        if chunks is not None:
            with ib.if_scope(number < sort.passes - 1):
                _count(sort, number + 1)
    if emit is not None:
        last = te.const(sort.passes - 1, "int32")
        _add_up(sort, last)
        with ib.if_scope(state[1] == 0):
            _move(sort, last, emit)
        with ib.else_scope(), ib.for_range(0, count, name="t") as t:
            emit(t, sort.load(state[0] + t))
    return sort


def _begin(sort: RadixSort, read: Callable[[Any], Any]) -> None:
    """Stores the words of the elements, and counts their first digit, or all digits of a single chunk."""
    ib = sort.ib
    numbers = range(1 if sort.chunks is not None else sort.passes)
    with sort.chunk(ZERO) as (ranks, first, end):
        _clear(sort, ranks, len(numbers) * DIGITS)
        with ib.for_range(first, end, name="t") as t:
            word = tuple([ib.let("word", part) for part in sort.coding.words(read(t), t)])
            sort.store(t, word)
            for number in numbers:
                _count_one(sort, ranks + number * DIGITS, word, te.const(number, "int32"))


def _count(sort: RadixSort, number: Any) -> None:
    """Counts digit `number` of the words in each chunk."""
    begin = sort.ib.let("begin", sort.state[0])
    with sort.chunk(number) as (ranks, first, end):
        _clear(sort, ranks, DIGITS)
        with sort.ib.for_range(first, end, name="t") as t:
            _count_one(sort, ranks, sort.load(begin + t), number)


def _clear(sort: RadixSort, ranks: Any, count: int) -> None:
    with sort.ib.for_range(0, count, name="digit") as digit:
        sort.ranks[ranks + digit] = 0


def _count_one(sort: RadixSort, ranks: Any, word: Word, number: Any) -> None:
    place = sort.ib.let("place", ranks + sort.digit(word, number))
    sort.ranks[place] = sort.ranks[place] + 1


def _add_up(sort: RadixSort, number: Any) -> None:
    """Replaces the counts by the ranks of the first words with each digit, and finds out whether all words have one digit."""
    ib, ranks, state = sort.ib, sort.ranks, sort.state
    rank = ib.allocate("int32", (1,), name="rank", scope="local")
    rank[0], state[1] = 0, 0
    with ib.for_range(0, DIGITS, name="digit") as digit:
        before = ib.let("before", rank[0])
        with ib.for_range(0, 1 if sort.chunks is None else sort.chunks, name="chunk") as chunk:
            place = ib.let("place", (number if sort.chunks is None else chunk) * DIGITS + digit)
            own = ib.let("own", ranks[place])
            ranks[place] = rank[0]
            rank[0] = rank[0] + own
        state[1] = tir.Select(rank[0] - before == sort.count, te.const(1, "int32"), state[1])


def _move(sort: RadixSort, number: Any, emit: Emit | None) -> None:
    """Passes each word to `emit` with its rank by digit `number`; None: to the other half of the memory, at that rank."""
    ib, ranks = sort.ib, sort.ranks
    begin = ib.let("begin", sort.state[0])
    other = ib.let("other", sort.extent - begin)
    with sort.chunk(number) as (base, first, end), ib.for_range(first, end, name="t") as t:
        word = sort.load(begin + t)
        place = ib.let("place", base + sort.digit(word, number))
        rank = ib.let("rank", ranks[place])
        ranks[place] = rank + 1
        sort.store(other + rank, word) if emit is None else emit(rank, word)
    if emit is None:
        sort.state[0] = other
