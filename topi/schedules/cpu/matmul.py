"""Products of matrices: a tile of the result stays in registers while the sum runs over it.

    the second matrix as it is multiplied (k, j):   an element of the first times a row of the second, added to the tile
    the second stored transposed (j, k):            rows times rows, lanes along k, where there are few rows; else as above,
                                                    from a copy whose panels lie as they are used
"""

from __future__ import annotations

from typing import Any

from topi.schedules.cpu.parallel import share_out
from topi.schedules.cpu.reduce import combine_lanes
from topi.schedules.cpu.tiles import accumulators, divisor_near, tile_of
from topi.schedules.formulas import extent_of, product
from topi.schedules.kernel import Kernel

_TERMS = 4  # as many times more terms than rows, and than lanes: adding up lanes is a small part of the whole
_COPIES = 2  # as many rows as a cycle has products: the copy of a transposed matrix costs as much as lanes to add up
_LANES = 4  # of the sums of products, to which those of a vector are reduced before they are added up one by one
_NEAR = 256 * 1024  # bytes of the second matrix that are near enough to be read row by row without copying


def schedule_matmul(kernel: Kernel) -> None:
    """Schedule a matrix product by the layout of the second matrix and the number of rows that use it."""
    rows, terms = extent_of(kernel.anchor.axis[-2]), extent_of(kernel.anchor.reduce_axis[0])
    if rows is not None and terms is not None and _is_few(kernel, rows, terms):
        _rows_times_rows(kernel, rows)
    else:
        _tiles(kernel, rows)


def _is_few(kernel: Kernel, rows: int, terms: int) -> bool:
    """Whether rows times rows take less time than a copy of the second matrix and rows times vectors of columns."""
    lanes, target = kernel.lanes(kernel.anchor), kernel.target
    products = lanes * target.machine.fmas(target.vector_bits)
    return kernel.record.transpose_b and not kernel.record.transpose_a and \
        rows < _COPIES * products and terms >= _TERMS * max(rows, lanes)


def _work(kernel: Kernel) -> int | None:
    return product([extent_of(axis) for axis in (*kernel.anchor.axis, *kernel.anchor.reduce_axis)])


# --- an element times a row ---------------------------------------------------------------------------------------------

def _tiles(kernel: Kernel, rows: int | None) -> None:
    s, tail = kernel.schedule, kernel.schedule[kernel.tail]
    *batch, i, j = tail.op.axis
    terms = extent_of(kernel.anchor.reduce_axis[0])
    tall, wide = tile_of(rows, extent_of(j), terms, kernel.lanes(kernel.anchor), kernel.target)
    panel = _panel(kernel, wide)
    sums = kernel.anchor if kernel.fused else s.cache_write(kernel.tail.output(0), "local").op
    *batch, i, j = tail.op.axis
    jo, ji = tail.split(j, factor=wide)
    io, ii = tail.split(i, factor=tall)
    tail.reorder(*batch, jo, io, ii, ji)
    tail.unroll(ii)
    tail.vectorize(ji)
    place = share_out(tail, [*batch, jo], _work(kernel))
    s[sums].compute_at(tail, io)
    (k,) = s[sums].op.reduce_axis
    *rest, i, j = s[sums].op.axis
    s[sums].reorder(*rest, k, i, j)
    s[sums].unroll(i)
    s[sums].vectorize(j)
    if panel is not None:
        s[panel].compute_at(tail, place)
        s[panel].vectorize(s[panel].leaf_iter_vars[-1])


def _panel(kernel: Kernel, wide: int) -> Any:
    """Pack the columns of the second matrix that a tile uses, row after row; None where packing does not pay."""
    record = kernel.record
    count = product([extent_of(kernel.anchor.axis[-1]), extent_of(kernel.anchor.reduce_axis[0])])
    rows = extent_of(kernel.anchor.axis[-2])
    few = rows is not None and rows < 32
    near = count is not None and count * record.b.dtype.bits // 8 <= _NEAR
    if not record.transpose_b and (few or near):
        return None
    s = kernel.schedule
    copy = s.cache_read(record.b, "global", [kernel.anchor])
    if record.transpose_b:
        s[copy].transform_layout(lambda *at: [*at[:-2], at[-1], at[-2]])
    return copy


# --- rows times rows ----------------------------------------------------------------------------------------------------

def _rows_times_rows(kernel: Kernel, rows: int) -> None:
    s, tail = kernel.schedule, kernel.schedule[kernel.tail]
    lanes = kernel.lanes(kernel.anchor)
    rank = len(kernel.anchor.axis)
    (k,) = kernel.anchor.reduce_axis
    partial = []
    for width in (lanes, _LANES):
        _, lane = s[kernel.anchor].split(k, factor=width)
        partial.append(s.rfactor(kernel.anchor.output(0), lane, rank).op)
        (k,) = s[kernel.anchor].op.reduce_axis
    budget = accumulators(kernel.target)
    tall = divisor_near(rows, 4, 2)
    wide = divisor_near(extent_of(tail.op.axis[-1]), budget // tall, 2)
    wide = min(wide, 8)
    *batch, i, j = tail.op.axis
    jo, ji = tail.split(j, factor=wide)
    io, ii = tail.split(i, factor=tall)
    tail.reorder(*batch, jo, io, ii, ji)
    share_out(tail, [*batch, jo], _work(kernel))
    for op in partial:
        stage = s[op]
        stage.compute_at(tail, io)
        *rest, i, j, lane = stage.op.axis
        stage.reorder(*rest, *stage.op.reduce_axis, i, j, lane)
        stage.unroll(i)
        stage.unroll(j)
        stage.vectorize(lane)
    combine_lanes(s[kernel.anchor], _LANES)
    if kernel.fused:
        s[kernel.anchor].compute_at(tail, io)
