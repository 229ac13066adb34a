"""Convolutions of bytes and of bfloat16 in NCHW, whose sums take groups of channels of a copy of the image."""

import itertools

import numpy as np
import pytest
from numpy.lib.stride_tricks import sliding_window_view

import tedsl
import topi
from tedsl import te
from tedsl.target import Target
from tests.codegen.test_bfloat16_pairs import bits
from topi.schedules.cpu.conv import choice, groups, planes
from topi.schedules.packing import panels_in

VNNI = "llvm -mcpu=icelake-server -mtriple=x86_64-linux-gnu"
AMX = "llvm -mcpu=sapphirerapids -mtriple=x86_64-linux-gnu"
WIDENED = "llvm -mcpu=x86-64-v3" if Target("llvm").architecture == "x86-64" else "llvm"  # numbers one by one, on any machine
# images, channels, rows, columns, filters, window, stride, padding, dilation
SHAPES = [
    (1, 64, 14, 14, 64, (3, 3), (1, 1), (1, 1, 1, 1), (1, 1)), (2, 8, 9, 17, 33, (3, 3), (2, 1), (1, 0, 2, 1), (1, 1)),
    (1, 20, 7, 7, 40, (1, 1), (1, 1), (0, 0, 0, 0), (1, 1)), (3, 16, 10, 9, 48, (1, 1), (2, 2), (0, 0, 0, 0), (1, 1)),
    (1, 32, 1, 30, 16, (1, 5), (1, 1), (0, 2, 0, 2), (1, 2)), (1, 33, 12, 12, 50, (5, 5), (1, 2), (2, 2, 2, 2), (1, 1)),
    (1, 6, 20, 20, 70, (3, 3), (1, 1), (1, 1, 1, 1), (2, 2)), (1, 64, 1, 1, 64, (1, 1), (1, 1), (0, 0, 0, 0), (1, 1)),
    (1, 128, 5, 6, 96, (7, 7), (1, 1), (3, 3, 3, 3), (1, 1)),
]
KINDS = list(itertools.product(("uint8", "int8"), repeat=2))
here = Target("llvm")
TARGETS = ["llvm", WIDENED, *([VNNI] if here.has_vnni else [])]  # what this machine runs: its own instructions in any case


def reference(x, w, stride, padding, dilation):
    """The sums of products of 64-bit numbers."""
    top, left, bottom, right = padding
    x = np.pad(x.astype("int64"), ((0, 0), (0, 0), (top, bottom), (left, right)))
    spans = [(size - 1) * apart + 1 for size, apart in zip(w.shape[2:], dilation)]
    windows = sliding_window_view(x, spans, (2, 3))[:, :, ::stride[0], ::stride[1], ::dilation[0], ::dilation[1]]
    return np.einsum("nchwij,ocij->nohw", windows, w.astype("int64"), optimize=True)


def numbers(shape, dtype, seed):
    info = np.iinfo(dtype)
    return np.random.default_rng(seed).integers(info.min, info.max + 1, shape).astype(dtype)


def requantized(out):
    return topi.cast(topi.clip(topi.right_shift(out, te.const(9, "int32")), -128, 127), "int8")


def made(shape, kinds, target, after=None, make=topi.x86.schedule_conv2d_nchw):
    n, c, h, w, o, window, *rest = shape
    a, b = te.placeholder((n, c, h, w), kinds[0], name="a"), te.placeholder((o, c, *window), kinds[1], name="b")
    with Target(target):
        out = topi.nn.conv2d_nchw(a, b, *rest, "float32" if kinds[0] == "bfloat16" else "int32")
        out = out if after is None else after(out)
        s = make([out])
    return a, b, out, tedsl.build(s, [a, b, out], target)


@pytest.fixture
def by_groups(monkeypatch):
    """Takes groups wherever there are any, not only where a model says that they are faster."""
    monkeypatch.setattr(choice, "is_by_groups", lambda kernel, filled=False: planes.group_of(kernel, filled) > 1)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("target", TARGETS)
def test_sums_by_groups(shape, target, by_groups):
    _, c, *_, o, window = shape[:6]
    cases = [*((kinds, None) for kinds in KINDS), (KINDS[1], requantized), (KINDS[1], topi.nn.relu)]
    for at, (kinds, after) in enumerate(cases):
        x, w = numbers(shape[:4], kinds[0], at), numbers((o, c, *window), kinds[1], at + 9)
        *_, out, kernel = made(shape, kinds, target, after)
        wanted = reference(x, w, *shape[6:])
        wanted = np.clip(wanted >> 9, -128, 127) if after is requantized else np.maximum(wanted, 0) if after else wanted
        found = np.empty(wanted.shape, out.dtype)
        kernel(x, w, found)
        np.testing.assert_array_equal(found, wanted.astype(out.dtype))


