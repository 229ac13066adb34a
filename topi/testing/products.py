"""Products of matrices in numpy, by TVM's names."""

from __future__ import annotations

from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]


def matmul(x: Array, y: Array, bias: Array | None, use_bias: bool = False, use_relu: bool = False, out_dtype: Any = None,
           trans_x: bool = False, trans_y: bool = False) -> Array:
    """x @ y, either one transposed first, with `bias` added and values below 0 replaced where that is wanted."""
    wide = out_dtype or x.dtype
    found = np.dot(x.T.astype(wide) if trans_x else x.astype(wide), y.T.astype(wide) if trans_y else y.astype(wide))
    found = found + bias if use_bias and bias is not None else found
    result: Array = np.maximum(found, 0) if use_relu else found
    return result


def dense(x: Array, y: Array, bias: Array | None, use_bias: bool = False, use_relu: bool = False,
          out_dtype: Any = None) -> Array:
    """x @ y^T, as `matmul`."""
    return matmul(x, y, bias, use_bias, use_relu, out_dtype, False, True)


def batch_matmul(x: Array, y: Array, out_dtype: Any = None, trans_x: bool = False, trans_y: bool = True) -> Array:
    """The products of the matrices in x and y, for each index of the first dimension; one matrix is used for all others."""
    left, right = (z.transpose(0, 2, 1) if turned else z for z, turned in ((x, trans_x), (y, trans_y)))
    found: Array = np.matmul(left.astype(out_dtype or x.dtype), right.astype(out_dtype or y.dtype))
    return found


def slice_axis_python(data: Array, axis: int, begin: int, end: int | None = None) -> Array:
    """The elements from `begin` to before `end` along an axis."""
    return data[(slice(None),) * (axis % data.ndim) + (slice(begin, end),)]
