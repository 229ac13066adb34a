"""The matrix multiplication that the tutorial ends with: a register tile, K in blocks, B (and A) packed inside the kernel."""

from __future__ import annotations

from typing import Any

import tedsl
from tedsl import te


def tile_for(lanes: int) -> tuple[int, int]:
    """Rows and columns of the register tile: accumulators, one vector of B per column block, one broadcast of A."""
    return (14 if lanes >= 16 else 6), 2 * lanes


def packed_matmul(size: Any, rows: int | None = None, columns: int | None = None, block_k: int = 256) -> tuple[Any, list[Any]]:
    """(schedule, [A, B, C]) of C = A B in float32, square of `size` (an int or a te.var)."""
    lanes = tedsl.target.Target("llvm").vector_lanes("float32")
    default_rows, default_columns = tile_for(lanes)
    rows, columns = rows or default_rows, columns or default_columns
    A = te.placeholder((size, size), name="A")
    B = te.placeholder((size, size), name="B")
    k = te.reduce_axis((0, size), "k")
    panels = (size + columns - 1) // columns
    packed = te.compute((panels, size, columns), lambda jo, p, ji: te.if_then_else(
        jo * columns + ji < size, B[p, jo * columns + ji], 0.0), name="packedB")
    C = te.compute((size, size), lambda i, j: te.sum(A[i, k] * packed[j // columns, k, j % columns], axis=k), name="C")

    s = te.create_schedule(C.op)
    CC = s.cache_write(C, "local")
    io, jo, ii, ji = s[C].tile(C.op.axis[0], C.op.axis[1], rows, columns)
    s[C].reorder(jo, io, ii, ji)
    s[C].unroll(ii)
    s[C].vectorize(ji)
    s[C].parallel(jo)
    s[CC].compute_at(s[C], io)
    i, j = s[CC].op.axis
    (k,) = s[CC].op.reduce_axis
    ko, ki = s[CC].split(k, factor=4)
    s[CC].reorder(ko, ki, i, j)
    s[CC].unroll(ki)
    s[CC].unroll(i)
    s[CC].vectorize(j)
    _, _, lane = s[packed].op.axis
    s[packed].compute_at(s[C], jo)
    s[packed].vectorize(lane)
    return s, [A, B, C]
