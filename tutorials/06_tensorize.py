"""Tensorize: a loop nest becomes a call of your own code, or an instruction that no compiler finds.

Run it: `python tutorials/06_tensorize.py`. From plain loops to a micro-kernel in C, then to the byte products of AVX-512.
What this machine lacks is skipped with a sentence.
"""

import os
import pathlib
import shutil
import sys
import textwrap

os.environ.setdefault("TEDSL_NUM_THREADS", "1")
sys.path.insert(0, str(pathlib.Path(__file__).parent.parent))

import time

import numpy as np

import tedsl
from tedsl import te, tir
from tedsl.contrib.intrinsics import dot_u8i8i32
from tedsl.ir.evaluate import run

rng = np.random.default_rng(0)


def seconds_of(function, repeat=5):
    """The best time of a call."""
    times = []
    for _ in range(repeat):
        begin = time.perf_counter()
        function()
        times.append(time.perf_counter() - begin)
    return min(times)


# --- 1. Plain loops -----------------------------------------------------------------------------------------------------
# A matrix times a transposed one: C[i, j] is the dot product of row i of A and row j of B.

N, M, L = 64, 48, 96
A, B = te.placeholder((N, L), name="A"), te.placeholder((M, L), name="B")
k = te.reduce_axis((0, L), name="k")
C = te.compute((N, M), lambda i, j: te.sum(A[i, k] * B[j, k], axis=k), name="C")
s = te.create_schedule(C.op)
print("=== Plain loops:\n")
tedsl.lower(s, [A, B, C]).show()


# --- 2. An intrinsic ----------------------------------------------------------------------------------------------------
# Suppose that somebody gave us a function that multiplies a matrix of 16 rows with a vector. An intrinsic says two things:
# what the function computes (a formula), and how it is called (what stands in the loops). Its buffers stand for regions of
# larger tensors: `offset_factor=1` lets them begin anywhere, the stride `ldw` is whatever the rows of that tensor have.

GEMV = """
int gemv_update(float *z, const float *w, const float *x, int m, int n, int ldw) {
  for (int i = 0; i < m; ++i)
    for (int j = 0; j < n; ++j)
      z[i] += w[i * ldw + j] * x[j];
  return 0;
}
int gemv_reset(float *z, int m) {
  for (int i = 0; i < m; ++i) z[i] = 0;
  return 0;
}
"""


def gemv(m, n):
    w, x = te.placeholder((m, n), name="w"), te.placeholder((n,), name="x")
    j = te.reduce_axis((0, n), name="j")
    z = te.compute((m,), lambda i: te.sum(w[i, j] * x[j], axis=j), name="z")
    W = tir.decl_buffer(w.shape, w.dtype, name="W", offset_factor=1, strides=[te.var("ldw"), 1])

    def parts(ins, outs):
        update = tir.call_extern("int32", "gemv_update", outs[0].access_ptr("rw"), ins[0].access_ptr("r"),
                                 ins[1].access_ptr("r"), m, n, ins[0].strides[0])
        reset = tir.call_extern("int32", "gemv_reset", outs[0].access_ptr("w"), m)
        return None, reset, update  # what computes all of z at once, its start values, one step of the sum

    return te.decl_tensor_intrin(z.op, parts, name="gemv", binds={w: W}, default_buffer_params={"offset_factor": 1})


# The formula has 16 rows of B and one of A: so the loops over 16 of j, and over 32 of k, go inside, all others outside.
s = te.create_schedule(C.op)
i, j = C.op.axis
jo, ji = s[C].split(j, 16)
ko, ki = s[C].split(k, 32)
s[C].reorder(i, jo, ko, ji, ki)
s[C].tensorize(ji, gemv(16, 32))
print("\n=== With gemv: an address for each buffer of the intrinsic, and how many elements there are from it on.\n")
tedsl.lower(s, [A, B, C]).show()

# The interpreter runs the formula in place of the call, so a schedule is checked before there is any code to call.
a, b, c = rng.random((N, L), "float32"), rng.random((M, L), "float32"), np.zeros((N, M), "float32")
run(tedsl.lower(s, [A, B, C])["main"], [a, b, c])
np.testing.assert_allclose(c, a @ b.T, rtol=1e-4)
print("\nThe interpreter agrees with numpy.")

