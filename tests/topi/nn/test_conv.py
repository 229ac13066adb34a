"""Convolutions of every layout over shapes, strides, paddings, dilations, groups and dtypes, against plain numpy."""

import numpy as np
import pytest
import scipy.signal

import topi
from tedsl import te
from tedsl.errors import ArgumentError, ArgumentTypeError, DTypeError, ShapeError
from tests.topi.checking import check
from topi import nn, testing
from topi.kinds import ConvOp, DepthwiseConvOp, PackedConvOp, TransposedConvOp

pytestmark = pytest.mark.sampled(2)

rng = np.random.default_rng(4)
SCHEDULES = {"plain": None, "generic": topi.generic.schedule_conv2d_nchw, "x86": topi.x86.schedule_conv2d_nchw}


def feed(shape, dtype="float32", name="data"):
    values = rng.integers(-4, 5, shape) if "int" in dtype else rng.standard_normal(shape)
    return te.placeholder(shape, dtype, name=name), values.astype(dtype)


# data, kernel, stride, padding, dilation, groups
CASES_2D = [
    ((1, 1, 1, 1), (1, 1, 1, 1), 1, 0, 1, 1),
    ((2, 3, 7, 9), (5, 3, 3, 3), 1, 1, 1, 1),
    ((1, 4, 8, 5), (3, 4, 3, 2), (2, 1), (1, 0, 2, 1), (1, 2), 1),
    ((1, 2, 6, 6), (2, 2, 5, 5), 2, "SAME", 1, 1),
    ((1, 6, 5, 7), (4, 3, 3, 3), (1, 2), (1, 2), 2, 2),
    ((1, 17, 4, 33), (35, 17, 1, 1), 1, "VALID", 1, 1),
]


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("shape, kernel, stride, padding, dilation, groups", CASES_2D)
def test_conv2d(shape, kernel, stride, padding, dilation, groups, schedule):
    (a, x), (w, k) = feed(shape), feed(kernel, name="w")
    made, feeds = [nn.group_conv2d_nchw(a, w, stride, padding, dilation, groups)], {a: x, w: k}
    expected = testing.conv2d_nchw_python(x, k, stride, padding, groups, dilation)
    if groups == 1:
        made += [nn.conv2d_nchw(a, w, stride, padding, dilation), nn.conv2d(a, w, stride, padding, dilation)]
    layouts = [("NHWC", (0, 2, 3, 1)), ("HWCN", (2, 3, 1, 0))] if groups == 1 else [("group", (0, 2, 3, 1))]
    wanted = [expected] * len(made)
    hwio = te.placeholder(np.transpose(k, (2, 3, 1, 0)).shape, name="hwio")
    feeds[hwio] = np.ascontiguousarray(np.transpose(k, (2, 3, 1, 0)))
    for layout, order in layouts:
        moved = te.placeholder(np.transpose(x, order).shape, name=layout)
        feeds[moved] = np.ascontiguousarray(np.transpose(x, order))
        made.append(nn.group_conv2d_nhwc(moved, hwio, stride, padding, dilation, groups) if layout == "group" else
                    nn.conv2d(moved, hwio, stride, padding, dilation, layout))
        wanted.append(np.transpose(expected, order))
    check(made, feeds, wanted, 1e-4, 1e-4, SCHEDULES[schedule])


def test_the_reference_is_a_correlation():
    x, k = rng.standard_normal((1, 1, 6, 8)), rng.standard_normal((1, 1, 3, 2))
    plane, window = x[0, 0], k[0, 0]
    np.testing.assert_allclose(testing.conv2d_nchw_python(x, k, 1, 0)[0, 0], scipy.signal.correlate2d(plane, window, "valid"))
    np.testing.assert_allclose(testing.conv2d_transpose_nchw_python(x, k, 1, 0)[0, 0], scipy.signal.convolve2d(plane, window))


