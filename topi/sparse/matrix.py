"""Sparse matrices as three tensors, and the sum of the products of one row of them.

    indptr    row r (of blocks) has the elements indptr[r] to indptr[r + 1] - 1
    indices   the column (of blocks) of each element
    data      the elements: (number,), CSR; (number, rows, columns) of blocks, BSR; (number, rows), blocks of one column
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tedsl import te
from tedsl.errors import ShapeError
from tedsl.record import record
from topi.extents import as_int, differ, require_integers, require_one_dtype, require_shape, shown


@record
class Matrix:
    """A sparse matrix."""

    data: te.Tensor
    indices: te.Tensor
    indptr: te.Tensor

    @property
    def block(self) -> tuple[Any, Any]:
        """The extents of a block."""
        rows, columns = (*self.data.shape[1:], 1, 1)[:2]
        return rows, columns

    @property
    def rows(self) -> Any:
        """The number of rows."""
        return (self.indptr.shape[0] - 1) * self.block[0]

    @property
    def tensors(self) -> list[te.Tensor]:
        return [self.data, self.indices, self.indptr]


def matrix_of(data: te.Tensor, indices: te.Tensor, indptr: te.Tensor, where: str, ranks: tuple[int, ...] = (1, 3)) -> Matrix:
    """The matrix of three tensors. ranks: the dimensions that the data may have. Raises ShapeError or DTypeError."""
    if data.ndim not in ranks:
        words = {1: "(number,) of elements", 2: "(number, rows) of blocks", 3: "(number, rows, columns) of blocks"}
        raise ShapeError(f"{where}: {data.name} has the shape {shown(data.shape)}", hint=" or ".join(words[r] for r in ranks))
    require_shape(indices, [data.shape[0]], where, f"a column for each element of {data.name}")
    require_shape(indptr, [None], where, "where each row begins, and where the last one ends")
    if as_int(indptr.shape[0]) == 0:
        raise ShapeError(f"{where}: {indptr.name} is empty", hint="a matrix without rows has indptr [0]")
    require_integers(indices, where)
    require_integers(indptr, where, "indptr")
    return Matrix(data, indices, indptr)


def require_columns(m: Matrix, dense: te.Tensor, extent: Any, where: str) -> None:
    """Raise ShapeError if blocks of the matrix do not divide `extent`, DTypeError if the dtypes differ."""
    require_one_dtype([dense, m.data], where)
    wide = m.block[1]
    if differ(wide, 1) and differ(extent % wide, 0):
        raise ShapeError(f"{where}: blocks of {wide!r} columns do not divide {extent!r}, an extent of {dense.name}",
                         hint="pad the dense tensor: topi.nn.pad")


def row_product(ib: Any, m: Matrix, memory: list[Any], row: Any, factor: Callable[[Any], Any]) -> Any:
    """Writes the sum of the products of a row with factor(column); memory: that of the data, the indices and indptr."""
    data, indices, indptr = memory
    high, wide = m.block
    block = ib.let("block", row // high if differ(high, 1) else row)
    inside = row % high if differ(high, 1) else 0
    dtype = "float32" if m.data.dtype.is_float and m.data.dtype.bits == 16 else m.data.dtype
    total = ib.allocate(dtype, (1,), name="total", scope="local")
    total[0] = te.const(0, dtype)
    with ib.for_range(indptr[block], indptr[block + 1], name="e") as e:
        column = ib.let("column", indices[e])
        with ib.for_range(0, wide, name="c") as c:
            element = data[(e, inside, c)[:m.data.ndim]].astype(dtype)
            place = column * wide + c.astype(column.dtype) if differ(wide, 1) else column
            total[0] = total[0] + element * factor(place).astype(dtype)
    return total[0].astype(m.data.dtype)
