"""Convolutions whose sums are taken block by block of the input channels: when, which blocks, and the same results."""

import dataclasses
import json

import numpy as np
import pytest

import tedsl
import topi
from tedsl import te
from tedsl.target import Target
from topi import nn
from topi.schedules.cpu.conv import blocks as by_blocks
from topi.schedules.cpu.conv import channels as by_channels
from topi.schedules.cpu.conv import far_weights

rng = np.random.default_rng(3)
# processor, layout, channels, size, filters, stride, and the blocks of channels, or None
CHOSEN = [
    ("znver3", "NCHWc", 512, 7, 512, 1, (7, 32)),
    ("znver3", "NCHWc", 64, 56, 64, 1, None),
    ("znver3", "NCHW", 512, 7, 512, 1, (7, 16)),
    ("znver3", "NCHW", 64, 56, 64, 1, (4, 16)),
    ("znver3", "NCHW", 128, 28, 128, 1, None),
    ("znver4", "NCHWc", 512, 7, 512, 1, None),
    ("znver4", "NCHW", 64, 56, 64, 1, None),
    ("sapphirerapids", "NCHW", 512, 7, 512, 1, (7, 16)),
    ("sapphirerapids", "NCHW", 512, 14, 512, 1, None),
    ("znver3", "NHWC", 512, 7, 512, 1, (7, 32)),
    ("znver3", "NHWC", 128, 28, 128, 1, None),
    ("znver4", "NHWC", 512, 7, 512, 1, None),
]


def convolution(layout, channels, size, filters, stride, block=8):
    """A 3 x 3 convolution with relu: its arguments and its result."""
    if layout == "NCHW":
        data, kernel = (1, channels, size, size), (filters, channels, 3, 3)
        made = nn.conv2d_nchw
    elif layout == "NHWC":
        data, kernel = (1, size, size, channels), (3, 3, channels, filters)
        made = nn.conv2d_nhwc
    else:
        data, kernel = (1, channels // block, size, size, block), (filters // block, channels // block, 3, 3, block, block)
        made = nn.conv2d_NCHWc
    D, W = te.placeholder(data, name="data"), te.placeholder(kernel, name="kernel")
    return D, W, nn.relu(made(D, W, stride, 1, 1))


def noted(monkeypatch):
    """The blocks that schedules choose from now on."""
    chosen, real = [], by_blocks.channel_blocks
    for module in (by_channels, far_weights):
        monkeypatch.setattr(module, "channel_blocks", lambda *args: chosen.append(real(*args)) or chosen[-1])
    copied = by_blocks.copied_blocks

    def note_copied(*args):
        blocks = copied(*args)
        chosen.extend([blocks] if blocks else [])
        return blocks

    monkeypatch.setattr(by_channels, "copied_blocks", note_copied)
    return chosen


@pytest.mark.parametrize("cpu, layout, channels, size, filters, stride, expected", CHOSEN)
def test_blocks_where_weights_or_pages_are_far(cpu, layout, channels, size, filters, stride, expected, monkeypatch):
    chosen = noted(monkeypatch)
    *_, out = convolution(layout, channels, size, filters, stride, 8 if cpu == "znver3" else 16)
    with Target(f"llvm -mcpu={cpu} -model={cpu}"):
        topi.schedules.schedule([out])
    assert chosen == [expected]


@pytest.fixture
def small_caches(tmp_path):
    """A machine on which images of some KB fill the caches, with two pages known at once."""
    machine = dataclasses.asdict(Target("llvm -mcpu=haswell").machine)
    machine |= {"l1": {"size": 16384, "ways": 8}, "l2": {"size": 16384, "ways": 8}, "tlb": 2, "page": 256}
    (tmp_path / "machine.json").write_text(json.dumps(machine))
    return Target(f"llvm -mcpu=haswell -model={tmp_path / 'machine.json'}")


@pytest.mark.parametrize("layout, channels, size, filters, stride", [
    ("NCHWc", 16, 9, 40, 1), ("NCHWc", 24, 7, 16, 2), ("NCHW", 18, 11, 21, 1), ("NCHW", 16, 12, 32, 2), ("NCHW", 24, 9, 16, 1),
    ("NHWC", 16, 6, 400, 1), ("NHWC", 24, 7, 390, 2)])
def test_results_are_those_of_all_channels_at_once(layout, channels, size, filters, stride, small_caches, monkeypatch):
    chosen = noted(monkeypatch)
    D, W, out = convolution(layout, channels, size, filters, stride)
    with small_caches:
        schedule = topi.schedules.schedule([out])
    assert chosen[0] is not None
    kernel = tedsl.build(schedule, [D, W, out], target=small_caches)
    x, w = (rng.uniform(-1, 1, (1, channels, size, size)).astype("float32"),
            rng.uniform(-1, 1, (filters, channels, 3, 3)).astype("float32"))
    windows = np.lib.stride_tricks.sliding_window_view(np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1))), (3, 3), (2, 3))
    expected = np.maximum(np.einsum("nchwij,ocij->nohw", windows[:, :, ::stride, ::stride], w, dtype="float64"), 0)
    result = np.empty(topi.utils.get_const_tuple(out.shape), "float32")
    if layout == "NCHW":
        kernel(x, w, result)
    elif layout == "NHWC":
        kernel(x.transpose(0, 2, 3, 1).copy(), w.transpose(2, 3, 1, 0).copy(), result)
        result = result.transpose(0, 3, 1, 2)
    else:
        kernel(x.reshape(1, -1, 8, size, size).transpose(0, 1, 3, 4, 2).copy(),
               w.reshape(filters // 8, 8, -1, 8, 3, 3).transpose(0, 2, 4, 5, 3, 1).copy(), result)
        result = result.transpose(0, 1, 4, 2, 3).reshape(expected.shape)
    np.testing.assert_allclose(result, expected, rtol=1e-5, atol=1e-5)


def test_weights_are_copied_by_pieces_of_several_panels():
    """512 channels are 22 panels of 24: four would not divide them, two are copied in pieces of 48 channels."""
    D, W, out = convolution("NHWC", 512, 7, 512, 1)
    with Target("llvm -mcpu=znver3 -model=znver3"):
        text = str(tedsl.lower(topi.schedules.schedule([out]), [D, W, out], simple_mode=True))
    assert f"[{2 * 9 * 32 * 24}]" in text


@pytest.mark.parametrize("size, copied", [(4, True), (1, False)])
def test_weights_that_more_than_one_tile_reads_are_copied(size, copied):
    D, W, out = convolution("NHWC", 512, size, 512, 1)
    with Target("llvm -mcpu=znver3 -model=znver3"):
        text = str(tedsl.lower(topi.schedules.schedule([out]), [D, W, out], simple_mode=True))
    assert ("kernel.global" in text or "W.global" in text) is copied
