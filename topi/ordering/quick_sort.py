"""Quick sort of words in memory, for machines that pack the lanes of a vector where a condition holds by one instruction.

A run of words is parted by a pivot: the lanes of its vectors that are less are packed and stored to free memory, the others to
where the run itself begins, as far as it has been read. So each run has its words in one place, and free memory in another:

    words 5 1 7 2 6 3    pivot 4, lanes 2    words 5 7 6 . . .    two runs    words 1 2 3   free (behind 5 7 6)
    free  . . . . . .                        free  1 2 3 . . .                words 5 7 6   free (of 1 2 3, after these)

Where the last cache is as far as memory, long runs are parted in place instead, so that half as much memory is gone through:
blocks are read from both ends of a run, by turns from that which has less room, and their lanes are stored to both. That takes
a mask for each vector of the others, which is slower in the nearest cache.

Runs of a few vectors are sorted by a network in registers. Its first half also finds pivots: the mean over the lanes of a row
of a sample that has been sorted in columns. If a pivot leaves out less than an eighth of a run, the next one parts off what
equals it, then comes from another sample, then is the middle of what lies between the pivots before, so that no order of words
takes more passes than five times the bits of a word, beside those that leave out an eighth.

Code is short rather than unrolled, for each build compiles it: one load, one network and one loop of results serve all runs.

On several threads the row is first parted on one of them, and then each part is sorted by one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from tedsl import te, tir
from tedsl.record import record
from topi.ordering.keys import Coding
from topi.ordering.network import Columns, consecutive, has_bit, masks, shuffled, sort_in_registers, transpose
from topi.ordering.radix_sort import TRUST, ZERO, Emit, target
from topi.statements import prefetch

VECTORS = 16  # that a network sorts in registers: half of those with AVX-512
TOGETHER = 8  # vectors that are compared before the first of them is stored, so that loads do not wait for stores
FULL = 0.97  # of what a network sorts should be words, not what fills it up: parts are not exactly as long as they should be
TASKS = 4  # parts for each thread
MOST_TASKS = 512
STACK = 512  # runs that wait: one for each pivot on the way to a run, of which 126 are good ones, and 5 for each bit bad ones
GOOD, UNREAD, EQUALS, AGAIN, EQUALS_AGAIN, HALVES = range(6)  # kinds of runs, by how the next pivot is found


@record
class _Run:
    """Words at `data`, and free memory at `free`, both of `size`; the rank of the first; the least and the most they may be.

    kind: GOOD, or UNREAD if elements are not yet words: the pivot comes from a sample. Where one left out little comes in turn:
    EQUALS, if it was `least`: what equals it is parted off; AGAIN: from another sample; HALVES: the middle of least and most.
    """

    data: Any
    free: Any
    size: Any
    rank: Any
    kind: Any
    least: Any
    most: Any


@record
class _Runs:
    """A list of runs in memory, and how many it has."""

    ib: Any
    memory: Any
    ends: Any
    count: Any

    def append(self, run: _Run) -> None:
        number = self.ib.let("number", self.count[0])
        for k, value in enumerate((run.data, run.free, run.size, run.rank, run.kind)):
            self.memory[number * 5 + k] = value
        self.ends[number * 2], self.ends[number * 2 + 1] = run.least, run.most
        self.count[0] = number + 1

    def run(self, number: Any) -> _Run:
        names = ("data", "free", "size", "rank", "kind")
        return _Run(*[self.ib.let(name, self.memory[number * 5 + k]) for k, name in enumerate(names)],
                    *[self.ib.let(name, self.ends[number * 2 + k]) for k, name in enumerate(("least", "most"))])

    def pop(self) -> _Run:
        number = self.ib.let("number", self.count[0] - 1)
        self.count[0] = number
        return self.run(number)


@record
class _QuickSort:
    """What is sorted: the elements `read(t)`, in `words`, which has room for all of them twice, by vectors of `lanes`.

    emit(rank, word) is called in vectorized loops, for ranks below `last`, and perhaps others.
    """

    ib: Any
    coding: Coding
    lanes: int
    words: Any
    read: Callable[[Any], Any]
    emit: Emit
    last: Any
    ahead: Callable[[Any], Any] | None

    @property
    def room(self) -> int:
        """The words that a network sorts in registers."""
        return VECTORS * self.lanes

    @property
    def block(self) -> int:
        """The words of vectors that are compared before the first of them is stored."""
        return TOGETHER * self.lanes

    @contextmanager
    def lane(self) -> Iterator[Any]:
        """A vectorized loop over the lanes of a vector."""
        with self.ib.for_range(0, self.lanes, name="lane", kind="vectorize") as lane:
            yield lane

    def taken(self, t: Any) -> Any:
        """The word of element t, or those of a vector of them."""
        return self.coding.words(self.read(t), t)[0]


def quick_sorted(coding: Coding) -> int | None:
    """The words that a network sorts in registers, if quick sort pays; else None.

    It does where one instruction packs vectors, and keys have several digits.
    """
    word = te.const(0, coding.word).dtype
    vector = word.with_lanes(max(2, target().vector_lanes(word)))
    return VECTORS * vector.lanes if not coding.apart and coding.key_bits >= 32 and target().compresses(vector) else None


def quick_sort(ib: Any, coding: Coding, read: Callable[[Any], Any], extent: Any, count: Any, chunks: Any, emit: Emit,
               last: Any, ahead: Callable[[Any], Any] | None = None) -> None:
    """Sorts the words of the elements read(0), ..., read(count - 1), in memory for `extent`.

    emit(rank, word) is called for those of the ranks below `last`, and perhaps others, not in order of the ranks. chunks: how
    many threads may share the work; None: one.
    """
    lanes = target().vector_lanes(coding.word)
    words = ib.allocate(coding.word, (2 * extent + VECTORS * lanes,), name="words")  # also what is loaded behind a short run
    ib.scope_attr(words, *TRUST)
    sort = _QuickSort(ib, coding, lanes, words, read, emit, last, ahead)
    whole = _Run(_int32(extent), ZERO, ib.let("count", _int32(count)), ZERO, te.const(UNREAD, "int32"),
                 te.min_value(coding.word), te.max_value(coding.word))
    if chunks is None:
        _sort(sort, whole, None, 0, ZERO)
        return
    tasks = _runs(ib, coding, "tasks", MOST_TASKS)
    tasks.append(whole)
    limit = ib.let("limit", te.max(whole.size // (TASKS * chunks), sort.room))
    with ib.for_range(0, 2, name="phase") as phase:  # the whole is parted; the parts are sorted
        behind = ib.let("behind", tasks.count[0])
        with ib.for_range(0, behind - phase, name="task", kind="parallel") as task:
            _sort(sort, tasks.run(phase + task), tasks, 1 - phase, limit)


def _int32(value: Any) -> Any:
    return te.const(value, "int32") if isinstance(value, int) else value.astype("int32")


def _runs(ib: Any, coding: Coding, name: str, room: int) -> _Runs:
    numbers, ends = ib.allocate("int32", (5 * room,), name=name), ib.allocate(coding.word, (2 * room,), name=f"{name}_ends")
    count = ib.allocate("int32", (1,), name="count")
    for part in (numbers, ends, count):
        ib.scope_attr(part, *TRUST)
    count[0] = ZERO
    return _Runs(ib, numbers, ends, count)


def _sort(sort: _QuickSort, whole: _Run, tasks: _Runs | None, parts: Any, limit: Any) -> None:
    """Sorts a run; where `parts` is 1 its parts of at most `limit` words are appended to `tasks` instead, if there is room."""
    ib = sort.ib
    waiting = _runs(ib, sort.coding, "waiting", STACK)
    waiting.append(whole)
    memory = [ib.allocate(sort.coding.word, (sort.room,), name=name) for name in ("some", "ordered")]
    held = ib.allocate(sort.coding.word, (3 * sort.block,), name="held") if target().machine.has_far_l3 else None
    for part in (*memory, held):
        if part is not None:
            ib.scope_attr(part, *TRUST)
    some, ordered = (Columns(ib, (part,), sort.lanes, VECTORS) for part in memory)
    with ib.while_loop(waiting.count[0] > 0):
        run = waiting.pop()
        if tasks is None:
            _step(sort, run, waiting, (some, ordered, held), parts)
        else:
            with ib.if_scope(tir.all(parts == 1, run.size <= limit, run.size < whole.size, tasks.count[0] < MOST_TASKS)):
                tasks.append(run)
            with ib.else_scope():
                _step(sort, run, waiting, (some, ordered, held), parts)


def _step(sort: _QuickSort, run: _Run, waiting: _Runs, memory: tuple[Columns, Columns, Any], parts: Any) -> None:
    """Emits a run if it is short or all of its words are equal; else parts it."""
    ib = sort.ib
    some, ordered, held = memory
    pivot = ib.allocate(sort.coding.word, (1,), name="pivot", scope="local")
    in_order = ib.allocate("int32", (1,), name="in_order", scope="local")  # whether `ordered` has what is emitted
    short = ib.let("short", run.size <= sort.room)
    pivot[0], in_order[0] = te.const(0, sort.coding.word), ZERO
    equal = ib.let("equal", run.least == run.most)
    equals = tir.any(run.kind == EQUALS, run.kind == EQUALS_AGAIN)
    with ib.if_scope(tir.all(tir.any(equals, run.kind == HALVES, equal), tir.Not(short))):
        between = tir.Select(equals, run.least, _between(run.least, run.most))
        pivot[0], in_order[0] = between + 1, equal.astype("int32")
        with ib.for_range(0, te.min(VECTORS, run.size), name="i") as i:
            ordered.store(i, (tir.Broadcast(run.least, sort.lanes),))
    with ib.else_scope():
        _load(sort, run, short, some)
        sort_in_registers(some, short)
        with ib.if_scope(short):
            transpose(some, ordered)
            in_order[0] = te.const(1, "int32")
        with ib.else_scope():
            pivot[0] = te.max(_quantile(sort, run, some), run.least + 1)
    with ib.if_scope(in_order[0] == 0):
        _part(sort, run, ib.let("pivot", pivot[0]), waiting, parts, held)
    with ib.else_scope():
        _emit(sort, run, ordered)


def _emit(sort: _QuickSort, run: _Run, ordered: Columns) -> None:
    """Emits a short run that `ordered` has in order, or a long one of equal words, which fill it."""
    ib, lanes = sort.ib, sort.lanes
    (whole,) = _cells(ib, "whole", run.size // lanes)
    with ib.for_range(0, whole[0], name="i") as i, sort.lane() as lane:
        sort.emit(run.rank + (i * lanes + lane), ordered.word(i % VECTORS * lanes + lane))
    at = ib.let("at", whole[0])
    with sort.lane() as lane, ib.if_scope(at * lanes + lane < run.size):
        sort.emit(run.rank + (at * lanes + lane), ordered.word(at % VECTORS * lanes + lane))


def _load(sort: _QuickSort, run: _Run, short: Any, some: Columns) -> None:
    """Loads a short run, or a sample of a long one: vectors that are evenly spaced, or AGAIN ever farther apart, lest distances
    are periods of the words.

    Those of elements that are not yet words become words at the beginning of the run, whether or not it is short.
    """
    ib, lanes, words = sort.ib, sort.lanes, sort.words
    again = run.kind == AGAIN
    gaps = tir.Select(again, te.const(VECTORS * (VECTORS - 1) // 2, "int32"), te.const(VECTORS - 1, "int32"))
    nearest = tir.Select(short, te.const(lanes, "int32"), te.const(1, "int32"))
    at, apart, more = _cells(ib, "at", run.data, te.max((run.size - lanes) // gaps, nearest), ZERO)
    with ib.if_scope(tir.all(again, tir.Not(short))):
        more[0] = apart[0]
    with ib.if_scope(run.kind == UNREAD):
        at[0] = ZERO
        with ib.for_range(0, VECTORS, name="i") as i:
            first = ib.let("first", at[0])
            with sort.lane() as lane, ib.if_scope(first + lane < run.size):
                words[run.data + i * lanes + lane] = sort.taken(first + lane)
            at[0] = first + apart[0]
        at[0], apart[0] = run.data, te.const(lanes, "int32")
    (odd,), (last,) = masks(some.parts, has_bit(lanes, 1)), sort.coding.last(tir.Broadcast(ZERO, lanes))
    turned = ib.let("turned", odd & tir.Broadcast(0 - short.astype(sort.coding.word), lanes))
    with ib.for_range(0, te.min(VECTORS, run.size), name="i") as i:
        first = ib.let("first", at[0])
        some.store(i, (words[consecutive(first, lanes)] ^ turned,))
        at[0] = first + apart[0]
        apart[0] = apart[0] + more[0]
        if sort.ahead is not None:
            prefetch(ib, sort.ahead(run.rank + i * lanes), writes=True)
    with ib.if_scope(short), ib.for_range(run.size // lanes, VECTORS, name="i") as i:  # what lies behind the run comes last
        holds = consecutive(i * lanes, lanes) < tir.Broadcast(run.size, lanes)
        (word,) = some.load(i)
        some.store(i, (tir.Select(holds, word, last ^ odd),))


def _cells(ib: Any, name: str, *values: Any) -> list[Any]:
    """Memory for integers, which begin with `values`. What is loaded from it is named, not computed again."""
    cells = [ib.allocate("int32", (1,), name=name, scope="local") for _ in values]
    for cell, value in zip(cells, values):
        cell[0] = value
    return cells


def _quantile(sort: _QuickSort, run: _Run, sample: Columns) -> Any:
    """A pivot from a sample with sorted columns, so that both parts of a run fill networks well in the end: the mean over the
    columns of what stands between two rows.
    """
    ib = sort.ib
    goal = int(FULL * sort.room)
    parts = ib.let("parts", te.min((run.size + goal - 1) // goal, 4 * VECTORS))  # networks for the run
    row = ib.let("row", (VECTORS * (parts // 2) + parts // 2) // parts)
    (below,), (above,) = sample.load(row - 1), sample.load(row)
    return _of_lanes(ib, _between, _between(below, above), sort.lanes)


def _between(a: Any, b: Any) -> Any:
    """The mean of two words, rounded down."""
    return (a & b) + ((a ^ b) >> 1)


def _of_lanes(ib: Any, of: Callable[[Any, Any], Any], vector: Any, lanes: int) -> Any:
    """What `of` makes of the lanes of a vector: of both halves, of the halves of that, and so on."""
    while lanes > 1:
        lanes //= 2
        vector = ib.let("v", vector)
        vector = of(*[shuffled((vector,), range(first, first + lanes)) for first in (0, lanes)])
    return vector


def _part(sort: _QuickSort, run: _Run, pivot: Any, waiting: _Runs, parts: Any, held: Any) -> None:
    """Parts a run into words that are less than the pivot, which are sorted next, and others, which wait.

    parts: 1 if both are to be sorted at once, so that none may use the memory of the other. held: memory for three blocks, if
    runs that do not stay in the nearest cache beside their free memory are parted in place.
    """
    ib = sort.ib
    ends = _cells(ib, "end", run.free, run.data)  # of the lesser words and of the others so far
    inside = None
    if held is None:
        _stream(sort, run, pivot, *ends)
    else:
        near = target().machine.l1.size // (2 * te.const(0, sort.coding.word).dtype.bytes)
        inside = ib.let("inside", tir.all(run.kind != UNREAD, run.size > near).astype("int32")) == 1
        with ib.if_scope(inside):
            ends[0][0] = run.data
            _exchange(sort, run, pivot, ends[0], held)
            ends[0][0] = ends[0][0] + (run.free - run.data)  # as many as if they were stored there
        with ib.else_scope():
            _stream(sort, run, pivot, *ends)
    low = ib.let("low", ends[0][0] - run.free)
    few, high = run.size // 8, ib.let("high", run.size - low)
    good, equals, again, equals_again, halves = (te.const(k, "int32") for k in (GOOD, EQUALS, AGAIN, EQUALS_AGAIN, HALVES))
    after = tir.Select(run.kind < EQUALS, equals, tir.Select(run.kind == HALVES, equals_again, run.kind + 1))

    def where(here: Any, there: Any) -> Any:
        """`here` if the run was parted in place, else `there`."""
        return there if inside is None else tir.Select(inside, here, there)

    lesser = _Run(where(run.data, run.free), where(run.free, run.data + high), low, run.rank,
                  tir.Select(high < few, tir.Select(run.kind < AGAIN, again, halves), good), run.least, pivot - 1)
    others = _Run(where(run.data + low, run.data), where(run.free + low, run.free + parts * low), high, run.rank + low,
                  tir.Select(low < few, after, good), pivot, run.most)
    for child in (others, lesser):
        with ib.if_scope(tir.all(child.size > 0, child.rank < sort.last)):
            waiting.append(child)


def _stream(sort: _QuickSort, run: _Run, pivot: Any, low_end: Any, high_end: Any) -> None:
    """Stores the words of a run behind the lesser words or behind the others."""
    ib, lanes, words = sort.ib, sort.lanes, sort.words
    pivots = ib.let("pivots", tir.Broadcast(pivot, lanes))
    (at,) = _cells(ib, "at", run.data)  # the next word

    def put(value: Any) -> None:
        value = ib.let("v", value)
        low, high, less = ib.let("low", low_end[0]), ib.let("high", high_end[0]), ib.let("less", value < pivots)
        words[consecutive(low, lanes)] = te.compress_lanes(value, less)
        words[consecutive(high, lanes)] = te.compress_lanes(value, tir.Not(less))
        low_end[0], high_end[0] = low + _number(less), high + (lanes - _number(less))

    with ib.if_scope(run.kind == UNREAD):  # their loads wait for no stores
        whole = ib.let("whole", run.size // lanes)
        with ib.for_range(0, whole, name="i") as i:
            put(sort.taken(consecutive(i * lanes, lanes)))
        at[0] = run.data + whole * lanes
        with sort.lane() as lane, ib.if_scope(whole * lanes + lane < run.size):
            words[at[0] + lane] = sort.taken(whole * lanes + lane)
    with ib.else_scope(), ib.for_range(0, run.size // (TOGETHER * lanes), name="i"):
        first = ib.let("first", at[0])
        values = ib.allocate(pivots.dtype, (TOGETHER,), name="values", scope="local")
        with ib.for_range(0, TOGETHER, name="k", kind="unroll") as k:
            values[k] = words[consecutive(first + k * lanes, lanes)]
        with ib.for_range(0, TOGETHER, name="k", kind="unroll") as k:
            put(values[k])
        at[0] = first + TOGETHER * lanes
    _last_vectors(sort, pivots, at, run.data + run.size, (low_end, high_end))


def _exchange(sort: _QuickSort, run: _Run, pivot: Any, low_end: Any, held: Any) -> None:
    """Parts a run in place: blocks are read from both of its ends, from that which has less room, and stored to both. At first
    a block of each end, and what leaves no whole blocks, are `held`.
    """
    ib, lanes, words, block = sort.ib, sort.lanes, sort.words, sort.block
    pivots = ib.let("pivots", tir.Broadcast(pivot, lanes))
    rest = ib.let("rest", run.size % block)
    end = ib.let("end", run.data + run.size)
    left, right, high_end = _cells(ib, "left", run.data + block, end - block - rest, end)
    with ib.for_range(0, TOGETHER, name="i") as i:
        held[consecutive(i * lanes, lanes)] = words[consecutive(run.data + i * lanes, lanes)]
    with ib.for_range(0, (block + rest + lanes - 1) // lanes, name="i") as i:
        held[consecutive(block + i * lanes, lanes)] = words[consecutive(end - block - rest + i * lanes, lanes)]
    with ib.for_range(0, run.size // block - 2, name="i"):
        low, high, now, then = (ib.let(name, cell[0]) for name, cell in (
            ("low", low_end), ("high", high_end), ("left", left), ("right", right)))
        from_left = ib.let("from_left", (now - low <= high - then).astype("int32"))
        first = ib.let("first", tir.Select(from_left == 1, now, then - block))
        left[0], right[0] = now + from_left * block, then - (1 - from_left) * block
        values = ib.allocate(pivots.dtype, (TOGETHER,), name="values", scope="local")
        with ib.for_range(0, TOGETHER, name="k", kind="unroll") as k:
            values[k] = words[consecutive(first + k * lanes, lanes)]
        with ib.for_range(0, TOGETHER, name="k", kind="unroll") as k:
            value = ib.let("v", values[k])
            low, high, less = ib.let("low", low_end[0]), ib.let("high", high_end[0]), ib.let("less", value < pivots)
            number = ib.let("number", _number(less))
            words[consecutive(low, lanes)] = te.compress_lanes(value, less)
            _store_first(sort, high - (lanes - number), value, tir.Not(less), lanes - number)
            low_end[0], high_end[0] = low + number, high - (lanes - number)
    with ib.for_range(0, (2 * block + rest + lanes - 1) // lanes, name="i") as i:
        holds = ib.let("holds", consecutive(i * lanes, lanes) < tir.Broadcast(2 * block + rest, lanes))
        value = ib.let("v", held[consecutive(i * lanes, lanes)])
        less = ib.let("less", (value < pivots) & holds)
        others = ib.let("others", tir.Not(less) & holds)
        low, high, few, many = ib.let("low", low_end[0]), ib.let("high", high_end[0]), _number(less), _number(others)
        _store_first(sort, low, value, less, few)
        _store_first(sort, high - many, value, others, many)
        low_end[0], high_end[0] = low + few, high - many


def _store_first(sort: _QuickSort, to: Any, value: Any, mask: Any, count: Any) -> None:
    """Stores the lanes that `mask` chooses, which are `count`, and nothing behind them."""
    lanes = sort.lanes
    on = consecutive(ZERO, lanes) < tir.Broadcast(count, lanes)
    sort.ib.emit(tir.Store(sort.words.as_expr(), te.compress_lanes(value, mask), consecutive(to, lanes), on))


def _last_vectors(sort: _QuickSort, pivots: Any, at: Any, end: Any, ends: Sequence[Any]) -> None:
    """Stores what is left of a run: the words from at[0] to `end`, and nothing beyond `ends`, where other words may be."""
    ib, lanes, words = sort.ib, sort.lanes, sort.words
    (behind,) = _cells(ib, "behind", end)
    with ib.while_loop(at[0] < behind[0]):
        first = ib.let("first", at[0])
        holds = ib.let("holds", consecutive(first, lanes) < tir.Broadcast(behind[0], lanes))
        value = ib.let("v", tir.Load(pivots.dtype, words.as_expr(), consecutive(first, lanes), holds))
        less = ib.let("less", value < pivots)
        for cell, belongs in zip(ends, (less & holds, tir.Not(less) & holds)):
            mask, to = ib.let("mask", belongs), ib.let("to", cell[0])
            stop = ib.let("stop", to + _number(mask))
            packed, place = te.compress_lanes(value, mask), consecutive(to, lanes)
            ib.emit(tir.Store(words.as_expr(), packed, place, place < tir.Broadcast(stop, lanes)))
            cell[0] = stop
        at[0] = first + lanes


def _number(mask: Any) -> Any:
    """In how many lanes a condition holds."""
    return te.popcount(te.lane_mask(mask)).astype("int32")
