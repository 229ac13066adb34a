"""Reductions that keep the innermost dimension: neighbouring results in the lanes of vectors, rows in the order of memory.

    few results:             registers hold them while all rows are read
    more:                    some rows at a time are added to results that stay in a cache
    too few blocks of them   chunks of rows in parallel, each with a partial result of every column; these are added up at the
    for all cores:           end. A core reads whole rows that way, one behind the other
"""

from __future__ import annotations

from typing import Any

from tedsl import te
from topi.schedules.cpu.ahead import adds_up, bytes_ahead, far_arguments, rows_are_whole
from topi.schedules.cpu.contraction import tiles_fit
from topi.schedules.cpu.parallel import SERIAL, SHARES, share_out
from topi.schedules.cpu.tiles import divisor_near, registers
from topi.schedules.cpu.vectors import vectorize
from topi.schedules.formulas import Formula, extent_of, product, runs
from topi.schedules.kernel import Kernel

_COLUMNS = 16  # vectors of results that stay in registers
_PAIRS = 8  # registers for each vector of results with their places, if all of these meet one row after the other
_BESIDE = 8  # vectors of results that do not wait for each other
_PART = 16  # of the second cache that the results of a block of columns take
_ROWS = 8  # rows that are read side by side: processors prefetch for some more streams than that
_WORTH = 16  # times the work that is worth sharing, from which on partial results cost little beside it
_FAR = 16  # times the second cache: then reading takes so long that guards of the rows of an uneven chunk cost nothing
_LINES = 4  # of a row, from which on few are those of the next one, too
_SUMS = 4  # vectors of columns whose partial results are added up at a time


def work_of(kernel: Kernel) -> int | None:
    """The number of elements that are combined; None if it is not known."""
    return product([extent_of(axis) for axis in (*kernel.tail.axis, *kernel.anchor.reduce_axis)])


def reduce_columns(kernel: Kernel, formula: Formula) -> None:
    """Reduce columns by reading rows in memory order; the sums of a block of columns stay in registers, or in the caches."""
    s, tail = kernel.schedule, kernel.schedule[kernel.tail]
    if not tail.op.axis:
        return
    lanes = kernel.lanes(kernel.anchor)
    count = _contiguous(kernel, formula)
    chunk = _rows_of_chunk(kernel, count) if kernel.blocks is None else (0, kernel.blocks.chunk)
    if chunk is not None:
        _reduce_chunks(kernel, count, *chunk)
        return
    beside = _rows_beside(kernel, kernel.anchor, count)
    partial = _factor_rows(kernel, s[kernel.anchor], count, beside) if beside > 1 else None
    outer, inner = list(tail.op.axis[:-count]), list(tail.op.axis[-count:])
    extents = [extent_of(axis) for axis in inner]
    if not kernel.fused and count > 1:
        inner, extents = [tail.fuse(*inner)], [product(extents)]
    alone, extent = _blocks_of_columns(kernel, outer, inner, extents)
    place = share_out(tail, outer, work_of(kernel))
    if alone is not None:
        place = alone
    if kernel.fused:
        if place is not None:
            s[kernel.anchor].compute_at(tail, place)
        vectorize(tail, tail.fuse(*inner) if count > 1 else inner[0], extent, lanes)
        inner = list(s[kernel.anchor].op.axis[-count:])
    stage = s[kernel.anchor]
    if partial is None:
        add_rows(kernel, stage, inner, list(stage.op.reduce_axis), extent)
        return
    if place is not None:
        partial.compute_at(tail, place)
    _add_beside(kernel, partial, count, beside)
    _combine_beside(stage, inner)


# --- few columns --------------------------------------------------------------------------------------------------------

