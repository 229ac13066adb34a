"""Pooling over kinds, shapes, layouts and dtypes, against plain numpy and torch."""

import numpy as np
import pytest

import topi
from tedsl import te
from tedsl.errors import ArgumentError, ShapeError
from tests.topi.checking import check, tensor
from topi import nn, testing
from topi.kinds import AdaptivePoolOp, PoolOp

SCHEDULES = {"plain": None, "x86": topi.x86.schedule_pool}

# shape, kernel, stride, dilation, padding
CASES = [
    ((2, 3, 7, 9), (3, 3), (2, 2), (1, 1), (1, 1, 1, 1)),
    ((1, 2, 6, 5), (2, 3), (1, 2), (2, 1), (0, 1, 2, 0)),
    ((1, 1, 1, 1), (1, 1), (1, 1), (1, 1), (0, 0, 0, 0)),
    ((1, 20, 5, 5), (2, 2), (3, 3), (1, 1), (0, 0, 0, 0)),
]


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("shape, kernel, stride, dilation, padding", CASES)
def test_pool2d(shape, kernel, stride, dilation, padding, schedule):
    a, x = tensor(shape)
    b = te.placeholder(np.transpose(x, (0, 2, 3, 1)).shape, name="b")
    made, wanted = [], []
    sides = padding[:2], padding[2:]
    for kind, ceil_mode, include in [("max", False, True), ("max", True, True), ("avg", False, True), ("avg", True, False)]:
        made.append(nn.pool2d(a, kernel, stride, dilation, padding, kind, ceil_mode, "NCHW", include))
        wanted.append(testing.poolnd_python(x, kernel, stride, dilation, *sides, kind, include, ceil_mode))
    made.append(nn.pool2d(b, kernel, stride, dilation, padding, "avg", True, "NHWC", False))
    wanted.append(np.transpose(wanted[-1], (0, 2, 3, 1)))
    check(made, {a: x, b: np.ascontiguousarray(np.transpose(x, (0, 2, 3, 1)))}, wanted, schedule=SCHEDULES[schedule])


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_other_ranks_and_layouts(schedule):
    (a, x), (b, y), (c, z) = tensor((2, 3, 8)), tensor((1, 2, 4, 5, 4), name="b"), tensor((1, 2, 5, 4, 3), name="c")
    blocks = np.transpose(z, (0, 1, 4, 2, 3)).reshape(1, 6, 5, 4)
    expected = testing.poolnd_python(blocks, (2, 2), (2, 2), (1, 1), (0, 0), (0, 0), "max")
    check([nn.pool1d(a, 3, 2, 1, (1, 0), "max"), nn.pool1d(a, [2], [2], [1], [0, 0], "avg"),
           nn.pool3d(b, (2, 3, 2), (1, 2, 2), (1, 1, 1), (1, 1, 0, 0, 1, 0), "avg", False, "NCDHW", False),
           nn.pool2d(c, 2, 2, 1, 0, "max", layout="NCHW3c")], {a: x, b: y, c: z},
          [testing.poolnd_python(x, [3], [2], [1], [1], [0], "max"), testing.poolnd_python(x, [2], [2], [1], [0], [0], "avg"),
           testing.poolnd_python(y, (2, 3, 2), (1, 2, 2), (1, 1, 1), (1, 1, 0), (0, 1, 0), "avg", False),
           expected.reshape(1, 2, 3, 2, 2).transpose(0, 1, 3, 4, 2)], schedule=SCHEDULES[schedule])


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_adaptive_and_global(schedule):
    (a, x), (b, y), (c, z) = tensor((2, 3, 7, 6)), tensor((1, 2, 3, 4, 5), name="b"), tensor((2, 8, 9), name="c")
    check([nn.adaptive_pool(a, (3, 4), "avg"), nn.adaptive_pool(a, (2, 3), "max"), nn.adaptive_pool(a, (7, 2), "avg"),
           nn.adaptive_pool(a, 9, "max"), nn.adaptive_pool(a, (2, 2), "avg", "NHWC"), nn.global_pool(a, "avg"),
           nn.global_pool(a, "max"), nn.adaptive_pool3d(b, (2, 3, 1), "avg"), nn.adaptive_pool1d(c, 4, "max"),
           nn.global_pool(b, "max", "NCDHW")], {a: x, b: y, c: z},
          [testing.adaptive_pool(x, (3, 4), "avg"), testing.adaptive_pool(x, (2, 3), "max"),
           testing.adaptive_pool(x, (7, 2), "avg"),
           testing.adaptive_pool(x, (9, 9), "max"), testing.adaptive_pool(x, (2, 2), "avg", "NHWC"),
           x.mean((2, 3), keepdims=True), x.max((2, 3), keepdims=True), testing.adaptive_pool(y, (2, 3, 1), "avg"),
           testing.adaptive_pool(z, (4,), "max"), y.max((2, 3, 4), keepdims=True)], 1e-5, 1e-5, schedule=SCHEDULES[schedule])


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("kernel, stride, padding, ceil_mode", [
    ((3, 3), (2, 2), (1, 1, 1, 1), False), ((2, 2), (2, 1), (0, 0, 0, 1), True), ((2, 3), (3, 3), (0, 0, 0, 0), False)])
