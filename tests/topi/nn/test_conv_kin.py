"""Winograd, deformable convolution and correlation against plain numpy."""

import numpy as np
import pytest

import tedsl
import topi
from tedsl import te
from tedsl.errors import ArgumentError, DTypeError, ShapeError
from tests.topi.checking import check
from topi import nn, testing
from topi.nn.convolution.winograd import transform_matrices

pytestmark = pytest.mark.sampled(2)

rng = np.random.default_rng(8)
SCHEDULES = {"plain": None, "x86": topi.x86.schedule_conv2d_nchw}


def feed(shape, dtype="float64", name="a"):
    return te.placeholder(shape, dtype, name=name), rng.standard_normal(shape).astype(dtype)


@pytest.mark.parametrize("m, r", [(2, 3), (4, 3), (6, 3), (2, 5), (4, 5), (3, 1), (1, 3)])
def test_matrices_give_correlations_exactly(m, r):
    a, b, g = transform_matrices(m, r)
    d, k = [3 * i * i - 7 * i + 2 for i in range(m + r - 1)], [5 - 4 * i for i in range(r)]
    data = [sum(b[i][e] * d[i] for i in range(m + r - 1)) for e in range(m + r - 1)]
    kernel = [sum(g[e][i] * k[i] for i in range(r)) for e in range(m + r - 1)]
    made = [sum(a[e][i] * data[e] * kernel[e] for e in range(m + r - 1)) for i in range(m)]
    assert made == [sum(d[i + t] * k[t] for t in range(r)) for i in range(m)]


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("shape, o, r, m, padding", [((1, 3, 6, 7), 4, 3, 2, 1), ((2, 2, 5, 5), 3, 3, 4, (0, 1, 1, 0)),
                                                    ((1, 2, 7, 9), 2, 5, 2, "SAME")])
def test_winograd(shape, o, r, m, padding, schedule):
    (a, x), (w, k) = feed(shape), feed((o, shape[1], r, r), name="w")
    expected = testing.conv2d_nchw_python(x, k, 1, padding)
    b = te.placeholder(np.moveaxis(x, 1, -1).shape, "float64", name="b")
    v = te.placeholder((r, r, shape[1], o), "float64", name="v")
    made = [nn.conv2d_winograd_nchw(a, w, 1, padding, 1, tile_size=m),
            nn.conv2d_winograd_nhwc(b, nn.conv2d_winograd_weight_transform(v, m, "HWIO"), 1, padding, 1, None, True,
                                    tile_size=m)]
    check(made, {a: x, w: k, b: np.moveaxis(x, 1, -1).copy(), v: k.transpose(2, 3, 1, 0).copy()},
          [expected, np.moveaxis(expected, 1, -1)], 1e-9, 1e-9, SCHEDULES[schedule])


@pytest.mark.parametrize("channels, o, size, m, layout", [(1, 1, 1, 2, "NHWC"), (3, 40, 9, 4, "NHWC"), (5, 16, 9, 4, "NCHW"),
                                                          (17, 16, 4, 9, "NCHW")])
def test_winograd_in_vectors(channels, o, size, m, layout):
    """Channels that fill vectors and that do not, tiles that reach beyond the image, code too long to be unrolled; fused."""
    (a, x), (w, k) = feed((2, channels, size, size), "float32"), feed((o, channels, 3, 3), "float32", "w")
    expected = np.maximum(testing.conv2d_nchw_python(x.astype("float64"), k, 1, 1), 0).astype("float32")
    if layout == "NHWC":
        x, k, expected = np.moveaxis(x, 1, -1).copy(), k.transpose(2, 3, 1, 0).copy(), np.moveaxis(expected, 1, -1)
        a, w = te.placeholder(x.shape, name="a"), te.placeholder(k.shape, name="w")
    made = topi.nn.relu(getattr(nn, f"conv2d_winograd_{layout.lower()}")(a, w, 1, 1, 1, tile_size=m))
    tolerance = 1e-4 if m <= 4 else 1e-2
    check([made], {a: x, w: k}, [expected], tolerance, tolerance * channels, topi.x86.schedule_conv2d_nchw)


