"""A masked store of one lane, of numbers cut from wider ones: LLVM 22 wrote four bytes, beyond the end of the row."""

import numpy as np
import pytest

import tedsl
from tedsl import te
from tedsl.target import Target


@pytest.mark.parametrize("columns", [129, 130, 143, 17, 1])
@pytest.mark.parametrize("dtype, bound", [("int8", 127), ("uint8", 255), ("int16", 32767)])
@pytest.mark.parametrize("target", ["llvm", "llvm -mcpu=icelake-server"])
def test_bytes_that_are_cut_off_stay_in_their_row(columns, dtype, bound, target):
    low = 0 if dtype == "uint8" else -bound - 1
    a = te.placeholder((3, columns), "int32", name="a")
    wide = te.compute(a.shape, lambda i, j: te.max(te.min(a[i, j], bound), low), name="wide")
    out = te.compute(a.shape, lambda i, j: wide[i, j].astype(dtype), name="out")
    s = te.create_schedule(out.op)
    s[wide].compute_inline()
    _, lane = s[out].split(out.op.axis[1], factor=16, tail="mask")
    s[out].vectorize(lane)
    if not Target(target).runs_here:
        pytest.skip("another processor")
    values = np.random.default_rng(0).integers(-70000, 70000, (3, columns)).astype("int32")
    held = np.full((3 * columns + 64,), 77, dtype)
    tedsl.build(s, [a, out], target)(values, held[:3 * columns].reshape(3, columns))
    np.testing.assert_array_equal(held[:3 * columns].reshape(3, columns), np.clip(values, low, bound))
    assert (held[3 * columns:] == 77).all()