# For machine code somebody must define the functions: the pragma import_c compiles C, import_llvm takes LLVM IR as text.
s[C].pragma(i, "import_c", GEMV)
if any(map(shutil.which, ("clang", "cc", "gcc"))):
    c[:] = 0
    tedsl.build(s, [A, B, C])(a, b, c)
    np.testing.assert_allclose(c, a @ b.T, rtol=1e-4)
    print("The machine code agrees with numpy.")
else:
    print("skipped: there is no C compiler here to compile gemv with")

# An intrinsic that computes something else is refused, with both formulas side by side.
s = te.create_schedule(C.op)
s[C].tensorize(s[C].split(j, 16)[1], gemv(16, 32))
try:
    tedsl.lower(s, [A, B, C])
    raise SystemExit("the intrinsic of 32 steps was taken for a sum of 96")
except tedsl.TedslError as error:
    print("\n=== Refused:\n", *(part for line in str(error).splitlines() for part in textwrap.wrap(line, 110)), sep="\n")


# --- 3. An instruction: 64 products of bytes ------------------------------------------------------------------------------
# Quantized networks multiply uint8 by int8 into int32. AVX-512 VNNI does 16 dot products of 4 in one instruction, which no
# vectorizer finds in the plain loops. Its operands must lie side by side: B is packed as [N/16, K/4, 16, 4].

SIZE = 256


def int8_matmul(fast):
    A = te.placeholder((SIZE, SIZE), "uint8", name="A")
    B = te.placeholder((SIZE // 16, SIZE // 4, 16, 4), "int8", name="B")
    k = te.reduce_axis((0, SIZE), name="k")
    C = te.compute((SIZE, SIZE), lambda i, j: te.sum(
        A[i, k].astype("int32") * B[j // 16, k // 4, j % 16, k % 4].astype("int32"), axis=k), name="C")
    s = te.create_schedule(C.op)
    io, jo, ii, ji = s[C].tile(C.op.axis[0], C.op.axis[1], 8, 16)
    ko, ki = s[C].split(k, 4)
    if fast:
        s[C].reorder(io, jo, ko, ii, ji, ki)
        s[C].unroll(ii)  # eight rows: eight vectors of sums that stay in registers
        s[C].tensorize(ji, dot_u8i8i32())
    else:
        s[C].reorder(io, jo, ko, ki, ii, ji)
        s[C].unroll(ii)
        s[C].vectorize(ji)
    return s, [A, B, C]


if "avx512vnni" not in tedsl.target.Target("llvm").features:
    print("\nskipped: this machine has no AVX-512 VNNI; dot_u8i8i32 is refused for it:")
    try:
        dot_u8i8i32()
    except tedsl.TedslError as error:
        print(error)
else:
    a = rng.integers(0, 256, (SIZE, SIZE), dtype="uint8")
    b = rng.integers(-128, 128, (SIZE, SIZE), dtype="int8")
    packed = np.ascontiguousarray(b.reshape(SIZE // 16, 16, SIZE // 4, 4).transpose(0, 2, 1, 3))
    seconds = {}
    for name in ("widened", "vectorized", "tensorized"):
        with tedsl.transform.PassContext(disabled_pass=["tir.UseDotProducts"] if name == "widened" else []):
            kernel = tedsl.build(*int8_matmul(name == "tensorized"))
        c = np.zeros((SIZE, SIZE), "int32")
        kernel(a, packed, c)
        np.testing.assert_array_equal(c, a.astype("int32") @ b.T.astype("int32"))
        seconds[name] = seconds_of(lambda: kernel(a, packed, c))  # noqa: B023 - called at once
    assert "vpdpbusd" in kernel.get_source("asm")
    gain = seconds["widened"] / seconds["tensorized"]
    wide = a.astype("int32"), b.T.astype("int32")
    print(f"\n=== uint8 x int8, {SIZE} x {SIZE} x {SIZE}: bytes widened {seconds['widened'] * 1e6:.0f} us, "
          f"VNNI {seconds['tensorized'] * 1e6:.0f} us, {gain:.1f} times as fast.")
    print(f"Vectorized loops of this form need no tensorize: a pass finds it, {seconds['vectorized'] * 1e6:.0f} us.")
    print(f"numpy needs {seconds_of(lambda: wide[0] @ wide[1]) * 1e6:.0f} us, in int32: it has no product of bytes.")
    print("Without it loops widen each byte to 32 bits and multiply; the instruction multiplies 64 bytes and adds up.")
    assert gain > 1.5, "the instruction should pay"
