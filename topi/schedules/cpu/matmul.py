"""Products of matrices: a tile of the result stays in registers while the sum runs over it.

    the second matrix as it is multiplied (k, j):   an element of the first times a row of the second, added to the tile
    the same with few columns:                      rows times the columns, copied as rows: lanes along k
    the same with a single row:                     columns are added up in the order of memory
    the same with a few rows, and a large matrix:   the same, by tiles of partial sums of all rows
    the same with columns of one line of memory:    each sum in two halves, of every other term, which are added up at the end
    the second stored transposed (j, k):            rows times rows, lanes along k, where there are few rows; else as above,
                                                    from a copy whose panels lie as they are used
"""

from __future__ import annotations

from typing import Any, NamedTuple

from tedsl import te
from topi.schedules.cpu.columns import reduce_columns
from topi.schedules.cpu.dots import copy_by_groups, group_of, pack_groups, split_groups
from topi.schedules.cpu.few_rows import is_few_rows, multiply_few_rows
from topi.schedules.cpu.panels import (
    copy_of_columns,
    given_panels,
    lay_out,
    pack,
    pack_before,
    panels_beside,
    stays,
    wide_dtype,
)
from topi.schedules.cpu.parallel import SERIAL, conditions, share_out, tasks_of_tiles, whole_tiles
from topi.schedules.cpu.row_products import are_few_for_copy, are_narrow, multiply_rows, turn_columns
from topi.schedules.cpu.rows import schedule_softmax
from topi.schedules.cpu.tile_registers import PANEL, are_packed, multiplies_faster, multiply_tiles
from topi.schedules.cpu.tiles import (
    ROOM,
    divisor_near,
    divisors,
    first_tile_counts,
    next_is_asked_for,
    registers,
    registers_of_rows,
    tile_of,
)
from topi.schedules.cpu.vectors import vectorize
from topi.schedules.formulas import extent_of, product
from topi.schedules.kernel import Kernel

_SHORT = 16  # vectors of a row that is copied without a loop
_FEW_HALVED = 3  # rows of a tile
_COPIED = 16  # times the least work of a parallel loop, where a copy before it is one more
_BEFORE = 4  # rows of multiply-adds in the time that a panel takes longer to be copied before, not beside its tiles
_WORTH = 0.95  # of the time, for which the rows of a product are shared out
_BESIDE = 1.03  # of the time, if each core had one panel, beside that of another core
_NEAR, _APART = 16, 64  # terms after which a tile asks for lines: a loop over fewer costs more than it saves
_MORE = 1.1  # times the lines of a panel: fewer at a time pay, for a core waits while more are on their way than it can follow
_HALVED = 32  # terms of a sum, beside which adding two halves is little


def schedule_matmul(kernel: Kernel) -> None:
    """Schedule a matrix product by the layout of the second matrix and the number of rows that use it."""
    rows, terms = extent_of(kernel.anchor.axis[-2]), extent_of(kernel.anchor.reduce_axis[0])
    if kernel.before:
        _chain(kernel, rows)
    elif _is_by_tiles(kernel, _group(kernel)):
        multiply_tiles(kernel, _group(kernel))
    elif rows is not None and terms is not None and _group(kernel) == 1 and are_narrow(kernel, rows, terms):
        turn_columns(kernel)
        multiply_rows(kernel, rows, _work(kernel))
    elif rows == 1 and not kernel.record.transpose_b:
        reduce_columns(kernel, kernel.formula(kernel.anchor))  # memory is read in order
    elif rows is not None and terms is not None and given_panels(kernel) is None and are_few_for_copy(kernel, rows, terms):
        multiply_rows(kernel, rows, _work(kernel))
    elif is_few_rows(kernel):
        multiply_few_rows(kernel)
    else:
        _tiles(kernel, rows)


def panels_of(kernel: Kernel) -> tuple[int, int] | None:
    """The columns of the panels by which the second matrix is best packed before, and the terms of a group; None if rows are
    too few for panels to be used again, or the matrix is no constant: is not a tensor of two dimensions that is stored.
    """
    record, rows = kernel.record, extent_of(kernel.anchor.axis[-2])
    stored = record.b.ndim == 2 and isinstance(record.b.op, te.PlaceholderOp)
    if kernel.before or not stored or rows == 1 or record.transpose_a:
        return None
    group = _group(kernel)
    if group > 1:
        return (PANEL, group) if _is_by_tiles(kernel, group) else None
    return _tile(kernel, rows, are_far=_are_far(kernel))[1], 1