def test_against_torch():
    torch = pytest.importorskip("torch")
    f, t = torch.nn.functional, torch.from_numpy
    x, k = rng.standard_normal((2, 4, 9, 7)), rng.standard_normal((6, 2, 3, 3))
    np.testing.assert_allclose(testing.conv2d_nchw_python(x, k, 2, 1, 2, 2),
                               f.conv2d(t(x), t(k), stride=2, padding=1, dilation=2, groups=2).numpy())
    k = rng.standard_normal((4, 3, 3, 3))
    np.testing.assert_allclose(testing.conv2d_transpose_nchw_python(x, k, 2, 1, 1, 2),
                               f.conv_transpose2d(t(x), t(k), stride=2, padding=1, output_padding=1, groups=2).numpy())


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_conv1d_and_conv3d(schedule):
    (a, x), (w, k) = feed((2, 3, 11)), feed((4, 3, 3), name="w")
    (b, y), (v, l) = feed((1, 2, 4, 5, 6)), feed((3, 2, 2, 3, 3), name="v")
    (c, z), (u, m) = feed((2, 11, 3)), feed((3, 3, 4), name="u")
    (d, p), (t, q) = feed((1, 4, 5, 6, 2)), feed((2, 3, 3, 1, 4), name="t")
    check([nn.conv1d(a, w, 2, 1, 2), nn.conv1d_ncw(a, w, 1, "SAME", 1), nn.conv1d(c, u, 2, (0, 1), 1, "NWC"),
           nn.conv3d_ncdhw(b, v, (1, 2, 1), (0, 1, 1), 1), nn.conv3d_ndhwc(d, t, 1, (1, 0, 0, 0, 1, 2), (1, 1, 2), 2)],
          {a: x, w: k, b: y, v: l, c: z, u: m, d: p, t: q},
          [testing.conv1d_ncw_python(x, k, 2, 1, 2), testing.conv1d_ncw_python(x, k, 1, "SAME", 1),
           testing.conv1d_ncw_python(z.transpose(0, 2, 1), m.transpose(2, 1, 0), 2, (0, 1), 1).transpose(0, 2, 1),
           testing.conv3d_ncdhw_python(y, l, (1, 2, 1), (0, 1, 1)),
           testing.conv3d_ndhwc_python(p, q, 1, (1, 0, 0, 0, 1, 2), 2, (1, 1, 2))], 1e-4, 1e-4, SCHEDULES[schedule])


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_depthwise(schedule):
    (a, x), (w, k) = feed((2, 5, 6, 7)), feed((5, 2, 3, 2), name="w")
    (b, y), (v, l) = feed((1, 7, 6, 20)), feed((3, 3, 20, 1), name="v")
    (c, z), (u, m) = feed((1, 2, 5, 6, 4)), feed((2, 1, 3, 3, 1, 4), name="u")
    plain = np.transpose(z, (0, 1, 4, 2, 3)).reshape(1, 8, 5, 6)
    kernel = np.transpose(m, (0, 5, 1, 2, 3, 4)).reshape(8, 1, 3, 3)
    packed = testing.depthwise_conv2d_python_nchw(plain, kernel, 1, 1).reshape(1, 2, 4, 5, 6).transpose(0, 1, 3, 4, 2)
    check([nn.depthwise_conv2d_nchw(a, w, (2, 1), (1, 0), 1), nn.depthwise_conv2d_nhwc(b, v, 1, 2, 2),
           nn.depthwise_conv2d_NCHWc(c, u, 1, 1, 1, "NCHW4c", "NCHW4c")], {a: x, w: k, b: y, v: l, c: z, u: m},
          [testing.depthwise_conv2d_python_nchw(x, k, (2, 1), (1, 0)), testing.depthwise_conv2d_python_nhwc(y, l, 1, 2, 2),
           packed], 1e-4, 1e-4, SCHEDULES[schedule])


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_transposed(schedule):
    (a, x), (w, k) = feed((2, 3, 5)), feed((3, 4, 3), name="w")
    (b, y), (v, l) = feed((1, 2, 4, 3)), feed((2, 3, 3, 2), name="v")
    (c, z), (u, m) = feed((1, 4, 3, 3)), feed((4, 2, 3, 3), name="u")
    (d, p), (t, q) = feed((1, 2, 2, 3, 2)), feed((2, 2, 2, 3, 3), name="t")
    check([nn.conv1d_transpose_ncw(a, w, (2,), (1,), None, (1,)),
           nn.conv2d_transpose_nchw(b, v, (2, 1), (1, 0, 0, 1), None, (1, 0)),
           nn.group_conv2d_transpose_nchw(c, u, 2, 1, "float32", 0, 2),
           nn.conv3d_transpose_ncdhw(d, t, (1, 2, 2), (0, 1, 1), None, (0, 1, 0))],
          {a: x, w: k, b: y, v: l, c: z, u: m, d: p, t: q},
          [testing.conv1d_transpose_ncw_python(x, k, 2, 1, 1),
           testing.conv2d_transpose_nchw_python(y, l, (2, 1), (1, 0, 0, 1), (1, 0)),
           testing.conv2d_transpose_nchw_python(z, m, 2, 1, 0, 2),
           testing.conv3d_transpose_ncdhw_python(p, q, (1, 2, 2), (0, 1, 1), (0, 1, 0))], 1e-4, 1e-4, SCHEDULES[schedule])