def test_winograd_of_short_floats_adds_up_in_float32():
    (a, x), (w, k) = feed((1, 32, 6, 6), "float16"), feed((4, 32, 3, 3), "float16", "w")
    expected = testing.conv2d_nchw_python(x.astype("float64"), k.astype("float64"), 1, 1).astype("float16")
    check([nn.conv2d_winograd_nchw(a, w, 1, 1, 1)], {a: x, w: k}, [expected], 1e-2, 1e-2, topi.x86.schedule_conv2d_nchw)


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("stride, padding, dilation, deformable_groups, groups", [(1, 1, 1, 1, 1), (2, 1, 2, 2, 2)])
def test_deformable(stride, padding, dilation, deformable_groups, groups, schedule):
    (a, x), (w, k) = feed((1, 4, 6, 5)), feed((4, 4 // groups, 3, 3), name="w")
    results = testing.conv2d_nchw_python(x, k, stride, padding, groups, dilation).shape
    o, moved = feed((1, 2 * deformable_groups * 9, *results[2:]), name="o")
    expected = testing.deformable_conv2d_nchw_python(x, moved * 2, k, stride, padding, dilation, deformable_groups, groups)
    places = [te.placeholder(shape, "float64", name=name) for shape, name in (
        ((1, 6, 5, 4), "last"), ((1, *results[2:], moved.shape[1]), "offset"), ((3, 3, 4 // groups, 4), "hwio"))]
    rest = stride, padding, dilation, deformable_groups, groups
    check([nn.deformable_conv2d_nchw(a, o, w, *rest), nn.deformable_conv2d_nhwc(*places, *rest)],
          {a: x, o: moved * 2, w: k, places[0]: np.moveaxis(x, 1, -1).copy(), places[1]: np.moveaxis(moved * 2, 1, -1).copy(),
           places[2]: k.transpose(2, 3, 1, 0).copy()},
          [expected, np.moveaxis(expected, 1, -1)], 1e-9, 1e-9, SCHEDULES[schedule])


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_correlation(schedule):
    (a, x), (b, y) = feed((1, 2, 7, 8)), feed((1, 2, 7, 8), name="b")
    cases = [(1, 2, 1, 1, 2, True), (3, 2, 2, 2, 3, True), (1, 1, 2, 1, 0, False)]
    check([nn.correlation_nchw(a, b, *case) for case in cases], {a: x, b: y},
          [testing.correlation_nchw_python(x, y, *case) for case in cases], 1e-9, 1e-9, SCHEDULES[schedule])


A, W = te.placeholder((1, 4, 8, 8), name="a"), te.placeholder((4, 4, 3, 3), name="w")


@pytest.mark.parametrize("call, error, words", [
    (lambda: nn.conv2d_winograd_nchw(A, W, 2, 1, 1), ArgumentError, r"strides are \(2, 2\)"),
    (lambda: nn.conv2d_winograd_nchw(A, te.placeholder((4, 4, 3, 5), name="w"), 1, 1, 1), ArgumentError, "window is 3 x 5"),
    (lambda: nn.conv2d_winograd_nchw(A, W, 1, 1, 1, tile_size=20), ArgumentError, "tile_size 20"),
    (lambda: nn.conv2d_winograd_nchw(*[te.placeholder(t.shape, "int8", name=t.name) for t in (A, W)], 1, 1, 1), DTypeError,
     "hold fractions, and the dtype is int8"),
    (lambda: nn.deformable_conv2d_nchw(A, A, W, 1, 1, 1, 1, 1), ShapeError, r"is not \(1, 18, 8, 8\)"),
    (lambda: nn.correlation_nchw(A, W, 1, 1, 1, 1, 0, True), ShapeError, "both alike"),
    (lambda: nn.correlation_nchw(A, A, 2, 1, 1, 1, 0, True), ArgumentError, "kernel_size 2"),
    (lambda: nn.correlation_nchw(A, A, 1, 9, 1, 1, 0, True), ShapeError, "reach 9 from the border"),
])
def test_what_does_not_fit_is_named(call, error, words):
    with pytest.raises(error, match=words):
        call()


@pytest.mark.parametrize("data, kernel, layout", [
    ((2, 4, 9), (6, 2, 3), "NCW"), ((2, 9, 4), (3, 2, 6), "NWC"), ((2, 4, 7, 9), (6, 2, 3, 3), "NCHW"),
    ((2, 7, 9, 4), (3, 3, 2, 6), "NHWC"), ((7, 9, 4, 2), (3, 3, 4, 6), "HWCN"),
    ((1, 4, 5, 6, 7), (6, 2, 3, 3, 3), "NCDHW"), ((1, 5, 6, 7, 4), (3, 3, 3, 2, 6), "NDHWC")])
def test_conv_of_any_layout(data, kernel, layout):
    groups = 1 if layout == "HWCN" else 2
    letters = "NC" + "".join(letter for letter in layout if letter not in "NC")
    rows = "OI" + letters[2:]
    of_kernel = {"NWC": "WIO", "NHWC": "HWIO", "HWCN": "HWIO", "NDHWC": "DHWIO"}.get(layout, rows)
    rng = np.random.default_rng(3)
    x, w = rng.standard_normal(data).astype("float32"), rng.standard_normal(kernel).astype("float32")
    first = x.transpose([layout.index(letter) for letter in letters]), w.transpose([of_kernel.index(letter) for letter in rows])
    X, W = te.placeholder(data, name="X"), te.placeholder(kernel, name="W")
    Y = topi.nn.conv(X, W, 2, 1, 1, groups, layout, of_kernel, "float32")
    y = np.empty([int(extent) for extent in Y.shape], "float32")
    tedsl.build(topi.schedules.schedule([Y]), [X, W, Y])(x, w, y)
    rank = len(letters) - 2
    padded = np.pad(first[0].astype("float64"), [(0, 0), (0, 0)] + [(1, 1)] * rank)
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3,) * rank, tuple(range(2, 2 + rank)))
    windows = windows[(slice(None), slice(None), *[slice(None, None, 2)] * rank)]
    halves = np.split(windows, groups, 1), np.split(first[1], groups, 0)
    sums = [np.tensordot(part, filters, ([1, *range(2 + rank, 2 + 2 * rank)], [1, *range(2, 2 + rank)]))
            for part, filters in zip(*halves)]
    expected = np.moveaxis(np.concatenate(sums, -1), -1, 1)
    np.testing.assert_allclose(y.transpose([layout.index(letter) for letter in letters]), expected, rtol=1e-4, atol=1e-4)
    with pytest.raises(ArgumentError, match="kernel_layout"):
        topi.nn.conv(X, W, 2, 1, 1, groups, layout, "IO" + letters[2:])
    with pytest.raises(ArgumentError, match='order is "CHWN"'):
        topi.nn.conv(X, W, 2, 1, 1, groups, "CHWN")
