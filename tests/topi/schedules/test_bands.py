"""Convolutions by bands of rows, with their border: when, how high, and the same results."""

import dataclasses
import json

import numpy as np
import pytest

import tedsl
import topi
from tedsl import te
from tedsl.target import Target
from topi import nn
from topi.schedules.cpu.conv import channels as by_channels

rng = np.random.default_rng(11)


def convolution(channels, size, filters, stride=1, batch=1, window=3, padding=None, dilation=1, dtype="float32", block=8):
    """A convolution in blocks of channels with bias, a residual and relu: its arguments and its result."""
    D = te.placeholder((batch, channels // block, size, size, block), dtype, name="data")
    W = te.placeholder((filters // block, channels // block, window, window, block, block), dtype, name="kernel")
    B = te.placeholder((filters // block, 1, 1, block), dtype, name="bias")
    made = nn.conv2d_NCHWc(D, W, stride, window // 2 if padding is None else padding, dilation, out_dtype=dtype)
    R = te.placeholder(made.shape, dtype, name="residual")
    return D, W, B, R, nn.relu(made + B + R)


def channels_last(channels, size, filters, stride=1, batch=1, window=3, padding=None, dilation=1, dtype="float32"):
    """The same with channels innermost."""
    D = te.placeholder((batch, size, size, channels), dtype, name="data")
    W = te.placeholder((window, window, channels, filters), dtype, name="kernel")
    B = te.placeholder((filters,), dtype, name="bias")
    made = nn.conv2d_nhwc(D, W, stride, window // 2 if padding is None else padding, dilation, out_dtype=dtype)
    R = te.placeholder(made.shape, dtype, name="residual")
    return D, W, B, R, nn.relu(made + B + R)


def target_with(tmp_path, cores, second_cache=None):
    """The processor znver3 with other numbers of cores and bytes of its second cache."""
    machine = dataclasses.asdict(Target("llvm -mcpu=znver3 -model=znver3").machine) | {"cores": cores}
    if second_cache is not None:
        machine["l2"] = machine["l2"] | {"size": second_cache}
    (tmp_path / "machine.json").write_text(json.dumps(machine))
    return f"-model={tmp_path / 'machine.json'}"


def chosen_by(monkeypatch):
    """A list of the heights of the bands that are chosen from now on."""
    chosen, real = [], by_channels.rows_of_band
    monkeypatch.setattr(by_channels, "rows_of_band", lambda *args, **also: chosen.append(real(*args, **also)) or chosen[-1])
    return chosen


@pytest.mark.parametrize("case, cores, rows", [
    ((64, 56, 64), 1, 14), ((64, 56, 64), 2, 14), ((64, 56, 64), 16, 4),
    ((128, 28, 256, 2), 1, 8), ((128, 28, 256, 2, 8), 16, 8),
    ((128, 28, 256, 2), 16, None),        # fewer bands than cores
    ((64, 28, 32), 1, 7),                 # the image would stay in the second cache, but not beside the weights and the result
    ((32, 28, 32), 1, None),              # all stays
    ((128, 14, 128), 1, None),            # the weights do not stay
    ((64, 112, 64, 1, 0), 16, None),      # no image
    ((64, 112, 64, 1, 1, 5), 1, None)])   # the weights would be read as often as the image now is
def test_heights(case, cores, rows, monkeypatch, tmp_path):
    chosen = chosen_by(monkeypatch)
    with Target(f"llvm -mcpu=znver3 {target_with(tmp_path, cores)}"):
        topi.schedules.schedule([convolution(*case)[-1]])
    assert chosen == [rows]


@pytest.mark.parametrize("case, cores, rows", [
    ((64, 56, 32), 1, 4), ((64, 56, 32), 16, 4), ((3, 512, 16), 1, 16),  # a quarter of the second cache
    ((32, 28, 32), 1, None),              # all stays
    ((64, 112, 32, 1, 1, 1), 1, None),    # no window
    ((64, 56, 32, 1, 1, 3, 0), 1, None),  # no border: the image is read once by rows, too
    ((64, 56, 128), 1, None)])            # weights that do not stay near: panels are copied beside their sums
def test_heights_with_channels_innermost(case, cores, rows, monkeypatch, tmp_path):
    chosen = chosen_by(monkeypatch)
    with Target(f"llvm -mcpu=znver3 {target_with(tmp_path, cores)}"):
        topi.schedules.schedule([channels_last(*case)[-1]])
    assert (chosen or [None]) == [rows]


def test_bands_are_no_code_of_their_own(monkeypatch, tmp_path):
    """Bands at the ends of the image run through the loops of the others: the copy alone is split where the border is."""
    arguments, taps = channels_last(64, 56, 32), []
    with Target(f"llvm -mcpu=znver3 {target_with(tmp_path, 1)}"):
        for _ in range(2):
            made = tedsl.build(topi.schedules.schedule([arguments[-1]]), arguments)
            taps.append(made.get_source().count(" call <16 x float> @llvm.fma"))
            monkeypatch.setattr(by_channels, "rows_of_band", lambda *args, **also: None)
    assert taps[0] == taps[1] > 0


@pytest.mark.parametrize("make", [convolution, channels_last])
def test_the_border_is_made_band_by_band(make, tmp_path):
    """One parallel loop, over bands, in which the rows that a band reads are copied with their border."""
    arguments = make(64, 56, 64)
    rows = 14 if make is convolution else 4
    with Target(f"llvm -mcpu=znver3 {target_with(tmp_path, 1)}"):
        text = str(tedsl.lower(topi.schedules.schedule([arguments[-1]]), arguments, simple_mode=True))
    assert text.count('"parallel"') == 1
    assert text.index('"parallel"') < text.index(f"pad_temp: Pointer(global float32), float32, [{64 * (rows + 2) * 58}]")


@pytest.mark.parametrize("case", [
    {}, {"stride": 2}, {"batch": 3}, {"batch": 2, "stride": 2, "size": 15}, {"window": 5}, {"dilation": 2},
    {"padding": 0}, {"padding": [0, 2, 1, 3]}, {"filters": 40}, {"size": 7, "channels": 64}, {"dtype": "float64"},
    {"dtype": "float16"}, {"dtype": "int8"}, {"dtype": "int32", "block": 4}, {"block": 16, "filters": 16},
    {"last": True}, {"last": True, "stride": 2}, {"last": True, "batch": 3, "size": 12},
    {"last": True, "channels": 3, "filters": 19}, {"last": True, "padding": [0, 2, 1, 3]},
    {"last": True, "padding": 0}, {"last": True, "window": 5, "dilation": 2},
    {"last": True, "channels": 7, "filters": 1}, {"last": True, "dtype": "int8"}, {"last": True, "dtype": "float16"}])
def test_results(case, monkeypatch):
    sizes = {"channels": 16, "size": 13, "filters": 24} | case
    arguments = (channels_last if sizes.pop("last", False) else convolution)(**sizes)
    dtype = arguments[0].dtype
    if dtype != "int8":  # whose steps take groups of channels: no bands
        monkeypatch.setattr(by_channels, "rows_of_band", lambda _, tile, rows_first=False: -(-4 // tile.down) * tile.down)
    arrays = [rng.integers(-3, 4, [int(n) for n in a.shape]).astype(dtype) for a in arguments[:-1]]
    got, expected = (np.empty([int(n) for n in arguments[-1].shape], dtype) for _ in range(2))
    tedsl.build(topi.schedules.schedule([arguments[-1]], "llvm"), arguments, "llvm")(*arrays, got)
    tedsl.build(te.create_schedule(arguments[-1].op), arguments, "llvm")(*arrays, expected)
    np.testing.assert_array_equal(got, expected)


def test_what_others_read_too_is_stored(tmp_path):
    """The image with its border is a result of its own."""
    D, W, *_ = convolution(16, 13, 24)
    made = nn.conv2d_NCHWc(D, W, 1, 1, 1)
    padded = next(t for t in made.op.input_tensors if t.op is not W.op)
    x, w = (rng.integers(-3, 4, [int(n) for n in a.shape]).astype("float32") for a in (D, W))
    images, sums = (np.empty([int(n) for n in t.shape], "float32") for t in (padded, made))
    with Target(f"llvm {target_with(tmp_path, 1, 16384)}"):
        tedsl.build(topi.schedules.schedule([padded, made]), [D, W, padded, made])(x, w, images, sums)
    assert (images[:, :, 1:-1, 1:-1] == x).all()
    assert not images[:, :, 0].any()
