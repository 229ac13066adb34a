"""Convolutions under every schedule: shapes that no tile divides, what is fused behind them, and the founding program."""

import dataclasses
import json
import re

import numpy as np
import pytest

import tedsl
import topi
from tedsl import te
from tedsl.errors import ShapeError
from tedsl.target import Target
from tests.topi.checking import check
from topi import nn, testing
from topi.schedules.cpu.conv import channels as by_channels
from topi.schedules.cpu.conv.phases import phases_of
from topi.schedules.cpu.conv.register_tiles import best_tile, image_tile
from topi.schedules.packing import panels_in

pytestmark = pytest.mark.sampled(2)

rng = np.random.default_rng(1)
SCHEDULES = {"generic": topi.generic.schedule_conv2d_nchw, "x86": topi.x86.schedule_conv2d_nchw,
             "cuda": topi.cuda.schedule_conv2d_nchw}


def feed(shape, name="a", low=-1.0):
    return te.placeholder(shape, name=name), rng.uniform(low, 1, shape).astype("float32")


def chain(y, o, channel):
    """Bias, batch norm, relu and a residual behind a convolution: the result, the arrays, and the same in numpy."""
    vectors = [feed((o,), name, 0.2) for name in ("bias", "gamma", "beta", "mean", "var")]
    residual = feed([int(n) for n in y.shape], "residual")
    places = [place for place, _ in vectors]
    made = nn.relu(nn.batch_norm(nn.bias_add(y, places[0], channel), *places[1:], axis=channel)[0]) + residual[0]
    bias, *numbers = [array for _, array in vectors]

    def expected(z):
        shape = [-1 if d == channel else 1 for d in range(4)]
        return np.maximum(testing.batch_norm(z + bias.reshape(shape), *numbers, channel)[0], 0) + residual[1]

    return made, dict([*vectors, residual]), expected