def _work(kernel: Kernel) -> int | None:
    if kernel.within:
        return 0
    return product([extent_of(axis) for axis in (*kernel.anchor.axis, *kernel.anchor.reduce_axis)])


# --- an element times a row ---------------------------------------------------------------------------------------------

def _tiles(kernel: Kernel, rows: int | None) -> None:
    s, tail = kernel.schedule, kernel.schedule[kernel.tail]
    group = _group(kernel)
    tall, wide = _tile(kernel, rows, group)
    halved = rows is not None and group == 1 and _may_be_halved(kernel)
    if halved:
        tall, wide = _tile_of_halves(kernel, rows or 1)
    panel = copy_of_columns(kernel) if group == 1 else _grouped(kernel, group)
    if group == 1:
        _widen_rows(kernel, wide)
    sums = _sums(kernel)
    *batch, i, j = tail.op.axis
    jo, ji = tail.split(j, factor=wide)
    io, ii = tail.split(i, factor=tall)
    chunk = _chunk_of_rows(kernel, tall, wide, is_copied=panel is not None) if group == 1 else None
    place: Any = None
    together = _panels_together(kernel, tall, wide, panel is not None, chunk) if group == 1 else 1
    outer, within = tail.split(jo, factor=together) if together > 1 else (jo, None)
    if chunk is not None:
        block, io = tail.split(io, factor=chunk.tiles)
    tiles = [io] if within is None else [within, io] if stays(kernel, wide) else [io, within]
    if chunk is not None:
        around = [outer, block] if chunk.of_panel else [block, outer]
        tail.reorder(*batch, *around, *tiles, ii, ji)
        share_out(tail, [*batch, *around[:1 + chunk.of_panel]], _work(kernel))
    else:
        tail.reorder(*batch, outer, *tiles, ii, ji)
        shared = whole_tiles(kernel, batch, outer, wide * together)
        place = share_out(tail, shared, _work(kernel))
        place = place if shared and shared[-1] is outer else outer
    if halved:
        _multiply_halves(kernel, sums, (tiles[-1], ii, ji))
    else:
        apart = None if chunk is not None else _terms_apart(kernel, tall, wide, together)
        _multiply(kernel, sums, (tiles[-1], ii, ji), group, apart)
        if apart is not None:
            tail.prefetch(kernel.record.b.op.info.panels, place, 1, spread=True)
    if panel is not None and chunk is not None:
        pack_before(kernel, s[panel], wide)
    elif panel is not None:
        s[panel].compute_at(tail, place)
        if group == 1:
            pack(s[panel], wide, together)
        else:
            pack_groups(kernel, s[panel], group)


def _widen_rows(kernel: Kernel, wide: int) -> None:
    """Have a first matrix of 16-bit floats read from a copy in the dtype of the sums, where several panels of columns use each
    element: a tile casts those of its rows one by one.
    """
    columns, dtype = extent_of(kernel.anchor.axis[-1]), wide_dtype(kernel, kernel.record.a)
    if dtype is None or (columns is not None and columns <= wide):
        return
    s = kernel.schedule
    copy = s[s.cache_read(kernel.record.a, "global", [kernel.anchor], dtype)]
    *rows, last = copy.op.axis
    vectorize(copy, last, extent_of(last), kernel.lanes(kernel.anchor))
    share_out(copy, rows, product([extent_of(axis) for axis in copy.op.axis]))


def _panels_together(kernel: Kernel, tall: int, wide: int, is_copied: bool, chunk: _Chunk | None) -> int:
    """The panels that are packed together, or that each tile of rows is multiplied with before the next one."""
    if chunk is None and is_copied:
        return 1 if kernel.record.transpose_b else panels_beside(kernel, wide, ROOM)
    if stays(kernel, wide) or (chunk is not None and chunk.of_panel) or not (is_copied or given_panels(kernel) is not None):
        return 1
    most, are_shared = kernel.target.machine.l2.size, chunk is None
    if chunk is None:
        fewer = panels_beside(kernel, wide, 2 * ROOM, most)
        if _terms_apart(kernel, tall, wide, fewer) is not None:  # beside as many that are asked for
            return fewer
    return panels_beside(kernel, wide, ROOM, most, are_shared)


