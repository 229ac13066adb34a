"""Convolutions of blocks of channels with a window of one pixel, by tiles across the rows of the image."""

import dataclasses
import json
import re

import numpy as np
import pytest

import tedsl
import topi
from tedsl import te
from tedsl.target import Target
from topi import nn, testing
from topi.schedules.cpu.conv import choice, flat
from topi.schedules.cpu.tiles import registers

rng = np.random.default_rng(5)


def convolution(channels, size, filters, stride=1, batch=1, padding=0, window=1):
    """A convolution in blocks of 8 channels with relu: its arguments and its result."""
    D = te.placeholder((batch, channels // 8, size, size, 8), name="data")
    W = te.placeholder((filters // 8, channels // 8, window, window, 8, 8), name="kernel")
    return D, W, nn.relu(nn.conv2d_NCHWc(D, W, stride, padding, 1))


def results_of(monkeypatch, module, name):
    """A list of what the function `name` of a module gives from now on."""
    chosen, real = [], getattr(module, name)
    monkeypatch.setattr(module, name, lambda *args: chosen.append(real(*args)) or chosen[-1])
    return chosen


@pytest.mark.parametrize("channels, size, filters, expected", [
    (512, 28, 128, (60, 64)),    # the image is larger than the second cache, which has the weights beside a piece of 60 pixels
    (2048, 7, 512, (50, 64)),    # it stays there alone, but not beside the weights of a panel
    (256, 14, 1024, None),       # both stay there
    (128, 28, 512, None)])       # so few planes are read ahead
def test_planes_are_added_up_by_blocks_where_they_are_many_and_far(channels, size, filters, expected, monkeypatch):
    chosen = results_of(monkeypatch, flat, "plane_blocks")
    with Target("llvm -mcpu=znver3 -model=znver3"):
        topi.schedules.schedule([convolution(channels, size, filters)[-1]])
    assert chosen == [expected]


@pytest.mark.parametrize("cpu, channels, size, filters, blocked", [
    ("sapphirerapids", 512, 14, 256, True), ("sapphirerapids", 320, 14, 256, False), ("znver5", 512, 14, 256, False)])
def test_planes_are_added_up_by_blocks_where_a_panel_is_waited_for(cpu, channels, size, filters, blocked, monkeypatch):
    """A panel that does not stay in the nearest cache comes from the second one for each tile, which takes 384 bits in a cycle
    long enough, 512 not.
    """
    chosen = results_of(monkeypatch, flat, "plane_blocks")
    D = te.placeholder((1, channels // 16, size, size, 16), name="data")
    W = te.placeholder((filters // 16, channels // 16, 1, 1, 16, 16), name="kernel")
    with Target(f"llvm -mcpu={cpu} -model={cpu}"):
        topi.schedules.schedule([nn.conv2d_NCHWc(D, W, 1, 0, 1)])
    assert [one is not None for one in chosen] == [blocked]


@pytest.mark.parametrize("channels, size, filters, batch, cores, expected", [
    (256, 56, 64, 1, 1, 126),     # at most a quarter of 512 KB
    (256, 56, 64, 2, 2, 126),
    (512, 28, 128, 1, 2, 60),
    (512, 28, 128, 1, 3, 56),     # tiles of 4 pixels divide all
    (256, 56, 16, 1, 1, None),    # one panel
    (256, 14, 1024, 1, 1, None),  # the weights do not stay
    (64, 14, 64, 1, 1, None)])    # all stays
def test_pieces_of_the_pixels_stay_beside_the_weights(channels, size, filters, batch, cores, expected, monkeypatch, tmp_path):
    chosen = results_of(monkeypatch, flat, "_piece")
    machine = dataclasses.asdict(Target("llvm -mcpu=znver3 -model=znver3").machine) | {"cores": cores}
    (tmp_path / "machine.json").write_text(json.dumps(machine))
    with Target(f"llvm -mcpu=znver3 -model={tmp_path / 'machine.json'}"):
        topi.schedules.schedule([convolution(channels, size, filters, 1, batch)[-1]])
    assert chosen == [expected]


def test_a_single_piece_is_parted_among_the_cores(monkeypatch, tmp_path):
    chosen = results_of(monkeypatch, flat, "_piece")
    machine = dataclasses.asdict(Target("llvm -mcpu=sapphirerapids -model=sapphirerapids").machine) | {"cores": 2}
    (tmp_path / "machine.json").write_text(json.dumps(machine))
    D, W = te.placeholder((1, 16, 14, 14, 16), name="data"), te.placeholder((64, 16, 1, 1, 16, 16), name="kernel")
    with Target(f"llvm -mcpu=sapphirerapids -model={tmp_path / 'machine.json'}"):
        topi.schedules.schedule([nn.conv2d_NCHWc(D, W, 1, 0, 1)])
    assert chosen == [98]


@pytest.mark.parametrize("channels, size, filters, stride, asked", [
    (512, 7, 2048, 1, True), (1024, 14, 2048, 2, True),
    (64, 56, 64, 1, False)])  # the weights stay
def test_weights_of_the_next_panel_are_asked_for(channels, size, filters, stride, asked):
    D = te.placeholder((1, channels // 16, size, size, 16), name="data")
    W = te.placeholder((filters // 16, channels // 16, 1, 1, 16, 16), name="kernel")
    out = nn.conv2d_NCHWc(D, W, stride, 0, 1)
    with Target("llvm -mcpu=sapphirerapids -model=sapphirerapids"):
        s = topi.schedules.schedule([out])
    assert ("prefetching kernel 1 ahead bit by bit" in str(s[s.outputs[0]])) == asked


@pytest.mark.parametrize("case, cores, across_rows", [
    ((16, 7, 16), 1, True), ((16, 7, 16), 4, False), ((16, 7, 512), 4, True), ((16, 7, 40), 4, True), ((16, 13, 16), 4, True),
    ((16, 7, 16, 1, 1, 1), 1, False), ((16, 7, 16, 1, 1, 1, 3), 1, False)])
def test_tiles_cross_rows_where_panels_or_tiles_of_pixels_keep_cores_busy(case, cores, across_rows, monkeypatch, tmp_path):
    chosen = results_of(monkeypatch, choice, "flat_tile")
    machine = dataclasses.asdict(Target("llvm -mcpu=haswell -model=haswell").machine) | {"cores": cores}
    (tmp_path / "machine.json").write_text(json.dumps(machine))
    with Target(f"llvm -mcpu=haswell -model={tmp_path / 'machine.json'}"):
        topi.schedules.schedule([convolution(*case)[-1]])
    assert (chosen[0] is not None) == across_rows


@pytest.mark.parametrize("channels, size, filters, stride, batch, blocked, pieces", [
    (24, 7, 24, 1, 1, False, False), (16, 5, 40, 2, 2, False, False), (144, 5, 16, 1, 2, True, False),
    (160, 9, 24, 2, 1, True, False), (16, 13, 40, 1, 3, False, True), (136, 11, 24, 1, 2, True, False),
    (16, 20, 40, 2, 1, False, True)])
def test_results(channels, size, filters, stride, batch, blocked, pieces, monkeypatch, tmp_path):
    chosen, taken = results_of(monkeypatch, flat, "plane_blocks"), results_of(monkeypatch, flat, "_piece")
    machine = dataclasses.asdict(Target("llvm -mcpu=haswell -model=haswell").machine)
    machine |= {"l1": {"size": 2048, "ways": 8}, "l2": {"size": 16384, "ways": 8}}
    (tmp_path / "machine.json").write_text(json.dumps(machine))
    target = Target(f"llvm -mcpu=haswell -model={tmp_path / 'machine.json'}")
    D, W, out = convolution(channels, size, filters, stride, batch)
    with target:
        schedule = topi.schedules.schedule([out])
    assert [one is not None for one in chosen + taken] == [blocked, pieces]
    x = rng.uniform(-1, 1, (batch, channels, size, size)).astype("float32")
    w = rng.uniform(-1, 1, (filters, channels)).astype("float32")
    result = np.empty(topi.utils.get_const_tuple(out.shape), "float32")
    tedsl.build(schedule, [D, W, out], target=target)(
        x.reshape(batch, -1, 8, size, size).transpose(0, 1, 3, 4, 2).copy(),
        w.reshape(filters // 8, 8, -1, 8).transpose(0, 2, 3, 1).reshape(filters // 8, channels // 8, 1, 1, 8, 8).copy(), result)
    expected = np.maximum(np.einsum("nchw,oc->nohw", x[:, :, ::stride, ::stride], w, dtype="float64"), 0)
    np.testing.assert_allclose(result.transpose(0, 1, 4, 2, 3).reshape(expected.shape), expected, rtol=1e-5, atol=1e-5)


def test_cores_share_tiles_of_pixels_where_panels_are_too_few(tmp_path):
    """Five panels for two cores, of 49 pixels each: tiles of 7, none of which is cut off; and an image without a border is
    read in place.
    """
    machine = dataclasses.asdict(Target("llvm -mcpu=haswell -model=haswell").machine) | {"cores": 2}
    (tmp_path / "machine.json").write_text(json.dumps(machine))
    D, W, out = convolution(256, 7, 40)
    with Target(f"llvm -mcpu=haswell -model={tmp_path / 'machine.json'}"):
        loops = str(tedsl.lower(topi.schedules.schedule([out]), [D, W, out], simple_mode=True))
    assert [line.strip() for line in loops.splitlines() if "for (" in line] == [
        'for (ax0.ax1.outer.fused.ax2.ax3.fused.outer.fused: int32, 0, 35) "parallel" {',
        "for (ic.outer: int32, 0, 32) {", "for (ic.inner: int32, 0, 8) {"]
    assert "pad_temp" not in loops


def test_a_stride_with_nothing_behind():
    """The copy of the pixels that a stride keeps is made before the sums get a stage of their own."""
    D, W = te.placeholder((1, 2, 8, 8, 8), name="D"), te.placeholder((2, 2, 1, 1, 8, 8), name="W")
    out = nn.conv2d_NCHWc(D, W, 2, 0, 1)
    x, w = rng.uniform(-1, 1, (1, 2, 8, 8, 8)).astype("float32"), rng.uniform(-1, 1, (2, 2, 1, 1, 8, 8)).astype("float32")
    result = np.empty((1, 2, 4, 4, 8), "float32")
    schedule = topi.schedules.schedule([out], Target("llvm -mcpu=haswell -model=haswell"))
    tedsl.build(schedule, [D, W, out])(x, w, result)
    expected = np.einsum("nahwi,baxyio->nbhwo", x[:, :, ::2, ::2], w)
    np.testing.assert_allclose(result, expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("window", [1, 3])
@pytest.mark.parametrize("block", [1, 2, 3, 12])
@pytest.mark.parametrize("cpu", ["znver3", "znver4"])
def test_blocks_that_fill_no_vector_take_a_register_each(cpu, block, window):
    """A tile of blocks of one channel was as many channels wide as a vector: hundreds of sums, each unrolled."""
    width = te.var("w") if window == 3 else 14
    D = te.placeholder((1, 2, 14, width, 4), name="data")
    W = te.placeholder((48 // block, 2, window, window, 4, block), name="kernel")
    out = nn.conv2d_NCHWc(D, W, 1, window // 2, 1)
    target = Target(f"llvm -mcpu={cpu}")
    with target:
        s = topi.schedules.schedule([out])
        text = str(tedsl.lower(s, [D, W, out]))
        vectors = -(-block // (target.vector_bits // 32))
    sums = set(re.findall(r"conv2d_NCHWc(?:\.local)?\[(?:ramp\()?(\d+)", text))
    assert 1 < len(sums) * vectors <= registers(target)
    if not target.runs_here:
        return
    given = [rng.standard_normal([14 if n is width else int(n) for n in t.shape], "float32") for t in (D, W)]
    got = np.empty((1, 48 // block, 14, 14, block), "float32")
    tedsl.build(s, [D, W, out], target)(*given, got)
    plain, weights = given[0].transpose(0, 1, 4, 2, 3).reshape(1, 8, 14, 14), given[1].transpose(0, 5, 1, 4, 2, 3)
    wanted = testing.conv2d_nchw_python(plain, weights.reshape(48, 8, window, window), 1, window // 2)
    np.testing.assert_allclose(got.transpose(0, 1, 4, 2, 3).reshape(1, 48, 14, 14), wanted, rtol=1e-4, atol=1e-4)


def pointwise(layout, channels, size, filters, stride=1):
    """A convolution by a window of one pixel in blocks of 16 channels, or with channels last: its arguments and its result."""
    if layout == "NHWC":
        D = te.placeholder((1, size, size, channels), name="data")
        W = te.placeholder((1, 1, channels, filters), name="kernel")
        return D, W, nn.conv2d_nhwc(D, W, stride, 0, 1)
    D = te.placeholder((1, channels // 16, size, size, 16), name="data")
    W = te.placeholder((filters // 16, channels // 16, 1, 1, 16, 16), name="kernel")
    return D, W, nn.conv2d_NCHWc(D, W, stride, 0, 1)


@pytest.mark.parametrize("layout", ["NCHWc", "NHWC"])
@pytest.mark.parametrize("cpu, channels, size, filters, stride, asked", [
    ("sapphirerapids", 64, 112, 16, 1, True),
    ("sapphirerapids", 64, 56, 16, 1, False),   # the image stays in the second cache
    ("sapphirerapids", 64, 112, 32, 1, False),  # its multiply-adds take longer than the image comes
    ("sapphirerapids", 64, 112, 16, 2, False),
    ("znver5", 64, 112, 16, 1, False),          # the last cache is near
    ("znver3", 64, 112, 16, 1, False)])
def test_images_that_come_from_afar_are_asked_for(cpu, channels, size, filters, stride, asked, layout):
    with Target(f"llvm -mcpu={cpu} -model={cpu}"):
        D, W, out = pointwise(layout, channels, size, filters, stride)
        text = str(tedsl.lower(topi.schedules.schedule([out]), [D, W, out]))
    assert ("prefetch" in text) == asked


@pytest.mark.parametrize("layout", ["NCHWc", "NHWC"])
@pytest.mark.parametrize("cores", [1, 2, 8])
@pytest.mark.parametrize("size", [139, 152])
def test_images_that_were_asked_for_are_added_up(size, cores, layout, tmp_path):
    """The loop over tiles is fused with others where cores share it."""
    machine = dataclasses.asdict(Target("llvm -mcpu=znver3 -model=sapphirerapids").machine) | {"cores": cores}
    (tmp_path / "machine.json").write_text(json.dumps(machine))
    with Target(f"llvm -model={tmp_path / 'machine.json'}"):
        D, W, out = pointwise(layout, 32, size, 16)
        schedule = topi.schedules.schedule([out])
        assert "prefetch" in str(tedsl.lower(schedule, [D, W, out]))
        kernel = tedsl.build(schedule, [D, W, out])
    x, w = rng.standard_normal((size * size, 32), dtype="float32"), rng.standard_normal((32, 16), dtype="float32")
    is_last, y = layout == "NHWC", np.zeros([int(extent) for extent in out.shape], "float32")
    data = x.reshape(1, size, size, 32) if is_last else x.reshape(1, size, size, 2, 16).transpose(0, 3, 1, 2, 4)
    kernel(np.ascontiguousarray(data), w.reshape([int(extent) for extent in W.shape]), y)
    np.testing.assert_allclose(y.reshape(-1, 16), x @ w, rtol=1e-4, atol=1e-4)
