"""Sparse matrices and tensors transposed, added, filled and reshaped."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tedsl import te, tir
from tedsl.errors import ShapeError
from topi.arguments import checked
from topi.extents import as_int, opening, product, require_integers, require_one_dtype, require_shape, shown
from topi.sparse.matrix import matrix_of
from topi.threads.launch import independently


@checked
def sparse_transpose(sparse_data: te.Tensor, sparse_indices: te.Tensor, sparse_indptr: te.Tensor) -> list[te.Tensor]:
    """The transposed of a square matrix in CSR: data, indices and indptr, each as the one that was given but int32.

    The elements of a row of the result come in the order of the rows of the matrix.
    """
    where = opening("sparse_transpose", sparse_data)
    m = matrix_of(sparse_data, sparse_indices, sparse_indptr, where, (1,))
    rows = m.rows

    def write(ib: Any, ins: list[Any], outs: list[Any], index: tuple[Any, ...]) -> None:
        (source, columns, starts), (values, found, ends) = ins, outs
        with ib.for_range(0, rows + 1, name="r") as r:
            ends[r] = 0
        with ib.for_range(starts[0], starts[rows], name="e") as e:  # how many there are of each column
            column = ib.let("column", te.max(te.min(columns[e].astype("int32"), rows - 1), 0))
            ends[column] = ends[column] + 1
        before = ib.allocate("int32", (1,), name="before", scope="local")
        before[0] = 0
        with ib.for_range(0, rows, name="r") as r:  # where each column begins
            count = ib.let("count", ends[r])
            ends[r] = before[0]
            before[0] = before[0] + count
        with ib.for_range(0, rows, name="r") as r, ib.for_range(starts[r], starts[r + 1], name="e") as e:
            column = ib.let("column", te.max(te.min(columns[e].astype("int32"), rows - 1), 0))
            at = ib.let("at", ends[column])
            with ib.if_scope(tir.all(at >= 0, at < sparse_data.shape[0])):
                values[at] = source[e]
                found[at] = r.astype("int32")
            ends[column] = at + 1
        with ib.for_range(0, rows, name="r") as r:  # the end of a column is the beginning of the next
            back = ib.let("back", rows - 1 - r)
            ends[back + 1] = ends[back]
        ends[0] = 0

    made: list[te.Tensor] = te.extern([sparse_data.shape, sparse_data.shape, sparse_indptr.shape], m.tensors,
                                      **independently((1,), write), name="sparse_transpose",
                                      dtype=[sparse_data.dtype, "int32", "int32"], tag="sparse_transpose_csr")
    return made


@checked
def sparse_add(dense_data: te.Tensor, sparse_data: te.Tensor, sparse_indices: te.Tensor, sparse_indptr: te.Tensor) -> te.Tensor:
    """dense_data (m, n) plus a sparse matrix in CSR of the same shape."""
    where = opening("sparse_add", dense_data, sparse_data)
    m = matrix_of(sparse_data, sparse_indices, sparse_indptr, where, (1,))
    require_shape(dense_data, [m.rows, None], where, "a row for each row of the sparse matrix")
    require_one_dtype([dense_data, sparse_data], where)
    columns = dense_data.shape[1]

    def write(ib: Any, ins: list[Any], outs: list[Any], index: tuple[Any, ...]) -> None:
        (source, values, places, starts), (target,), (r,) = ins, outs, index
        with ib.for_range(0, columns, name="c") as c:
            target[r, c] = source[r, c]
        with ib.for_range(starts[r], starts[r + 1], name="e") as e:
            column = ib.let("column", places[e].astype("int32"))
            with ib.if_scope(tir.all(column >= 0, column < columns)):
                target[r, column] = target[r, column] + values[e]

    made: te.Tensor = te.extern([dense_data.shape], [dense_data, *m.tensors],
                                **independently((m.rows,), write, (columns,)), name="sparse_add", dtype=dense_data.dtype,
                                tag="sparse_add_csr")
    return made


@checked
def sparse_fill_empty_rows(sparse_indices: te.Tensor, sparse_values: te.Tensor, dense_shape: te.Tensor,
                           default_value: te.Tensor, new_sparse_indices_shape: Sequence[Any],
                           new_sparse_values_shape: Sequence[Any], empty_row_indicator_shape: Sequence[Any]) -> list[te.Tensor]:
    """A sparse tensor in which each row has an element: where there was none, `default_value` at the beginning of the row.

    sparse_indices: (number, rank) of integers; sparse_values: (number,); dense_shape: (rank,), of which the first is
    empty_row_indicator_shape[0]; default_value: () or (1,). Returns the indices, int64, the values, by row and then in the
    order in which they were given, with zeros behind them where the new shapes have room, and for each row whether it was
    empty, bool. Same as tf.sparse.fill_empty_rows.
    """
    where = opening("sparse_fill_empty_rows", sparse_indices, sparse_values)
    require_integers(sparse_indices, where)
    require_shape(sparse_indices, [sparse_values.shape[0] if sparse_values.ndim else None, None], where, "(number, rank)")
    require_shape(sparse_values, [None], where, "a value for each index")
    require_shape(default_value, [1] * (default_value.ndim == 1), where, "default_value is a scalar: te.placeholder((), dtype)")
    require_one_dtype([sparse_values, default_value], where)
    require_shape(dense_shape, [sparse_indices.shape[1]], where, "an extent for each dimension")
    rank, shapes = sparse_indices.shape[1], [tuple(s) for s in (new_sparse_indices_shape, new_sparse_values_shape,
                                                                empty_row_indicator_shape)]
    if [len(shape) for shape in shapes] != [2, 1, 1]:
        raise ShapeError(f"{where}: the shapes of the results are {', '.join(map(shown, shapes))}",
                         hint="(new number, rank), (new number,), (rows,)")
    (rows,), (room,), given = shapes[2], shapes[1], sparse_values.shape[0]

    def write(ib: Any, ins: list[Any], outs: list[Any], index: tuple[Any, ...]) -> None:
        (places, source, default), (found, values, empty, starts) = ins, outs

        def store(at: Any, row: Any, e: Any, value: Any) -> None:
            with ib.if_scope(tir.all(at >= 0, at < room)):
                values[at] = value
                found[at, 0] = row.astype("int64")
                with ib.for_range(1, rank, name="d") as d:
                    found[at, d] = te.const(0, "int64") if e is None else places[e, d].astype("int64")

        with ib.for_range(0, rows, name="r") as r:
            starts[r] = 0
        with ib.for_range(0, given, name="e") as e:
            row = ib.let("row", places[e, 0].astype("int32"))
            with ib.if_scope(tir.all(row >= 0, row < rows)):
                starts[row] = starts[row] + 1
        before = ib.allocate("int32", (1,), name="before", scope="local")
        before[0] = 0
        with ib.for_range(0, rows, name="r") as r:
            count = ib.let("count", starts[r])
            starts[r] = before[0]
            empty[r] = count == 0
            with ib.if_scope(count == 0):
                store(ib.let("at", before[0]), r, None, default[(0,) * default_value.ndim])
            before[0] = before[0] + te.max(count, 1)
        with ib.for_range(before[0], room, name="t") as t:
            store(t, te.const(0, "int64"), None, te.const(0, sparse_values.dtype))
        with ib.for_range(0, given, name="e") as e:
            row = ib.let("row", places[e, 0].astype("int32"))
            with ib.if_scope(tir.all(row >= 0, row < rows)):
                at = ib.let("at", starts[row])
                store(at, row, e, source[e])
                starts[row] = at + 1

    found, values, empty, _ = te.extern([*shapes, (rows,)], [sparse_indices, sparse_values, default_value],
                                        **independently((1,), write), name="sparse_fill_empty_rows",
                                        dtype=["int64", sparse_values.dtype, "bool", "int32"], tag="sparse_fill_empty_rows_cpu")
    return [found, values, empty]


@checked
def sparse_reshape(sparse_indices: te.Tensor, prev_shape: te.Tensor, new_shape: te.Tensor,
                   new_sparse_indices_shape: Sequence[Any], new_shape_shape: Sequence[Any]) -> list[te.Tensor]:
    """The indices of the elements of a sparse tensor reshaped from prev_shape to new_shape, and the new shape, all int64.

    sparse_indices: (number, rank); prev_shape: (rank,); new_shape: (new rank,), in which -1 is the extent that is left; all
    integers, the ranks constants. new_sparse_indices_shape: (number, new rank); new_shape_shape: (new rank,).
    Same as tf.sparse.reshape.
    """
    where = opening("sparse_reshape", sparse_indices)
    for tensor in (sparse_indices, prev_shape, new_shape):
        require_integers(tensor, where, "the tensor")
    require_shape(sparse_indices, [None, None], where, "(number, rank)")
    require_shape(prev_shape, [sparse_indices.shape[1]], where, "an extent for each dimension")
    rank, wanted = as_int(prev_shape.shape[0]), tuple(new_sparse_indices_shape)
    require_shape(new_shape, tuple(new_shape_shape), where, "new_shape_shape is the shape of new_shape")
    new_rank = as_int(new_shape.shape[0]) if new_shape.ndim == 1 else None
    if not rank or not new_rank or len(wanted) != 2 or as_int(wanted[1]) != new_rank:
        raise ShapeError(f"{where}: shapes {shown(prev_shape.shape)}, {shown(new_shape.shape)}, of the indices {shown(wanted)}",
                         hint="the ranks are constants, new_sparse_indices_shape is (number, new rank)")
    one = te.const(1, "int64")

    def extents(shape: te.Tensor, count: int) -> list[Any]:
        return [shape(d).astype("int64") for d in range(count)]

    def extent(j: Any) -> Any:
        known = product([te.select(e == te.const(-1, "int64"), one, e) for e in extents(new_shape, new_rank)])
        own = new_shape(j).astype("int64")
        return te.select(own == te.const(-1, "int64"), product(extents(prev_shape, rank)) // known, own)

    after = te.compute((new_rank,), extent, name="new_shape")

    def element(n: Any, j: Any) -> Any:
        place = te.const(0, "int64")
        for d, size in enumerate(extents(prev_shape, rank)):
            place = place * size + sparse_indices(n, d).astype("int64")
        found, sizes = place % after(new_rank - 1), extents(after, new_rank)
        for d in range(new_rank - 2, -1, -1):
            place = place // sizes[d + 1]
            found = te.select(j == d, place % sizes[d] if d else place, found)
        return found if new_rank > 1 else place

    return [te.compute(wanted, element, name="new_indices", tag="sparse_reshape_cpu"), after]
