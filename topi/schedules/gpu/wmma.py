"""Tensor cores: matrices that the 32 threads of a warp load, multiply and store together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tedsl import te, tir
from tedsl.errors import ArgumentError, ArgumentTypeError

SHAPES = ((16, 16, 16), (8, 32, 16), (32, 8, 16))  # m, n, k
DEALT = {"float16": (16, 8, 16), "bfloat16": (16, 8, 16), "int8": (16, 8, 32), "uint8": (16, 8, 32)}  # of the instructions mma
SUMS = {"float16": ("float32", "float16"), "bfloat16": ("float32",), "int8": ("int32",), "uint8": ("int32",)}
ORDERS = ("row_major", "col_major")
Shape = Sequence[int]


def wmma_load_a(shape: Shape = (16, 16, 16), dtype: str = "float16", order: str = "row_major",
                scope: str = "shared") -> te.TensorIntrin:
    """Returns the intrinsic that copies a matrix a of m x k elements from memory of `scope` to scope "wmma.matrix_a".

    order: "row_major" for a tensor [m, k], "col_major" for [k, m]. Rows are at any distance that 16 bytes divide.
    """
    m, n, k = _checked("wmma_load_a", shape, dtype, order)
    return _copy("tvm_load_matrix_sync", (m, n, k), (m, k), dtype, order, scope, "wmma.matrix_a")


def wmma_load_b(shape: Shape = (16, 16, 16), dtype: str = "float16", order: str = "row_major",
                scope: str = "shared") -> te.TensorIntrin:
    """Returns the intrinsic that copies a matrix b of k x n elements from memory of `scope` to scope "wmma.matrix_b".

    order: "row_major" for a tensor [k, n], "col_major" for [n, k], as of the weights of `topi.nn.dense`.
    """
    m, n, k = _checked("wmma_load_b", shape, dtype, order)
    return _copy("tvm_load_matrix_sync", (m, n, k), (k, n), dtype, order, scope, "wmma.matrix_b")


def wmma_store(shape: Shape = (16, 16, 16), dtype: str = "float32", order: str = "row_major",
               scope: str = "global") -> te.TensorIntrin:
    """Returns the intrinsic that copies a result of m x n elements from scope "wmma.accumulator" to memory of `scope`."""
    sums = sorted({one for known in SUMS.values() for one in known})
    if dtype not in sums:
        raise ArgumentError(f"wmma_store: no accumulator is of {dtype!r}", hint=f"one of {', '.join(sums)}")
    multiplied = next(one for one in SUMS if dtype in SUMS[one])
    m, n, k = _checked("wmma_store", shape, multiplied, order)
    return _copy("tvm_store_matrix_sync", (m, n, k), (m, n), dtype, order, "wmma.accumulator", scope)


def wmma_mma(shape: Shape = (16, 16, 16), dtype: str = "float16", out_dtype: str = "", a_order: str = "row_major",
             b_order: str = "row_major") -> te.TensorIntrin:
    """Returns the intrinsic c[i, j] = sum(a[i, p] * b[p, j] for p in 0..k), with a, b and c in scopes "wmma.matrix_a",
    "wmma.matrix_b" and "wmma.accumulator", c of `out_dtype` ("": float32 of floats, int32 of integers).

    a_order, b_order: those in which a and b are loaded; "col_major" for tensors a [k, m], b [n, k].
    """
    m, n, k = _checked("wmma_mma", shape, dtype, a_order, b_order)
    out = out_dtype or SUMS[dtype][0]
    if out not in SUMS[dtype]:
        raise ArgumentError(f"wmma_mma: products of {dtype} are added in {' or '.join(SUMS[dtype])}, not {out!r}")
    a = te.placeholder((m, k) if a_order == "row_major" else (k, m), dtype, name="a")
    b = te.placeholder((k, n) if b_order == "row_major" else (n, k), dtype, name="b")
    p = te.reduce_axis((0, k), name="p")

    def term(i: Any, j: Any) -> Any:
        left = a[i, p] if a_order == "row_major" else a[p, i]
        right = b[p, j] if b_order == "row_major" else b[j, p]
        return left.astype(out) * right.astype(out)

    c = te.compute((m, n), lambda i, j: te.sum(term(i, j), axis=p), name="c")
    buffers = {t: _buffer(t, scope) for t, scope in ((a, "wmma.matrix_a"), (b, "wmma.matrix_b"), (c, "wmma.accumulator"))}

    def parts(ins: Any, outs: Any) -> Any:
        left, right, result = (_number(buffer, tensor.shape) for buffer, tensor in zip((*ins, outs[0]), (a, b, c)))
        fill = _call("tvm_fill_fragment", outs[0].data, m, n, k, result, tir.const(0, out))
        add = _call("tvm_mma_sync", outs[0].data, result, ins[0].data, left, ins[1].data, right, outs[0].data, result,
                    tir.StringImm(a_order), tir.StringImm(b_order))
        return tir.SeqStmt((fill, add)), fill, add

    return te.decl_tensor_intrin(c.op, parts, name="wmma_mma", binds=buffers)


def _copy(name: str, shape: tuple[int, int, int], size: tuple[int, int], dtype: str, order: str, source: str,
          target: str) -> te.TensorIntrin:
    """The intrinsic that copies a matrix of `size` between fragments and other memory, whose scopes are given."""
    x = te.placeholder(size if order == "row_major" else size[::-1], dtype, name="x")
    y = te.compute(x.shape, lambda i, j: x[i, j], name="y")

    def part(ins: Any, outs: Any) -> Any:
        fragment, other, use = (outs[0], ins[0], "r") if target.startswith("wmma.") else (ins[0], outs[0], "w")
        return _call(name, fragment.data, *shape, _number(fragment, x.shape), other.access_ptr(use), other.strides[0],
                     tir.StringImm(order))

    return te.decl_tensor_intrin(y.op, part, name=name.removeprefix("tvm_").removesuffix("_sync"),
                                 binds={x: _buffer(x, source), y: _buffer(y, target)})


def _buffer(tensor: te.Tensor, scope: str) -> tir.Buffer:
    return tir.decl_buffer(tensor.shape, tensor.dtype, tensor.op.name, strides=[te.var(f"ld{tensor.op.name}"), 1], scope=scope,
                           offset_factor=1)


def _number(buffer: tir.Buffer, shape: Any) -> tir.Expr:
    """The number of the fragment that `buffer` is, among those of its memory: rows of tiles lie one after the other."""
    rows, columns = (int(extent) for extent in shape)
    line = buffer.strides[0]
    return buffer.elem_offset // (line * rows) * (line // columns) + buffer.elem_offset % line // columns


def _call(name: str, *args: Any) -> tir.Stmt:
    return tir.Evaluate(tir.call_intrin("handle", f"tir.{name}", *args))


def _checked(name: str, shape: Shape, dtype: str, *orders: str) -> tuple[int, int, int]:
    try:
        m, n, k = shape
    except (TypeError, ValueError):
        raise ArgumentTypeError(f"{name}: the shape is m, n, k, not {shape!r}") from None
    if dtype not in SUMS:
        raise ArgumentError(f"{name}: no tensor core multiplies {dtype!r}", hint=f"one of {', '.join(SUMS)}")
    if (m, n, k) not in (*SHAPES, DEALT[dtype]):
        raise ArgumentError(f"{name}: no tensor core multiplies {m} x {k} by {k} x {n}",
                            hint=f"m, n, k is one of {', '.join(map(str, (*SHAPES, DEALT[dtype])))}")
    for order in orders:
        if order not in ORDERS:
            raise ArgumentError(f"{name}: the order of elements is {order!r}", hint="row_major or col_major")
    return m, n, k