# batch, channels, height, width, results, kernel, stride, padding, dilation, groups
SHAPES = [
    (1, 3, 5, 5, 1, 3, 1, 1, 1, 1),
    (2, 5, 9, 7, 17, 3, 1, 1, 1, 1),
    (1, 4, 6, 35, 33, 3, 1, 0, 1, 1),
    (1, 2, 4, 70, 10, 3, 1, 1, 1, 1),
    (1, 3, 11, 29, 6, 5, 2, 2, 1, 1),
    (1, 6, 7, 13, 48, 1, 1, 0, 1, 1),
    (1, 6, 8, 8, 32, 1, 2, 0, 1, 1),
    (1, 80, 33, 33, 70, 1, 1, 0, 1, 1),
    (2, 5, 9, 13, 7, 1, 3, 0, 1, 1),
    (1, 7, 3, 3, 20, 3, 3, 1, 1, 1),
    (1, 8, 6, 9, 64, 3, 2, 1, 2, 2),
    (1, 6, 6, 9, 9, 3, 1, 1, 1, 3),
    (3, 16, 2, 2, 40, 2, 1, 1, 1, 1),
]


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_what_follows_is_fused_for_every_shape(shape, schedule):
    n, c, h, w, o, k, stride, padding, dilation, groups = shape
    (a, x), (b, z) = feed((n, c, h, w)), feed((o, c // groups, k, k), "w")
    expected = testing.conv2d_nchw_python(x, z, stride, padding, groups, dilation)
    made, feeds, rest = chain(nn.group_conv2d_nchw(a, b, stride, padding, dilation, groups), o, 1)
    check(made, {a: x, b: z, **feeds}, rest(expected), 1e-4, 1e-4, SCHEDULES[schedule])
    if schedule != "cuda":
        last, weights = te.placeholder((n, h, w, c), name="last"), te.placeholder((k, k, c // groups, o), name="hwio")
        made, feeds, rest = chain(nn.group_conv2d_nhwc(last, weights, stride, padding, dilation, groups), o, 3)
        check(made, {last: np.moveaxis(x, 1, -1).copy(), weights: z.transpose(2, 3, 1, 0).copy(), **feeds},
              rest(np.moveaxis(expected, 1, -1)), 1e-4, 1e-4, SCHEDULES[schedule])




@pytest.mark.parametrize("machine", ["llvm -mcpu=x86-64", "llvm -mcpu=haswell"])
def test_narrower_machines(machine):
    (a, x), (b, z) = feed((1, 5, 7, 9)), feed((21, 5, 3, 3), "w")
    with Target(machine):
        made = nn.relu(nn.conv2d_nchw(a, b, 1, 1, 1))
        kernel = tedsl.build(topi.x86.schedule_conv2d_nchw([made]), [a, b, made])
    result = np.empty((1, 21, 7, 9), "float32")
    kernel(x, z, result)
    np.testing.assert_allclose(result, np.maximum(testing.conv2d_nchw_python(x, z, 1, 1), 0), 1e-4, 1e-4)


@pytest.mark.parametrize("layout", ["NCHW", "NHWC"])
def test_one_nest_over_tiles_of_the_result(layout):
    data, weights = ((1, 4, 14, 14), (32, 4, 3, 3)) if layout == "NCHW" else ((1, 14, 14, 4), (3, 3, 4, 32))
    a, b = te.placeholder(data, name="a"), te.placeholder(weights, name="w")
    channel = layout.index("C")
    made, feeds, _ = chain(nn.conv2d(a, b, 1, 1, 1, layout), 32, channel)
    s = topi.x86.schedule_conv2d_nchw([made])
    text = str(tedsl.lower(s, [a, b, *feeds, made], simple_mode=True))
    stored = [line for line in text.splitlines() if "allocate(" in line]
    assert len(stored) == (3 if layout == "NCHW" else 2), stored  # the padded data, the copied weights, a tile
    assert "T_batch_norm[" not in text and "T_bias_add[" not in text and "T_relu[" not in text
    assert "vectorized" in str(s) and "parallel" in str(s)


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_founding_program(schedule):
    a, b = te.placeholder((1, 3, 224, 224), name="data"), te.placeholder((10, 3, 5, 5), name="kernel")
    x, z = rng.random((1, 3, 224, 224), "float32"), rng.random((10, 3, 5, 5), "float32")
    made = topi.nn.relu(topi.nn.conv2d(a, b, strides=1, padding=2, dilation=1))
    expected = np.maximum(testing.conv2d_nchw_python(x, z, 1, 2), 0)
    check(made, {a: x, b: z}, expected, 1e-4, 1e-4, SCHEDULES[schedule])


def test_threads_share_what_they_read():
    a, b = te.placeholder((1, 8, 12, 40), name="a"), te.placeholder((16, 8, 3, 3), name="w")
    made = topi.nn.relu(nn.conv2d_nchw(a, b, 1, 1, 1))
    text = str(tedsl.lower(topi.cuda.schedule_conv2d_nchw([made]), [a, b, made], simple_mode=True))
    assert 'storage_scope = shared' in text and '"threadIdx.y"' in text and '"blockIdx.z"' in text


def test_weights_packed_once():
    """Blocks of channels all the way: the weights are packed by a function of their own, the convolution takes them so."""
    w, k = feed((40, 6, 3, 3), "w")
    packed = nn.conv2d_pack_weights(w, 3, 16)
    weights = np.empty([int(n) for n in packed.shape], "float32")
    tedsl.build(topi.x86.schedule_injective([packed]), [w, packed])(k, weights)
    a, x = feed((1, 2, 5, 9, 3))
    b = te.placeholder(packed.shape, name="packed")
    plain = testing.conv2d_nchw_python(x.transpose(0, 1, 4, 2, 3).reshape(1, 6, 5, 9), k, 1, 1)
    expected = np.maximum(np.pad(plain, [(0, 0), (0, 8), (0, 0), (0, 0)]), 0).reshape(1, 3, 16, 5, 9).transpose(0, 1, 3, 4, 2)
    check(topi.nn.relu(nn.conv2d_NCHWc(a, b, 1, 1, 1)), {a: x, b: weights}, expected, 1e-4, 1e-4,
          topi.x86.schedule_conv2d_NCHWc)


@pytest.mark.parametrize("space", [(40,), (3, 5, 7)])
def test_windows_of_one_element_in_any_number_of_dimensions(space):
    (a, x), (b, w) = feed((2, 9, *space)), feed((20, 9, *[1] * len(space)), "w")
    formula = nn.conv1d_ncw if len(space) == 1 else nn.conv3d_ncdhw
    for stride in (1, 2):
        seen = x[(slice(None), slice(None), *[slice(None, None, stride)] * len(space))]
        expected = np.maximum(np.tensordot(w.reshape(20, 9), seen, (1, 1)).swapaxes(0, 1), 0)
        check(nn.relu(formula(a, b, stride, 0, 1)), {a: x, b: w}, expected, 1e-4, 1e-4, topi.x86.schedule_conv2d_nchw)


def test_pixels_of_products_are_neighbours_across_rows():
    """A product's tile is full though rows of the image are shorter than a vector; no copy of the weights is made."""
    a, b = te.placeholder((1, 8, 7, 7), name="a"), te.placeholder((32, 8, 1, 1), name="w")
    made = nn.relu(nn.conv2d_nchw(a, b, 1, 0, 1))
    with Target("llvm -mcpu=x86-64-v4"):
        text = str(tedsl.lower(topi.x86.schedule_conv2d_nchw([made]), [a, b, made], simple_mode=True))
    assert text.count("allocate(") == 1 and "float32x49" in text, text


def test_targets_name_the_formulas():
    a, w, v = (te.placeholder(shape) for shape in ((1, 4, 5, 5), (6, 4, 3, 3), (4, 1, 3, 3)))
    for target in (topi.x86, topi.cuda):
        assert target.conv2d_nchw(a, w, 1, 1, 1).op.info.operator == "conv2d_nchw"
        assert target.depthwise_conv2d_nchw(a, v, 1, 1, 1).op.info.operator == "depthwise_conv2d_nchw"


def test_a_small_network_in_one_schedule():
    """Two convolutions with a residual, pooling and a dense layer: the block of ResNet, every kernel under one schedule."""
    a, x = feed((1, 3, 11, 13))
    feeds, (w1, k1), (w2, k2), (w3, k3), (wd, kd) = {a: x}, *[feed(shape, name) for shape, name in (
        ((16, 3, 7, 7), "w1"), ((16, 16, 3, 3), "w2"), ((16, 16, 3, 3), "w3"), ((5, 16), "wd"))]
    numbers = [feed((16,), name, 0.3) for name in ("gamma", "beta", "mean", "var")]
    places, arrays = [place for place, _ in numbers], [array for _, array in numbers]

    def unit(data, weights, stride, padding):
        return nn.batch_norm(nn.conv2d_nchw(data, weights, stride, padding, 1), *places)[0]

    def expected_unit(data, weights, stride, padding):
        return testing.batch_norm(testing.conv2d_nchw_python(data, weights, stride, padding), *arrays)[0]

    pooled = nn.pool2d(nn.relu(unit(a, w1, 2, 3)), 3, 2, 1, 1, "max")
    block = nn.relu(unit(nn.relu(unit(pooled, w2, 1, 1)), w3, 1, 1) + pooled)
    made = nn.softmax(nn.dense(nn.flatten(nn.global_pool(block, "avg")), wd))
    start = testing.poolnd_python(np.maximum(expected_unit(x, k1, 2, 3), 0), (3, 3), (2, 2), (1, 1), (1, 1), (1, 1), "max")
    middle = np.maximum(expected_unit(start, k2, 1, 1), 0)
    logits = np.maximum(expected_unit(middle, k3, 1, 1) + start, 0).mean((2, 3)) @ kd.T
    powers = np.exp(logits - logits.max())
    feeds |= {w1: k1, w2: k2, w3: k3, wd: kd, **dict(numbers)}
    for schedule in (SCHEDULES["generic"], SCHEDULES["x86"]):
        check(made, feeds, powers / powers.sum(), 1e-3, 1e-5, schedule)


@pytest.mark.parametrize("layout", ["NCHW", "NHWC", "HWCN"])
def test_graphs_around_convolutions(layout):
    """Weights that are computed, a result that is read twice, one that is an output, data that two convolutions read."""
    data, weights = {"NCHW": ((1, 4, 6, 7), (16, 4, 3, 3)), "NHWC": ((1, 6, 7, 4), (3, 3, 4, 16)),
                     "HWCN": ((6, 7, 4, 1), (3, 3, 4, 16))}[layout]
    (a, x), (b, z) = feed(data), feed(weights, "w")
    first = nn.conv2d(a, topi.multiply(b, 2.0), 1, 1, 1, layout)
    second = nn.conv2d(nn.relu(a), b, 2, 1, 1, layout)
    made = [first, topi.add(topi.tanh(first), first), nn.relu(second)]
    reference = getattr(testing, f"conv2d_{layout.lower()}_python")
    one, other = reference(x, z * 2, 1, 1), reference(np.maximum(x, 0), z, 2, 1)
    for schedule in (SCHEDULES["generic"], SCHEDULES["x86"]):
        check(made, {a: x, b: z}, [one, np.tanh(one) + one, np.maximum(other, 0)], 1e-4, 1e-4, schedule)
    check(made[1], {a: x, b: z}, np.tanh(one) + one, 1e-4, 1e-4, SCHEDULES["cuda"])


@pytest.mark.parametrize("cores", [1, 64])
def test_weights_that_do_not_stay_in_the_second_cache_are_copied_into_panels(cores, tmp_path):
    (a, x), (b, z) = feed((1, 10, 10, 40)), feed((3, 3, 40, 512), "w")
    made = nn.relu(nn.conv2d_nhwc(a, b, 1, 1, 1))
    machine = dataclasses.asdict(Target("llvm -mcpu=haswell").machine) | {"cores": cores}
    (tmp_path / "machine.json").write_text(json.dumps(machine))
    with Target(f"llvm -model={tmp_path / 'machine.json'}"):
        s = topi.x86.schedule_conv2d_nhwc([made])
    copies = [stage for stage in s.stages if stage.op.name.startswith("w.global")]
    alone = te.schedule.AttachType.SCOPE if cores == 1 else te.schedule.AttachType.ROOT
    assert [stage.attach_type for stage in copies] == [alone], [stage.op.name for stage in s.stages]
    check(made, {a: x, b: z}, np.maximum(testing.conv2d_nhwc_python(x, z, 1, 1), 0), 1e-4, 1e-4, lambda _: s)


@pytest.mark.parametrize("images, size, filters, cores, beside", [
    (1, 9, 218, 1, True), (1, 9, 218, 2, False), (64, 9, 218, 1, True), (2, 30, 96, 1, False)])
def test_few_panels_are_copied_beside_their_sums_where_cores_share_them(images, size, filters, cores, beside, tmp_path):
    """Two or three panels, which do not stay in the second cache together; of several large images each reads all panels."""
    a, b = te.placeholder((images, size, size, 319), name="a"), te.placeholder((3, 3, 319, filters), name="w")
    machine = dataclasses.asdict(Target("llvm -mcpu=znver5 -model=znver5").machine) | {"cores": cores}
    machine["l2"] = machine["l2"] | {"size": 2 << 20}
    (tmp_path / "machine.json").write_text(json.dumps(machine))
    with Target(f"llvm -mcpu=znver5 -model={tmp_path / 'machine.json'}"):
        s = topi.schedules.schedule([nn.conv2d_nhwc(a, b, 2, 1, 1)])
    (copy,) = (stage for stage in s.stages if stage.op.name.startswith("w.global"))
    assert (copy.attach_type is te.schedule.AttachType.SCOPE) is beside, copy.op.axis


def test_terms_are_free_of_conditions_where_tiles_of_rows_leave_a_rest():
    target = "llvm -mcpu=znver4 -model=znver5"  # whose tiles have two of seven rows
    with Target(target):
        a, b = te.placeholder((1, 2, 9, 9, 16), name="a"), te.placeholder((4, 2, 3, 3, 16, 16), name="w")
        made = nn.conv2d_NCHWc(a, b, 1, 0, 1)
        text = tedsl.build(topi.schedules.schedule(made), [a, b, made], target=target).get_source("tir")
    assert "for (oh.outer: int32, 0, 3)" in text and " if (" not in text


@pytest.mark.parametrize("cpu", ["x86-64-v3", "x86-64-v4", "znver4", "sapphirerapids"])
@pytest.mark.parametrize("rows, columns, channels, terms", [(56, 56, 64, 576), (7, 7, 512, 4608), (37, 37, 53, 117)])
def test_tiles_stay_in_the_registers(cpu, rows, columns, channels, terms):
    target = Target(f"llvm -mcpu={cpu}")
    lanes, registers = target.vector_lanes("float32"), 32 if target.vector_bits == 512 else 16
    for whole in (False, True):
        tile = image_tile(target, (rows, columns), channels, terms, lanes, 4, whole=whole)
        assert tile.down * tile.across * (tile.wide // lanes) + tile.wide // lanes < registers
        assert tile.down == 1 or tile.across == columns or not whole
    tall, vectors = best_tile(target, channels, rows * columns, terms, lanes)
    assert tall * vectors + vectors < registers


@pytest.mark.parametrize("stride, along_channels", [(1, False), (2, True)])
def test_rows_with_a_stride_are_computed_by_channels(stride, along_channels):
    """12 channels fill two vectors less than 32 pixels fill four; every other pixel takes two loads and three shuffles."""
    a, b = te.placeholder((1, 16, 32, 32), name="a"), te.placeholder((12, 16, 3, 3), name="w")
    made = nn.conv2d_nchw(a, b, stride, 1, 1)
    with Target("llvm -mcpu=znver3 -model=znver3"):
        text = str(tedsl.lower(topi.schedules.schedule(made), [a, b, made], simple_mode=True))
    assert ("w.global" in text) is along_channels


@pytest.mark.parametrize("cpu, instruction", [("znver5", "vgather"), ("znver3", "vinsertps")])
def test_weights_of_several_vectors_of_channels_are_turned_in_registers(cpu, instruction):
    """No element is read by itself: squares of one vector of channels after the other are."""
    target = Target(f"llvm -mcpu={cpu}")
    a, b = te.placeholder((1, 64, 14, 14), name="a"), te.placeholder((64, 64, 3, 3), name="w")
    with target:
        made = nn.conv2d_nchw(a, b, 1, 1, 1)
        module = tedsl.build(topi.schedules.schedule(made), [a, b, made], target=target)
    assert instruction not in module.get_source("asm")


@pytest.mark.parametrize("channels, filters, size, window, stride, loop, ahead", [
    (512, 512, 7, 3, 1, "ry", 99),          # iterations of 128 bytes, in columns written out: a quarter of L1, in whole windows
    (512, 512, 14, 3, 2, "ry", 99),         # by blocks of channels
    (2048, 512, 7, 1, 1, "rc.outer", 24),   # of four planes
    (64, 128, 56, 3, 2, "rx", 99),          # stays near between tiles, not between calls of a network
])
def test_packed_weights_are_asked_for_piece_by_piece(channels, filters, size, window, stride, loop, ahead):
    """All lines of four planes at once, before a loop over the window, are waited for: half of the time for 512 channels."""
    a, wide = te.placeholder((1, channels, size, size), name="a"), 32
    panels = te.placeholder((filters // wide, channels, window, window, 1, wide), name="panels")
    with Target("llvm -mcpu=znver5 -model=znver5 -num-cores=1"):
        made = nn.conv2d_nchw(a, nn.conv2d_unpack_weights(panels, filters), stride, window // 2, 1)
        lines = str(tedsl.lower(topi.schedules.schedule(made), [a, panels, made], simple_mode=True)).splitlines()
    asked = [number for number, line in enumerate(lines) if "tir.prefetch" in line]
    assert len(asked) == (3 if loop == "ry" else 1)
    at = asked[0]
    before = next(line for line in reversed(lines[:at]) if " for (" in line and "prefetch" not in line)
    assert f"for ({loop}" in before
    bytes_of_iteration = wide * 4 * (4 * window * window if loop == "rc.outer" else 1)
    assert re.search(rf"\+ {ahead * bytes_of_iteration // 4}\), ", lines[at])


@pytest.mark.parametrize("wide", [8, 16, 32, 64])
def test_weights_packed_in_panels_of_any_width(wide):
    """As for another processor: they are copied."""
    (a, x), (_, k) = feed((1, 8, 14, 14)), feed((64, 8, 3, 3), "w")
    packed = np.ascontiguousarray(k.reshape(64 // wide, wide, 8, 3, 3).transpose(0, 2, 3, 4, 1)[..., None, :])
    panels = te.placeholder(packed.shape, name="panels")
    made = nn.conv2d_nchw(a, nn.conv2d_unpack_weights(panels, 64), 1, 1)
    check([made], {a: x, panels: packed}, [testing.conv2d_nchw_python(x, k, 1, 1)], 1e-4, 1e-4, topi.schedules.schedule)


@pytest.mark.parametrize("images, channels, filters, size, stride, outermost", [
    (8, 128, 128, 56, 2, "nn"),  # 14 MB of images, 4 panels of 150 KB
    (8, 512, 512, 7, 1, "ff"),     # 1.3 MB of images, 9 MB of weights
    (1, 128, 128, 56, 2, "ff"),
])
def test_what_is_larger_is_read_once(images, channels, filters, size, stride, outermost):
    """All images for each panel, or all panels for each image."""
    a, wide = te.placeholder((images, channels, size, size), name="a"), 32
    panels = te.placeholder((filters // wide, channels, 3, 3, 1, wide), name="panels")
    with Target("llvm -mcpu=znver5 -model=znver5 -num-cores=2"):
        made = nn.conv2d_nchw(a, nn.conv2d_unpack_weights(panels, filters), stride, 1, 1)
        text = str(tedsl.lower(topi.schedules.schedule(made), [a, panels, made], simple_mode=True))
    found = re.findall(r"^( +)for \((\S+): int32, 0, \d+\)", text, re.MULTILINE)
    assert [loop for space, loop in found if space == min(found)[0]][-1].startswith(outermost)


@pytest.mark.parametrize("channels, filters, size, window, stride, copied", [
    (512, 512, 7, 3, 1, 16 * 9 * 32),  # of 16 channels, half of the nearest cache: 49 pixels, 144 terms
    (512, 64, 28, 3, 1, 512 * 9 * 32),  # two panels, one core: each is copied beside its sums, as a whole for 784 pixels
    (1024, 512, 14, 3, 1, 16 * 9 * 32),  # a panel of 1.2 MB, which does not stay in the second cache
    (384, 14, 36, 5, 2, 384 * 25 * 16),  # rows of whole vectors for 14 of 16 channels, beside 18 of 32 pixels with a stride
    (211, 128, 2, 3, 1, 211 * 9 * 64),  # a prime number of channels
    (96, 64, 7, 3, 1, 16 * 9 * 32),  # two equal panels, whose weights would stay in the second cache
    (96, 16, 7, 3, 1, 96 * 9 * 16),  # one panel
    (256, 512, 14, 1, 2, 128 * 32),  # 49 pixels are four vectors
])
def test_weights_are_copied_as_they_are_used(channels, filters, size, window, stride, copied):
    a, b = te.placeholder((1, channels, size, size), name="a"), te.placeholder((filters, channels, window, window), name="w")
    with Target("llvm -mcpu=znver5 -model=znver5"):
        made = nn.conv2d_nchw(a, b, stride, window // 2, 1)
        text = str(tedsl.lower(topi.schedules.schedule(made), [a, b, made], simple_mode=True))
    assert f"allocate(w.global: Pointer(global float32), float32, [{copied}])" in text


@pytest.mark.parametrize("channels, filters, size, window, stride", [
    (160, 130, 5, 5, 1), (300, 85, 7, 3, 2), (420, 14, 9, 5, 2)])
def test_blocks_of_far_weights_add_up_to_the_convolution(channels, filters, size, window, stride):
    (a, x), (b, z) = feed((1, channels, size, size)), feed((filters, channels, window, window), "w")
    expected = np.maximum(testing.conv2d_nchw_python(x, z, stride, window // 2), 0)
    check(nn.relu(nn.conv2d_nchw(a, b, stride, window // 2, 1)), {a: x, b: z}, expected, 1e-3, 1e-3, SCHEDULES["x86"])


@pytest.mark.parametrize("size, by_pixels", [(7, False), (8, True), (14, True)])
def test_pixels_that_leave_most_of_a_vector_are_computed_by_channels(size, by_pixels):
    """49 pixels are four vectors of 16, for the price of 64; of 196 the last vector of 13 is not full."""
    a, b = te.placeholder((1, 256, size, size), name="a"), te.placeholder((512, 256, 1, 1), name="w")
    with Target("llvm -mcpu=znver5 -model=znver5"):
        made = nn.conv2d_nchw(a, b, 1, 0, 1)
        text = str(tedsl.lower(topi.schedules.schedule(made), [a, b, made], simple_mode=True))
    assert ("w.global" not in text) is by_pixels


def test_pixels_of_two_rows_leave_a_smaller_rest():
    """Rows of 14 are two tiles of six and one of two, which waits for its own sums; 3 x 2 tiles leave a row of them."""
    target = Target("llvm -mcpu=znver3")
    pieces, rows = (image_tile(target, (14, 14), 256, 2304, 8, 32, whole=whole) for whole in (False, True))
    assert (pieces.down, pieces.across, pieces.wide) == (2, 3, 16) and rows.down == 1


def test_rows_that_evict_each_other_are_few():
    """Weights of 1024 channels lie 4 KiB apart: all in one set of the nearest cache, which has 8 lines."""
    tall, _ = best_tile(Target("llvm -mcpu=znver4"), 256, 196, 1024, 16)
    assert tall < 8


def test_vectors_that_lie_in_two_lines_are_few():
    """169 pixels are no whole number of vectors, 176 are: what a vector costs there more channels share."""
    target = Target("llvm -mcpu=znver5")
    (tall, vectors), (low, many) = (best_tile(target, 1000, pixels, 512, 16) for pixels in (169, 176))
    assert vectors < many and tall > low


def test_window_loops_stay_loops():
    """LLVM would unroll them, and keep the elements that windows share in registers that the tile needs."""
    a, b = te.placeholder((1, 32, 7, 7), name="a"), te.placeholder((96, 32, 3, 3), name="w")
    made = nn.relu(nn.conv2d_nchw(a, b, 1, 1, 1))
    kernel = tedsl.build(topi.x86.schedule_conv2d_nchw([made]), [a, b, made])
    assert "llvm.loop.unroll.disable" in kernel.get_source("ll")


@pytest.mark.parametrize("shape, filters, stride, pad", [((1, 3, 9, 131), 16, 2, 0), ((2, 3, 7, 75), 20, 1, 1),
                                                         ((1, 2, 11, 401), 17, 5, 1)])
def test_sums_of_few_terms_are_stored_row_by_row(shape, filters, stride, pad):
    x, w = te.placeholder(shape, name="x"), te.placeholder((filters, shape[1], 3, 3), name="w")
    y = topi.nn.relu(topi.nn.conv2d(x, w, stride, pad, 1))
    random = np.random.default_rng(0)
    data, weights = random.standard_normal(shape, "float32"), random.standard_normal((filters, shape[1], 3, 3), "float32")
    out = np.empty([int(extent) for extent in y.shape], "float32")
    tedsl.build(topi.schedules.schedule(y), [x, w, y])(data, weights, out)
    whole = np.pad(data, ((0, 0), (0, 0), (pad, pad), (pad, pad)))
    windows = np.lib.stride_tricks.sliding_window_view(whole, (3, 3), (2, 3))[:, :, ::stride, ::stride]
    wanted = np.maximum(np.einsum("nchwij,ocij->nohw", windows, weights, dtype="float64"), 0)
    np.testing.assert_allclose(out, wanted, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("size, results, stride, phases", [(7, 16, 2, 2), (6, 24, 3, 3), (7, 8, 2, 2)])
def test_transposed_convolutions_sum_up_phase_by_phase(size, results, stride, phases, monkeypatch):
    """Results use the taps of their phase, of which a tile has one."""
    seen = []
    monkeypatch.setattr(by_channels, "phases_of", lambda kernel: seen.append(phases_of(kernel)) or seen[-1])
    x, w = te.placeholder((1, 4, size, size), name="x"), te.placeholder((4, results, 4, 4), name="w")
    with Target("llvm -mcpu=haswell"):
        topi.schedules.schedule([nn.conv2d_transpose_nchw(x, w, (stride, stride), (1, 1), "float32", (stride - 2, stride - 2))])
    assert set(seen) == {phases}


@pytest.mark.parametrize("cpu, results", [("sapphirerapids", 32), ("znver5", None), ("znver3", None)])
@pytest.mark.parametrize("channels, filters, size, window, stride, data", [
    (64, 50, 7, 3, 1, "uint8"), (4, 64, 12, 7, 2, "int8"), (128, 96, 5, 1, 1, "uint8"), (24, 33, 9, 3, 2, "uint8")])
def test_weights_of_bytes_packed_by_groups_are_read_as_they_lie(cpu, results, channels, filters, size, window, stride, data):
    """As tile registers, or sums of four products, read them: no copy is left in the kernel."""
    rng = np.random.default_rng(0)
    x = rng.integers(0 if data == "uint8" else -128, 127, (2, size, size, channels)).astype(data)
    k = rng.integers(-128, 128, (window, window, channels, filters)).astype("int8")
    a, w = te.placeholder(x.shape, data, "a"), te.placeholder(k.shape, "int8", "w")
    with Target(f"llvm -mtriple=x86_64-linux-gnu -mcpu={cpu}"):
        plain = nn.conv2d_nhwc(a, w, stride, window // 2, 1, "int32")
        wide, group = panels_in([plain])[w]
        assert group == 4 and results in (None, wide)
        form = nn.conv2d_pack_weights(w, 1, wide, "HWIO", group)
        panels = te.placeholder(form.shape, "int8", "panels")
        made = nn.conv2d_nhwc(a, nn.conv2d_unpack_weights(panels, filters, group), stride, window // 2, 1, "int32")
        names = [stage.op.name for stage in topi.schedules.schedule(made).stages]
        assert not [name for name in names if name.startswith(("panels.", "unpacked")) and name.endswith(".global")], names
    padded = np.zeros((window, window, channels, -(-filters // wide) * wide), "int8")
    padded[..., :filters] = k
    packed = padded.reshape(window, window, channels // 4, 4, -1, wide).transpose(4, 0, 1, 2, 5, 3)
    check([form], {w: k}, [packed])
    expected = testing.conv2d_nhwc_python(x.astype("int64"), k.astype("int64"), stride, window // 2).astype("int32")
    check([made], {a: x, panels: np.ascontiguousarray(packed)}, [expected], 0, 0, topi.schedules.schedule)


def test_weights_that_are_no_panels_are_refused():
    w = te.placeholder((3, 3, 6, 8), "int8", "w")
    with pytest.raises(ShapeError, match="groups of 4 of 6 channels"):
        nn.conv2d_pack_weights(w, 1, 8, "HWIO", 4)
    with pytest.raises(ShapeError, match="in blocks of 2"):
        nn.conv2d_pack_weights(w, 2, 8, "HWIO", 2)
    with pytest.raises(ShapeError, match="no panels of 9 results, groups of 2"):
        nn.conv2d_unpack_weights(nn.conv2d_pack_weights(w, 1, 8, "HWIO", 2), 9, 2)


@pytest.mark.parametrize("also", ["alone", "panels", "weights"])
@pytest.mark.parametrize("last", [False, True])
@pytest.mark.parametrize("wide", [32, 48])
def test_panels_that_the_same_program_packs(also, last, wide):
    """They are stored and read as they lie: weights that were put back in order were stored, and panels that nothing read then
    were asked for.
    """
    shape, weights = ((1, 9, 9, 32), (3, 3, 32, 96)) if last else ((1, 32, 9, 9), (96, 32, 3, 3))
    rng, dtypes = np.random.default_rng(0), ("uint8", "int8") if last else ("float32", "float32")
    data, kernel = [rng.integers(0, 9, extents).astype(dtype) for extents, dtype in zip((shape, weights), dtypes)]
    a, w = te.placeholder(shape, dtypes[0], name="a"), te.placeholder(weights, dtypes[1], name="w")
    panels = nn.conv2d_pack_weights(w, 1, wide, "HWIO" if last else "OIHW", 4 if last else 1)
    read = nn.conv2d_unpack_weights(panels, 96, 4 if last else 1)
    made = nn.conv2d(a, read, 1, 1, 1, "NHWC" if last else "NCHW", "int32" if last else "float32")
    outs = [made, *{"alone": [], "panels": [panels], "weights": [read]}[also]]
    for target in ("llvm", "llvm -mcpu=x86-64-v3"):
        results = []
        for s in (topi.schedules.schedule(outs, target), te.create_schedule([out.op for out in outs])):
            arrays = [np.empty([int(extent) for extent in out.shape], str(out.dtype)) for out in outs]
            tedsl.build(s, [a, w, *outs], target)(data, kernel, *arrays)
            results.append(arrays)
        for found, wanted in zip(*results):
            np.testing.assert_array_equal(found, wanted)
