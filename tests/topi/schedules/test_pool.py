"""Pools on processors: the border of a channel is computed next to its windows."""

import numpy as np
import pytest

import tedsl
import topi
from tedsl import te
from tedsl.target import Target
from topi.schedules.cpu.windows import border_of


def pool(shape, kernel, stride, pad, kind="max", layout="NCHW"):
    x = te.placeholder(shape, name="x")
    return x, topi.nn.pool2d(x, (kernel, kernel), (stride, stride), (1, 1), (pad,) * 4, kind, layout=layout)


def test_the_border_is_computed_for_one_channel():
    _, y = pool((1, 8, 24, 24), 3, 2, 1)
    with Target("llvm -mcpu=znver3 -model=znver3"):
        text = str(topi.schedules.schedule(y))
    assert "pad_temp: computed at pool_max, loop" in text


@pytest.mark.parametrize("kernel, size, relu, is_copied", [
    (3, 24, False, False), (3, 24, True, True), (5, 99, False, True), (7, 24, False, True)])
def test_masks_are_the_border_where_they_take_no_time(kernel, size, relu, is_copied):
    """But a function of the image is computed once for each element, columns that are reduced first are read without masks, and
    masks are not made again in a loop over the rows of a window.
    """
    x = te.placeholder((1, 8, size, size), name="x")
    y = topi.nn.pool2d(topi.nn.relu(x) if relu else x, (kernel, kernel), (2, 2), (1, 1), (1,) * 4, "max")
    with Target("llvm -mcpu=skylake-avx512 -model=skylake-avx512"):
        assert ("pad_temp: computed inline" in str(topi.schedules.schedule(y))) is not is_copied


def lowered(inputs, y):
    """The loops of the schedule for a processor of 32 KB of L1 and vectors of 256 bits."""
    with Target("llvm -mcpu=znver3 -model=znver3"):
        return str(tedsl.lower(topi.schedules.schedule(y), [*inputs, y], simple_mode=True))


@pytest.mark.parametrize("size, blocks", [(74, 1), (120, 3)])
def test_blocks_of_rows_have_the_same_number_of_pieces(size, blocks):
    """Else conditions stand around every term. 37 rows are five pieces, which read 24 KB of L1; 60 take three blocks."""
    x, w = te.placeholder((1, 16, size, size), name="x"), te.placeholder((16, 1, 5, 5), name="w")
    text = lowered([x, w], topi.nn.depthwise_conv2d_nchw(x, w, 2, 2, 1))
    assert f"0, {16 * blocks}) \"parallel\"" in text


@pytest.mark.parametrize("dtype", ["float32", "int32"])
def test_columns_of_rows_with_dilation_are_reduced_once(dtype):
    x = te.placeholder((1, 3, 23, 51), dtype, name="x")
    y = topi.nn.pool2d(x, (3, 5), (2, 2), (2, 1), (1, 2, 1, 2), "max")
    data = np.random.default_rng(0).integers(-9, 9, (1, 3, 23, 51)).astype(dtype)
    out = np.empty([int(extent) for extent in y.shape], dtype)
    tedsl.build(topi.schedules.schedule(y), [x, y])(data, out)
    lowest = -np.inf if data.dtype.kind == "f" else np.iinfo(dtype).min
    whole = np.pad(data, ((0, 0), (0, 0), (1, 1), (2, 2)), constant_values=lowest)
    windows = np.lib.stride_tricks.sliding_window_view(whole, (5, 5), (2, 3))[:, :, ::2, ::2, ::2]
    np.testing.assert_array_equal(out, windows.max((4, 5)))


@pytest.mark.parametrize("size, loop", [(37, False), (74, True)])
def test_short_rows_are_copied_without_a_loop(size, loop):
    """Vectors within the image have no masks then."""
    x, y = pool((1, 8, size, size), 3, 1, 1)
    assert ("for (i3.outer" in lowered([x], y)) is loop


