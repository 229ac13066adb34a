"""Sparse matrices in compressed rows (CSR): arrays with content, and placeholders for formulas.

    indptr    row r has the elements indptr[r] to indptr[r + 1] - 1        data, indices    value and column of each element
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy

from tedsl import nd, te
from tedsl.errors import ArgumentError, ArgumentTypeError, ShapeError, entries, type_in_words

__all__ = ["CSRNDArray", "CSRPlaceholderOp", "SparsePlaceholderOp", "array", "placeholder"]

PLACES = "int32"  # the dtype of indices and indptr


class CSRNDArray:
    """A sparse matrix: `data`, `indices` and `indptr` are arrays, `shape` its extents."""

    def __init__(self, arg1: Any, device: nd.Device | None = None, shape: Sequence[int] | None = None) -> None:
        """arg1: a dense array of two dimensions, or (data, indices, indptr) with the `shape` of the matrix.

        Raises ArgumentTypeError or ShapeError for anything else.
        """
        if isinstance(arg1, tuple):
            if len(arg1) != 3 or shape is None:
                raise ArgumentError(f"sparse.array: a tuple of {len(arg1)} and the shape {shape}",
                                    hint="give (data, indices, indptr), and shape=(rows, columns)")
            self.data, self.indices, self.indptr = (nd.array(part, device) for part in arg1)
            self.shape = tuple(shape)
        elif isinstance(arg1, (numpy.ndarray, nd.NDArray)):
            dense = numpy.asarray(arg1)
            if dense.ndim != 2:
                raise ShapeError(f"sparse.array: an array of shape {dense.shape}", hint="a matrix has two dimensions")
            rows, columns = numpy.nonzero(dense)
            starts = numpy.searchsorted(rows, numpy.arange(dense.shape[0] + 1))
            self.data = nd.array(dense[rows, columns], device)
            self.indices, self.indptr = (nd.array(part.astype(PLACES), device) for part in (columns, starts))
            self.shape = dense.shape
        else:
            raise ArgumentTypeError(f"sparse.array: got {type_in_words(arg1)}",
                                    hint="give a numpy array, or (data, indices, indptr) and shape=")
        if len(self.shape) != 2 or self.indptr.shape != (self.shape[0] + 1,) or self.data.shape != self.indices.shape:
            raise ShapeError(f"sparse.array: data {self.data.shape}, indices {self.indices.shape}, indptr {self.indptr.shape} "
                             f"of a matrix {self.shape}", hint="as many indices as data, and one more indptr than rows")
        self.stype, self.dtype = "csr", self.data.dtype

    def numpy(self) -> numpy.ndarray[Any, Any]:
        """The dense array."""
        starts = self.indptr.numpy()
        full = numpy.zeros(self.shape, self.data.numpy().dtype)
        full[numpy.repeat(numpy.arange(self.shape[0]), numpy.diff(starts)), self.indices.numpy()] = self.data.numpy()
        return full

    asnumpy = numpy


def array(source_array: Any, device: nd.Device | None = None, shape: Sequence[int] | None = None,
          stype: str = "csr") -> CSRNDArray:
    """The sparse matrix of a dense array, or of (data, indices, indptr) with its shape."""
    _require_rows(stype)
    return CSRNDArray(source_array, device, shape)


class SparsePlaceholderOp:
    """A sparse matrix that functions take: its shape, dtype and name."""

    def __init__(self, shape: Sequence[Any], nonzeros: Any, dtype: Any, name: str) -> None:
        """nonzeros: how many elements it has."""
        self.shape, self.dtype, self.name, self.stype = tuple(shape), dtype, name, "unknown"


class CSRPlaceholderOp(SparsePlaceholderOp):
    """A sparse matrix that functions take as three arrays: placeholders `data`, `indices` and `indptr`."""

    def __init__(self, shape: Sequence[Any], nonzeros: Any, dtype: Any, name: str) -> None:
        super().__init__(shape, nonzeros, dtype, name)
        if len(self.shape) != 2:
            raise ShapeError(f"sparse.placeholder {name}: the shape is {self.shape}", hint="a matrix has two dimensions")
        self.stype = "csr"
        self.data = te.placeholder((nonzeros,), dtype, f"{name}_data")
        self.indices = te.placeholder((nonzeros,), PLACES, f"{name}_indices")
        self.indptr = te.placeholder((self.shape[0] + 1,), PLACES, f"{name}_indptr")


def placeholder(shape: Sequence[Any], nonzeros: Any = None, dtype: Any = None, name: str = "placeholder",
                stype: str | None = None) -> CSRPlaceholderOp:
    """A sparse matrix that functions take; its tensors are arguments of the function. nonzeros: None is 0; dtype: float32."""
    _require_rows("csr" if stype is None else stype)
    if not isinstance(shape, (tuple, list)):
        raise ArgumentTypeError(f"sparse.placeholder {name}: the shape is {shape!r}", hint="write (rows, columns)")
    return CSRPlaceholderOp(shape, 0 if nonzeros is None else nonzeros, dtype or "float32", name)


def _require_rows(stype: str) -> None:
    if stype != "csr":
        raise ArgumentError(f"sparse: there is no stype {stype!r}",
                            hint="choose 'csr'; blocks are tensors of topi.nn.sparse_dense")


entries(globals())
