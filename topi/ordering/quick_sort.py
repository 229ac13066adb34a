"""Quick sort of words in memory, for machines that pack the lanes of a vector where a condition holds by one instruction.

A run of words is parted by a pivot: the lanes of its vectors that are less are packed and stored to free memory, the others to
where the run itself begins, as far as it has been read. So each run has its words in one place, and free memory in another:

    words 5 1 7 2 6 3    pivot 4, lanes 2    words 5 7 6 . . .    two runs    words 1 2 3   free (behind 5 7 6)
    free  . . . . . .                        free  1 2 3 . . .                words 5 7 6   free (of 1 2 3, after these)

Runs of a few vectors are sorted by a network in registers. Its first half also finds pivots: the median over the lanes of a row
of a sample that has been sorted in columns. If a pivot leaves out less than an eighth of a run, the next one lies in the middle
between its least and its greatest word, so that no order of words takes more passes than twice the bits of a word.

On several threads the row is first parted on one of them, and then each part is sorted by one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tedsl import te, tir
from tedsl.record import record
from topi.ordering.keys import Coding
from topi.ordering.network import (
    Columns,
    consecutive,
    fill,
    in_its_lane,
    merge_columns,
    sorted_columns,
    sorted_lanes,
    transpose,
    vectors,
)
from topi.ordering.radix_sort import TRUST, ZERO, Emit, target
from topi.statements import prefetch

VECTORS = 16  # that a network sorts in registers: half of those with AVX-512
TOGETHER = 8  # vectors that are compared before the first of them is stored, so that loads do not wait for stores
FULL = 0.92  # of what a network sorts should be words, not what fills it up: parts are not exactly as long as they should be
TASKS = 4  # parts for each thread
MOST_TASKS = 512
STACK = 320  # runs that wait: one for each pivot on the way to a run, at most 64 from the middle, as many before, 126 good ones
GOOD, BAD, UNREAD = 0, 1, 2  # BAD: the pivot before left out little; UNREAD: elements that are not yet words


@record
class _Run:
    """Words at `data`, and free memory at `free`, both of `size`; the rank of the least; GOOD, BAD or UNREAD."""

    data: Any
    free: Any
    size: Any
    rank: Any
    kind: Any

    @property
    def fields(self) -> tuple[Any, ...]:
        return self.data, self.free, self.size, self.rank, self.kind


@record
class _Runs:
    """A list of runs in memory, and how many it has."""

    ib: Any
    memory: Any
    count: Any

    def append(self, run: _Run) -> None:
        at = self.ib.let("at", self.count[0] * len(run.fields))
        for k, value in enumerate(run.fields):
            self.memory[at + k] = value
        self.count[0] = self.count[0] + 1

    def run(self, number: Any) -> _Run:
        return _Run(*[self.ib.let(name, self.memory[number * 5 + k])
                      for k, name in enumerate(("data", "free", "size", "rank", "kind"))])

    def pop(self) -> _Run:
        self.count[0] = self.count[0] - 1
        return self.run(self.count[0])


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

    def vectors(self, count: Any) -> Any:
        """A loop over the positions below `count`, in vectors."""
        return vectors(self.ib, count, self.lanes)

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
    words = ib.allocate(coding.word, (2 * extent,), name="words")
    ib.scope_attr(words, *TRUST)
    sort = _QuickSort(ib, coding, target().vector_lanes(coding.word), words, read, emit, last, ahead)
    whole = _Run(_int32(extent), ZERO, ib.let("count", _int32(count)), ZERO, te.const(UNREAD, "int32"))
    if chunks is None:
        _sort(sort, whole, None, 0, ZERO)
        return
    tasks = _runs(ib, "tasks", MOST_TASKS)
    tasks.append(whole)
    limit = ib.let("limit", te.max(whole.size // (TASKS * chunks), sort.room))
    with ib.for_range(0, 2, name="phase") as phase:  # the whole is parted; the parts are sorted
        behind = ib.let("behind", tasks.count[0])
        with ib.for_range(0, behind - phase, name="task", kind="parallel") as task:
            _sort(sort, tasks.run(phase + task), tasks, 1 - phase, limit)


def _int32(value: Any) -> Any:
    return te.const(value, "int32") if isinstance(value, int) else value.astype("int32")


def _runs(ib: Any, name: str, room: int) -> _Runs:
    memory, count = ib.allocate("int32", (5 * room,), name=name), ib.allocate("int32", (1,), name="count")
    for part in (memory, count):
        ib.scope_attr(part, *TRUST)
    count[0] = ZERO
    return _Runs(ib, memory, count)


def _sort(sort: _QuickSort, whole: _Run, tasks: _Runs | None, parts: Any, limit: Any) -> None:
    """Sorts a run; where `parts` is 1 its parts of at most `limit` words are appended to `tasks` instead, if there is room."""
    ib = sort.ib
    waiting = _runs(ib, "waiting", STACK)
    waiting.append(whole)
    memory = [ib.allocate(sort.coding.word, (sort.room,), name=name) for name in ("some", "ordered")]
    for part in memory:
        ib.scope_attr(part, *TRUST)
    some, ordered = (Columns(ib, (part,), sort.lanes, VECTORS) for part in memory)
    with ib.while_loop(waiting.count[0] > 0):
        run = waiting.pop()
        if tasks is None:
            _step(sort, run, waiting, some, ordered, parts)
        else:
            with ib.if_scope(tir.all(parts == 1, run.size <= limit, run.size < whole.size, tasks.count[0] < MOST_TASKS)):
                tasks.append(run)
            with ib.else_scope():
                _step(sort, run, waiting, some, ordered, parts)


def _step(sort: _QuickSort, run: _Run, waiting: _Runs, some: Columns, ordered: Columns, parts: Any) -> None:
    """Emits a run if it is short or all of its words are equal; else parts it."""
    ib = sort.ib
    pivot = ib.allocate(sort.coding.word, (1,), name="pivot", scope="local")
    emitted = ib.allocate("int32", (1,), name="emitted", scope="local")
    short = ib.let("short", run.size <= sort.room)
    pivot[0], emitted[0] = te.const(0, sort.coding.word), ZERO
    with ib.if_scope(tir.all(run.kind == BAD, tir.Not(short))):
        _middle(sort, run, pivot, emitted)
    with ib.else_scope():
        with ib.if_scope(short):
            _load_all(sort, run, some)
            if sort.ahead is not None:
                line = target().machine.line // sort.coding.dtype.bytes
                with ib.for_range(0, run.size // line, name="i") as i:
                    prefetch(ib, sort.ahead(run.rank + i * line), writes=True)
        with ib.else_scope():
            _load_sample(sort, run, some)
        columns = sorted_columns(some)
        with ib.if_scope(short):
            merge_columns(some, columns)
            transpose(some, ordered)
            with sort.vectors(run.size) as t:
                sort.emit(run.rank + t, ordered.word(t))
            emitted[0] = te.const(1, "int32")
        with ib.else_scope():
            for i, word in enumerate(columns):
                some.store(te.const(i, "int32"), word)
            pivot[0] = _median(sort, run, some)
    with ib.if_scope(emitted[0] == 0):
        _part(sort, run, ib.let("pivot", pivot[0]), waiting, parts)


def _load_all(sort: _QuickSort, run: _Run, some: Columns) -> None:
    fill(sort.coding, some, run.size)
    with sort.ib.if_scope(run.kind == UNREAD), sort.vectors(run.size) as t:
        some.put(t, in_its_lane((sort.taken(t),), t))
    with sort.ib.else_scope(), sort.vectors(run.size) as t:
        some.put(t, in_its_lane((sort.words[run.data + t],), t))


def _load_sample(sort: _QuickSort, run: _Run, some: Columns) -> None:
    """Loads vectors that are evenly spaced."""
    ib = sort.ib
    step = ib.let("step", (run.size - sort.lanes) // (VECTORS - 1))
    with ib.if_scope(run.kind == UNREAD), ib.for_range(0, VECTORS, name="i") as i:
        some.store(i, (sort.taken(consecutive(i * step, sort.lanes)),))
    with ib.else_scope(), ib.for_range(0, VECTORS, name="i") as i:
        some.store(i, (sort.words[consecutive(run.data + i * step, sort.lanes)],))


def _median(sort: _QuickSort, run: _Run, sample: Columns) -> Any:
    """A pivot between two rows of a sample with sorted columns, so that both parts of a run fill networks well in the end."""
    ib = sort.ib
    goal = int(FULL * sort.room)
    parts = ib.let("parts", te.min((run.size + goal - 1) // goal, 4 * VECTORS))  # networks for the run
    row = ib.let("row", (VECTORS * (parts // 2) + parts // 2) // parts)
    (below,), (above,) = sample.load(row - 1), sample.load(row)
    (lanes,) = sorted_lanes(ib, (_between(below, above),), sort.lanes)
    return tir.Shuffle((lanes,), (te.const(sort.lanes // 2, "int32"),))


def _between(a: Any, b: Any) -> Any:
    """The mean of two words, rounded down."""
    return (a & b) + ((a ^ b) >> 1)


def _middle(sort: _QuickSort, run: _Run, pivot: Any, emitted: Any) -> None:
    """Finds a pivot behind the middle of the least and the greatest word; if these are equal, emits the run."""
    ib = sort.ib
    ends = ib.allocate(sort.coding.word, (2,), name="ends", scope="local")
    ends[0] = ends[1] = sort.words[run.data]
    with ib.for_range(1, run.size, name="t") as t:
        word = ib.let("word", sort.words[run.data + t])
        ends[0], ends[1] = te.min(ends[0], word), te.max(ends[1], word)
    with ib.if_scope(ends[0] == ends[1]):
        with sort.vectors(run.size) as t:
            sort.emit(run.rank + t, (sort.words[run.data + t],))
        emitted[0] = te.const(1, "int32")
    with ib.else_scope():
        pivot[0] = _between(ends[0], ends[1]) + 1


def _part(sort: _QuickSort, run: _Run, pivot: Any, waiting: _Runs, parts: Any) -> None:
    """Parts a run into words that are less than the pivot, which are sorted next, and others, which wait.

    parts: 1 if both are to be sorted at once, so that none may use the memory of the other.
    """
    ib, words = sort.ib, sort.words
    sizes = ib.allocate("int32", (2,), name="sizes", scope="local")  # of the lesser words, of the others
    sizes[0], sizes[1] = ZERO, ZERO
    with ib.if_scope(run.kind == UNREAD):
        _stream(sort, run, pivot, sizes, sort.taken)
    with ib.else_scope():
        _stream(sort, run, pivot, sizes, lambda t: words[run.data + t])
    low, high = ib.let("low", sizes[0]), ib.let("high", sizes[1])
    most = ib.let("most", run.size - run.size // 8)
    lesser = _Run(run.free, run.data + high, low, run.rank, (low > most).astype("int32"))
    others = _Run(run.data, run.free + parts * low, high, run.rank + low, (high > most).astype("int32"))
    for child in (others, lesser):
        with ib.if_scope(tir.all(child.size > 0, child.rank < sort.last)):
            waiting.append(child)


def _stream(sort: _QuickSort, run: _Run, pivot: Any, sizes: Any, word: Callable[[Any], Any]) -> None:
    """Stores the words `word(0)`, ... of a run by whether they are less than the pivot, and counts both."""
    ib, lanes, words = sort.ib, sort.lanes, sort.words
    pivots = ib.let("pivots", tir.Broadcast(pivot, lanes))

    def put(first: Any, count: int) -> None:
        values = [ib.let("v", word(consecutive(first + k * lanes, lanes))) for k in range(count)]
        masks = [ib.let("less", value < pivots) for value in values]
        counts = [ib.let("count", te.popcount(te.lane_mask(mask)).astype("int32")) for mask in masks]
        for value, mask, lesser in zip(values, masks, counts):
            words[consecutive(run.free + sizes[0], lanes)] = te.compress_lanes(value, mask)
            words[consecutive(run.data + sizes[1], lanes)] = te.compress_lanes(value, tir.Not(mask))
            sizes[0] = sizes[0] + lesser
            sizes[1] = sizes[1] + (lanes - lesser)

    together = TOGETHER * lanes
    with ib.for_range(0, run.size // together, name="i") as i:
        put(i * together, TOGETHER)
    with ib.for_range(run.size // together * TOGETHER, run.size // lanes, name="i") as i:
        put(i * lanes, 1)
    with ib.for_range(run.size // lanes * lanes, run.size, name="t") as t:
        last = ib.let("word", word(t))
        words[run.free + sizes[0]] = last
        words[run.data + sizes[1]] = last
        less = ib.let("less", (last < pivot).astype("int32"))
        sizes[0] = sizes[0] + less
        sizes[1] = sizes[1] + (1 - less)