@pytest.mark.parametrize("shape, kernel, stride, pad, kind", [
    ((1, 8, 24, 24), 3, 2, 1, "max"), ((2, 3, 13, 17), 3, 2, 1, "max"), ((2, 5, 9, 9), 3, 1, 1, "max"),
    ((1, 4, 14, 14), 2, 2, 1, "max"), ((1, 6, 300, 8), 3, 1, 1, "max"), ((1, 6, 8, 300), 3, 1, 1, "max"),
    ((1, 2, 37, 2050), 3, 2, 1, "max"), ((1, 3, 55, 55), 3, 2, 0, "max"), ((1, 3, 7, 7), 3, 1, 1, "max"),
    ((1, 4, 12, 12), 3, 2, 1, "avg"), ((1, 2, 5, 5), 5, 1, 2, "max"), ((1, 3, 88, 88), 5, 2, 0, "avg"),
    ((2, 3, 41, 41), 5, 2, 2, "max"), ((1, 2, 5, 5), 5, 2, 0, "avg"),
    ((1, 1, 6, 6), 5, 2, 2, "max"), ((1, 2, 33, 67), 5, 3, 1, "avg"),
    ((1, 3, 54, 54), 3, 2, 1, "max"), ((2, 2, 65, 66), 3, 2, 1, "max"), ((1, 2, 94, 93), 3, 2, 1, "avg"),
    ((1, 3, 83, 83), 2, 2, 0, "max"), ((1, 2, 50, 61), 3, 3, 1, "max")])
