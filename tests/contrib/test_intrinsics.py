"""The intrinsics that are shipped: against numpy and the interpreter where this machine has them, refused elsewhere."""

import numpy as np
import pytest

import tedsl
from tedsl import te
from tedsl.contrib.intrinsics import dot_bf16, dot_i8i8i32, dot_u8i8i32, gemm_f32
from tests.lower.intrinsics import check, numbers

HAVE = tedsl.target.Target("llvm").features
HASWELL = "llvm -mcpu=haswell -mtriple=x86_64-linux-gnu"
ARM = "llvm -mtriple=aarch64-linux-gnu -mcpu=neoverse-n1"


def needs(feature):
    return pytest.mark.skipif(feature not in HAVE, reason=f"this machine lacks {feature}")


def packed_matmul(M, N, K, lanes, step, left, right, wide):
    """C = A B^T over packed B: [N/lanes, K/step, lanes, step]."""
    A = te.placeholder((M, K), left, name="A")
    B = te.placeholder((N // lanes, K // step, lanes, step), right, name="B")
    k = te.reduce_axis((0, K), name="k")
    C = te.compute((M, N), lambda i, j: te.sum(
        A[i, k].astype(wide) * B[j // lanes, k // step, j % lanes, k % step].astype(wide), axis=k), name="C")
    return A, B, C


def packed(b, lanes, step):
    n, k = b.shape
    return np.ascontiguousarray(b.reshape(n // lanes, lanes, k // step, step).transpose(0, 2, 1, 3))


@needs("avx512vnni")
@pytest.mark.parametrize("M, N, K", [(8, 16, 4), (5, 32, 64), (1, 16, 8)])
def test_vnni(M, N, K):
    A, B, C = packed_matmul(M, N, K, 16, 4, "uint8", "int8", "int32")
    s = te.create_schedule(C.op)
    i, j = C.op.axis
    jo, ji = s[C].split(j, 16)
    ko, ki = s[C].split(C.op.reduce_axis[0], 4)
    io, ii = s[C].split(i, 4)
    s[C].reorder(io, jo, ko, ii, ji, ki)
    s[C].tensorize(ji, dot_u8i8i32())
    rng = np.random.default_rng(3)
    a, b = rng.integers(0, 256, (M, K), dtype="uint8"), rng.integers(-128, 128, (N, K), dtype="int8")
    built = check(s, [A, B, C], [a, packed(b, 16, 4), np.zeros((M, N), "int32")], a.astype("int32") @ b.T.astype("int32"))
    assert "vpdpbusd" in built.get_source("asm")


@needs("avx512bf16")
@pytest.mark.parametrize("depth", [2, 8, 32])
def test_bfloat16(depth):
    A, B, C = packed_matmul(6, 32, 32, 16, 2, "bfloat16", "bfloat16", "float32")
    s = te.create_schedule(C.op)
    i, j = C.op.axis
    jo, ji = s[C].split(j, 16)
    ko, ki = s[C].split(C.op.reduce_axis[0], depth)
    s[C].reorder(i, jo, ko, ji, ki)
    s[C].tensorize(ji, dot_bf16(depth))
    a, b = numbers(6, 32), numbers(32, 32)
    bits = [(x.view("uint32") >> 16).astype("uint16") for x in (a, b)]
    a, b = [(x.astype("uint32") << 16).view("float32") for x in bits]
    built = check(s, [A, B, C], [bits[0], packed(bits[1], 16, 2), np.zeros((6, 32), "float32")], a @ b.T, rtol=1e-4)
    assert "vdpbf16ps" in built.get_source("asm")


@pytest.mark.parametrize("dtype", ["int8", "uint8"])
def test_dot_products_of_aarch64_by_the_interpreter_and_as_assembly(dtype):
    wide = "int32" if dtype == "int8" else "uint32"
    A, B, C = packed_matmul(3, 8, 16, 4, 4, dtype, dtype, wide)
    s = te.create_schedule(C.op)
    i, j = C.op.axis
    jo, ji = s[C].split(j, 4)
    ko, ki = s[C].split(C.op.reduce_axis[0], 4)
    s[C].reorder(i, jo, ko, ji, ki)
    s[C].tensorize(ji, dot_i8i8i32(dtype, ARM))
    assert f"{dtype[0].replace('i', 's')}dot" in tedsl.build(s, [A, B, C], ARM).get_source("asm")
    rng = np.random.default_rng(3)
    a, b = (rng.integers(0, 127, shape).astype(dtype) for shape in ((3, 16), (8, 16)))
    c = np.zeros((3, 8), wide)
    from tedsl.ir.evaluate import run

    run(tedsl.lower(s, [A, B, C])["main"], [a, packed(b, 4, 4), c])
    np.testing.assert_array_equal(c, a.astype(wide) @ b.T.astype(wide))


def gemm(M, N, K, m, n, depth, target="llvm"):
    A, B = te.placeholder((M, K), name="A"), te.placeholder((K, N), name="B")
    k = te.reduce_axis((0, K), name="k")
    C = te.compute((M, N), lambda i, j: te.sum(A[i, k] * B[k, j], axis=k), name="C")
    s = te.create_schedule(C.op)
    io, jo, ii, ji = s[C].tile(C.op.axis[0], C.op.axis[1], m, n)
    ko, ki = s[C].split(k, depth)
    s[C].reorder(io, jo, ko, ii, ji, ki)
    s[C].tensorize(ii, gemm_f32(m, n, depth, target))
    return s, [A, B, C]


@pytest.mark.skipif("fma" not in HAVE and "neon" not in HAVE, reason="this machine lacks fma")
@pytest.mark.parametrize("m, depth", [(1, 40), (7, 40), (14, 8), (4, 1)])
def test_a_tile_of_a_matrix_product(m, depth):
    lanes = tedsl.target.Target("llvm").vector_lanes("float32")
    s, args = gemm(28, 4 * lanes, 40, m, 2 * lanes, depth)
    a, b = numbers(28, 40), numbers(40, 4 * lanes)
    check(s, args, [a, b, np.zeros((28, 4 * lanes), "float32")], a @ b, rtol=1e-4)


def test_a_tile_for_avx2_stays_in_registers():
    s, args = gemm(12, 32, 16, 6, 16, 16, "llvm -mtriple=x86_64-linux-gnu -mcpu=haswell")
    text = tedsl.build(s, args, "llvm -mtriple=x86_64-linux-gnu -mcpu=haswell").get_source("asm")
    assert text.count("vfmadd") == 12


@pytest.mark.parametrize("make, words", [
    (lambda: dot_u8i8i32("llvm -mtriple=x86_64-linux-gnu -mcpu=haswell"), "dot_u8i8i32 needs avx512vnni"),
    (lambda: dot_bf16(4, "llvm -mtriple=x86_64-linux-gnu -mcpu=skylake-avx512"), "it lacks avx512bf16"),
    (lambda: dot_i8i8i32("int8", "llvm -mtriple=x86_64-linux-gnu"), "needs dotprod; target"),
    (lambda: dot_i8i8i32("int8", "llvm -mtriple=aarch64-linux-gnu -mcpu=cortex-a72"), "it lacks dotprod"),
    (lambda: gemm_f32(4, 8, 8, "llvm -mtriple=x86_64-linux-gnu -mcpu=nehalem"), "gemm_f32 needs fma"),
    (lambda: gemm_f32(4, 9, 8, "llvm -mtriple=x86_64-linux-gnu -mcpu=haswell"), "n is a multiple of the 8 lanes"),
    (lambda: dot_bf16(3), "the depth is 3; the instruction takes pairs"),
    (lambda: dot_i8i8i32("int16"), "takes int8 or uint8, not 'int16'"),
])
def test_refused_with_what_is_lacking(make, words):
    with pytest.raises(tedsl.TedslError) as caught:
        make()
    assert words in str(caught.value)


@pytest.mark.parametrize("make", [
    lambda wrong: dot_bf16(wrong, "llvm -mcpu=sapphirerapids -mtriple=x86_64-linux-gnu"),
    *(lambda wrong, at=at: gemm_f32(*[wrong if k == at else 8 for k in range(3)], HASWELL)
      for at in range(3)),
    lambda wrong: dot_i8i8i32(wrong, ARM), dot_u8i8i32, lambda wrong: dot_bf16(2, wrong),
    lambda wrong: gemm_f32(1, 8, 1, wrong)])
@pytest.mark.parametrize("wrong", ["x", 2.5, [4], True, object()])
def test_arguments_of_a_wrong_type(make, wrong):
    """dot_bf16("x") was Python's TypeError, of a comparison."""
    with pytest.raises(tedsl.TedslError):
        make(wrong)


def test_sizes_of_numpy_are_whole_numbers():
    assert gemm_f32(np.int64(2), np.int32(8), np.uint8(4), HASWELL).name == "gemm_f32"
    with pytest.raises(tedsl.errors.ArgumentTypeError, match="dot_bf16: the depth is a whole number, not 'x'"):
        dot_bf16("x")