def test_pool_grad(kernel, stride, padding, ceil_mode, schedule):
    a, x = tensor((1, 2, 7, 8))
    x = np.round(x / 8).astype("float32")  # with ties
    shape = testing.poolnd_python(x, kernel, stride, (1, 1), padding[:2], padding[2:], "max", True, ceil_mode).shape
    g, y = tensor(shape, name="g")
    made = [nn.pool_grad(g, a, kernel, stride, padding, "max", ceil_mode),
            nn.pool_grad(g, a, kernel, stride, padding, "avg", ceil_mode),
            nn.pool_grad(g, a, kernel, stride, padding, "avg", ceil_mode, False)]
    wanted = [testing.pool_grad_nchw(x, y, kernel, stride, padding, kind, ceil_mode, include)
              for kind, include in (("max", True), ("avg", True), ("avg", False))]
    check(made, {a: x, g: y}, wanted, 1e-5, 1e-5, SCHEDULES[schedule])


def test_dtypes_and_symbols():
    (a, x), (b, y) = tensor((1, 2, 4, 4), "int8"), tensor((1, 1, 4, 4), "float64", "b")
    c, z = tensor((1, 2, 32, 32), "float16", "c")
    z = np.full(z.shape, 100, "float16")
    n, h = te.size_var("n"), te.size_var("h")
    d = te.placeholder((n, 2, h, 6), name="d")
    w = np.random.default_rng(0).random((2, 2, 5, 6), "float32")
    check([nn.pool2d(a, 2, 2, 1, 0, "max"), nn.pool2d(b, 2, 2, 1, 0, "avg"), nn.global_pool(c, "avg")], {a: x, b: y, c: z},
          [x.reshape(1, 2, 2, 2, 2, 2).max((3, 5)), y.reshape(1, 1, 2, 2, 2, 2).mean((3, 5)),
           np.full((1, 2, 1, 1), 100, "float16")])
    windows = testing.poolnd_python(w, (3, 3), (2, 2), (1, 1), (1, 1), (1, 1), "avg", False)
    check([nn.pool2d(d, 3, 2, 1, 1, "avg", False, "NCHW", False), nn.global_pool(d, "avg"), nn.adaptive_pool(d, (3, 2), "max")],
          {d: w}, [windows, w.mean((2, 3), keepdims=True), testing.adaptive_pool(w, (3, 2), "max")])


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16"])
def test_averages_of_narrow_integers_do_not_overflow(dtype, schedule):
    lowest = np.iinfo(dtype).min
    x = np.full((1, 2, 14, 14), np.iinfo(dtype).max, dtype)
    x[0, 1] = lowest
    a = te.placeholder(x.shape, dtype, name="a")
    made = [nn.pool2d(a, (2, 2), (2, 2), (1, 1), (0, 0, 0, 0), "avg"), nn.global_pool(a, "avg"),
            nn.adaptive_pool(a, (3, 5), "avg")]
    check(made, {a: x}, [x[:, :, ::2, ::2], x[:, :, :1, :1], x[:, :, :3, :5]], schedule=SCHEDULES[schedule])


