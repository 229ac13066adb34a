"""Products of a few rows with a large matrix, which is read once, in the order of memory.

    out[:, j] += sum over r of  a[:, 8 k + r] * b[8 k + r, j]        for all j, then the next k

A tile of partial sums, all rows by two vectors of columns, stays in registers for the terms of a step and is added to the
result, which stays in a cache. Processors prefetch the rows of the second matrix, some at a time; panels of it would be read
line by line, from pages far apart.
"""

from __future__ import annotations

from typing import Any

from topi.schedules.cpu.parallel import share_out
from topi.schedules.cpu.tiles import accumulators, divisor_near
from topi.schedules.cpu.vectors import vectorize
from topi.schedules.formulas import extent_of, product
from topi.schedules.kernel import Kernel

_TERMS = 8, 5  # the most and the least rows of the second matrix that are read side by side
_VECTORS = 2, 3, 1  # of columns in a tile, the best first


def is_few_rows(kernel: Kernel) -> bool:
    """Whether the rows of a product fit one tile, and the second matrix, row after row, takes more than half of L2."""
    record, machine = kernel.record, kernel.target.machine
    rows, terms = extent_of(kernel.anchor.axis[-2]), extent_of(kernel.anchor.reduce_axis[0])
    columns = extent_of(kernel.anchor.axis[-1])
    if rows is None or terms is None or columns is None or record.transpose_a or record.transpose_b or kernel.within:
        return False
    far = terms * columns * record.b.dtype.bits // 8 > machine.l2.size // 2
    return far and _tile(kernel, rows, columns) is not None and terms % divisor_near(terms, *_TERMS) == 0


def _tile(kernel: Kernel, rows: int, columns: int) -> int | None:
    """The columns of a tile that holds all rows; None if registers do not hold two vectors of each, or no vectors are whole."""
    lanes, most = kernel.lanes(kernel.anchor), accumulators(kernel.target) // rows
    return next((n * lanes for n in _VECTORS if most >= max(n, 2) and columns % (n * lanes) == 0), None)


def multiply_few_rows(kernel: Kernel) -> None:
    """Schedule a product for which `is_few_rows` holds."""
    s, tail, op = kernel.schedule, kernel.schedule[kernel.tail], kernel.anchor
    rows, columns, terms = (extent_of(axis) for axis in (*op.axis[-2:], op.reduce_axis[0]))
    assert rows is not None and columns is not None and terms is not None
    wide = _tile(kernel, rows, columns)
    assert wide is not None
    steps, _ = s[op].split(op.reduce_axis[0], factor=divisor_near(terms, *_TERMS))
    partial = s.rfactor(op.output(0), steps).op
    *batch, i, j = tail.op.axis
    tiles, cores = columns // wide, kernel.target.machine.cores
    share = -(-tiles // cores)
    block, j = tail.split(j, factor=wide * divisor_near(tiles, share, -(-share // 2)))
    tail.reorder(*batch, block, i, j)
    place = share_out(tail, [*batch, block], product([extent_of(axis) for axis in (*tail.op.axis, *op.reduce_axis)]))
    if kernel.fused:
        s[op].compute_at(tail, place)
        vectorize(tail, j, columns, kernel.lanes(kernel.anchor))
        *batch, i, j = s[op].op.axis
    _add_tiles(s[op], s[partial], (i, j), wide)


def _add_tiles(stage: Any, partial: Any, loops: tuple[Any, Any], wide: int) -> None:
    """Add tiles of partial sums, which stay in registers, to the columns j of all rows i."""
    i, j = loops
    jo, ji = stage.split(j, factor=wide)
    (steps,) = stage.op.reduce_axis
    stage.reorder(steps, jo, i, ji)
    stage.unroll(i)
    stage.vectorize(ji)
    partial.compute_at(stage, jo)
    *_, i, j = partial.op.axis
    partial.reorder(*partial.op.reduce_axis, i, j)
    partial.unroll(i)
    partial.vectorize(j)