def _rows_beside(kernel: Kernel, op: Any, count: int) -> int:
    """The number of neighbouring rows that are added to results of their own, combined at the end: of some vectors of columns
    each addition waits for the one before. 1 where there are enough columns, or few rows.
    """
    columns, rows = product([extent_of(axis) for axis in op.axis[-count:]]), extent_of(op.reduce_axis[-1])
    if columns is None or rows is None or op.num_outputs > 1 or kernel.blocks is not None or kernel.within:
        return 1
    vectors = -(-columns // kernel.lanes(kernel.anchor))
    beside = _BESIDE // vectors if vectors else 1
    return beside if beside > 1 and rows >= _BESIDE * beside else 1


def _factor_rows(kernel: Kernel, stage: te.Stage, count: int, beside: int) -> te.Stage:
    """The stage of the results of every row number `beside`, which `stage` combines."""
    op: Any = stage.op
    _, row = stage.split(op.reduce_axis[-1], factor=beside)
    return kernel.schedule[kernel.schedule.rfactor(op.output(0), row, len(op.axis) - count)]


def _add_beside(kernel: Kernel, partial: te.Stage, count: int, beside: int) -> None:
    """Add `beside` rows at a time, each to the result of its own."""
    *axes, row = partial.op.axis[:-count]
    columns = list(partial.op.axis[-count:])
    last = partial.fuse(*columns) if count > 1 else columns[0]
    partial.reorder(*axes, *partial.op.reduce_axis, row, last)
    partial.unroll(row)
    partial.vectorize(last)
    step = beside * (product([extent_of(axis) for axis in columns]) or 1)
    for tensor in [] if adds_up(kernel) else far_arguments(kernel):
        partial.prefetch(tensor, partial.leaf_iter_vars[-3], max(1, bytes_ahead(kernel) // (step * tensor.dtype.bytes)))


def _combine_beside(stage: te.Stage, columns: list[Any]) -> None:
    """Combine the results of neighbouring rows, a vector of columns at a time."""
    op: Any = stage.op
    (row,) = op.reduce_axis
    last = stage.fuse(*columns) if len(columns) > 1 else columns[0]
    stage.reorder(row, last)
    stage.unroll(row)
    stage.vectorize(last)


# --- chunks of rows -----------------------------------------------------------------------------------------------------

def _rows_of_chunk(kernel: Kernel, count: int) -> tuple[int, int] | None:
    """The number of the reduction axis that is divided into chunks, and the iterations of a chunk; None where blocks of columns
    are shared out instead: there are enough of them, or the partial results would be a good part of the work.
    """
    op, cores, work = kernel.anchor, kernel.target.machine.cores, work_of(kernel)
    columns = product([extent_of(axis) for axis in kernel.tail.axis])
    if cores == 1 or kernel.within or work is None or columns is None or work < _WORTH * SERIAL:
        return None
    around = product([extent_of(axis) for axis in kernel.tail.axis[:-count]])
    if around != 1 or columns > _columns_near(kernel) or (kernel.fused and (count > 1 or not tiles_fit(kernel))):
        return None
    for at, axis in enumerate(op.reduce_axis):
        extent = extent_of(axis)
        unit = _ROWS if at == len(op.reduce_axis) - 1 else 1
        if extent is None or extent < unit * unit * SHARES * cores:
            continue
        chunks = divisor_near(-(-extent // unit), 2 * SHARES * cores, SHARES * cores // 2)
        if extent % (chunks * unit) == 0 or work * op.output(0).dtype.bytes >= _FAR * kernel.target.machine.l2.size:
            return at, -(-extent // (chunks * unit)) * unit
    return None


def _reduce_chunks(kernel: Kernel, count: int, at: int, rows: int) -> None:
    """Reduce chunks of `rows` iterations of the reduction axis number `at` in parallel, then their results."""
    s, op, lanes = kernel.schedule, kernel.anchor, kernel.lanes(kernel.anchor)
    loops = list(op.reduce_axis)
    if kernel.blocks is not None and len(loops) > 1:
        loops = [s[op].fuse(*loops)]
    chunk, _ = s[op].split(loops[at], factor=rows)
    factored = s.rfactor(op.output(0), chunk)
    parts = s[(factored[0] if isinstance(factored, list) else factored).op]
    beside = _rows_beside(kernel, parts.op, count) if len(loops) == 1 else 1
    partial = _factor_rows(kernel, parts, count, beside) if beside > 1 else None
    parts.parallel(parts.op.axis[0])
    parts.storage_align(parts.op.axis[0], _line_lanes(kernel), 0)
    columns, reduced = list(parts.op.axis[-count:]), list(parts.op.reduce_axis)
    reduced.insert(at, reduced.pop())
    extent = product([extent_of(axis) for axis in columns])
    if partial is not None:
        partial.compute_at(parts, parts.op.axis[0])
        _add_beside(kernel, partial, count, beside)
        _combine_beside(parts, columns)
    elif kernel.blocks is None:
        add_rows(kernel, parts, columns, reduced, extent)
    else:
        _add_rows_of_blocks(kernel, parts, columns, reduced[0], extent)
    tail = s[kernel.tail]
    last = tail.fuse(*tail.op.axis[-count:]) if count > 1 else tail.op.axis[-1]
    block, lane = tail.split(last, factor=_SUMS * lanes)
    if kernel.fused:
        own = s[op].op
        s[op].compute_at(tail, block)
        s[op].reorder(*own.reduce_axis, own.axis[-1])
        s[op].vectorize(own.axis[-1])
    else:
        tail.reorder(block, *tail.op.reduce_axis, lane)
    tail.vectorize(lane)


def _add_rows_of_blocks(kernel: Kernel, parts: te.Stage, columns: list[Any], rows: Any, extent: int | None) -> None:
    """Add rows to the partial results of a chunk block by block; one by one, if the results stay in the nearest cache."""
    assert kernel.blocks is not None
    lanes = kernel.lanes(kernel.anchor)
    block, row = parts.split(rows, factor=kernel.blocks.block)
    size = sum(parts.op.output(v).dtype.bytes for v in range(parts.op.num_outputs))
    if extent is None or extent * size > kernel.target.machine.l1.size // 2:
        kernel.over_blocks = parts, block, None
        add_rows(kernel, parts, columns, [block, row], extent)
        return
    kernel.over_blocks = parts, block, row
    last = parts.fuse(*columns) if len(columns) > 1 else columns[0]
    parts.reorder(block, row, last)
    vectorize(parts, last, extent, lanes * (_SUMS if extent % (lanes * _SUMS) == 0 else 1))


# --- blocks of columns --------------------------------------------------------------------------------------------------

def _contiguous(kernel: Kernel, formula: Formula) -> int:
    """The number of last axes that are contiguous in everything that the anchor and the tail read; as one they are columns."""
    axes = kernel.anchor.axis
    count = len(runs(axes, formula)[-1])
    if kernel.fused:
        count = min(count, len(runs(kernel.tail.axis, kernel.formula(kernel.tail))[-1])) if tiles_fit(kernel) else 1
    return count


def _widest_block(kernel: Kernel) -> int:
    """The most columns of a block. Its sums take a part of the second cache. A row is read from end to end if it fits, for
    processors prefetch within a page; but each core has a block, if that leaves it a page of each row.
    """
    size: int = kernel.anchor.output(0).dtype.bytes
    machine, widest = kernel.target.machine, _columns_near(kernel)
    columns = product([extent_of(axis) for axis in kernel.tail.axis])
    return widest if columns is None else min(widest, max(machine.page // size, -(-columns // machine.cores)))


def _columns_near(kernel: Kernel) -> int:
    """The number of columns whose results take a part of the second cache."""
    size: int = kernel.anchor.output(0).dtype.bytes
    return kernel.target.machine.l2.size // _PART // size


def _blocks_of_columns(kernel: Kernel, outer: list[Any], axes: list[Any], extents: list[int | None]) -> tuple[Any, int | None]:
    """Split the contiguous `axes`, of these `extents`, into blocks of columns, in place: the loops over blocks become `outer`
    ones, which are shared out. Returns the loop over blocks that is not, or None, and the columns of a block, None if unknown.

    A loop whose last block is smaller is not shared out with those around it, if there are any: its end is code of its own,
    where as one loop with others each vector of every block would have a condition.
    """
    tail, widest = kernel.schedule[kernel.tail], _widest_block(kernel)
    at, extent = len(axes), 1
    while at and (step := extents[at - 1]) is not None and extent * step <= widest:
        at, extent = at - 1, extent * step
    if not at:
        return None, extent
    size = _blocks_of_loop(kernel, extents[at - 1], extent, max(1, widest // extent))
    block, inner = tail.split(axes[at - 1], factor=size)
    outer += axes[:at - 1]
    axes[:at] = [inner]
    whole, tasks = extents[at - 1], product([extent_of(axis) for axis in outer])
    if tasks is not None and tasks > 1 and (whole is None or whole % size):
        return block, extent * size
    outer.append(block)
    return None, extent * size


def _blocks_of_loop(kernel: Kernel, extent: int | None, within: int, most: int) -> int:
    """The iterations of a loop of `extent`, each of `within` columns, that are a block: at most about `most`.

    Blocks of whole lines that divide the loop, if there are any; else whole lines, the same number of blocks for each core; or
    a smaller divisor, where single iterations are long enough to be blocks.
    """
    line, cores = _line_lanes(kernel), kernel.target.machine.cores
    size = divisor_near(extent, most, max(1, most // 2))
    if extent is None or (extent % size == 0 and size * within % line == 0):
        return size
    if within == 1:
        blocks = -(-extent // (most * cores)) * cores
        return -(-extent // (blocks * line)) * line
    return size if extent % size == 0 or within < line else divisor_near(extent, most, 1)


def _line_lanes(kernel: Kernel) -> int:
    """The elements of a vector, or of a line of memory if that is longer: rows far apart fall into the same set of the nearest
    cache, so each line is used completely when it is there.
    """
    size: int = kernel.anchor.output(0).dtype.bytes
    return max(kernel.lanes(kernel.anchor), kernel.target.machine.line // size)


def add_rows(kernel: Kernel, stage: te.Stage, columns: list[Any], reduced: list[Any], extent: int | None) -> None:
    """Vectorize the axes `columns`, of `extent` results, and put the loops `reduced` around them, of which the innermost
    one is over rows: some rows at a time if the results do not fit the registers.
    """
    lanes, width = kernel.lanes(kernel.anchor), _line_lanes(kernel)
    last = stage.fuse(*columns) if len(columns) > 1 else columns[0]
    *slow, row = reduced
    pairs = stage.op.num_outputs > 1
    far = [] if adds_up(kernel) else far_arguments(kernel)
    most = registers(kernel.target) // _PAIRS if pairs else _COLUMNS
    if extent is not None and extent <= most * lanes:
        stage.reorder(*slow, row, last)
        stage.vectorize(last)
        for tensor in far:
            stage.prefetch(tensor, row, max(1, bytes_ahead(kernel) // (extent * tensor.dtype.bytes)))
        return
    if pairs and extent is not None and extent % width:
        width = lanes
    rows, row = stage.split(row, factor=_ROWS)
    middle, lane = stage.split(last, factor=width)
    stage.reorder(*slow, rows, middle, row, lane)
    stage.vectorize(lane)
    for tensor in far:
        _ask_for_lines(kernel, stage, tensor, middle, width, extent)


def _ask_for_lines(kernel: Kernel, stage: te.Stage, tensor: te.Tensor, middle: Any, width: int, extent: int | None) -> None:
    """Prefetch what the loop `middle` reads of each of the rows side by side some lines later. Of rows for more of which the
    nearest cache has room, the next ones are asked for, if they are whole and not so short that they share lines.
    """
    machine, step = kernel.target.machine, _ROWS * width * kernel.anchor.output(0).dtype.bytes
    if extent is None or (rows := extent * step // width) > machine.l1.size // 2:
        stage.prefetch(tensor, middle, max(1, bytes_ahead(kernel) // step))
    elif rows >= _ROWS * _LINES * machine.line and rows_are_whole(tensor, extent):
        stage.prefetch(tensor, middle, -(-_ROWS * extent * max(1, bytes_ahead(kernel) // rows) // width))
