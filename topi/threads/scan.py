"""Running sums, products, ... of rows by blocks of threads.

A block takes a tile of a row: each thread joins its own few elements, the results of the threads are scanned in shared memory,
and each thread goes through its elements again. What stands before the tile is carried. Few long rows are cut into chunks, for
three kernels: the total of each chunk, their running totals, and each chunk from its own.

Rows that do not run along the last dimension, of which there are many, have a thread each: neighbours read neighbours.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from tedsl import te
from tedsl.record import record
from topi.extents import as_int, product
from topi.threads.launch import TRUST, as_data, each, launch, row_place

_THREADS = 256  # of a block at most
_OWN = (1, 3, 5, 7)  # elements of a thread in a tile: odd, so that threads meet in no bank of shared memory
_WARP = 32  # rows that are neighbours, for a thread each
_CHUNK = 4  # tiles of a chunk
_BLOCKS = 64  # rows that occupy a device


@record
class Scan:
    """Running results of the rows of a tensor of `shape` along dimension `along`.

    read(at) is the element at indices `at`, of the dtype of `start`; write(at, value) is called with the running result of each
    element: that of the elements up to it, or, if `exclusive`, before it. joined(a, b) joins two results.
    """

    ib: Any
    shape: Sequence[Any]
    along: int
    read: Callable[[tuple[Any, ...]], Any]
    write: Callable[[tuple[Any, ...], Any], None]
    joined: Callable[[Any, Any], Any]
    start: Any
    exclusive: bool = False

    @property
    def extent(self) -> Any:
        return self.shape[self.along]

    @property
    def rows(self) -> Any:
        """The number of rows."""
        return product([*self.shape[:self.along], *self.shape[self.along + 1:]])


@record
class _Tile:
    """The part of a row that a block takes at a time: `own` elements of each of its threads."""

    threads: int
    own: int

    @property
    def size(self) -> int:
        return self.threads * self.own


def scan_rows(scan: Scan, threads: int, shared: int) -> None:
    """Launches kernels that compute the running results of all rows, of blocks of at most so many threads and bytes of shared
    memory.
    """
    threads = max(1, min(threads, shared // ((_OWN[-1] + 2) * scan.start.dtype.bits // 8)))
    extent, rows = as_int(scan.extent), as_int(scan.rows)
    inner = as_int(product(scan.shape[scan.along + 1:]))
    if inner is None or inner >= _WARP or (extent is not None and extent < 4):
        _row_by_thread(scan, threads)
        return
    tile = _tile(extent, threads)
    if (extent is None or extent > 2 * _CHUNK * tile.size) and (rows is None or rows < _BLOCKS):
        _in_chunks(scan, tile)
    else:
        with launch(scan.ib, scan.rows, tile.threads) as (row, thread):
            place = row_place(scan.shape, scan.along, row)
            _through(scan, tile, thread, (0, _tiles(scan.extent, tile)), scan.start, lambda t: scan.read(place(t)),
                     lambda t, value: scan.write(place(t), value))


def _tile(extent: int | None, threads: int) -> _Tile:
    count = 1 << min(threads, _THREADS).bit_length() - 1
    if extent is None:
        return _Tile(count, _OWN[-1])
    while count > 32 and count // 2 >= extent:
        count //= 2
    return _Tile(count, next((own for own in _OWN if count * own >= extent), _OWN[-1]))


def _next_in_place(scan: Scan, total: Any, elements: Any, at: Any) -> None:
    """Puts the running result that is wanted in the place of element `at`."""
    def write(value: Any) -> None:
        elements[at] = value

    _next(scan, total, scan.ib.let("value", elements[at]), write)


def _tiles(extent: Any, tile: _Tile) -> Any:
    return (extent + (tile.size - 1)) // tile.size


def _row_by_thread(scan: Scan, threads: int) -> None:
    """A kernel with a thread for each row."""
    ib = scan.ib
    with each(ib, scan.rows, threads) as row:
        place = row_place(scan.shape, scan.along, row)
        total = ib.allocate(scan.start.dtype, (1,), name="total", scope="local")
        total[0] = scan.start
        with ib.for_range(0, scan.extent, name="t") as t:
            _next(scan, total, ib.let("value", scan.read(place(t))), lambda value: scan.write(place(t), value))


def _next(scan: Scan, total: Any, value: Any, write: Callable[[Any], None]) -> None:
    """Joins `value` to the running result in `total`, and passes the result that is wanted to `write`."""
    if scan.exclusive:
        write(scan.ib.let("before", total[0]))
    total[0] = scan.joined(total[0], value)
    if not scan.exclusive:
        write(total[0])


def _in_chunks(scan: Scan, tile: _Tile) -> None:
    """Three kernels: the totals of the chunks of each row, their running totals, and the chunks from these on."""
    ib, count = scan.ib, (scan.extent + (_CHUNK * tile.size - 1)) // (_CHUNK * tile.size)
    totals = ib.allocate(scan.start.dtype, (scan.rows, count), name="totals")
    ib.scope_attr(totals, *TRUST)
    _chunk_by_block(scan, tile, count, totals, False)
    own = replace(scan, shape=(scan.rows, count), along=1, exclusive=True)
    with launch(ib, scan.rows, tile.threads) as (row, thread):
        _through(own, tile, thread, (0, _tiles(count, tile)), scan.start, lambda t: totals[as_data(ib, row, t)],
                 lambda t, value: totals.__setitem__(as_data(ib, row, t), value))
    _chunk_by_block(scan, tile, count, totals, True)


def _chunk_by_block(scan: Scan, tile: _Tile, count: Any, totals: Any, last: bool) -> None:
    """A kernel with a block for each chunk, of which there are `count` in a row.

    It stores the total of the chunk, or, if `last`, goes through it from the total of those before.
    """
    ib, size = scan.ib, _CHUNK * tile.size
    with launch(ib, scan.rows * count, tile.threads) as (block, thread):
        row, chunk = (ib.let("row", block // count), ib.let("chunk", block % count)) if as_int(count) is not None else \
            (ib.let("row", te.min(block // count, scan.rows - 1)), ib.let("chunk", te.max(block % count, 0)))
        place = row_place(scan.shape, scan.along, row)
        span = chunk * size, te.min(_CHUNK, (scan.extent - chunk * size + (tile.size - 1)) // tile.size)
        if last:
            _through(scan, tile, thread, span, totals[as_data(ib, row, chunk)], lambda t: scan.read(place(t)),
                     lambda t, value: scan.write(place(t), value))
        else:
            total = _through(scan, tile, thread, span, scan.start, lambda t: scan.read(place(t)), None)
            with ib.if_scope(thread == 0):
                totals[as_data(ib, row, chunk)] = total[0]


def _through(scan: Scan, tile: _Tile, thread: Any, span: tuple[Any, Any], start: Any, read: Callable[[Any], Any],
             write: Callable[[Any, Any], None] | None) -> Any:
    """Goes through a part of a row, from element span[0] on, span[1] tiles; returns memory of a thread with the result of all.
    write: None where only that is wanted.
    """
    ib, dtype = scan.ib, scan.start.dtype
    carried = ib.allocate(dtype, (1,), name="carried", scope="local")
    own = ib.allocate(dtype, (1,), name="own", scope="local")
    elements = ib.allocate(dtype, (tile.size,), name="elements", scope="shared")
    halves = [ib.allocate(dtype, (tile.threads,), name=name, scope="shared") for name in ("ping", "pong")]
    carried[0] = start
    with ib.for_range(0, span[1], name="tile") as number:
        first = ib.let("first", span[0] + number * tile.size)
        with ib.for_range(0, tile.own, name="k") as k:
            at = k * tile.threads + thread
            with ib.if_scope(first + at < scan.extent):
                elements[at] = read(first + at)
            with ib.else_scope():
                elements[at] = scan.start
        own[0] = elements[thread * tile.own]
        for k in range(1, tile.own):
            own[0] = scan.joined(own[0], elements[thread * tile.own + k])
        halves[0][thread] = own[0]
        sums = _over_threads(scan, tile, thread, halves)
        if write is not None:
            with ib.if_scope(thread > 0):
                own[0] = scan.joined(carried[0], sums[te.max(thread - 1, 0)])
            with ib.else_scope():
                own[0] = carried[0]
            for k in range(tile.own):
                _next_in_place(scan, own, elements, thread * tile.own + k)
            with ib.for_range(0, tile.own, name="k") as k:
                at = k * tile.threads + thread
                with ib.if_scope(first + at < scan.extent):
                    write(first + at, elements[at])
        carried[0] = scan.joined(carried[0], sums[tile.threads - 1])
    return carried


def _over_threads(scan: Scan, tile: _Tile, thread: Any, halves: Sequence[Any]) -> Any:
    """The running results of what the threads have stored in the first of two memories; returns that in which they are then."""
    source, target = halves
    distance = 1
    while distance < tile.threads:
        with scan.ib.if_scope(thread >= distance):
            target[thread] = scan.joined(source[te.max(thread - distance, 0)], source[thread])
        with scan.ib.else_scope():
            target[thread] = source[thread]
        source, target = target, source
        distance *= 2
    return source