PHASES = [((4, 4), (2, 2), (1, 1), (0, 0), 1), ((3, 2), (2, 3), (1, 0, 2, 1), (1, 2), 1), ((5, 1), (3, 2), (2, 0), (2, 1), 2),
          ((1, 1), (2, 2), (0, 0), (1, 0), 1), ((2, 5), (3, 1), (0, 4), (0, 0), 1), ((3, 3), (2, 2), (2, 2), (0, 1), 2)]


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("window, strides, padding, more, groups", PHASES)
def test_transposed_of_many_results_takes_the_taps_of_each_phase(window, strides, padding, more, groups, schedule):
    (a, x), (w, k) = feed((2, 4, 3, 5)), feed((4, 17, *window), name="w")
    made = nn.group_conv2d_transpose_nchw(a, w, strides, padding, "float32", more, groups)
    assert made.op.info.padded.shape[2].value < 3 * strides[0] + window[0]  # no dilation
    check(made, {a: x, w: k}, testing.conv2d_transpose_nchw_python(x, k, strides, padding, more, groups), 1e-4, 1e-4,
          SCHEDULES[schedule])


def test_transposed_of_many_results_in_one_and_three_dimensions_and_of_any_height():
    (a, x), (w, k) = feed((2, 3, 5)), feed((3, 16, 3), name="w")
    (d, p), (t, q) = feed((1, 2, 2, 3, 2)), feed((2, 18, 2, 3, 3), name="t")
    n = te.size_var("n")
    b, y = te.placeholder((1, 3, n, 4), name="b"), rng.random((1, 3, 6, 4), "float32")
    (v, l) = feed((3, 20, 4, 3), name="v")
    check([nn.conv1d_transpose_ncw(a, w, (2,), (1,), None, (1,)),
           nn.conv3d_transpose_ncdhw(d, t, (1, 2, 2), (0, 1, 1), None, (0, 1, 0)),
           nn.conv2d_transpose_nchw(b, v, 2, 1, "float32", 0)], {a: x, w: k, d: p, t: q, b: y, v: l},
          [testing.conv1d_transpose_ncw_python(x, k, 2, 1, 1),
           testing.conv3d_transpose_ncdhw_python(p, q, (1, 2, 2), (0, 1, 1), (0, 1, 0)),
           testing.conv2d_transpose_nchw_python(y, l, 2, 1)], 1e-4, 1e-4)


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_blocks_of_channels(schedule):
    (_, x), (w, k) = feed((1, 6, 5, 7)), feed((10, 6, 3, 3), name="w")
    block = te.placeholder((1, 2, 5, 7, 3), name="packed")
    packed = np.ascontiguousarray(x.reshape(1, 2, 3, 5, 7).transpose(0, 1, 3, 4, 2))
    weights = nn.conv2d_pack_weights(w, 3, 4)
    made = nn.conv2d_NCHWc(block, weights, (1, 2), 1, 1)
    plain = testing.conv2d_nchw_python(x, k, (1, 2), 1)
    wanted = np.pad(plain, [(0, 0), (0, 2), (0, 0), (0, 0)]).reshape(1, 3, 4, 5, 4).transpose(0, 1, 3, 4, 2)
    (g, y), (v, l) = feed((1, 2, 4, 4, 2)), feed((2, 1, 3, 3, 2, 2), name="v")
    flat = [np.transpose(y, (0, 1, 4, 2, 3)).reshape(1, 4, 4, 4), np.transpose(l, (0, 5, 1, 4, 2, 3)).reshape(4, 2, 3, 3)]
    groups = testing.conv2d_nchw_python(*flat, 1, 1, 2).reshape(1, 2, 2, 4, 4).transpose(0, 1, 3, 4, 2)
    check([made, nn.conv2d(g, v, 1, 1, 1, "NCHWc")], {block: packed, w: k, g: y, v: l}, [wanted, groups], 1e-4, 1e-4,
          SCHEDULES[schedule])