# As SHAPES; the channels fill no group, or not the last one.
FIRST = [(1, 3, 32, 31, 64, (7, 7), (2, 2), (3, 3, 3, 3), (1, 1)), (2, 1, 17, 19, 32, (5, 3), (2, 1), (1, 0, 2, 1), (1, 1)),
         (1, 2, 13, 40, 40, (3, 3), (1, 1), (1, 1, 1, 1), (2, 2)), (1, 5, 11, 23, 33, (3, 3), (1, 1), (1, 1, 1, 1), (1, 1)),
         (1, 3, 30, 30, 24, (4, 5), (3, 2), (0, 0, 0, 0), (1, 2)), (0, 3, 16, 16, 32, (3, 3), (1, 1), (1, 1, 1, 1), (1, 1)),
         (1, 7, 9, 9, 16, (1, 1), (1, 1), (0, 0, 0, 0), (1, 1)), (1, 6, 16, 16, 1, (3, 3), (1, 1), (1, 1, 1, 1), (1, 1))]


@pytest.mark.parametrize("shape", FIRST, ids=str)
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("layout", ["NCHW", "NHWC"])
def test_channels_that_fill_no_group(shape, target, layout, monkeypatch):
    monkeypatch.setattr(groups, "_COPIED", 0)
    images, channels, rows, columns, results, window, *rest = shape
    last = layout == "NHWC"
    for at, (kinds, after) in enumerate([*((kinds, None) for kinds in KINDS), (KINDS[1], requantized)]):
        x, w = numbers(shape[:4], kinds[0], at), numbers((results, channels, *window), kinds[1], at + 9)
        wanted = reference(x, w, *rest)
        wanted = np.clip(wanted >> 9, -128, 127) if after else wanted
        x, w = (x.transpose(0, 2, 3, 1), w.transpose(2, 3, 1, 0)) if last else (x, w)
        wanted = wanted.transpose(0, 2, 3, 1) if last else wanted
        a, b = te.placeholder(x.shape, kinds[0], name="a"), te.placeholder(w.shape, kinds[1], name="b")
        out = topi.nn.conv2d(a, b, *rest, layout, "int32")
        out = out if after is None else after(out)
        found = np.empty(wanted.shape, out.dtype)
        kernel = tedsl.build(topi.schedules.schedule([out], Target(target)), [a, b, out], target)
        kernel(np.ascontiguousarray(x), np.ascontiguousarray(w), found)
        np.testing.assert_array_equal(found, wanted.astype(out.dtype))


@pytest.mark.parametrize("layout", ["NCHW", "NHWC"])
def test_a_first_layer_takes_whole_groups(layout):
    """No product is widened: the interpreter agrees, and the image with its border is written once."""
    image, weights = ((1, 3, 20, 20), (32, 3, 3, 3)) if layout == "NCHW" else ((1, 20, 20, 3), (3, 3, 3, 32))
    a, b = te.placeholder(image, "uint8", name="a"), te.placeholder(weights, "int8", name="b")
    out = topi.nn.conv2d(a, b, 1, 1, 1, layout, "int32")
    s = topi.schedules.schedule([out], Target(VNNI))
    assert s[out.op.info.padded].attach_type == te.schedule.AttachType.INLINE
    asm = tedsl.build(s, [a, b, out], VNNI).get_source("asm")
    assert "vpdpbusd" in asm and "vpmulld" not in asm


def test_one_value_of_each_channel_is_not_worth_a_copy():
    a, b = te.placeholder((1, 64, 64, 1), "uint8", name="a"), te.placeholder((3, 3, 1, 8), "int8", name="b")
    out = topi.nn.conv2d(a, b, 1, 1, 1, "NHWC", "int32")
    s = topi.schedules.schedule([out], Target(VNNI))
    assert not any(stage.op.name.endswith(".padded") for stage in s.stages)


@pytest.mark.parametrize("shape, by_tiles", [((1, 16, 112, 112, 96, (1, 1)), False), ((1, 256, 56, 56, 64, (1, 1)), True),
                                             ((1, 64, 56, 56, 64, (3, 3)), True), ((1, 8, 56, 56, 64, (3, 3)), False)])
def test_few_terms_are_left_to_vectors(shape, by_tiles):
    """Sums of tile registers go through memory, which takes longer than to multiply few terms by vectors."""
    images, channels, rows, columns, results, window = shape
    a = te.placeholder((images, rows, columns, channels), "uint8", name="a")
    b = te.placeholder((*window, channels, results), "int8", name="b")
    out = topi.nn.conv2d(a, b, 1, window[0] // 2, 1, "NHWC", "int32")
    kernel = tedsl.build(topi.schedules.schedule([out], Target(AMX)), [a, b, out], AMX)
    assert ("tdpbusd" in kernel.get_source("asm")) == by_tiles


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("target", ["llvm", WIDENED])
def test_pairs_of_bfloat16(shape, target, by_groups):
    _, c, *_, o, window = shape[:6]
    (x, left), (w, right) = bits(*shape[:4]), bits(o, c, *window, seed=1)
    *_, kernel = made(shape, ("bfloat16", "bfloat16"), target)
    exact = reference(np.zeros(shape[:4], "int8"), np.zeros((o, c, *window), "int8"), *shape[6:])
    found = np.empty(exact.shape, "float32")
    kernel(x, w, found)
    wide = te.placeholder(shape[:4], "float32", name="a"), te.placeholder((o, c, *window), "float32", name="b")
    out = topi.nn.conv2d_nchw(*wide, *shape[6:])
    wanted = np.empty(exact.shape, "float32")
    tedsl.build(topi.schedules.schedule([out]), [*wide, out])(left.astype("float32"), right.astype("float32"), wanted)
    np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-3 * np.abs(wanted).max())


