"""Dense layers by tensor cores, `topi.cuda.schedule_dense_tensorcore`: in the simulator and on the processor."""

import ml_dtypes
import numpy as np
import pytest

import tedsl
import tedsl.simulate as simulate
import topi
from tedsl import te
from tedsl.errors import ArgumentError
from tests.codegen.nvptx.assembler import assemble

SIZES = {"warps": (64, 128, 64), "one_warp": (32, 48, 16), "wide": (8, 32, 32), "tall": (32, 16, 8)}
DTYPES = [("float16", "float32"), ("float16", "float16"), ("bfloat16", "float32"), ("int8", "int32")]


def layer(m, k, n, dtype, out, relu):
    A, W = te.placeholder((m, k), dtype, name="A"), te.placeholder((n, k), dtype, name="W")
    D = topi.cuda.dense_tensorcore(A, W, None, out)
    return [A, W, topi.nn.relu(D) if relu else D]


def values(args, dtype, out):
    rng = np.random.default_rng(0)
    shapes = [[int(dim) for dim in arg.shape] for arg in args]
    a, w = (rng.integers(-2, 3, shape).astype(ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype) for shape in shapes[:2])
    return [a, w, np.zeros(shapes[2], out)], (a.astype("float32") @ w.astype("float32").T).astype(out)


@pytest.mark.parametrize("relu", [False, True])
@pytest.mark.parametrize("dtype, out", DTYPES)
@pytest.mark.parametrize("name", SIZES)
def test_dense(name, dtype, out, relu, tmp_path):
    args = layer(*SIZES[name], dtype, out, relu)
    s = topi.cuda.schedule_dense_tensorcore([args[-1]])
    given, expected = values(args, dtype, out)
    expected = np.maximum(expected, 0) if relu else expected
    device = tedsl.sim(0)
    arrays = [tedsl.nd.array(value, device) for value in given]
    f = tedsl.build(s, args, target="cuda -arch=sm_80")
    with simulate.mode("checked"):
        f(*arrays)
    np.testing.assert_array_equal(arrays[-1].numpy(), expected)
    tedsl.build(s, args, target="llvm")(*given)
    np.testing.assert_array_equal(given[-1], expected)
    text = f.imported_modules[0].get_source()
    assert "wmma.mma" in text and ".local" not in text
    if name == "warps":
        assemble(text, "sm_80", tmp_path)


@pytest.mark.parametrize("sizes, dtype, out, match", [
    ((17, 32, 16), "float16", "float32", "no shape of theirs divides its sizes 17 x 16 x 32"),
    ((16, 24, 16), "float16", "float32", "no shape of theirs divides"),
    ((16, 16, 16), "float32", "float32", "multiplies float32 by float32")])
def test_what_is_refused(sizes, dtype, out, match):
    with pytest.raises(ArgumentError, match=match):
        topi.cuda.schedule_dense_tensorcore([layer(*sizes, dtype, out, False)[-1]])
