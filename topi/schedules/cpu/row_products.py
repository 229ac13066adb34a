"""Products of a matrix with one that is stored transposed: rows times rows, with lanes along the terms.

    out[i, j] = sum over the lanes of  (sum over k of  a[i, k * lanes + lane] * b[j, k * lanes + lane])

The second matrix is read as it lies. Lanes are added up at the end of each sum, which takes longer than a copy of the second
matrix if many rows use it.
"""

from __future__ import annotations

import math

from topi.schedules.cpu.parallel import share_out, whole_tiles
from topi.schedules.cpu.reduce import UNROLLED, may_be_vectorized
from topi.schedules.cpu.tiles import accumulators, divisor_near, tile_of
from topi.schedules.formulas import extent_of
from topi.schedules.kernel import Kernel

_LONG = 24  # vectors of products in a sum, beside which adding up its lanes is little
_TURNED = 6.0  # cycles in which a vector of a transposed matrix is copied: loaded, turned with others, stored
_HALVED = 1.1  # cycles for each step in which the lanes of a sum are combined
_BESIDE = 0.7  # of these, beside the products of many other rows
_MASKED = 2.0  # cycles in which a rest of the terms is added to a sum, if it fills no narrower vector
_COPIED = 0.85  # cycles for an element of columns that are copied as rows
_SHORT = 10  # rows with which a row is multiplied at a time, where the sums are short: 0.8 to 1.0 of the time of five
_COLUMNS = 8  # that rows are multiplied with at a time: of more, each row is read again
_LOADED = 0.4  # times the products that loads of rows times rows take longer, which have one use for each row of the other


def are_few_for_copy(kernel: Kernel, rows: int, terms: int) -> bool:
    """Whether rows times rows take less time than a copy of the second matrix and rows times vectors of columns.

    Cycles for each element of the second matrix: a copy takes _TURNED / lanes; rows times rows take for each row _LOADED of
    what the product takes, and a part of adding up lanes, which is done once for all terms. Columns that fill no half of a
    vector take as long as a vector.
    """
    if not kernel.record.transpose_b or kernel.record.transpose_a or not rows or not terms:
        return False
    lanes, target, columns = kernel.lanes(kernel.anchor), kernel.target, extent_of(kernel.anchor.axis[-1])
    products = lanes * target.machine.fmas(target.vector_bits)
    narrow = columns is not None and 0 < 2 * columns <= lanes
    spared = _cycles_of_narrow(kernel, rows, columns or 1, terms) - 1 / products if narrow else 0.0
    return rows * (_LOADED / products + _combined(lanes) / terms - spared) < _TURNED / lanes


def are_narrow(kernel: Kernel, rows: int, terms: int) -> bool:
    """Whether the columns of the second matrix, which fill no vector, are better turned into rows.

    Cycles for each product: vectors of columns take `_cycles_of_narrow`; rows times rows the product itself, since
    all columns use a row at a time, a part of combining lanes, which is done once for all terms, and one of the copy, which is
    done once for all rows.
    """
    lanes, target, columns = kernel.lanes(kernel.anchor), kernel.target, extent_of(kernel.anchor.axis[-1])
    record = kernel.record
    if record.transpose_a or record.transpose_b or record.a is record.b or not rows or not terms:
        return False
    if not columns or columns > min(_COLUMNS, lanes - 1):
        return False
    copied = _COPIED / rows if columns > 1 else 0.0
    filled = -(-terms // lanes) * lanes / terms
    ends = _BESIDE * _combined(lanes) + (_MASKED if (terms % lanes).bit_count() > 1 else 0)
    turned = filled / (lanes * target.machine.fmas(target.vector_bits)) + ends / terms + copied
    return turned < _cycles_of_narrow(kernel, rows, columns, terms)


def _combined(lanes: int) -> float:
    """The cycles in which the lanes of a sum are combined, half of the vector with the other half, beside other sums."""
    return _HALVED * math.log2(lanes)


def turn_columns(kernel: Kernel) -> None:
    """Copy the columns of the second matrix as rows, unless it is a single one: its elements follow each other as they are."""
    if extent_of(kernel.anchor.axis[-1]) == 1:
        return
    s = kernel.schedule
    copy = s.cache_read(kernel.record.b, "global", [kernel.anchor])
    s[copy].transform_layout(lambda *at: [*at[:-2], at[-1], at[-2]])
    s[copy].vectorize(s[copy].split(s[copy].leaf_iter_vars[-1], factor=kernel.lanes(kernel.anchor))[1])


def _cycles_of_narrow(kernel: Kernel, rows: int, columns: int, terms: int) -> float:
    """The cycles for each element of a row that is multiplied with columns that share one vector."""
    target = kernel.target
    tall, _ = tile_of(rows, columns, terms, kernel.lanes(kernel.anchor), target)
    return max(tall / target.machine.fmas(target.vector_bits), target.machine.fma_latency) / (tall * columns)


def multiply_rows(kernel: Kernel, rows: int, work: int | None) -> None:
    """Schedule a product whose second matrix is stored transposed, some rows of each at a time."""
    s, tail = kernel.schedule, kernel.schedule[kernel.tail]
    lanes = kernel.lanes(kernel.anchor)
    rank = len(kernel.anchor.axis)
    (k,) = kernel.anchor.reduce_axis
    _, lane = s[kernel.anchor].split(k, factor=lanes)
    partial = s[s.rfactor(kernel.anchor.output(0), lane, rank)]
    if may_be_vectorized(s[kernel.anchor].op):
        s[kernel.anchor].vectorize(s[kernel.anchor].op.reduce_axis[0])
    tall, wide = _dots(kernel, rows)
    *batch, i, j = tail.op.axis
    jo, ji = tail.split(j, factor=wide)
    io, ii = tail.split(i, factor=tall)
    tail.reorder(*batch, jo, io, ii, ji)
    share_out(tail, whole_tiles(kernel, batch, jo, wide, of_vectors=False), work)
    partial.compute_at(tail, io)
    *rest, i, j, lane = partial.op.axis
    (steps,) = partial.op.reduce_axis
    partial.reorder(*rest, steps, i, j, lane)
    partial.unroll(i)
    partial.unroll(j)
    partial.vectorize(lane)
    terms = extent_of(k)
    if terms is not None and terms < _LONG * lanes:  # their sums are read from registers
        tail.unroll(ii)
        tail.unroll(ji)
        if -(-terms // lanes) * tall * wide <= UNROLLED:
            partial.unroll(steps)
    if kernel.fused:
        s[kernel.anchor].compute_at(tail, io)


def _dots(kernel: Kernel, rows: int) -> tuple[int, int]:
    """The rows of both matrices whose sums of products are in registers at a time.

    Many where the sums are long, which loads each vector less often; few where adding up lanes is a good part of the work: that
    of one tile then overlaps with the products of the next.
    """
    terms, columns = extent_of(kernel.anchor.reduce_axis[0]), extent_of(kernel.tail.axis[-1])
    if terms is not None and terms < _LONG * kernel.lanes(kernel.anchor):
        tall = min(rows, 2)
        wide = min(_SHORT, accumulators(kernel.target) // tall)
        return tall, divisor_near(columns, wide, wide - 1)
    sums = accumulators(kernel.target)
    if columns is not None and columns <= _COLUMNS:  # all beside each other, so that each row is read once
        return min(rows, divisor_near(rows, min(4, max(1, sums // max(1, columns))), 3)), max(1, columns)
    tall = next((n for n in range(min(8, sums // 2), 1, -1) if rows % n == 0), min(rows, 4))
    return tall, min(divisor_near(columns, max(2, sums // tall), 2), _COLUMNS)