@pytest.mark.parametrize("dtype, out_dtype", [("float64", None), ("int8", "int32"), ("int16", None), ("float16", None),
                                              ("float16", "float32")])
def test_dtypes(dtype, out_dtype):
    (a, x), (w, k) = feed((1, 8, 6, 6), dtype), feed((3, 8, 3, 3), dtype, "w")
    made = nn.conv2d_nchw(a, w, 1, 1, 1, out_dtype)
    expected = testing.conv2d_nchw_python(x.astype(out_dtype or dtype), k.astype(out_dtype or dtype), 1, 1)
    for schedule in SCHEDULES.values():
        check(made, {a: x, w: k}, expected, 1e-3 if made.dtype == "float16" else 1e-4, 1e-4, schedule)


def test_narrow_floats_are_added_up_in_float32():
    (a, _), (w, _) = feed((1, 64, 1, 1), "float16"), feed((1, 64, 1, 1), "float16", "w")
    x, k = np.full((1, 64, 1, 1), 1 / 3, "float16"), np.full((1, 64, 1, 1), 1 / 3, "float16")
    made = nn.conv2d_nchw(a, w, 1, 0, 1)
    check(made, {a: x, w: k}, np.sum(x.astype("float32") * k, axis=1, keepdims=True).astype("float16"), 0, 0)


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_batch_and_space_known_at_the_call(schedule):
    n, h = te.size_var("n"), te.size_var("h")
    a, w = te.placeholder((n, 3, h, 8), name="a"), te.placeholder((4, 3, 3, 3), name="w")
    x, k = rng.standard_normal((2, 3, 7, 8)).astype("float32"), rng.standard_normal((4, 3, 3, 3)).astype("float32")
    check(topi.nn.relu(nn.conv2d_nchw(a, w, 2, 1, 1)), {a: x, w: k}, np.maximum(testing.conv2d_nchw_python(x, k, 2, 1), 0),
          1e-4, 1e-4, SCHEDULES[schedule])


def test_records_and_tags():
    a, w = te.placeholder((1, 4, 8, 8), name="a"), te.placeholder((4, 4, 3, 3), name="w")
    made = nn.conv2d_nchw(a, w, 1, (1, 2), 1)
    assert (made.op.tag, [i.var.name for i in made.op.axis]) == ("conv2d_nchw", ["nn", "ff", "yy", "xx"])
    assert made.op.info == ConvOp("conv2d_nchw", a, made.op.input_tensors[0], w, "NCHW", "OIHW", (1, 1), (1, 1), (1, 2), (1, 2))
    assert made.op.info.padded.op.name == "pad_temp"
    depthwise = nn.depthwise_conv2d_nchw(a, te.placeholder((4, 1, 3, 3)), 1, 1, 1)
    assert type(depthwise.op.info) is DepthwiseConvOp and depthwise.op.tag == "depthwise_conv2d_nchw"
    assert type(nn.conv2d_transpose_nchw(a, w, 1, 0, None, 0).op.info) is TransposedConvOp
    packed = nn.conv2d_NCHWc(te.placeholder((1, 1, 8, 8, 4)), te.placeholder((1, 1, 3, 3, 4, 4)), 1, 0, 1)
    assert type(packed.op.info) is PackedConvOp and packed.op.tag == "conv2d_NCHWc"


