"""Depthwise convolutions of images whose rows are contiguous: rows of a piece, borders that are masks, results at odd sizes."""

import numpy as np
import pytest

import tedsl
import topi
from tedsl import te
from tedsl.target import Target
from topi import nn

rng = np.random.default_rng(0)
TARGETS = [None, "llvm -mcpu=znver3 -model=znver3"]


def scheduled(model, size, window, of=nn.relu, before=lambda x: x):
    x, w = te.placeholder((1, 8, size, size), name="x"), te.placeholder((8, 1, window, window), name="w")
    with Target(f"llvm -mcpu={model} -model={model}"):
        return topi.schedules.schedule(of(nn.depthwise_conv2d_nchw(before(x), w, 1, window // 2, 1)))


@pytest.mark.parametrize("model, window, size, rows, loop", [
    ("skylake-avx512", 3, 56, 14, False), ("skylake-avx512", 3, 100, 10, False), ("skylake-avx512", 3, 29, 15, True),
    ("skylake-avx512", 5, 49, 13, True), ("skylake-avx512", 5, 14, 14, True), ("skylake-avx512", 7, 28, 10, True),
    ("znver3", 3, 56, 7, False), ("znver3", 5, 42, 6, True), ("znver3", 7, 57, 5, True)])
def test_rows_of_a_piece_fill_the_registers_with_the_rows_that_they_read(model, window, size, rows, loop):
    """Columns of the window are a loop where all its places for all rows would be many statements."""
    text = str(scheduled(model, size, window).journal)
    assert f", factor={rows})" in text
    assert (".op.reduce_axis[1])\n" not in text.replace(".reorder", "")) is loop


@pytest.mark.parametrize("model, window, before, inline", [
    ("skylake-avx512", 3, lambda x: x, True), ("skylake-avx512", 3, topi.exp, False), ("skylake-avx512", 7, lambda x: x, True),
    ("znver3", 3, lambda x: x, False)])
def test_masks_are_the_border_where_they_take_no_time(model, window, before, inline):
    text = str(scheduled(model, 24, window, before=before))
    assert ("pad_temp: computed inline" in text) is inline


@pytest.mark.parametrize("target", TARGETS, ids=str)
@pytest.mark.parametrize("channels, height, width, window, stride, pad, dilation", [
    (3, 24, 24, 3, 1, 1, 1), (2, 14, 14, 5, 1, 2, 1), (2, 29, 29, 5, 1, 2, 1), (1, 49, 33, 5, 1, 2, 1), (2, 7, 7, 3, 1, 1, 1),
    (3, 1, 1, 3, 1, 1, 1), (2, 17, 65, 3, 2, 1, 1), (2, 27, 27, 3, 2, 1, 1), (2, 11, 11, 5, 2, 2, 1), (2, 23, 31, 3, 1, 2, 2),
    (2, 19, 21, 7, 1, 3, 1), (1, 150, 130, 3, 1, 1, 1), (2, 40, 41, 3, 3, 1, 1)])
def test_results_at_odd_sizes(channels, height, width, window, stride, pad, dilation, target):
    x = rng.standard_normal((2, channels, height, width), "float32")
    w = rng.standard_normal((channels, 1, window, window), "float32")
    a, b = te.placeholder(x.shape, name="a"), te.placeholder(w.shape, name="w")
    y = nn.depthwise_conv2d_nchw(a, b, stride, pad, dilation)
    with Target(target or "llvm"):
        kernel = tedsl.build(topi.schedules.schedule(y), [a, b, y])
    out = np.full([int(extent) for extent in y.shape], 7, "float32")
    kernel(x, w, out)
    whole = np.pad(x, ((0, 0), (0, 0), (pad, pad), (pad, pad)))
    want = np.zeros(out.shape)
    for i, j in np.ndindex(window, window):
        read = whole[:, :, i * dilation:, j * dilation:][:, :, :(out.shape[2] - 1) * stride + 1:stride,
                                                         :(out.shape[3] - 1) * stride + 1:stride]
        want += read.astype("float64") * w[None, :, 0, i, j, None, None]
    np.testing.assert_allclose(out, want, 1e-4, 1e-4)