class _Chunk(NamedTuple):
    """Tiles below each other that are a task, for one panel (of_panel) or for all."""

    tiles: int
    of_panel: bool


def _chunk_of_rows(kernel: Kernel, tall: int, wide: int, is_copied: bool) -> _Chunk | None:
    """The tiles of a task, where the panels are too few to be tasks for all cores; None elsewhere.

    Of all panels if possible: a last panel that is narrower is a loop of its own then, not a condition in each tile. Also where
    panels are as many as cores: two cores would write the same lines at the same time, halves of each row.
    """
    *batch, rows, columns = (extent_of(axis) for axis in kernel.tail.axis)
    around = product(batch)
    if rows is None or columns is None or around is None or (_work(kernel) or 0) < SERIAL * (_COPIED if is_copied else 1):
        return None
    panels, tiles, cores = -(-columns // wide), -(-rows // tall), kernel.target.machine.cores
    now = -(-around * panels // cores) * tiles
    of_all, of_one = tasks_of_tiles(kernel.target, around, tiles), tasks_of_tiles(kernel.target, around * panels, tiles)
    slower = 1 if columns % wide == 0 else conditions(kernel.target, of_vectors=True)
    times = {_Chunk(of_all.size, False): of_all.time * panels, _Chunk(of_one.size, True): of_one.time * slower}
    best = min(times, key=lambda chunk: times[chunk])
    copies = around * panels * _BEFORE / tall / cores if is_copied else 0
    beside = not best.of_panel and panels > 1 and around * panels <= cores
    return best if times[best] + copies <= (_BESIDE if beside else _WORTH) * now else None


def _are_far(kernel: Kernel) -> bool:
    """Whether panels that were packed before come from beyond the second cache."""
    columns, terms = extent_of(kernel.anchor.axis[-1]), extent_of(kernel.anchor.reduce_axis[0])
    size = None if columns is None or terms is None else columns * terms * kernel.record.b.dtype.bytes
    return size is not None and size > kernel.target.machine.l2.size // ROOM


def _tile(kernel: Kernel, rows: int | None, group: int = 1, block: int | None = None, are_far: bool = False) -> tuple[int, int]:
    terms = extent_of(kernel.anchor.reduce_axis[0])
    steps = None if terms is None else -(-terms // group)
    return tile_of(rows, extent_of(kernel.tail.axis[-1]), steps, kernel.lanes(kernel.anchor), kernel.target,
                   embeds=group == 1, panel=given_panels(kernel) if group == 1 else None, block=block, are_far=are_far)


def _is_by_tiles(kernel: Kernel, group: int) -> bool:
    """Whether tile registers multiply the matrices."""
    record = kernel.record
    return multiplies_faster(kernel, (record.a.dtype, record.b.dtype), extent_of(kernel.anchor.reduce_axis[0]), group)


def _group(kernel: Kernel) -> int:
    record = kernel.record
    b = record.b.op.info.panels if are_packed(kernel) else record.b
    return group_of(kernel, kernel.read(record.a), kernel.read(b), kernel.anchor.reduce_axis[0].dom.extent)


def _grouped(kernel: Kernel, group: int) -> Any:
    """The copy of the columns that a tile uses, by groups of terms; a first matrix that is stored transposed is turned
    before.
    """
    record = kernel.record
    if record.transpose_a:
        s = kernel.schedule
        turned = s.cache_read(record.a, "global", [kernel.anchor])
        s[turned].transform_layout(lambda *at: [*at[:-2], at[-1], at[-2]])
        s[turned].vectorize(s[turned].split(s[turned].leaf_iter_vars[-1], factor=kernel.lanes(kernel.anchor))[1])
    terms, columns = (-1, -2) if record.transpose_b else (-2, -1)
    return copy_by_groups(kernel, record.b, terms, columns, group)


def _sums(kernel: Kernel) -> Any:
    """The operation that holds the sums of a tile."""
    return kernel.anchor if kernel.fused else kernel.schedule.cache_write(kernel.tail.output(0), "local").op


def _terms_apart(kernel: Kernel, tall: int, wide: int, together: int) -> int | None:
    """The terms after which a tile asks for the next lines of the panels that follow, if these were packed before and come from
    beyond the second cache: the least divisor of all with which about all lines are asked for once.

    None where the second cache does not hold both, or there are so many tiles that the first one, which waits for memory, does
    not count.
    """
    rows, columns, terms = (extent_of(axis) for axis in (*kernel.anchor.axis[-2:], kernel.anchor.reduce_axis[0]))
    if given_panels(kernel) is None or rows is None or columns is None or terms is None or not _are_far(kernel):
        return None
    element, machine = kernel.record.b.dtype.bytes, kernel.target.machine
    panels = terms * wide * together * element
    if columns <= wide * together or not first_tile_counts(rows, tall) or not next_is_asked_for(panels, kernel.target):
        return None
    lines = max(1, terms * wide * element // machine.line)
    asks = {apart: -(-rows // tall) * (terms // apart) for apart in divisors(terms) if _NEAR <= apart <= _APART}
    asked = {apart: -(-lines // count) * count for apart, count in asks.items() if count <= lines}
    return min(asked, key=lambda apart: (asked[apart] > _MORE * lines, apart), default=None)


def _multiply(kernel: Kernel, sums: Any, loops: tuple[Any, Any, Any], group: int = 1, apart: int | None = None) -> None:
    """Keep the sums of a tile in registers. loops: over the tiles below each other, over the rows and the columns of a tile.
    group: the terms of a step; apart: those of an inner loop.
    """
    s, tail = kernel.schedule, kernel.schedule[kernel.tail]
    io, ii, ji = loops
    tail.unroll(ii)
    tail.vectorize(ji)
    s[sums].compute_at(tail, io)
    (k,) = s[sums].op.reduce_axis
    steps, terms = split_groups(s[sums], k, group) if apart is None else (list(s[sums].split(k, factor=apart)), [])
    *rest, i, j = s[sums].op.axis
    s[sums].reorder(*rest, *steps, i, *terms, j)
    s[sums].unroll(i)
    s[sums].vectorize(j)


def _may_be_halved(kernel: Kernel) -> bool:
    """Whether registers hold a second sum of each element of a tile as wide as a line: that is as fast, and rounds less. Not
    where they hold few rows of it, since the columns are parted into many vectors.
    """
    columns, terms = extent_of(kernel.tail.axis[-1]), extent_of(kernel.anchor.reduce_axis[0])
    if columns is None or terms is None:
        return False
    fits = columns * kernel.anchor.output(0).dtype.bits // 8 <= kernel.target.machine.line
    return fits and terms >= _HALVED and terms % 2 == 0 and _rows_of_halves(kernel) >= _FEW_HALVED


def _rows_of_halves(kernel: Kernel) -> int:
    """The rows of which registers hold two halves of each sum, where a tile is as wide as the result."""
    columns, lanes = extent_of(kernel.tail.axis[-1]) or 1, kernel.lanes(kernel.anchor)
    held = max(row for _, row in registers_of_rows(columns, -(-columns // lanes), lanes, kernel.target.has_mask_registers))
    return (registers(kernel.target) - held - 1) // (2 * held)


def _tile_of_halves(kernel: Kernel, rows: int) -> tuple[int, int]:
    """The rows and columns of a tile whose sums have two halves: rows that fit the registers, in tiles of one size."""
    lanes = kernel.lanes(kernel.anchor)
    return -(-rows // -(-rows // _rows_of_halves(kernel))), -(-(extent_of(kernel.tail.axis[-1]) or 1) // lanes) * lanes


def _multiply_halves(kernel: Kernel, sums: Any, loops: tuple[Any, Any, Any]) -> None:
    """Do what `_multiply` does, with two sums for each element."""
    s, tail = kernel.schedule, kernel.schedule[kernel.tail]
    io, ii, ji = loops
    tail.unroll(ii)
    tail.vectorize(ji)
    (k,) = s[sums].op.reduce_axis
    _, half = s[sums].split(k, factor=2)
    partial = s.rfactor(sums.output(0), half, len(sums.axis) - 2).op
    for op in (partial, sums):
        stage = s[op]
        stage.compute_at(tail, io)
        *rest, i, j = stage.op.axis
        (loop,) = stage.op.reduce_axis
        halves = rest.pop() if op is partial else loop
        stage.reorder(*rest, *([loop] if op is partial else []), halves, i, j)
        for axis in (halves, i):
            stage.unroll(axis)
        stage.vectorize(j)


# --- after a softmax of another product ---------------------------------------------------------------------------------

def _chain(kernel: Kernel, rows: int | None) -> None:
    """Compute the product by blocks of rows, each after its rows of the first operand; copies serve all blocks of a batch."""
    s, tail = kernel.schedule, kernel.schedule[kernel.tail]
    block = _rows_of_block(kernel, _tile(kernel, rows)[0])
    tall, wide = _tile(kernel, rows, block=block)
    panel, sums = copy_of_columns(kernel), _sums(kernel)
    *batch, i, j = tail.op.axis
    outer, inner = tail.split(i, factor=block)
    io, ii = tail.split(inner, factor=tall)
    jo, ji = tail.split(j, factor=wide)
    tail.reorder(*batch, outer, jo, io, ii, ji)
    place = share_out(tail, batch, None)
    _multiply(kernel, sums, (io, ii, ji))
    copies = [] if panel is None else [(panel, wide)]
    for made in kernel.before:
        made.within = True
        if made.anchor.reduce_axis:
            copies += _block_of_rows(made, block)
        else:
            schedule_softmax(made)
        s[made.tail].compute_at(tail, outer)
    for copy, columns in copies:
        s[copy].compute_at(tail, place)
        _copy_by_panels(kernel, s[copy], columns, turned=copy is not panel or kernel.record.transpose_b)


def _copy_by_panels(kernel: Kernel, copy: Any, wide: int, turned: bool) -> None:
    """Lay out a copy in panels of `wide` columns, whose rows follow each other: of rows that lie apart few sets of L1 would be
    used, so that each tile would read its panel from L2. turned: whether columns are copied from rows; rows are copied whole.
    """
    *around, panel, k, j = lay_out(copy, wide)
    vectors, lane = copy.split(j, factor=kernel.lanes(kernel.anchor))
    copy.reorder(*around, *([panel, vectors, k] if turned else [k, panel, vectors]), lane)
    if not turned:
        copy.unroll(vectors)
        if (extent_of(kernel.anchor.axis[-1]) or 0) <= _SHORT * kernel.lanes(kernel.anchor):
            copy.unroll(panel)
    copy.vectorize(lane)


def _block_of_rows(kernel: Kernel, block: int) -> list[tuple[Any, int]]:
    """Schedule the first product of a chain; returns the copy of its second operand, if there is one, and the columns of its
    panels.
    """
    tail = kernel.schedule[kernel.tail]
    tall, wide = _tile(kernel, extent_of(kernel.tail.axis[-2]), block=block)
    panel, sums = copy_of_columns(kernel), _sums(kernel)
    *batch, i, j = tail.op.axis
    jo, ji = tail.split(j, factor=wide)
    io, ii = tail.split(i, factor=tall)
    tail.reorder(*batch, jo, io, ii, ji)
    _multiply(kernel, sums, (io, ii, ji))
    return [] if panel is None else [(panel, wide)]


def _rows_that_divide(block: int, tall: int) -> int | None:
    """The largest divisor of `block` from half of `tall` to `tall`."""
    near = divisor_near(block, tall, -(-tall // 2))
    return near if block % near == 0 else None


def _rows_of_block(kernel: Kernel, tall: int) -> int:
    """About as many rows as fill a quarter of L2 with those of the first operand.

    A divisor of all rows that is made of whole tiles itself, if one is near: conditions of a last block or tile would
    stand around every term. Else whole tiles.
    """
    terms, rows = extent_of(kernel.anchor.reduce_axis[0]), extent_of(kernel.tail.axis[-2])
    most = max(1, min(kernel.target.machine.l2.size // 4 // (4 * (terms or 1)), 128))
    near = [*range(most, most // 2, -1), *range(most + 1, 2 * most + 1)]
    whole = (block for block in near if rows is not None and rows % block == 0 and _rows_that_divide(block, tall))
    return next(whole, max(1, most // tall) * tall)