def test_maximum_keeps_nan_and_infinity():
    a, x = tensor((1, 1, 4, 4))
    x = np.full_like(x, -np.inf)
    x[0, 0, 0, 1] = np.nan
    check(nn.pool2d(a, 2, 2, 1, 0, "max"), {a: x}, np.array([[[[np.nan, -np.inf], [-np.inf, -np.inf]]]], "float32"))


def test_against_torch():
    f = pytest.importorskip("torch").nn.functional
    torch = pytest.importorskip("torch")
    x = np.random.default_rng(0).standard_normal((2, 3, 9, 8)).astype("float32")
    t = torch.from_numpy(x)
    pad = ((1, 1), (1, 1))
    np.testing.assert_allclose(testing.poolnd_python(x, (3, 3), (2, 2), (1, 1), *pad, "max"), f.max_pool2d(t, 3, 2, 1), 1e-6)
    np.testing.assert_allclose(testing.poolnd_python(x, (3, 3), (2, 2), (1, 1), *pad, "avg", False),
                               f.avg_pool2d(t, 3, 2, 1, count_include_pad=False), 1e-5, 1e-6)
    np.testing.assert_allclose(testing.adaptive_pool(x, (4, 3), "avg"), f.adaptive_avg_pool2d(t, (4, 3)), 1e-5, 1e-6)


def test_records_and_tags():
    a, _ = tensor((1, 2, 8, 8))
    made = nn.pool2d(a, (3, 2), (2, 1), (1, 1), (1, 0, 1, 0), "max")
    assert (made.op.tag, made.op.name) == ("pool_max", "pool_max")
    assert made.op.info == PoolOp("max", a, made.op.input_tensors[0], "NCHW", (3, 2), (2, 1), (1, 1))
    average = nn.pool2d(a, 2, 2, 1, 0, "avg")
    assert (average.op.tag, average.op.input_tensors[0].op.tag) == ("elemwise", "pool_sum")
    assert nn.global_pool(a, "max").op.info == AdaptivePoolOp("max", a, "NCHW")


A = te.placeholder((1, 2, 8, 8), name="a")


@pytest.mark.parametrize("call, error, words", [
    (lambda: nn.pool2d(A, 3, 2, 1, 0, "min"), ArgumentError, 'pool2d of a: pool_type is "min"'),
    (lambda: nn.pool2d(A, 3, 2, 1, 0, "max", layout="NCW"), ArgumentError, 'layout is "NCW"'),
    (lambda: nn.pool2d(A, 3, 2, 1, 0, "max", layout="NCHW4w"), ArgumentError, "in one piece"),
    (lambda: nn.pool2d(A, 3, 2, 1, 0, "max", layout="NCHW4c"), ShapeError, r"a has the shape \(1, 2, 8, 8\), 4 dimensions"),
    (lambda: nn.pool2d(A, 9, 2, 1, 0, "max"), ShapeError, r"the kernel spans \(9, 9\) and the data with its padding \(8, 8\)"),
    (lambda: nn.pool2d(A, 3, 0, 1, 0, "max"), ShapeError, r"stride is \(0, 0\)"),
    (lambda: nn.adaptive_pool(A, (0, 1), "max"), ShapeError, r"output_size is \(0, 1\)"),
    (lambda: nn.pool_grad(A, A, 2, 2, 0, "max"), ShapeError, r"grads a has the shape .* has \(1, 2, 4, 4\)"),
])
def test_what_does_not_fit_is_named(call, error, words):
    with pytest.raises(error, match=words):
        call()