def test_pools_compute_what_numpy_does(shape, kernel, stride, pad, kind):
    x, y = pool(shape, kernel, stride, pad, kind)
    data = np.random.default_rng(0).standard_normal(shape).astype("float32")
    out = np.empty([int(extent) for extent in y.shape], "float32")
    tedsl.build(topi.schedules.schedule(y), [x, y])(data, out)
    whole = np.pad(data, ((0, 0), (0, 0), (pad, pad), (pad, pad)), constant_values=-np.inf if kind == "max" else 0.0)
    windows = np.lib.stride_tricks.sliding_window_view(whole, (kernel, kernel), (2, 3))[:, :, ::stride, ::stride]
    wanted = (np.max if kind == "max" else np.mean)(windows, axis=(4, 5))
    np.testing.assert_allclose(out, wanted[:, :, :out.shape[2], :out.shape[3]], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("kernel, stride, size, parts", [
    (5, 2, 59, [(28, 59)]), (3, 2, 57, [(28, 57)]), (5, 3, 86, [(28, 86)]), (2, 2, 56, []), (3, 2, 33, [])])
def test_columns_of_windows_apart_are_reduced_once(kernel, stride, size, parts):
    """Unless a row has few vectors of results, or windows share none."""
    _, y = pool((1, 8, size, size), kernel, stride, 0)
    with Target("llvm -mcpu=znver3 -model=znver3"):
        s = topi.schedules.schedule(y)
    shared = [stage.op.output(0) for stage in s.stages if stage.op.name.endswith(".rf")]
    assert [tuple(int(extent) for extent in tensor.shape[2:4]) for tensor in shared] == parts


@pytest.mark.parametrize("model, shared", [("znver3", True), ("skylake-avx512", False)])
def test_columns_are_reduced_once_only_where_shuffles_are_more_than_they_save(model, shared):
    """A window of 3x3 with a stride of two: six vectors of columns and three shuffles of them, or nine shuffles."""
    _, y = pool((1, 8, 99, 99), 3, 2, 1)
    with Target(f"llvm -mcpu={model} -model={model}"):
        s = topi.schedules.schedule(y)
        of_five = topi.schedules.schedule(pool((1, 8, 99, 99), 5, 2, 2)[1])
    assert any(stage.op.name.endswith(".rf") for stage in s.stages) is shared
    assert any(stage.op.name.endswith(".rf") for stage in of_five.stages)


@pytest.mark.parametrize("kernel, size, rows", [(3, 54, 7), (3, 99, 5), (3, 25, 7), (2, 64, 7), (2, 22, 6), (3, 11, 6)])
def test_windows_that_share_few_rows_have_few_rows_in_a_piece(kernel, size, rows):
    """A number of rows that divides those of the image if it is near: no piece has conditions around its terms."""
    x, y = pool((1, 8, size, size), kernel, 2, kernel // 2 if kernel == 3 else 0)
    with Target("llvm -mcpu=skylake-avx512 -model=skylake-avx512"):
        text = topi.schedules.schedule(y).journal
    assert f"factor={rows})" in str(text)


@pytest.mark.parametrize("kernel, stride, dilation, rows", [
    (3, 1, 1, 10), (5, 1, 1, 12), (5, 2, 1, 19), (3, 1, 2, 12), (3, 2, 2, 10),
    (3, 2, 1, None), (2, 2, 1, None), (3, 3, 1, None), (5, 2, 3, None), (1, 1, 1, None)])
@pytest.mark.parametrize("kind", ["max", "avg"])
def test_rows_that_windows_share_are_reduced_once(kernel, stride, dilation, rows, kind):
    """Of eight rows of results; windows that share too few, or rows between which others are not read, reduce their own."""
    size = 7 * stride + (kernel - 1) * dilation + 1
    x = te.placeholder((2, 3, size, size), name="x")
    y = topi.nn.pool2d(x, (kernel, kernel), (stride, stride), (dilation, dilation), (0, 0, 0, 0), kind)
    s = topi.schedules.schedule(y)
    shared = [stage for stage in s.stages if stage.op.name.endswith(".rf")]
    assert [int(stage.op.output(0).shape[2]) for stage in shared] == ([] if rows is None else [rows])
    data = np.random.default_rng(0).standard_normal((2, 3, size, size)).astype("float32")
    data[0, 1, 5 % size, 2 % size] = np.nan
    out = np.empty((2, 3, 8, 8), "float32")
    tedsl.build(s, [x, y])(data, out)
    windows = np.lib.stride_tricks.sliding_window_view(data, (size - 7 * stride,) * 2, (2, 3))
    windows = windows[:, :, ::stride, ::stride, ::dilation, ::dilation]
    wanted = (np.max if kind == "max" else np.mean)(windows, axis=(4, 5))
    np.testing.assert_allclose(out, wanted, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("dtype", ["float64", "float16", "int8", "int32"])
@pytest.mark.parametrize("shape, kernel, stride, pad", [((1, 3, 13, 17), 5, 1, 2), ((2, 2, 7, 5), 3, 2, 1)])
def test_dtypes_of_pools(shape, kernel, stride, pad, dtype):
    x = te.placeholder(shape, name="x", dtype=dtype)
    y = topi.nn.pool2d(x, (kernel, kernel), (stride, stride), (1, 1), (pad,) * 4, "max")
    data = np.random.default_rng(0).integers(-9, 9, shape).astype(dtype)
    out = np.empty([int(extent) for extent in y.shape], dtype)
    tedsl.build(topi.schedules.schedule(y), [x, y])(data, out)
    whole = np.pad(data, ((0, 0), (0, 0), (pad, pad), (pad, pad)), constant_values=-9)
    windows = np.lib.stride_tricks.sliding_window_view(whole, (kernel, kernel), (2, 3))[:, :, ::stride, ::stride]
    np.testing.assert_array_equal(out, windows.max(axis=(4, 5)))


def test_a_border_that_the_gradient_reads_too_is_left_to_both():
    """Computed inside of the pool, it would not be there for the places of the largest elements."""
    x, w = te.placeholder((2, 3, 6, 6), name="x"), te.placeholder((4, 3, 3, 3), name="w")
    made = topi.nn.relu(topi.nn.conv2d(x, w, 1, 1, 1))
    total = topi.sum(topi.nn.pool2d(made, (2, 2), (2, 2), (1, 1), (0, 0, 0, 0), "max"))
    one = te.compute((), lambda: te.const(1.0), name="one")
    (gradient,) = te.gradient(total, [w], head=one)
    s = topi.schedules.schedule([total, gradient])
    images, kernels = np.random.default_rng(0).random((2, 3, 6, 6), "float32"), np.ones((4, 3, 3, 3), "float32")
    sums, found = np.empty((), "float32"), np.empty((4, 3, 3, 3), "float32")
    tedsl.build(s, [x, w, total, gradient])(images, kernels, sums, found)
    np.testing.assert_allclose((found * kernels).sum(), sums, rtol=1e-5)  # the sum is linear in kernels where all is positive


def test_pools_of_any_batch():
    n = te.var("n")
    x, y = pool((n, 4, 12, 12), 3, 2, 1)
    kernel = tedsl.build(topi.schedules.schedule(y), [x, y])
    data = np.random.default_rng(0).standard_normal((3, 4, 12, 12)).astype("float32")
    out = np.empty((3, 4, 6, 6), "float32")
    kernel(data, out)
    whole = np.pad(data, ((0, 0), (0, 0), (1, 1), (1, 1)), constant_values=-np.inf)
    windows = np.lib.stride_tricks.sliding_window_view(whole, (3, 3), (2, 3))[:, :, ::2, ::2]
    np.testing.assert_array_equal(out, windows.max(axis=(4, 5)))


def test_a_border_that_two_pools_read_is_stored():
    x, y = pool((1, 4, 12, 12), 3, 2, 1)
    second = te.compute(y.shape, lambda n, c, h, w: y.op.info.padded[n, c, h, w] + y[n, c, h, w])
    data, out = np.random.default_rng(0).standard_normal((1, 4, 12, 12)).astype("float32"), np.empty((1, 4, 6, 6), "float32")
    tedsl.build(topi.schedules.schedule(second), [x, second])(data, out)
    whole = np.pad(data, ((0, 0), (0, 0), (1, 1), (1, 1)), constant_values=-np.inf)
    windows = np.lib.stride_tricks.sliding_window_view(whole, (3, 3), (2, 3))[:, :, ::2, ::2]
    np.testing.assert_array_equal(out, windows.max(axis=(4, 5)) + whole[:, :, :6, :6])


@pytest.mark.parametrize("shape, layout", [
    ((1, 12, 12, 8), "NHWC"), ((1, 2, 12, 12, 8), "NCHW8c")])
def test_other_pools_are_reductions(shape, layout):
    _, y = pool(shape, 3, 2, 1, layout=layout)
    assert border_of(y.op) == ()


@pytest.mark.parametrize("shape, kernel, stride, pad", [
    ((1, 5, 14, 14), 3, 1, 1), ((2, 3, 7, 7), 3, 1, 1), ((1, 3, 57, 59), 3, 2, 1), ((1, 2, 33, 130), 5, 2, 2),
    ((1, 2, 10, 9), 4, 3, 0), ((1, 2, 6, 1030), 3, 1, 1)])
def test_depthwise_convolutions_compute_what_numpy_does(shape, kernel, stride, pad):
    x, w = te.placeholder(shape, name="x"), te.placeholder((shape[1], 1, kernel, kernel), name="w")
    y = topi.nn.relu(topi.nn.depthwise_conv2d_nchw(x, w, stride, pad, 1))
    random = np.random.default_rng(0)
    data, weights = random.standard_normal(shape, "float32"), random.standard_normal((shape[1], 1, kernel, kernel), "float32")
    out = np.empty([int(extent) for extent in y.shape], "float32")
    tedsl.build(topi.schedules.schedule(y), [x, w, y])(data, weights, out)
    whole = np.pad(data, ((0, 0), (0, 0), (pad, pad), (pad, pad)))
    windows = np.lib.stride_tricks.sliding_window_view(whole, (kernel, kernel), (2, 3))[:, :, ::stride, ::stride]
    wanted = np.maximum(np.einsum("nchwij,cij->nchw", windows, weights[:, 0], dtype="float64"), 0)
    np.testing.assert_allclose(out, wanted, rtol=1e-4, atol=1e-5)
