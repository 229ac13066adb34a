"""The matrix product that the tutorial ends with: a register tile, B packed inside the kernel or before, all threads."""

from __future__ import annotations

from typing import Any

import numpy as np

import tedsl
from tedsl import te, tir

_AGAIN = 0.01  # of the rows: so many may be computed twice


def tile_for(lanes: int) -> tuple[int, int]:
    """Rows and columns of the register tile: 24 of 32 vector registers accumulate (12 of 16 where vectors are narrower),
    two hold a row of B, and one an element of A. Each row needs a pointer where the size is not known: there are 15."""
    return (12 if lanes >= 16 else 6), 2 * lanes


def packed_matmul(size: Any, rows: int | None = None, columns: int | None = None) -> tuple[Any, list[Any]]:
    """(schedule, [A, B, C]) of C = A B in float32, square of `size` (an int or a te.var).

    A thread takes panels of `columns` columns: it copies the panel of B so that its rows follow each other, and multiplies
    it by all of A, `rows` rows at a time.
    """
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

    s, jo = _tiled(C, rows, columns)
    _, _, lane = s[packed].op.axis
    s[packed].compute_at(s[C], jo)
    s[packed].vectorize(lane)
    return s, [A, B, C]


def prepacked_matmul(b: Any) -> tuple[Any, list[Any], Any]:
    """(schedule, [A, packed, C], the matrix `b` as the kernel takes it): the same for a constant that is packed once."""
    size, lanes = b.shape[0], tedsl.target.Target("llvm").vector_lanes("float32")
    rows, columns = tile_for(lanes)
    panels = -(-size // columns)
    padded = np.zeros((size, panels * columns), b.dtype)
    padded[:, :size] = b
    packed = tedsl.nd.array(np.ascontiguousarray(padded.reshape(size, panels, columns).transpose(1, 0, 2)))
    A, P = te.placeholder((size, size), name="A"), te.placeholder(packed.shape, name="packedB")
    k = te.reduce_axis((0, size), "k")
    C = te.compute((size, size), lambda i, j: te.sum(A[i, k] * P[j // columns, k, j % columns], axis=k), name="C")
    return _tiled(C, rows, columns)[0], [A, P, C], packed


def _last_tile(size: Any, rows: int) -> str:
    """How the last rows are computed that fill no tile: by a whole one that begins before them, which is no code of its own, if
    that computes few rows twice.
    """
    few = isinstance(size, tir.IntImm) and -size.value % rows <= _AGAIN * size.value
    return "shift_inwards" if few else "guard"


def _tiled(C: Any, rows: int, columns: int) -> tuple[Any, Any]:
    """The schedule of a product whose second matrix is packed, and its loop over panels."""
    s = te.create_schedule(C.op)
    CC = s.cache_write(C, "local")
    io, ii = s[C].split(C.op.axis[0], factor=rows, tail=_last_tile(C.shape[0], rows))
    jo, ji = s[C].split(C.op.axis[1], factor=columns)
    s[C].reorder(jo, io, ii, ji)
    s[C].unroll(ii)
    s[C].vectorize(ji)
    s[C].parallel(jo)
    s[CC].compute_at(s[C], io)
    i, j = s[CC].op.axis
    (k,) = s[CC].op.reduce_axis
    s[CC].reorder(k, i, j)
    s[CC].unroll(i)
    s[CC].vectorize(j)
    return s, jo