def test_padding_as_users_give_it():
    utils = nn.utils
    assert utils.get_pad_tuple(1, (3, 3)) == utils.get_pad_tuple((1, 1), (3, 3)) == (1, 1, 1, 1)
    assert utils.get_pad_tuple((1, 2, 3, 4), (3, 3)) == (1, 2, 3, 4)
    assert utils.get_pad_tuple("SAME", (4, 5)) == (2, 2, 1, 2) and utils.get_pad_tuple("VALID", (4, 5)) == (0, 0, 0, 0)
    assert utils.get_pad_tuple1d((1, 2), (3,)) == (1, 2) and utils.get_pad_tuple1d("SAME", (4,)) == (2, 1)
    assert utils.get_pad_tuple3d((1, 2, 3), (3, 3, 3)) == (1, 2, 3, 1, 2, 3)
    with pytest.raises(ShapeError, match="padding has 3 numbers for 2 spatial dimensions"):
        utils.get_pad_tuple((1, 2, 3), (3, 3))
    with pytest.raises(ArgumentError, match='padding is "FULL"'):
        utils.get_pad_tuple("FULL", (3, 3))


def arguments(data=(1, 4, 8, 8), kernel=(6, 4, 3, 3), dtype="float32"):
    return te.placeholder(data, "float32", name="a"), te.placeholder(kernel, dtype, name="w")


@pytest.mark.parametrize("call, error, words", [
    (lambda: nn.conv2d_nchw(*arguments(kernel=(6, 3, 3, 3)), 1, 1, 1), ShapeError,
     r"conv2d_nchw of a and w: the data has 4 channels and the kernel takes 3: a \(1, 4, 8, 8\), w \(6, 3, 3, 3\)"),
    (lambda: nn.group_conv2d_nchw(*arguments(kernel=(6, 1, 3, 3)), 1, 1, 1, 3), ShapeError, "not divisible into 3 groups"),
    (lambda: nn.conv2d_nchw(*arguments(kernel=(6, 4, 11, 3)), 1, 1, 1), ShapeError,
     r"the kernel spans \(11, 3\) and the data with its padding \(10, 10\)"),
    (lambda: nn.conv2d_nchw(*arguments(), 1, 0, 4), ShapeError, r"the kernel spans \(9, 9\)"),
    (lambda: nn.conv2d(*arguments(), 1, 1, 1, "NCWH"), ArgumentError, 'conv2d of a: layout is "NCWH"'),
    (lambda: nn.conv1d(*arguments(), layout="CW"), ArgumentError, 'layout is "CW"'),
    (lambda: nn.conv2d_nchw(*arguments(data=(4, 8, 8)), 1, 1, 1), ShapeError, r"a has the shape \(4, 8, 8\), 3 dimensions"),
    (lambda: nn.conv2d_nchw(*arguments(), 0, 1, 1), ShapeError, r"stride is \(0, 0\)"),
    (lambda: nn.conv2d_nchw(*arguments(), (1, 1, 1), 1, 1), ShapeError, "stride has 3 numbers for 2 spatial dimensions"),
    (lambda: nn.conv2d_nchw(*arguments(), 1, -1, 1), ShapeError, "a width is below 0"),
    (lambda: nn.conv2d_nchw(*arguments(dtype="float64"), 1, 1, 1), DTypeError, "a holds float32 and w float64"),
    (lambda: nn.depthwise_conv2d_nchw(*arguments(), 1, 1, 1), ShapeError, "the data has 4 channels and the kernel 6"),
    (lambda: nn.conv2d_transpose_nchw(*arguments(), 1, 1, None, 0), ShapeError, "4 channels and the kernel takes 6"),
    (lambda: nn.conv2d_transpose_nchw(*arguments(kernel=(4, 4, 3, 3)), 2, 1, None, 2), ShapeError,
     r"output_padding is \(2, 2\) and strides \(2, 2\)"),
    (lambda: nn.conv2d_transpose_nchw(*arguments(kernel=(4, 4, 3, 3)), 2, 3, None, 0), ShapeError, "more than the kernel"),
    (lambda: nn.conv2d_NCHWc(*arguments((1, 2, 8, 8, 4), (1, 2, 3, 3, 3, 4)), 1, 1, 1), ShapeError, "2 of 3"),
    (lambda: nn.conv2d_pack_weights(arguments()[1], 0), ShapeError, "the blocks are 0"),
    (lambda: nn.dilate(arguments()[0], (1, 2)), ShapeError, "dilate of a: the tensor has 4 dimensions and strides 2"),
])
def test_what_does_not_fit_is_named(call, error, words):
    with pytest.raises(error, match=words):
        call()


