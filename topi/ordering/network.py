"""A bitonic sorting network over words in memory, in vectors.

Memory holds `count` vectors of `lanes` words each; a column is one lane of all vectors. Vectors are compared element by
element, so that all columns are sorted at once. To sort the memory as one row, the sorted columns are merged, 2, 4, 8, ...
neighbouring columns at a time, by comparing lanes of one vector; columns that must fall for that hold the complements of their
words. At the end a transposition puts column after column.

    vectors    3 1 4 1    columns    0 1 3 1    merged    0 2 4 5    transposed    0 1 1 1
               5 9 2 6               3 1 4 5              1 3 5 6                  2 3 3 4
               5 3 5 8               5 3 5 6              1 3 5 8                  4 5 5 5
               0 7 9 3               5 9 9 8              1 4 5 9                  5 6 8 9
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import Any

from tedsl import te, tir
from tedsl.record import record
from topi.ordering.keys import Coding, Word, chosen, complement, less

BLOCK = 4  # vectors that are compared with each other in registers; with 8 code is 10 % faster, and compiling 50 % slower


@record
class Columns:
    """Words in memory: `parts` has an array for each part of a word, of `count` vectors of `lanes`.

    Both are powers of two, `count` at least BLOCK.
    """

    ib: Any
    parts: tuple[Any, ...]
    lanes: int
    count: int

    def load(self, i: Any) -> Word:
        """Vector number i."""
        return tuple([self.ib.let("v", part[self._at(i)]) for part in self.parts])

    def store(self, i: Any, word: Word) -> None:
        for part, value in zip(self.parts, word):
            part[self._at(i)] = value

    def _at(self, i: Any) -> Any:
        return consecutive(i * self.lanes, self.lanes)

    def word(self, at: Any) -> Word:
        """The word at a position of the memory."""
        return tuple([part[at] for part in self.parts])

    def put(self, at: Any, word: Word) -> None:
        for part, value in zip(self.parts, word):
            part[at] = value


def masks(word: Word, condition: Any) -> Word:
    """For each part of a word of vectors a vector of all ones where the condition, of as many lanes, holds, else zeros."""
    lanes = condition.dtype.lanes
    return tuple([tir.Select(condition, tir.Broadcast(te.const(-1, part.dtype.element), lanes),
                             tir.Broadcast(te.const(0, part.dtype.element), lanes)) for part in word])


def consecutive(first: Any, lanes: int) -> Any:
    """The vector first, first + 1, ..."""
    return tir.Ramp(first, te.const(1, first.dtype), lanes)


def has_bit(lanes: int, bit: Any) -> Any:
    """For each of `lanes` lanes whether its number has that bit, a power of two or 0."""
    return (consecutive(te.const(0, "int32"), lanes) & bit) != 0


def fill(coding: Coding, words: Columns, count: Any) -> None:
    """Stores words that come last, from position `count` on or some of those before."""
    lanes = words.lanes
    with words.ib.for_range(count // lanes, words.count, name="i") as i:
        words.store(i, complement(coding.last(consecutive(i * lanes, lanes)), masks(words.parts, has_bit(lanes, 1))))


def in_its_lane(word: Word, t: Any) -> Word:
    """The word as it stands at position t of a row: those in odd lanes are complements."""
    return complement(word, [(0 - (t & 1)).astype(part.dtype) for part in word])


@contextmanager
def vectors(ib: Any, count: Any, lanes: int) -> Iterator[Any]:
    """A loop over the positions 0, ..., count - 1 in vectors of `lanes`; it passes a position in a lane."""
    with ib.for_range(0, (count + lanes - 1) // lanes, name="i") as i, \
            ib.for_range(0, lanes, name="lane", kind="vectorize") as lane:
        t = i * lanes + lane
        with ib.if_scope(ib.likely(t < count)):
            yield t


def sort_columns(c: Columns, merged: int = 1) -> None:
    """Sorts each column; then, where `merged` is not 1, each group of `merged` columns as one row, column after column.

    In the second case the odd columns hold complements, before and never after.
    """
    ib = c.ib
    with ib.for_range(0, c.count // BLOCK, name="block") as block:
        _in_registers(c, [block * BLOCK + k for k in range(BLOCK)], lambda words: _odd_even_merge_sort(ib, words))
    steps, merges = (c.count // BLOCK).bit_length() - 1, merged.bit_length() - 1
    state = ib.allocate("int32", (2,), name="state", scope="local")
    state[1] = 2 * BLOCK if steps else 1  # the vectors of the runs that are merged; behind them the columns
    with ib.for_range(0, steps + merges, name="step") as step:
        size = ib.let("size", state[1])
        state[1] = tir.Select(step == steps - 1, te.const(1, "int32"), size * 2)
        if steps and merges:
            with ib.if_scope(step < steps):
                _merge_runs(c, size, state)
            with ib.else_scope():
                _merge_lanes(c, size, merged)
                state[0] = c.count // 2
        elif steps:
            _merge_runs(c, size, state)
        elif merges:
            _merge_lanes(c, size, merged)
            state[0] = c.count // 2
        _clean(c, state)


def _merge_runs(c: Columns, run: Any, state: Any) -> None:
    """Begins to merge runs of `run` / 2 vectors, two by two: compares the first vector of one with the last of the other, and
    so on, and then vectors a quarter of a run apart.
    """
    ib, half = c.ib, BLOCK // 2
    step = ib.let("step", run // BLOCK)
    with ib.for_range(0, c.count // BLOCK, name="block") as block:
        x = ib.let("x", block & step - 1)
        first = ib.let("first", (block - x) * BLOCK)
        low = [first + x + k * step for k in range(half)]
        high = [first + run - 1 - x - k * step for k in reversed(range(half))]

        def compare(words: list[Word]) -> None:
            for k in range(half):
                _exchange(ib, words, k, BLOCK - 1 - k)
            _half_cleaners(ib, words, half)

        _in_registers(c, low + high, compare)
    state[0] = run // (2 * BLOCK)


def _merge_lanes(c: Columns, width: Any, merged: int) -> None:
    """Begins to merge groups of `width` columns, two by two: compares lanes `width`, ..., 2, 1 apart."""
    ib, lanes = c.ib, c.lanes
    turned = _turned(ib, c.parts, lanes, width, merged)
    with ib.for_range(0, c.count, name="i") as i:
        words = [ib.allocate(f"{part.dtype}x{lanes}", (1,), name="word", scope="local") for part in c.parts]
        for word, value in zip(words, complement(c.load(i), turned)):
            word[0] = value
        distance = merged // 2
        while distance:
            with ib.if_scope(width >= distance):
                for word, value in zip(words, _exchanged(ib, tuple([word[0] for word in words]), lanes, distance)):
                    word[0] = value
            distance //= 2
        c.store(i, tuple([word[0] for word in words]))


def _turned(ib: Any, parts: Word, lanes: int, width: Any, merged: int) -> Word:
    """Masks of what becomes its complement, or no longer is one, before groups of `width` columns are merged two by two."""
    risen, falls = has_bit(lanes, width), has_bit(lanes, width * 2 & merged - 1)
    return tuple([ib.let("turned", a ^ b) for a, b in zip(masks(parts, risen), masks(parts, falls))])


def _exchanged(ib: Any, own: Word, lanes: int, distance: int, upper: Any = None) -> Word:
    """Compares the lanes of one vector that are `distance` apart: the smaller word goes to the lower lane.

    upper: for each lane whether its number has the bit `distance`.
    """
    own = _named(ib, own)
    other = tuple([ib.let("other", shuffled((part,), [lane ^ distance for lane in range(lanes)])) for part in own])
    upper = has_bit(lanes, distance) if upper is None else upper
    if len(own) == 1:
        return (tir.Select(upper, te.max(own[0], other[0]), te.min(own[0], other[0])),)
    smaller = ib.let("smaller", less(other, own))
    return chosen(tir.NE(smaller, upper), other, own)


def _clean(c: Columns, state: Any) -> None:
    """Sorts bitonic sequences of vectors: compares vectors state[0], state[0] / 2, ..., 1 apart."""
    ib = c.ib
    with ib.while_loop(state[0] >= BLOCK // 2):
        step = ib.let("step", state[0] // (BLOCK // 2))
        with ib.for_range(0, c.count // BLOCK, name="block") as block:
            x = ib.let("x", block & step - 1)
            first = ib.let("first", (block - x) * BLOCK + x)
            _in_registers(c, [first + k * step for k in range(BLOCK)], lambda words: _half_cleaners(ib, words, BLOCK))
        state[0] = state[0] // BLOCK
    size = BLOCK // 2
    while size > 1:
        with ib.if_scope(state[0] == size // 2), ib.for_range(0, c.count // size, name="block") as block:
            _in_registers(c, [block * size + k for k in range(size)], lambda words: _half_cleaners(ib, words, len(words)))
        size //= 2


def transpose(c: Columns, target: Columns) -> None:
    """Puts column after column into `target`, and leaves the vectors of `c` in another order."""
    ib, lanes = c.ib, c.lanes
    bits = lanes.bit_length() - 1
    with ib.for_range(0, c.count // lanes, name="block") as block:
        first = block * lanes

        def put(at: Any, word: Word) -> None:
            target.store((at - first) * (c.count // lanes) + block, word)

        while bits > 2:  # two bits of the numbers of vectors and lanes at a time, so that few registers are needed
            unit = 1 << bits - 2
            with ib.for_range(0, unit, name="k") as k:
                places = [first + k + at * unit for at in range(4)]
                _exchange_bits(c, [c.load(at) for at in places], places, unit, c.store)
            bits -= 2
        size = 1 << bits
        with ib.for_range(0, lanes // size, name="k") as k:
            places = [first + k * size + at for at in range(size)]
            _exchange_bits(c, [c.load(at) for at in places], places, 1, put)


def _exchange_bits(c: Columns, words: list[Word], places: list[Any], unit: int, store: Callable[[Any, Word], None]) -> None:
    """Exchanges bits of the numbers of vectors, which are `unit` apart, for the same bits of the numbers of lanes."""
    distance = len(places) // 2
    while distance:
        bit, lanes = distance * unit, range(c.lanes)
        low = [lane if not lane & bit else c.lanes + lane - bit for lane in lanes]
        high = [lane + bit if not lane & bit else c.lanes + lane for lane in lanes]
        for at in range(len(places)):
            if not at & distance:
                pairs = list(zip(_named(c.ib, words[at]), _named(c.ib, words[at + distance])))
                words[at], words[at + distance] = (tuple([shuffled(pair, order) for pair in pairs]) for order in (low, high))
        distance //= 2
    for place, word in zip(places, words):
        store(place, word)


def shuffled(vectors: tuple[Any, ...], order: Iterable[int]) -> Any:
    """The vector of the lanes of `vectors`, one behind the other, whose numbers are in `order`."""
    return tir.Shuffle(vectors, tuple(map(_lane, order)))


@lru_cache(maxsize=256)
def _lane(number: int) -> Any:
    """The number of a lane: one node for all uses."""
    return te.const(number, "int32")


# --- all in registers -------------------------------------------------------------------------------------------------

def sort_in_registers(c: Columns, whole: Any) -> None:
    """Sorts each column of `c`, a power of two of vectors. Where `whole` holds it merges them as one row, column after column;
    then the odd columns hold complements.
    """
    ib, places, bits = c.ib, [te.const(i, "int32") for i in range(c.count)], c.lanes.bit_length() - 1
    _in_registers(c, places, lambda words: _odd_even_merge_sort(ib, words, bare=True))
    with ib.if_scope(whole):
        upper = [ib.let("upper", has_bit(c.lanes, 1 << bit)) for bit in range(bits)]
        with ib.for_range(0, bits, name="step") as step:
            for bit in range(bits):
                with ib.if_scope(step == bit):
                    _merge_known_lanes(c, bit, upper)
            _in_registers(c, places, lambda words: _half_cleaners(ib, words, c.count, bare=True))


def _merge_known_lanes(c: Columns, bit: int, upper: list[Any]) -> None:
    """Begins to merge groups of 1 << bit columns, as _merge_lanes, by code of its own, two vectors long, without branches.

    upper: masks of the lanes whose numbers have each bit.
    """
    with c.ib.for_range(0, c.count // 2, name="pair") as pair, c.ib.for_range(0, 2, name="k", kind="unroll") as k:
        turned = upper[bit] ^ upper[bit + 1] if bit + 1 < len(upper) else upper[bit]
        word = complement(c.load(pair * 2 + k), masks(c.parts, turned))
        for distance in reversed(range(bit + 1)):
            word = _exchanged(c.ib, word, c.lanes, 1 << distance, upper[distance])
        c.store(pair * 2 + k, word)


def sorted_lanes(ib: Any, word: Word, lanes: int) -> Word:
    """The lanes of one vector in order."""
    word = complement(word, masks(word, has_bit(lanes, 1)))
    width = 1
    while width < lanes:
        word = complement(word, _turned(ib, word, lanes, width, lanes))
        distance = width
        while distance:
            word = _exchanged(ib, word, lanes, distance)
            distance //= 2
        width *= 2
    return word


# --- in registers -----------------------------------------------------------------------------------------------------
# bare: the result has no names, as is enough for stores; a build takes less time.

def _in_registers(c: Columns, places: list[Any], compare: Callable[[list[Word]], None]) -> None:
    """Loads the vectors at `places`, compares them, and stores them."""
    with c.ib.new_scope():
        words = [c.load(at) for at in places]
        compare(words)
        for at, word in zip(places, words):
            c.store(at, word)


def _exchange(ib: Any, words: list[Word], i: int, j: int, last: bool = False) -> None:
    """Puts the smaller of words i and j to place i, lane by lane. last: both are used once more, and are left without names."""
    a, b = words[i], words[j]
    if len(a) == 1:
        words[i], words[j] = (te.min(a[0], b[0]),), (te.max(a[0], b[0]),)
    else:
        smaller = ib.let("smaller", less(b, a))
        words[i], words[j] = chosen(smaller, b, a), chosen(smaller, a, b)
    if not last:
        words[i], words[j] = _named(ib, words[i]), _named(ib, words[j])


def _named(ib: Any, word: Word) -> Word:
    """The word, computed once."""
    return tuple([part if isinstance(part, tir.Var) else ib.let("v", part) for part in word])


def _half_cleaners(ib: Any, words: list[Word], size: int, bare: bool = False) -> None:
    """Sorts each group of `size` words that is a bitonic sequence."""
    distance = size // 2
    while distance:
        for i in range(len(words)):
            if not i & distance:
                _exchange(ib, words, i, i + distance, bare and distance == 1)
        distance //= 2


def _odd_even_merge_sort(ib: Any, words: list[Word], bare: bool = False) -> None:
    """Sorts a power of two of words by Batcher's odd-even merge sort, which compares less often than a bitonic sort."""
    size = len(words)
    run = 1
    while run < size:
        distance = run
        while distance:
            for begin in range(distance % run, size - distance, 2 * distance):
                for i in range(begin, min(begin + distance, size - distance)):
                    if i // (2 * run) == (i + distance) // (2 * run):
                        _exchange(ib, words, i, i + distance, bare and 2 * run == size and distance == 1)
            distance //= 2
        run *= 2
