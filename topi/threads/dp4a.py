"""The intrinsic dp4a of TVM's topi.cuda: four products of bytes, added to a number of 32 bits."""

from __future__ import annotations

from typing import Any

from tedsl import te, tir
from tedsl.errors import ArgumentError

_SUMS = {("int8", "int8"): "int32", ("int8", "uint8"): "int32", ("uint8", "int8"): "int32", ("uint8", "uint8"): "uint32"}


def dp4a(x_scope: str = "local", y_scope: str = "local", z_scope: str = "local",
         dtypes: tuple[str, str] = ("int8", "int8")) -> te.TensorIntrin:
    """z[0] += x[0] * y[0] + ... + x[3] * y[3], to tensorize a loop of four: x and y of `dtypes`, in these scopes."""
    sums = _SUMS.get((str(dtypes[0]), str(dtypes[1])))
    if sums is None:
        raise ArgumentError(f"dp4a multiplies bytes, not {dtypes[0]} and {dtypes[1]}", hint="dtypes=(\"int8\", \"int8\")")
    x, y = te.placeholder((4,), dtypes[0], name="x"), te.placeholder((4,), dtypes[1], name="y")
    k = te.reduce_axis((0, 4), name="rc")
    z = te.compute((1,), lambda i: te.sum(x[k].astype(sums) * y[k].astype(sums), axis=[k]), name="z")

    def parts(ins: Any, outs: Any) -> tuple[tir.Stmt, tir.Stmt, tir.Stmt]:
        def product(i: int) -> tir.PrimExpr:
            first, second = (buffer.vload([i]).astype(sums) for buffer in ins)
            return tir.multiply(first, second)

        whole = product(0) + product(1) + product(2) + product(3)
        return outs[0].vstore(0, whole), outs[0].vstore(0, tir.const(0, sums)), outs[0].vstore(0, outs[0].vload(0) + whole)

    scopes = ((x, x_scope, 4), (y, y_scope, 4), (z, z_scope, 1))
    binds = {tensor: tir.decl_buffer(tensor.shape, tensor.dtype, scope=scope, data_alignment=4, offset_factor=factor,
                                     strides=[1])
             for tensor, scope, factor in scopes}
    return te.decl_tensor_intrin(z.op, parts, binds=binds)