def test_dilate():
    (a, x), (b, y) = feed((3, 1, 4)), feed((5,), "int32", "b")
    check([nn.dilate(a, (2, 3, 1)), nn.dilate(a, (1, 1, 3), 2.5), nn.dilate(b, (1,)), nn.dilate(b, (2,), 7)], {a: x, b: y},
          [testing.dilate_python(x, (2, 3, 1)), testing.dilate_python(x, (1, 1, 3), 2.5), y, testing.dilate_python(y, (2,), 7)])


def test_dilate_of_no_elements():
    """An empty dimension stays empty: its extent was computed as (0 - 1) * stride + 1, and refused."""
    a, x = feed((2, 0, 4))
    made = nn.dilate(a, (1, 3, 2))
    assert [int(n) for n in made.shape] == [2, 0, 7]
    check([made], {a: x}, [np.zeros((2, 0, 7), "float32")])


def test_layouts_by_the_names_of_later_versions():
    """data_layout and kernel_layout; a layout of the kernel that does not belong to that of the data is refused."""
    data, kernel = te.placeholder((1, 5, 5, 3), name="data"), te.placeholder((3, 3, 3, 4), name="kernel")
    by_old_name = topi.nn.conv2d(data, kernel, 1, 0, 1, layout="NHWC")
    made = topi.nn.conv2d(data, kernel, 1, 0, 1, data_layout="NHWC", kernel_layout="HWIO", out_dtype="float32")
    assert list(map(int, made.shape)) == list(map(int, by_old_name.shape)) == [1, 3, 3, 4] and made.op.tag == by_old_name.op.tag
    row, taps = te.placeholder((1, 9, 3), name="row"), te.placeholder((3, 3, 4), name="taps")
    assert list(map(int, topi.nn.conv1d(row, taps, data_layout="NWC", kernel_layout="WIO").shape)) == [1, 7, 4]
    by_place = topi.nn.conv2d(data, kernel, 1, 0, 1, "NHWC", "HWIO", "float64")
    assert by_place.dtype == "float64" and topi.nn.conv2d(data, kernel, 1, 0, 1, "NHWC", "").dtype == "float32"
    assert topi.nn.conv1d(row, taps, 1, "VALID", 1, "NWC", "WIO").dtype == "float32"
    assert topi.nn.conv1d(row, taps, 1, "VALID", 1, "NWC", "float64").dtype == "float64"
    with pytest.raises(ArgumentTypeError, match="behind out_dtype"):
        topi.nn.conv2d(data, kernel, 1, 0, 1, "NHWC", "float32", "HWIO")
    for refused, words in (
            (lambda: topi.nn.conv2d(data, kernel, 1, 0, 1, "NHWC", "OHWI"), 'kernel_layout is "OHWI"'),
            (lambda: topi.nn.conv2d(data, kernel, 1, 0, 1, data_layout="NHWC", kernel_layout="OHWI"),
             'conv2d of data: kernel_layout is "OHWI"; to data of "NHWC" belongs "HWIO"(.|\\n)*layout_transform'),
            (lambda: topi.nn.conv2d(data, kernel, 1, 0, 1, layout="HWCN", data_layout="NHWC"), 'layout is "HWCN" and data_'),
            (lambda: topi.nn.conv2d(data, kernel, 1, 0, 1, layout="NCHW", data_layout="NHWC"), 'layout is "NCHW" and data_'),
            (lambda: topi.nn.conv1d(row, taps, layout="NCW", data_layout="NWC"), 'layout is "NCW" and data_layout is "NWC"'),
            (lambda: topi.nn.conv2d(data, kernel, 1, 0, 1, data_layout="NHCW"), 'layout is "NHCW"'),
            (lambda: topi.nn.conv1d(row, taps, data_layout="NWC", kernel_layout="OIW"), 'belongs "WIO"')):
        with pytest.raises(ArgumentError, match=words):
            refused()
