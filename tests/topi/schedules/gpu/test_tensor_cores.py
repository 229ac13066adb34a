"""Dense layers and convolutions by tensor cores, `topi.cuda.schedule_*_tensorcore`: in the simulator and on the processor."""

import ml_dtypes
import numpy as np
import pytest

import tedsl
import tedsl.simulate as simulate
import topi
from tedsl import te
from tedsl.errors import ArgumentError
from tests.codegen.nvptx.assembler import assemble

pytestmark = pytest.mark.whole

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
    text = ran(s, args, given, expected)
    if name == "warps":
        assemble(text, "sm_80", tmp_path)


def ran(s, args, given, expected):
    """Compares what the simulator and the processor compute, and returns the PTX."""
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
    return text


@pytest.mark.parametrize("sizes, dtype, out, match", [
    ((17, 32, 16), "float16", "float32", "no shape of theirs divides its sizes 17 x 16 x 32"),
    ((16, 24, 16), "float16", "float32", "no shape of theirs divides"),
    ((16, 16, 16), "float32", "float32", "multiplies float32 by float32")])
def test_what_is_refused(sizes, dtype, out, match):
    with pytest.raises(ArgumentError, match=match):
        topi.cuda.schedule_dense_tensorcore([layer(*sizes, dtype, out, False)[-1]])


# --- convolutions ---------------------------------------------------------------------------------------------------------

def convolution(data, filters, window=3, stride=1, padding=1, dilation=1, dtype="float16", out="float32", relu=False):
    X = te.placeholder(data, dtype, name="X")
    W = te.placeholder((window, window, data[-1], filters), dtype, name="W")
    Y = topi.cuda.conv2d_nhwc_tensorcore(X, W, stride, padding, dilation, out)
    return [X, W, topi.nn.relu(Y) if relu else Y]


def convolved(x, w, stride, padding, dilation):
    """A convolution in NHWC by numpy."""
    x, w = np.pad(x.astype("float32"), ((0, 0), (padding, padding), (padding, padding), (0, 0))), w.astype("float32")
    rows, columns = ((extent - (w.shape[0] - 1) * dilation - 1) // stride * stride + 1 for extent in x.shape[1:3])
    return sum(np.einsum("nhwc,co->nhwo", x[:, i * dilation:i * dilation + rows:stride,
                                            j * dilation:j * dilation + columns:stride], w[i, j])
               for i in range(w.shape[0]) for j in range(w.shape[1]))


@pytest.mark.parametrize("data, filters, options", [
    ((1, 16, 16, 32), 32, {}), ((1, 8, 8, 16), 32, {"relu": True}), ((1, 4, 32, 16), 64, {"out": "float16", "relu": True}),
    ((16, 5, 5, 32), 16, {"stride": 2, "relu": True}), ((8, 5, 5, 16), 32, {}),
    ((16, 7, 7, 16), 16, {"window": 1, "padding": 0, "dtype": "int8", "out": "int32"}),
    ((1, 16, 16, 32), 32, {"padding": 2, "dilation": 2, "dtype": "bfloat16"})])
def test_convolutions(data, filters, options, tmp_path):
    """Tiles of pixels of a row, and of images where its pixels do not lie one after the other or are too few."""
    args = convolution(data, filters, **options)
    s = topi.cuda.schedule_conv2d_nhwc_tensorcore([args[-1]])
    rng = np.random.default_rng(0)
    dtype = ml_dtypes.bfloat16 if options.get("dtype") == "bfloat16" else options.get("dtype", "float16")
    x, w = (rng.integers(-2, 3, [int(dim) for dim in arg.shape]).astype(dtype) for arg in args[:2])
    expected = convolved(x, w, options.get("stride", 1), options.get("padding", 1), options.get("dilation", 1))
    expected = (np.maximum(expected, 0) if options.get("relu") else expected).astype(options.get("out", "float32"))
    text = ran(s, args, [x, w, np.zeros_like(expected)], expected)
    assemble(text, "sm_80", tmp_path)


@pytest.mark.parametrize("data, filters, options, match", [
    ((1, 7, 7, 16), 16, {}, "no shape of theirs divides its sizes 7 x 16 x 16 or 1 x 16 x 16"),
    ((1, 16, 16, 16), 16, {"stride": 2}, "no shape of theirs divides its sizes 1 x 16 x 16"),
    ((1, 16, 16, 3), 16, {}, "divides its sizes 16 x 16 x 3"),
    ((1, 16, 16, 16), 16, {"dtype": "float32"}, "multiplies float32 by float32")])
def test_convolutions_that_are_refused(data, filters, options, match):
    with pytest.raises(ArgumentError, match=match):
        topi.cuda.schedule_conv2d_nhwc_tensorcore([convolution(data, filters, **options)[-1]])


def test_other_layouts_are_refused():
    X, W = te.placeholder((1, 16, 16, 16), "float16", name="X"), te.placeholder((16, 16, 3, 3), "float16", name="W")
    with pytest.raises(ArgumentError, match="no convolution of one group in the layouts NHWC and HWIO"):
        topi.cuda.schedule_conv2d_nhwc_tensorcore([topi.nn.conv2d_nchw(X, W, 1, 1, 1, "float32")])


@pytest.mark.parametrize("relu", [False, True])
def test_a_window_whose_rows_are_too_large_for_shared_memory(relu):
    A, W = te.placeholder((8, 4, 4, 32), "float16", name="A"), te.placeholder((3, 3, 32, 64), "float16", name="W")
    target = tedsl.target.Target("cuda -arch=sm_80 -max_shared_memory_per_block=16384")
    with target:
        B = topi.nn.conv2d_nhwc(A, W, 2, 1, 1, out_dtype="float32")
        B = topi.nn.relu(B) if relu else B
        s = topi.cuda.schedule_conv2d_nhwc_tensorcore([B])
    rng = np.random.default_rng(0)
    a, w = rng.integers(-2, 3, (8, 4, 4, 32)).astype("float16"), rng.integers(-2, 3, (3, 3, 32, 64)).astype("float16")
    expected = topi.testing.conv2d_nhwc_python(a.astype("float32"), w.astype("float32"), 2, 1)
    f = tedsl.build(s, [A, W, B], target=target)
    arrays = [tedsl.nd.array(value, tedsl.sim(0)) for value in (a, w, np.zeros(expected.shape, "float32"))]
    with simulate.mode("checked"):
        f(*arrays)
    np.testing.assert_array_equal(arrays[-1].numpy(), np.maximum(expected, 0) if relu else expected)
