"""Depthwise convolutions with channels innermost: rests of tiles, strides, dilation, windows, what is read, symbolic sizes."""

import numpy as np
import pytest

import tedsl
import topi
from tedsl import te
from topi import nn

rng = np.random.default_rng(0)
# batch, channels, height, width, window, stride, padding, dilation
CASES = [(1, 32, 7, 7, 3, 1, 1, 1), (2, 48, 9, 8, 3, 2, 1, 1), (1, 16, 5, 5, 5, 1, 2, 1), (1, 20, 6, 7, 3, 1, 1, 2),
         (1, 4, 1, 1, 3, 1, 1, 1),
         (1, 16, 8, 8, 3, 1, 0, 1), (3, 64, 11, 13, 7, 1, 3, 1), (1, 12, 6, 6, 2, 2, 0, 1), (1, 16, 6, 6, 1, 1, 0, 1),
         (0, 16, 6, 6, 3, 1, 1, 1), (1, 19, 9, 4, 3, 1, 1, 1)]


def expected(x, w, stride, padding, dilation):
    """In NHWC, by numpy in float64: x (N, H, W, C), w (h, w, C, M)."""
    window, multiplier = w.shape[0], w.shape[3]
    padded = np.pad(x.astype("float64"), ((0, 0), (padding, padding), (padding, padding), (0, 0)))
    rows, columns = [(n + 2 * padding - dilation * (window - 1) - 1) // stride + 1 for n in x.shape[1:3]]
    made = np.zeros((len(x), rows, columns, x.shape[3] * multiplier))
    for i, j in np.ndindex(window, window):
        read = padded[:, i * dilation:, j * dilation:][:, :(rows - 1) * stride + 1:stride, :(columns - 1) * stride + 1:stride]
        made += (read[..., None] * w[i, j]).reshape(made.shape)
    return made


def blocked(x, block):
    """(N, H, W, C) as (N, C / block, H, W, block)."""
    n, h, w, c = x.shape
    return np.ascontiguousarray(x.reshape(n, h, w, c // block, block).transpose(0, 3, 1, 2, 4))


def run(out, places, arrays, shape, dtype="float32"):
    made = np.full(shape, 7, dtype)
    tedsl.build(topi.schedules.schedule(out), [*places, out])(*arrays, made)
    return made


@pytest.mark.parametrize("read", ["stored", "relu", "exp"])
@pytest.mark.parametrize("case", CASES, ids=str)
def test_channels_last(case, read):
    n, c, h, wide, window, *geometry = case
    x, w = rng.standard_normal((n, h, wide, c), "float32"), rng.standard_normal((window, window, c, 1), "float32")
    a, b = te.placeholder(x.shape, name="a"), te.placeholder(w.shape, name="w")
    data = {"stored": a, "relu": nn.relu(a), "exp": topi.exp(a)}[read]
    values = {"stored": x, "relu": np.maximum(x, 0), "exp": np.exp(x.astype("float64"))}[read]
    want = np.maximum(expected(values, w, *geometry), 0)
    made = run(nn.relu(nn.depthwise_conv2d_nhwc(data, b, *geometry)), [a, b], [x, w], want.shape)
    np.testing.assert_allclose(made, want, 1e-4, 1e-3)


@pytest.mark.parametrize("case", [case for case in CASES if case[1] % 4 == 0], ids=str)
def test_blocks_of_channels(case):
    n, c, h, wide, window, *geometry = case
    block = 16 if c % 16 == 0 else 4
    x, w = rng.standard_normal((n, h, wide, c), "float32"), rng.standard_normal((window, window, c, 1), "float32")
    data, weights = blocked(x, block), np.ascontiguousarray(blocked(w.transpose(3, 0, 1, 2), block).reshape(
        c // block, 1, window, window, 1, block))
    a, b = te.placeholder(data.shape, name="a"), te.placeholder(weights.shape, name="w")
    want = blocked(expected(x, w, *geometry), block)
    made = run(nn.depthwise_conv2d_NCHWc(a, b, *geometry), [a, b], [data, weights], want.shape)
    np.testing.assert_allclose(made, want, 1e-4, 1e-3)


@pytest.mark.parametrize("dtype, multiplier", [("float64", 1), ("float16", 1), ("float32", 2)])
def test_dtypes_and_several_results_of_a_channel(dtype, multiplier):
    x, w = rng.standard_normal((2, 7, 9, 24)).astype(dtype), rng.standard_normal((3, 3, 24, multiplier)).astype(dtype)
    a, b = te.placeholder(x.shape, dtype, name="a"), te.placeholder(w.shape, dtype, name="w")
    want = expected(x, w.astype("float64"), 2, 1, 1)
    made = run(nn.depthwise_conv2d_nhwc(a, b, 2, 1, 1), [a, b], [x, w], want.shape, dtype)
    np.testing.assert_allclose(made, want, 2e-2 if dtype == "float16" else 1e-4, 2e-2 if dtype == "float16" else 1e-3)


def test_images_of_any_size():
    n, h, wide = te.var("n"), te.var("h"), te.var("w")
    a, b = te.placeholder((n, h, wide, 32), name="a"), te.placeholder((3, 3, 32, 1), name="w")
    out = nn.depthwise_conv2d_nhwc(a, b, 2, 1, 1)
    kernel = tedsl.build(topi.schedules.schedule(out), [a, b, out])
    for shape in ((1, 7, 6, 32), (2, 4, 9, 32), (1, 1, 1, 32)):
        x, w = rng.standard_normal(shape, "float32"), rng.standard_normal((3, 3, 32, 1), "float32")
        want = expected(x, w, 2, 1, 1)
        made = np.empty(want.shape, "float32")
        kernel(x, w, made)
        np.testing.assert_allclose(made, want, 1e-4, 1e-3)


def test_no_copy_of_the_image_with_its_border():
    a, b = te.placeholder((1, 14, 14, 32), name="a"), te.placeholder((3, 3, 32, 1), name="w")
    for data, stored in ((a, 0), (nn.relu(a), 0), (topi.exp(a), 1)):
        out = nn.relu(nn.depthwise_conv2d_nhwc(data, b, 1, 1, 1))
        text = str(tedsl.lower(topi.schedules.schedule(out), [a, b, out], simple_mode=True))
        assert sum("allocate(pad_temp" in line for line in text.splitlines()) == stored


def _loops(channels, window, target):
    """The loops over parts of channels, pixels and channels of a tile, from the outermost in."""
    a, b = te.placeholder((1, 20, 20, channels), name="a"), te.placeholder((window, window, channels, 1), name="w")
    with tedsl.Target(target):
        s = topi.schedules.schedule(nn.relu(nn.depthwise_conv2d_nhwc(a, b, 1, window // 2, 1)))
    tail = s.stages[-1]
    return [loop.var.name for loop in tail.leaf_iter_vars if loop.var.name.startswith(("ax2.outer", "ax3.outer"))]


@pytest.mark.parametrize("channels, window, target, order", [
    (160, 3, "llvm -model=znver4", ["ax2.outer", "ax3.outer"]),
    (240, 3, "llvm -model=znver4", ["ax3.outer.outer", "ax2.outer", "ax3.outer.inner"]),
    (240, 3, "llvm -model=znver5", ["ax2.outer", "ax3.outer"]),
    (240, 5, "llvm -model=znver5", ["ax3.outer.outer", "ax2.outer", "ax3.outer.inner"])])
def test_channels_of_a_part_follow_each_other(channels, window, target, order):
    """As many as stay in half of the nearest cache: 25 or 61 elements of each, of caches of 32 and 48 KiB."""
    assert _loops(channels, window, target) == order


@pytest.mark.parametrize("channels", [376, 300, te.var("c")])
def test_parts_of_channels_that_do_not_divide_them(channels):
    a, b = te.placeholder((1, 5, 6, channels), name="a"), te.placeholder((3, 3, channels, 1), name="w")
    out = nn.relu(nn.depthwise_conv2d_nhwc(a, b, 1, 1, 1))
    kernel = tedsl.build(topi.schedules.schedule(out), [a, b, out])
    for size in (channels,) if isinstance(channels, int) else (0, 1, 37, 376, 700):
        x, w = rng.standard_normal((1, 5, 6, size), "float32"), rng.standard_normal((3, 3, size, 1), "float32")
        made = np.empty(x.shape, "float32")
        kernel(x, w, made)
        np.testing.assert_allclose(made, np.maximum(expected(x, w, 1, 1, 1), 0), 1e-4, 1e-3)
