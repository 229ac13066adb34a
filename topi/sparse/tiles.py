"""Products of a sparse matrix with a dense one whose columns are neighbours in memory: sums in registers for tiles of them.

    for each row of blocks, and each tile of `lanes` columns of the dense matrix:
        sums = 0                                                  (rows of a block) x lanes
        for each block e of the row:   sums[r] += data[e, r, c] * dense[column of the block + c, the tile]
        result[the rows, the tile] = sums

A row of the dense matrix is read once for all rows of a block, in vectors.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tedsl import te, tir
from topi.extents import as_int
from topi.sparse.matrix import Matrix, row_product
from topi.statements import rows_kind
from topi.threads.launch import each, indices_of

LEAST = 8  # columns of the dense matrix from which tiles of them are worth the copies around
_WIDEST = 64  # columns of a tile, if a block has one row: 4 vectors of 512 bits, 8 of 256, of float32
_SUMS = 256  # sums of a tile, where blocks have several rows: 16 vectors of 512 bits, all that are left beside the operands


def lanes_for(m: Matrix, columns: Any) -> int | None:
    """The columns of a tile; None where the sums are better computed one by one, or extents are not known."""
    count, (high, wide) = as_int(columns), (as_int(extent) for extent in m.block)
    if count is None or count < LEAST or high is None or wide is None or high * wide > _SUMS:
        return None
    return next((lanes for lanes in (_WIDEST, 32, 16) if lanes <= count and lanes * high <= _SUMS), LEAST)


def tiled_product(m: Matrix, dense: te.Tensor, lanes: int, name: str, tag: str) -> te.Tensor:
    """The sparse matrix times `dense`, whose columns are a multiple of `lanes`: (rows, columns)."""
    high, wide = (as_int(extent) or 1 for extent in m.block)
    columns = as_int(dense.shape[1]) or lanes
    blocks = m.indptr.shape[0] - 1

    def element(data: Any, e: Any, r: Any, c: Any) -> Any:
        return data[(e, r, c)[:m.data.ndim]]

    def body(ins: Sequence[tir.Buffer], outs: Sequence[tir.Buffer]) -> tir.Stmt:
        ib = tir.ir_builder.create()
        source, data, indices, indptr = (ib.buffer_ptr(one) for one in ins)
        result = ib.buffer_ptr(outs[0])
        of = "float32" if m.data.dtype.is_float and m.data.dtype.bits == 16 else m.data.dtype
        with (ib.for_range(0, blocks, name="block", kind=rows_kind((m.data.shape[0], columns))) as block,
              ib.for_range(0, columns // lanes, name="tile") as tile):
            sums = ib.allocate(of, (high, lanes), name="sums", scope="local")
            with ib.for_range(0, high, name="r", kind="unroll") as r, ib.for_range(0, lanes, name="l", kind="vectorize") as l:
                sums[r, l] = te.const(0, of)
            with ib.for_range(indptr[block], indptr[block + 1], name="e") as e:
                column = ib.let("column", indices[e])
                with ib.for_range(0, wide, name="c", kind="unroll") as c, ib.for_range(0, high, name="r", kind="unroll") as r:
                    factor = ib.let("factor", element(data, e, r, c).astype(of))
                    place = column * wide + c.astype(column.dtype) if wide > 1 else column
                    with ib.for_range(0, lanes, name="l", kind="vectorize") as l:
                        sums[r, l] = sums[r, l] + factor * source[place, tile * lanes + l].astype(of)
            with ib.for_range(0, high, name="r", kind="unroll") as r, ib.for_range(0, lanes, name="l", kind="vectorize") as l:
                result[block * high + r, tile * lanes + l] = sums[r, l].astype(m.data.dtype)
        made: tir.Stmt = ib.get()
        return made

    def by_threads(ins: Sequence[tir.Buffer], outs: Sequence[tir.Buffer], threads: int, shared: int) -> tir.Stmt:
        ib = tir.ir_builder.create()
        source, *memory = (ib.buffer_ptr(one) for one in ins)
        result = ib.buffer_ptr(outs[0])
        with each(ib, m.rows * columns, threads) as number:
            row, at = indices_of(number, (m.rows, columns))
            result[row, at] = row_product(ib, m, memory, row, lambda column: source[column, at])
        made: tir.Stmt = ib.get()
        return made

    product: te.Tensor = te.extern([(m.rows, columns)], [dense, *m.tensors], body, name=name, dtype=dense.dtype, tag=tag,
                                   by_threads=by_threads)
    return product
