"""Products of matrices by the names of TVM's contrib.cblas: numpy computes them, with the BLAS that it has.

    C = cblas.matmul(A, B)
    C = te.extern((n, m), [A, B], lambda ins, outs: tir.call_packed("tvm.contrib.cblas.matmul", ins[0], ins[1], outs[0],
                                                                    False, False))

`topi.matmul` and its kin are compiled with the rest of the program, and mostly faster.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tedsl import te, tir
from tedsl.errors import ShapeError, entries
from tedsl.runtime.array import NDArray
from tedsl.runtime.functions import register_func


def _product(lhs: NDArray, rhs: NDArray, out: NDArray, transa: bool = False, transb: bool = False, *_: Any) -> None:
    a, b = lhs.numpy(), rhs.numpy()
    out[:] = np.matmul(np.swapaxes(a, -1, -2) if transa else a, np.swapaxes(b, -1, -2) if transb else b)


for _name in ("matmul", "batch_matmul", "batch_matmul_iterative"):
    register_func(f"tvm.contrib.cblas.{_name}", _product, override=True)


def _extern(function: str, lhs: te.Tensor, rhs: te.Tensor, transa: bool, transb: bool, options: dict[str, Any]) -> te.Tensor:
    rank = 3 if function.startswith("batch") else 2
    if lhs.ndim != rank or rhs.ndim != rank:
        raise ShapeError(f"cblas.{function} multiplies tensors of {rank} dimensions, not of {lhs.ndim} and {rhs.ndim}",
                         hint="topi.matmul takes any")
    rows, columns = lhs.shape[-1 if transa else -2], rhs.shape[-2 if transb else -1]
    made: te.Tensor = te.extern((*lhs.shape[:-2], rows, columns), [lhs, rhs],
                          lambda ins, outs: tir.call_packed(f"tvm.contrib.cblas.{function}", ins[0], ins[1], outs[0], transa,
                                                            transb),
                          name=options.pop("name", "C"), **options)
    return made


def matmul(lhs: te.Tensor, rhs: te.Tensor, transa: bool = False, transb: bool = False, **kwargs: Any) -> te.Tensor:
    """The product of two matrices. transa, transb: of the transposed ones; others are options of te.extern."""
    return _extern("matmul", lhs, rhs, transa, transb, kwargs)


def batch_matmul(lhs: te.Tensor, rhs: te.Tensor, transa: bool = False, transb: bool = False, iterative: bool = False,
                 **kwargs: Any) -> te.Tensor:
    """The products of two lists of matrices. iterative: one after the other."""
    return _extern("batch_matmul_iterative" if iterative else "batch_matmul", lhs, rhs, transa, transb, kwargs)


entries(globals())
