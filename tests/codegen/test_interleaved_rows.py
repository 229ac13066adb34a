"""Vectors whose lanes take turns to read several rows: a load of each row, and shuffles."""

import numpy as np
import pytest

import tedsl
import topi
from tedsl import te
from tedsl.target import Target

SKYLAKE = Target("llvm -mtriple=x86_64-linux-gnu -mcpu=skylake-avx512")
TARGETS = ["llvm", *(name for name in ("llvm -mcpu=skylake-avx512", "llvm -mcpu=haswell", "llvm -mtriple=x86_64-linux-gnu")
                     if Target("llvm").arch == "x86-64" and Target(name).runs_here)]


def interleaved(rows, lines, columns, dtype="int8", lanes=16):
    """B[l, c, r] = A[l*rows + r, c], in vectors of `lanes` columns and all rows."""
    a = te.placeholder((lines * rows, columns), dtype, name="A")
    b = te.compute((lines, columns, rows), lambda line, c, r: a[line * rows + r, c], name="B")
    s = te.create_schedule(b.op)
    _, lane = s[b].split(b.op.axis[1], factor=lanes)
    s[b].vectorize(s[b].fuse(lane, b.op.axis[2]))
    return s, [a, b]


@pytest.mark.parametrize("dtype", ["int8", "int16", "float16", "bfloat16", "float32", "float64", "bool"])
@pytest.mark.parametrize("rows", [2, 3, 4, 8])
@pytest.mark.parametrize("lines, columns", [(3, 16), (2, 37), (1, 5), (2, 1), (0, 16)])
def test_values(dtype, rows, lines, columns):
    ml_dtypes = pytest.importorskip("ml_dtypes")
    of = ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype
    x = np.random.default_rng(0).integers(0, 2 if dtype == "bool" else 100, (lines * rows, columns)).astype(of)
    for target in TARGETS:
        s, args = interleaved(rows, lines, columns, dtype)
        y = np.zeros((lines, columns, rows), of)
        tedsl.build(s, args, target)(x, y)
        np.testing.assert_array_equal(y, x.reshape(lines, rows, columns).transpose(0, 2, 1))


@pytest.mark.parametrize("rows, dtype", [(2, "int16"), (4, "int8"), (2, "float32")])
@pytest.mark.parametrize("columns", [48, 50])
def test_nothing_is_gathered(rows, dtype, columns):
    """Also under masks, which the processor has for elements of every size."""
    s, args = interleaved(rows, 4, columns, dtype)
    module = tedsl.build(s, args, SKYLAKE)
    assert "gather" not in module.get_source("ll") and "shufflevector" in module.get_source("ll")
    assert "vpinsr" not in module.get_source("asm"), "one element after the other"


def test_the_second_matrix_of_a_product_of_bytes():
    a, b = te.placeholder((20, 64), "uint8", name="a"), te.placeholder((64, 75), "int8", name="b")
    target = Target("llvm -mtriple=x86_64-linux-gnu -mcpu=icelake-server")
    with target:
        out = topi.nn.matmul(a, b, out_dtype="int32")
        asm = tedsl.build(topi.schedules.schedule(out), [a, b, out], target=target).get_source("asm")
    assert "vpdpbusd" in asm and "gather" not in asm and "vpinsr" not in asm, "one element after the other"
