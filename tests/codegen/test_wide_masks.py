"""Accesses with masks that are wider than a register, of which whole registers are off: LLVM took these for on with AVX2."""

import numpy as np
import pytest

import tedsl
from tedsl import te

TARGETS = ["llvm -mcpu=x86-64-v3", "llvm -mcpu=x86-64-v4", "llvm"]


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("dtype", ["float64", "int64", "float32", "int32", "int8"])
@pytest.mark.parametrize("width, before, after", [
    (2, 7, 2), (3, 5, 1), (2, 9, 2), (4, 0, 5), (1, 4, 3), (5, 12, 0), (2, 15, 15)])
def test_padded_rows(width, before, after, dtype, target):
    A = te.placeholder((3, width), dtype, name="A")
    P = te.compute((5, before + width + after), lambda i, j: te.if_then_else(
        te.all(i >= 1, i < 4, j >= before, j < before + width), A[i - 1, j - before], te.const(0, dtype)), name="P")
    s = te.create_schedule(P.op)
    s[P].vectorize(P.op.axis[1])
    memory = np.arange(100, 200).astype(dtype)  # what lies before and behind A
    data, found = memory[40:40 + 3 * width].reshape(3, width), np.full((5, before + width + after), 7, dtype)
    tedsl.build(s, [A, P], target=target)(data, found)
    np.testing.assert_array_equal(found, np.pad(data, ((1, 1), (before, after))))


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("first", [4, 7, 8, 15])
def test_lanes_that_are_stored(first, dtype, target):
    """Only the last ones, in rows that a condition chooses."""
    ib = tedsl.tir.ir_builder.create()
    A, B = (tedsl.tir.decl_buffer((4, 16), dtype, name=name) for name in "AB")
    given, out = ib.buffer_ptr(A), ib.buffer_ptr(B)
    with ib.for_range(0, 4, name="i") as i, ib.for_range(0, 16, name="j", kind="vectorize") as j, \
            ib.if_scope(te.all(i >= 1, j >= first)):
        out[i, j] = given[i, j] * 2.0
    run = tedsl.build(tedsl.IRModule.from_expr(tedsl.tir.PrimFunc([A, B], ib.get()).with_attr("global_symbol", "main")),
                      target=target)
    data, found = np.arange(64).reshape(4, 16).astype(dtype), np.full((4, 16), 7, dtype)
    run(data, found)
    expected = np.full((4, 16), 7, dtype)
    expected[1:, first:] = 2 * data[1:, first:]
    np.testing.assert_array_equal(found, expected)
