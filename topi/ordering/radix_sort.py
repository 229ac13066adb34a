"""A stable radix sort of words in memory, a digit of some bits of their keys at a time, from the lowest on.

Each pass counts how often each digit occurs, adds the counts up to the ranks at which each digit begins and ends, and puts the
words there: in one loop the first half of them, from the first on, to the next rank of their digit, and the second half, from
the last on, to the rank before the last one of their digit. Where many words have one digit, two of them do not wait for each
other so. Where all words have the same digit nothing moves.

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
from tedsl.target import Target
from topi.extents import as_int
from topi.ordering.keys import Coding, Word
from topi.statements import TRUST as TRUST
from topi.statements import prefetch

BITS = 8  # of the digits of short rows
WORDS = 8  # of a row for each digit, from which on longer digits pay
ZERO = te.const(0, "int32")
Emit = Callable[[Any, Word], None]


@record
class RadixSort:
    """The memory of a sort of `count` words, with room for `extent`.

    bits: of a digit. words: two halves of `extent` words, an array for each part of a word. ranks: for each digit the number of
    its words in a chunk, then the rank of the next one from the front. ends: the rank behind the next one from the back. state:
    where the half with the words begins; whether all have one digit. chunks: their number, or None for a single one.
    """

    ib: Any
    coding: Coding
    bits: int
    extent: Any
    count: Any
    chunks: Any
    words: tuple[Any, ...]
    ranks: Any
    ends: Any
    state: Any

    @property
    def digits(self) -> int:
        """How many digits there are."""
        return 1 << self.bits

    @property
    def passes(self) -> int:
        """The number of digits of a key."""
        return -(-self.coding.key_bits // self.bits)

    def load(self, at: Any) -> Word:
        """The word at a position of the memory."""
        return tuple([self.ib.let("word", part[at]) for part in self.words])

    def store(self, at: Any, word: Word) -> None:
        for part, value in zip(self.words, word):
            part[at] = value

    def digit(self, word: Word, number: Any) -> Any:
        """Digit `number` of the key in a word. The highest bit of a key is its sign."""
        of, last = self.coding.word, self.passes - 1
        of_last = 1 << self.coding.key_bits - last * self.bits  # the last digit may have fewer bits; above it stands the sign
        mask = tir.Select(number == last, te.const(of_last - 1, of), te.const(self.digits - 1, of))
        sign = tir.Select(number == last, te.const(of_last // 2, of), te.const(0, of))
        return (word[0] >> (number * self.bits + self.coding.place_bits).astype(of) & mask ^ sign).astype("int32")

    @contextmanager
    def chunk(self, number: Any) -> Iterator[tuple[Any, Any, Any]]:
        """A loop over the chunks: where the ranks of digit `number` begin, the first word of a chunk, and the one behind it."""
        if self.chunks is None:
            with self.ib.new_scope():
                yield number * self.digits, ZERO, self.count
            return
        size = self.ib.let("size", (self.count + self.chunks - 1) // self.chunks)
        with self.ib.for_range(0, self.chunks, name="chunk", kind="parallel") as chunk:
            first = self.ib.let("first", te.min(chunk * size, self.count))
            yield chunk * self.digits, first, self.ib.let("end", te.min(first + size, self.count))


def radix_sort(ib: Any, coding: Coding, read: Callable[[Any], Any], extent: Any, count: Any, chunks: Any = None,
               emit: Emit | None = None, ahead: Callable[[Any], Any] | None = None) -> RadixSort:
    """Sorts the words of the elements read(0), ..., read(count - 1).

    emit(rank, word) is called for each of them, not in order of the ranks; None: the words are left in memory, from
    `state[0]` on. ahead(rank): the element that `emit` writes, to be asked for before.
    """
    bits = digit_bits(coding.key_bits, as_int(extent))
    words = tuple([ib.allocate(dtype, (2 * extent,), name="words") for dtype in coding.dtypes])
    counters = (-(-coding.key_bits // bits) if chunks is None else chunks) << bits
    ranks, ends = (ib.allocate("int32", (counters,), name=name) for name in ("ranks", "ends"))
    state = ib.allocate("int32", (2,), name="state", scope="local")
    sort = RadixSort(ib, coding, bits, extent, count, chunks, words, ranks, ends, state)
    for memory in (*words, ranks, ends):
        ib.scope_attr(memory, *TRUST)
    state[0] = ZERO
    _begin(sort, read)
    with ib.for_range(0, sort.passes - (emit is not None), name="number") as number:
        _add_up(sort, number)
        with ib.if_scope(state[1] == 0):
            _move_on(sort, number)
        if chunks is not None:
            with ib.if_scope(number < sort.passes - 1):
                _count(sort, number + 1)
    if emit is not None:
        last = te.const(sort.passes - 1, "int32")
        _add_up(sort, last)
        with ib.if_scope(state[1] == 0):
            _move(sort, last, emit, ahead)
        with ib.else_scope(), ib.for_range(0, count, name="t") as t:
            emit(t, sort.load(state[0] + t))
    return sort


def target() -> Target:
    """The machine that is compiled for: that of the `with` block, else the host."""
    return Target.current() or Target("llvm")


def digit_bits(key_bits: int, extent: int | None) -> int:
    """The bits of a digit: as many as have counters of the ranks from both ends in half of L1, or fewer if there are as few
    digits; eight for rows of few words for each counter.
    """
    l1 = target().machine.l1
    most = max(BITS, (l1.size // 2 // 8).bit_length() - 1)
    bits = -(-key_bits // -(-key_bits // most))
    return bits if extent is not None and extent >= WORDS << bits else BITS


def _begin(sort: RadixSort, read: Callable[[Any], Any]) -> None:
    """Stores the words of the elements, and counts their first digit, or all digits of a single chunk."""
    ib = sort.ib
    numbers = range(1 if sort.chunks is not None else sort.passes)
    with sort.chunk(ZERO) as (ranks, first, end):
        _clear(sort, ranks, len(numbers) << sort.bits)
        with ib.for_range(first, end, name="t") as t:
            word = tuple([ib.let("word", part) for part in sort.coding.words(read(t), t)])
            sort.store(t, word)
            for number in numbers:
                _count_one(sort, ranks + number * sort.digits, word, te.const(number, "int32"))


def _count(sort: RadixSort, number: Any) -> None:
    """Counts digit `number` of the words in each chunk."""
    begin = sort.ib.let("begin", sort.state[0])
    with sort.chunk(number) as (ranks, first, end):
        _clear(sort, ranks, sort.digits)
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
    with ib.for_range(0, sort.digits, name="digit") as digit:
        before = ib.let("before", rank[0])
        with ib.for_range(0, 1 if sort.chunks is None else sort.chunks, name="chunk") as chunk:
            place = ib.let("place", (number if sort.chunks is None else chunk) * sort.digits + digit)
            own = ib.let("own", ranks[place])
            ranks[place] = rank[0]
            rank[0] = rank[0] + own
            sort.ends[place] = rank[0]
        state[1] = tir.Select(rank[0] - before == sort.count, te.const(1, "int32"), state[1])


def _move_on(sort: RadixSort, number: Any) -> None:
    """Puts each word into the other half of the memory, at its rank by digit `number`."""
    other = sort.ib.let("other", sort.extent - sort.state[0])
    _move(sort, number, lambda rank, word: sort.store(other + rank, word), lambda rank: sort.words[0][other + rank])
    sort.state[0] = other


def _move(sort: RadixSort, number: Any, emit: Emit, ahead: Callable[[Any], Any] | None) -> None:
    """Passes each word to `emit` with its rank by digit `number`."""
    ib, ranks, ends = sort.ib, sort.ranks, sort.ends
    begin = ib.let("begin", sort.state[0])
    near = target().machine.line * 8 // te.const(0, sort.coding.word).dtype.bits // 2

    def put(rank: Any, word: Word, step: int) -> None:
        emit(rank, word)
        if ahead is not None:
            prefetch(ib, ahead(rank + step), writes=True)

    def put_first(base: Any, word: Word) -> None:
        place = ib.let("place", base + sort.digit(word, number))
        rank = ib.let("rank", ranks[place])
        ranks[place] = rank + 1
        put(rank, word, near)

    def put_last(base: Any, word: Word) -> None:
        place = ib.let("place", base + sort.digit(word, number))
        rank = ib.let("rank", ends[place] - 1)
        ends[place] = rank
        put(rank, word, -near)

    with sort.chunk(number) as (base, first, end):
        half = ib.let("half", (end - first) // 2)
        with ib.for_range(0, half, name="t") as t:
            front, back = sort.load(begin + first + t), sort.load(begin + end - 1 - t)
            put_first(base, front)
            put_last(base, back)
        with ib.if_scope(2 * half < end - first):
            put_first(base, sort.load(begin + first + half))
