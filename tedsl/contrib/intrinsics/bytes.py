"""Dot products of bytes into 32 bits: one instruction each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tedsl import te, tir
from tedsl.contrib.intrinsics.needs import target_with
from tedsl.errors import ArgumentError

Buffers = Sequence[tir.Buffer]


def dot_u8i8i32(target: Any = None) -> te.TensorIntrin:
    """Returns the intrinsic c[i] = sum(a[k] * b[i, k] for k in 0..4) for i in 0..16: a uint8, b int8, c int32.
    AVX-512 VNNI (vpdpbusd), exact.

    The 64 bytes of b must be contiguous: pack the weights as [N/16, K/4, 16, 4].
    """
    target_with("dot_u8i8i32", target, "x86-64", "avx512vnni")

    def dot(ins: Buffers, start: tir.Expr) -> tir.Expr:
        a = tir.call_intrin("int32", "tir.reinterpret", ins[0].vload([0], "uint8x4")).astype("int32x16")
        b = tir.call_intrin("int32x16", "tir.reinterpret", ins[1].vload([0, 0], "int8x64"))
        return tir.call_llvm_pure_intrin("int32x16", "llvm.x86.avx512.vpdpbusd.512", start, a, b)

    return _dot("dot_u8i8i32", 16, "uint8", "int8", dot)


def dot_i8i8i32(dtype: str = "int8", target: Any = None) -> te.TensorIntrin:
    """Returns the intrinsic c[i] = sum(a[k] * b[i, k] for k in 0..4) for i in 0..4: a and b of `dtype`, int8 or uint8, c int32
    or uint32.

    AArch64 with dotprod (sdot, udot), exact. The 16 bytes of b must be contiguous: [N/4, K/4, 4, 4].
    """
    if dtype not in ("int8", "uint8"):
        raise ArgumentError(f"dot_i8i8i32 takes int8 or uint8, not {dtype!r}")
    target_with("dot_i8i8i32", target, "aarch64", "dotprod")
    wide = f"{dtype.removesuffix('8')}32"
    instruction = f"llvm.aarch64.neon.{'s' if dtype == 'int8' else 'u'}dot.v4i32.v16i8"

    def dot(ins: Buffers, start: tir.Expr) -> tir.Expr:
        word = tir.call_intrin(wide, "tir.reinterpret", ins[0].vload([0], f"{dtype}x4")).astype(f"{wide}x4")
        a = tir.call_intrin(f"{dtype}x16", "tir.reinterpret", word)
        return tir.call_llvm_pure_intrin(f"{wide}x4", instruction, start, a, ins[1].vload([0, 0], f"{dtype}x16"))

    return _dot("dot_i8i8i32", 4, dtype, dtype, dot)


def _dot(name: str, lanes: int, left: str, right: str, dot: Any) -> te.TensorIntrin:
    """Returns the intrinsic over `lanes` dot products of 4 elements; `dot(ins, start)` returns the vector `start` plus these
    products.
    """
    wide = "uint32" if left == right == "uint8" else "int32"
    a, b = te.placeholder((4,), left, name="a"), te.placeholder((lanes, 4), right, name="b")
    k = te.reduce_axis((0, 4), name="k")
    c = te.compute((lanes,), lambda i: te.sum(a[k].astype(wide) * b[i, k].astype(wide), axis=k), name="c")
    zero = tir.const(0, f"{wide}x{lanes}")

    def parts(ins: Buffers, outs: Buffers) -> Any:
        before = outs[0].vload([0], f"{wide}x{lanes}")
        return outs[0].vstore([0], dot(ins, zero)), outs[0].vstore([0], zero), outs[0].vstore([0], dot(ins, before))

    return te.decl_tensor_intrin(c.op, parts, name=name, default_buffer_params={"offset_factor": 1})
