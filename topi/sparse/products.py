"""Products of a sparse and a dense tensor: a sum over the elements of a row, for each row by itself."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from tedsl import te
from tedsl.errors import ArgumentError, ArgumentTypeError, type_in_words
from topi.arguments import checked
from topi.extents import as_int, opening, product, require_shape
from topi.kinds import InjectiveOp
from topi.nn.pad import pad
from topi.sparse.matrix import Matrix, matrix_of, require_columns, row_product
from topi.sparse.tiles import lanes_for, tiled_product
from topi.tag import INJECTIVE
from topi.threads.launch import independently, indices_of


class SparseTensor(Protocol):
    """A sparse matrix with its shape, such as tedsl.contrib.sparse.placeholder((m, k), nonzeros)."""

    data: te.Tensor
    indices: te.Tensor
    indptr: te.Tensor
    shape: Any


@checked
def sparse_dense(dense_data: te.Tensor, sparse_data: te.Tensor, sparse_indices: te.Tensor, sparse_indptr: te.Tensor,
                 sparse_lhs: bool = False) -> te.Tensor:
    """dense_data @ sparse^T, or with sparse_lhs sparse @ dense_data^T; the sparse matrix as CSR or BSR.

    dense_data: (rows, k). sparse_data: (number,), CSR, or (number, height, width) of blocks; sparse_indices: (number,);
    sparse_indptr: the rows (of blocks) and one more. The result is (rows of the left, rows of the right).
    """
    return _dense("sparse_dense", dense_data, sparse_data, sparse_indices, sparse_indptr, sparse_lhs)


@checked
def sparse_dense_sp_rhs(data: te.Tensor, weight_data: te.Tensor, weight_indices: te.Tensor,
                        weight_indptr: te.Tensor) -> te.Tensor:
    """data @ weight^T: `sparse_dense` with the sparse matrix on the right."""
    return _dense("sparse_dense_sp_rhs", data, weight_data, weight_indices, weight_indptr, False)


@checked
def sparse_dense_sp_lhs(data_data: te.Tensor, data_indices: te.Tensor, data_indptr: te.Tensor, weight: te.Tensor) -> te.Tensor:
    """data @ weight^T: `sparse_dense` with the sparse matrix on the left."""
    return _dense("sparse_dense_sp_lhs", weight, data_data, data_indices, data_indptr, True)


def _dense(operator: str, dense: te.Tensor, data: te.Tensor, indices: te.Tensor, indptr: te.Tensor, left: bool) -> te.Tensor:
    where = opening(operator, dense, data)
    require_shape(dense, [None, None], where, "the dense tensor is (rows, k)")
    m = matrix_of(data, indices, indptr, where)
    require_columns(m, dense, dense.shape[1], where)
    shape = (m.rows, dense.shape[0]) if left else (dense.shape[0], m.rows)
    kind = f"sparse_dense_sp_{'l' if left else 'r'}hs_{'csr' if data.ndim == 1 else 'bsr'}mm"
    lanes = lanes_for(m, dense.shape[0])
    if lanes is not None:
        return _in_tiles(m, (dense.shape[1], as_int(dense.shape[0]) or lanes), lambda c, i: dense[i, c], lanes, shape,
                         lambda i, j: (i, j) if left else (j, i), dense.dtype, kind)
    return _product(m, dense, shape, lambda i: i[0 if left else 1], lambda i, k: (i[1 if left else 0], k), kind)


def _in_tiles(m: Matrix, extents: tuple[Any, int], element: Callable[[Any, Any], Any], lanes: int, shape: Sequence[Any],
              place: Callable[..., tuple[Any, Any]], dtype: Any, tag: str) -> te.Tensor:
    """The sparse matrix times the dense one of `extents` with the elements element(row, column), by tiles of its columns.

    shape: of the result; place: for its indices those of the product, (row, column).
    """
    k, count = extents
    padded = (count + lanes - 1) // lanes * lanes
    turned = te.compute((k, padded), lambda c, i: element(c, i) if padded == count else te.if_then_else(
        i < count, element(c, te.min(i, count - 1)), te.const(0, dtype)), name="turned", tag=INJECTIVE,
        info=InjectiveOp("transpose"))
    found = tiled_product(m, turned, lanes, tag.partition("_csrmm")[0].partition("_bsrmm")[0], tag)
    result: te.Tensor = te.compute(tuple(shape), lambda *i: found[place(*i)], name="result", tag=INJECTIVE,
                                   info=InjectiveOp("transpose"))
    return result


def _product(m: Matrix, dense: te.Tensor, shape: Sequence[Any], row: Callable[[Any], Any], place: Callable[[Any, Any], Any],
             tag: str, bias: te.Tensor | None = None, bias_place: int | None = 0) -> te.Tensor:
    """Sums for each index i of the result of the products of row(i) with the dense elements at place(i, column). The bias of i
    is that of its coordinate `bias_place`; None: one for all.
    """
    def write(ib: Any, ins: list[Any], outs: list[Any], index: tuple[Any, ...]) -> None:
        source, *memory = ins[:4]
        total = row_product(ib, m, memory, row(index), lambda column: source[place(index, column)])
        outs[0][index] = total if bias is None else total + ins[4][0 if bias_place is None else index[bias_place]]

    inputs = [dense, *m.tensors, *([] if bias is None else [bias])]
    made: te.Tensor = te.extern([tuple(shape)], inputs, **independently(tuple(shape), write, m.data.shape[:1]),
                                name=tag.partition("_csrmm")[0].partition("_bsrmm")[0], dtype=dense.dtype, tag=tag)
    return made


@checked
def sparse_conv2d(dense_data: te.Tensor, sparse_data: te.Tensor, sparse_indices: te.Tensor, sparse_indptr: te.Tensor,
                  layout: str = "NHWC", kernel_size: int = 1) -> te.Tensor:
    """The convolution with stride 1 and a sparse kernel of blocks, of windows of one pixel or of 3 x 3 with a border of zeros.

    dense_data: (batch, height, width, channels), or (batch, channels, height, width) for the layout NCHW. The kernel is
    (filters, channels), or (filters, 3 * 3 * channels) with the channels of a pixel side by side; sparse_data: (number, height,
    width) of blocks, or (number, height) of blocks of one column. The result has the layout of the data.
    """
    where = opening("sparse_conv2d", dense_data, sparse_data)
    if layout not in ("NHWC", "NCHW") or kernel_size not in (1, 3):
        raise ArgumentError(f"{where}: layout is {layout!r}, kernel_size {kernel_size}",
                            hint="layout 'NHWC' or 'NCHW', kernel_size 1 or 3")
    require_shape(dense_data, [None] * 4, where, f"the data have the layout {layout}")
    m = matrix_of(sparse_data, sparse_indices, sparse_indptr, where, (2, 3))
    at = {letter: layout.index(letter) for letter in layout}
    size = {letter: dense_data.shape[at[letter]] for letter in layout}
    k = size["C"] * (kernel_size * kernel_size)
    require_columns(m, dense_data, k, where)
    border = [kernel_size // 2 if letter in "HW" else 0 for letter in layout]
    padded = pad(dense_data, border) if kernel_size > 1 else dense_data

    def read(c: Any, **pixel: Any) -> Any:
        if kernel_size > 1:
            tap, c = c // size["C"], c % size["C"]
            pixel = {**pixel, "H": pixel["H"] + tap // kernel_size, "W": pixel["W"] + tap % kernel_size}
        return tuple([{**pixel, "C": c}[letter] for letter in layout])

    shape = [m.rows if letter == "C" else size[letter] for letter in layout]
    tag, pixels = "sparse_conv2d_sp_bsrmm", as_int(product([size[letter] for letter in "NHW"]))
    lanes = None if pixels is None else lanes_for(m, pixels)
    if lanes is None or pixels is None:
        return _product(m, padded, shape, lambda i: i[at["C"]], lambda i, c: read(c, **{
            letter: i[at[letter]] for letter in "NHW"}), tag)
    numbered = [size[letter] for letter in "NHW"]
    return _in_tiles(m, (k, pixels), lambda c, p: padded[read(c, **dict(zip("NHW", indices_of(p, numbered))))], lanes, shape,
                     lambda *i: (i[at["C"]], (i[at["N"]] * size["H"] + i[at["H"]]) * size["W"] + i[at["W"]]),
                     dense_data.dtype, tag)


@checked
def csrmv(a: Any, x: te.Tensor, y: te.Tensor | None = None) -> te.Tensor:
    """a @ x + y: sparse a (m, k), x (k, 1), y (m,) or (1,); the result is (m, 1). a: of tedsl.contrib.sparse.placeholder.
    """
    where = opening("csrmv", x)
    require_shape(x, [None, 1], where, "x is (k, 1)")
    return _right("csrmv", a, x, y, where)


@checked
def csrmm(a: Any, b: te.Tensor, c: te.Tensor | None = None) -> te.Tensor:
    """a @ b, with c[i] added to row i: a sparse matrix (m, k), b (k, n), c (m,). a: of tedsl.contrib.sparse.placeholder."""
    return _right("csrmm", a, b, c, opening("csrmm", b))


def _right(operator: str, a: Any, dense: te.Tensor, bias: te.Tensor | None, where: str) -> te.Tensor:
    m = _matrix(a, where)
    require_shape(dense, [a.shape[1], None], where, f"{dense.name} has as many rows as the sparse matrix columns")
    require_columns(m, dense, dense.shape[0], where)
    for_all = bias is not None and operator == "csrmv" and bias.ndim == 1 and as_int(bias.shape[0]) == 1
    if bias is not None and not for_all:
        require_shape(bias, [m.rows], where, "a number for each row of the sparse matrix")
    return _product(m, dense, (m.rows, dense.shape[1]), lambda i: i[0], lambda i, k: (k, i[1]), operator, bias,
                    None if for_all else 0)


@checked
def dense(data: Any, weight: Any, bias: te.Tensor | None = None) -> te.Tensor:
    """data @ weight^T + bias, one of data (batch, k) and weight (n, k) a sparse matrix; bias: (n,).

    The sparse one is of tedsl.contrib.sparse.placeholder.
    """
    left = not isinstance(data, te.Tensor)
    sparse, other = (data, weight) if left else (weight, data)
    where = opening("sparse dense", other)
    m = _matrix(sparse, where)
    require_shape(other, [None, sparse.shape[1]], where, "both have k columns")
    require_columns(m, other, other.shape[1], where)
    shape = (m.rows, other.shape[0]) if left else (other.shape[0], m.rows)
    if bias is not None:
        require_shape(bias, [shape[1]], where, "a number for each row of the weight")
    return _product(m, other, shape, lambda i: i[0 if left else 1], lambda i, k: (i[1 if left else 0], k), "dense_sparse", bias,
                    1)


def _matrix(a: Any, where: str) -> Matrix:
    """The matrix of a sparse tensor; ArgumentTypeError for anything else."""
    if not all(isinstance(getattr(a, name, None), te.Tensor) for name in ("data", "indices", "indptr")):
        raise ArgumentTypeError(f"{where}: got {type_in_words(a)} where a sparse matrix is meant",
                                hint="declare tedsl.contrib.sparse.placeholder((m, k), nonzeros)")
    return matrix_of(a.data, a.indices, a.indptr, where, (1,))
