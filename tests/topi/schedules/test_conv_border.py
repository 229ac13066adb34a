"""Convolutions skip the rows of the window that lie in the border, and their tiles are chosen by that."""

import numpy as np
import pytest
import scipy.signal

import tedsl
import topi
from tedsl import te
from tedsl.target import Target
from topi.schedules.cpu.conv.register_tiles import Border, ImageTile, cycles_of_image, image_tile, share_inside

TARGETS = ["llvm -mcpu=x86-64-v3 -model=znver3", "llvm -mcpu=znver4 -model=znver5"]


def made(layout, channels, size, filters, kernel, stride, pad, dilation=1):
    if layout == "NHWC":
        x = te.placeholder((1, size, size, channels), name="x")
        w = te.placeholder((kernel, kernel, channels, filters), name="w")
        return x, w, topi.nn.conv2d_nhwc(x, w, stride, pad, dilation)
    if layout == "NCHW":
        x = te.placeholder((1, channels, size, size), name="x")
        w = te.placeholder((filters, channels, kernel, kernel), name="w")
        return x, w, topi.nn.conv2d_nchw(x, w, stride, pad, dilation)
    x = te.placeholder((1, channels // 16, size, size, 16), name="x")
    w = te.placeholder((filters // 16, channels // 16, kernel, kernel, 16, 16), name="w")
    return x, w, topi.nn.conv2d_NCHWc(x, w, stride, pad, dilation)


def conditions(x, w, y):
    text = str(tedsl.lower(topi.schedules.schedule(y), [x, w, y], simple_mode=True))
    return [line.strip() for line in text.splitlines() if line.strip().startswith("if (") and "likely" not in line]


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("layout", ["NHWC", "NCHW", "NCHWc"])
def test_rows_of_the_window_in_the_border_are_skipped(layout, target):
    with Target(target):
        assert conditions(*made(layout, 64, 14, 64, 7, 1, 3))
        assert not conditions(*made(layout, 64, 14, 64, 3, 1, 0))
        assert not conditions(*made(layout, 64, 14, 64, 1, 1, 0))


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("layout", ["NHWC", "NCHW", "NCHWc"])
@pytest.mark.parametrize("size, kernel, stride, pad, dilation", [
    (7, 3, 1, 1, 1), (7, 3, 2, 1, 1), (5, 5, 1, 2, 1), (3, 5, 1, 4, 1), (6, 3, 1, 2, 2), (1, 3, 1, 1, 1), (9, 2, 3, 1, 1),
    (8, 7, 2, 3, 1)])
def test_results(layout, target, size, kernel, stride, pad, dilation):
    channels, filters = 16, 32
    rng = np.random.default_rng(1)
    x, w = rng.integers(-4, 5, (channels, size, size)), rng.integers(-4, 5, (filters, channels, kernel, kernel))
    wide = np.zeros((filters, channels, dilation * (kernel - 1) + 1, dilation * (kernel - 1) + 1), int)
    wide[:, :, ::dilation, ::dilation] = w
    padded = np.pad(x, ((0, 0), (pad, pad), (pad, pad)))
    expected = np.stack([sum(scipy.signal.correlate2d(padded[c], f[c], "valid") for c in range(channels)) for f in wide])
    expected = expected[:, ::stride, ::stride].astype("float32")
    with Target(target):
        X, W, Y = made(layout, channels, size, filters, kernel, stride, pad, dilation)
        run = tedsl.build(topi.schedules.schedule(Y), [X, W, Y])
    if layout == "NHWC":
        data, weights = x.transpose(1, 2, 0)[None], w.transpose(2, 3, 1, 0)
    elif layout == "NCHW":
        data, weights = x[None], w
    else:
        data = x.reshape(1, 1, 16, size, size).transpose(0, 1, 3, 4, 2)
        weights = w.reshape(2, 16, 1, 16, kernel, kernel).transpose(0, 2, 4, 5, 3, 1)
    found = np.full([int(n) for n in Y.shape], np.nan, "float32")
    run(np.ascontiguousarray(data, "float32"), np.ascontiguousarray(weights, "float32"), found)
    if layout == "NHWC":
        found = found.transpose(0, 3, 1, 2)
    elif layout == "NCHWc":
        found = found.transpose(0, 1, 4, 2, 3).reshape(1, filters, *expected.shape[1:])
    np.testing.assert_array_equal(found[0], expected)


def test_symbolic_sizes():
    n = te.size_var("n")
    x, w = te.placeholder((1, n, n, 8), name="x"), te.placeholder((3, 3, 8, 16), name="w")
    y = topi.nn.conv2d_nhwc(x, w, 1, 1, 1)
    run = tedsl.build(topi.schedules.schedule(y), [x, w, y])
    rng = np.random.default_rng(1)
    weights = rng.integers(-4, 5, (3, 3, 8, 16)).astype("float32")
    for size in (1, 2, 5, 14):
        data, found = rng.integers(-4, 5, (1, size, size, 8)).astype("float32"), np.empty((1, size, size, 16), "float32")
        run(data, weights, found)
        expected = np.stack([sum(scipy.signal.correlate2d(data[0, :, :, c], weights[:, :, c, f], "same") for c in range(8))
                             for f in range(16)], axis=-1)
        np.testing.assert_array_equal(found[0], expected)


def test_the_part_of_the_window_that_is_added_up():
    border = Border(size=7, before=1, window=3, stride=1, dilation=1)
    assert share_inside(border, 7, 1) == pytest.approx(19 / 21)
    assert share_inside(border, 7, 2) == pytest.approx(20 / 21)  # the last row is a tile of its own
    assert share_inside(border, 7, 7) == 1
    assert share_inside(Border(14, 1, 3, 2, 1), 7, 1) == pytest.approx(20 / 21)  # a stride of two ends inside
    assert share_inside(Border(6, 4, 3, 1, 4), 6, 1) == pytest.approx(10 / 18)  # what dilation reaches


def test_the_model_counts_rows_that_are_skipped():
    """Tiles of one row skip more than those of two."""
    target, border = Target("llvm -mcpu=znver4 -model=znver5"), Border(7, 1, 3, 1, 1)
    asked = target, (7, 7), 512, 4608, 16, 64

    def part(tile):
        return cycles_of_image(*asked, tile, border) / cycles_of_image(*asked, tile)

    one, two = ImageTile(1, 7, 32), ImageTile(2, 7, 32)
    assert part(one) < part(two) < 1
    assert image_tile(*asked) == two and image_tile(*asked, border=border) == one


def test_weights_that_come_from_memory_are_read_first_by_larger_tiles():
    """A panel of 512 channels that is read where it lies: its first tile waits for memory."""
    asked = Target("llvm -mcpu=znver4 -model=znver5"), (7, 7), 512, 4608, 16, 64
    border = Border(7, 1, 3, 1, 1)
    assert image_tile(*asked, border=border, copied=True) == ImageTile(1, 7, 32)
    assert image_tile(*asked, border=border, copied=False) == ImageTile(2, 7, 32)


def test_pixels_beside_the_image_are_left_out_by_tiles_as_wide_as_it():
    with Target("llvm -mcpu=znver4 -model=znver5"):
        x, w, y = made("NCHWc", 64, 7, 64, 3, 1, 1)
        text = str(tedsl.lower(topi.schedules.schedule(y), [x, w, y], simple_mode=True))
    terms = [line for line in text.splitlines() if "*(float32x16*)w" in line]
    assert "for (kw:" not in text and len(terms) == 2 * (7 + 2 * 6)  # of two vectors, for three columns of the window


def test_columns_are_not_left_out_where_multiply_adds_would_wait():
    with Target("llvm -mcpu=x86-64-v3 -model=znver3"):
        x, w, y = made("NCHWc", 64, 4, 64, 3, 1, 1)
        text = str(tedsl.lower(topi.schedules.schedule(y), [x, w, y], simple_mode=True))
    assert "for (kw:" in text


def test_panels_that_come_from_beyond_the_second_cache_are_read_less_often():
    target = Target("llvm -mcpu=znver4 -model=znver5")
    asked = target, (15, 15), 97, 3700, 16, 4
    near, far = image_tile(*asked, whole=True), image_tile(*asked, whole=True, room=700_000)
    assert 3700 * 4 * near.wide > 700_000 and far.across > near.across
    assert cycles_of_image(*asked, near, room=700_000) > 1.2 * cycles_of_image(*asked, near)