@pytest.mark.parametrize("target, kinds, instruction", [
    (VNNI, ("uint8", "int8"), "vpdpbusd"), (VNNI, ("int8", "int8"), "vpdpbusd"), (VNNI, ("int16", "int16"), "vpdpwssd"),
    (AMX, ("uint8", "int8"), "tdpbusd"), (AMX, ("bfloat16", "bfloat16"), "tdpbf16ps"),
    ("llvm -mcpu=cooperlake -mtriple=x86_64-linux-gnu", ("bfloat16", "bfloat16"), "vdpbf16ps"),
    ("llvm -mcpu=neoverse-n1 -mtriple=aarch64-linux-gnu", ("int8", "int8"), "sdot"),
])
def test_the_instruction_is_used(target, kinds, instruction):
    *_, kernel = made(SHAPES[0], kinds, target, make=topi.schedules.schedule)
    asm = kernel.get_source("asm")
    assert instruction in asm and "gather" not in asm


@pytest.mark.parametrize("target", ["llvm -mcpu=haswell -mtriple=x86_64-linux-gnu", "llvm -mcpu=skylake-avx512"])
def test_processors_without_the_instruction_widen_numbers(target, monkeypatch):
    monkeypatch.setattr(choice, "schedule_by_groups", None)
    made(SHAPES[0], ("uint8", "int8"), target)


def test_few_results_do_not_pay_for_the_copy():
    *_, kernel = made((1, 64, 56, 56, 1, (3, 3), (1, 1), (1, 1, 1, 1), (1, 1)), ("uint8", "int8"), VNNI)
    assert "vpdpbusd" not in kernel.get_source("asm")


def test_weights_are_packed_for_no_such_convolution():
    a, b = te.placeholder((1, 64, 14, 14), "uint8", name="a"), te.placeholder((64, 64, 3, 3), "int8", name="b")
    assert panels_in([topi.nn.conv2d_nchw(a, b, 1, 1, 1, "int32")], VNNI) == {}


@pytest.mark.parametrize("sizes", [("n", 14, 14), (1, "h", 14), (2, 14, "w")])
def test_sizes_that_are_known_at_run_time(sizes):
    """Batches of any size take groups, images of any size do not."""
    n, h, w = (te.var(size) if isinstance(size, str) else size for size in sizes)
    a, b = te.placeholder((n, 16, h, w), "uint8", name="a"), te.placeholder((40, 16, 3, 3), "int8", name="b")
    out = topi.nn.conv2d_nchw(a, b, 1, 1, 1, "int32")
    kernel = tedsl.build(topi.schedules.schedule([out]), [a, b, out])
    x, y = numbers((2, 16, 14, 14) if sizes[0] != 1 else (1, 16, 14, 14), "uint8", 0), numbers((40, 16, 3, 3), "int8", 1)
    found = np.empty((len(x), 40, 14, 14), "int32")
    kernel(x, y, found)
    np.testing.assert_array_equal(found, reference(x, y, (1, 1), (1, 1, 1, 1), (1, 1)))


@pytest.mark.parametrize("dims", [1, 3])
def test_rows_and_volumes(dims, by_groups):
    """NCW and NCDHW."""
    make, size = (topi.nn.conv1d_ncw, (30,)) if dims == 1 else (topi.nn.conv3d_ncdhw, (5, 6, 7))
    a, b = te.placeholder((2, 12, *size), "uint8", name="a"), te.placeholder((20, 12, *[3] * dims), "int8", name="b")
    out = make(a, b, 1, 1, 1, out_dtype="int32")
    kernel = tedsl.build(topi.schedules.schedule([out]), [a, b, out])
    x, w = numbers((2, 12, *size), "uint8", 0), numbers((20, 12, *[3] * dims), "int8", 1)
    at = tuple(range(2, 2 + dims))
    windows = sliding_window_view(np.pad(x.astype("int64"), [(0, 0)] * 2 + [(1, 1)] * dims), [3] * dims, at)
    space, window = "xyz"[:dims], "ijk"[:dims]
    found = np.empty((2, 20, *size), "int32")
    kernel(x, w, found)
    np.testing.assert_array_equal(found, np.einsum(f"nc{space}{window},oc{window}->no{space}", windows, w.astype("int64")))
