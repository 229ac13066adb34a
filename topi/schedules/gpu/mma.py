"""Tensor cores by the instructions mma: results of 16 x 8, from 32 bytes of each row of a and column of b.

It is known which thread has which element, so that matrices may lie in memory at any distance of rows, and at any place; from
shared memory whose rows are at multiples of 16 bytes they are loaded by `ldmatrix`. The devices from sm_80 on have them.
"""

from __future__ import annotations

from tedsl import te
from tedsl.errors import ArgumentError
from topi.schedules.gpu.wmma import DEALT, SUMS, Shape, wmma_load_a, wmma_load_b, wmma_mma, wmma_store


def mma_load_a(dtype: str = "float16", order: str = "row_major", scope: str = "shared") -> te.TensorIntrin:
    """Returns the intrinsic that copies a matrix a of 16 x k elements from memory of `scope` to scope "wmma.matrix_a": k is 16
    for float16 and bfloat16, 32 for int8 and uint8.

    order: "row_major" for a tensor [16, k], "col_major" for [k, 16].
    """
    return wmma_load_a(_shape("mma_load_a", dtype), dtype, order, scope)


def mma_load_b(dtype: str = "float16", order: str = "row_major", scope: str = "shared") -> te.TensorIntrin:
    """Returns the intrinsic that copies a matrix b of k x 8 elements from memory of `scope` to scope "wmma.matrix_b".

    order: "row_major" for a tensor [k, 8], "col_major" for [8, k].
    """
    return wmma_load_b(_shape("mma_load_b", dtype), dtype, order, scope)


def mma(dtype: str = "float16", out_dtype: str = "", a_order: str = "row_major", b_order: str = "row_major") -> te.TensorIntrin:
    """Returns the intrinsic c[i, j] = sum(a[i, p] * b[p, j] for p in 0..k) for 16 x 8 results, as `wmma_mma` for others."""
    return wmma_mma(_shape("mma", dtype), dtype, out_dtype, a_order, b_order)


def mma_store(dtype: str = "float32", order: str = "row_major", scope: str = "global") -> te.TensorIntrin:
    """Returns the intrinsic that copies a result of 16 x 8 elements from scope "wmma.accumulator" to memory of `scope`."""
    return wmma_store(DEALT["int8" if dtype == "int32" else "float16"], dtype, order, scope)


def _shape(name: str, dtype: str) -> Shape:
    if dtype not in DEALT:
        raise ArgumentError(f"{name}: no tensor core multiplies {dtype!r}", hint=f"one of {', '.join(SUMS)}")
    return DEALT[dtype]
