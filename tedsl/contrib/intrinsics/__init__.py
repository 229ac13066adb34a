"""Tensor intrinsics for `s[C].tensorize`: instructions of processors and micro-kernels, each with its formula.

    dot_u8i8i32     AVX-512 VNNI: 16 dot products of 4 bytes each       c[16] (i32) += a[4] (u8) . b[16, 4] (i8)
    dot_i8i8i32     AArch64 dotprod: 4 dot products of 4 bytes each     c[4] (i32) += a[4] . b[4, 4], both int8 or both uint8
    dot_bf16        AVX-512 BF16: 16 dot products over a depth          c[16] (f32) += a[depth] . b[depth/2, 16, 2], in bfloat16
    gemm_f32        a tile of a matrix product in LLVM IR               c[m, n] += a[m, k] . b[k, n], in vector registers
    wmma_mma        tensor cores: c[m, n] += a[m, k] . b[k, n], of a warp; wmma_load_a, wmma_load_b, wmma_store
    mma             the same of 16 x 8 results, from sm_80, from memory of any stride; mma_load_a, mma_load_b, mma_store

Each of the first four takes the target that the code is for (None: the current one, else this machine), and is refused with the
name of the feature that it lacks. `get(name)` finds these, those given to `register`, and those of packages that declare an
entry point in the group `tedsl.intrinsics`.
"""

from tedsl.contrib.intrinsics.bfloat16 import dot_bf16
from tedsl.contrib.intrinsics.bytes import dot_i8i8i32, dot_u8i8i32
from tedsl.contrib.intrinsics.gemm import gemm_f32
from tedsl.contrib.intrinsics.table import get, names, register
from topi.schedules.gpu.mma import mma, mma_load_a, mma_load_b, mma_store
from topi.schedules.gpu.wmma import wmma_load_a, wmma_load_b, wmma_mma, wmma_store

__all__ = ["dot_bf16", "dot_i8i8i32", "dot_u8i8i32", "gemm_f32", "get", "mma", "mma_load_a", "mma_load_b", "mma_store", "names",
           "register", "wmma_load_a", "wmma_load_b", "wmma_mma", "wmma_store"]
