"""Weights in other layouts, derivatives of depthwise convolutions, products of bytes, and the names of topi.x86 and arm_cpu."""

import numpy as np
import pytest

import tedsl
import topi
from tedsl import te
from tedsl.errors import ArgumentError, OptionError, ShapeError
from tests.topi.checking import check, numbers, tensor
from topi import nn, testing
from topi.nn.convolution.winograd import transform_matrices

X86 = topi.x86.schedule_injective


@pytest.mark.parametrize("tiles, shape", [((4, 16), (3, 2, 3, 5)), ((1, 1), (1, 1, 1, 1)), ((2, 3), (3, 3, 4, 4))])
def test_weights_of_products(tiles, shape):
    a, x = tensor(shape)
    flat = x.reshape(-1, shape[3]).T
    padded = np.pad(flat, [(0, -n % t) for n, t in zip(flat.shape, tiles)])
    expected = padded.reshape(padded.shape[0] // tiles[0], tiles[0], -1, tiles[1]).transpose(0, 2, 1, 3)
    check(nn.conv2d_gemm_weight_transform(a, *tiles), {a: x}, expected, schedule=X86)


@pytest.mark.parametrize("depth", [3, 2])
def test_weights_of_winograd_in_three_dimensions(depth):
    a, x = tensor((2, 3, depth, 3, 3))
    g = np.array(transform_matrices(2, 3)[2], "float64")
    expected = np.einsum("ey,nx,ocdyx->endoc", g, g, x)
    if depth == 3:
        expected = np.einsum("wd,endoc->wenoc", g, expected)
    check(nn.conv3d_winograd_weight_transform(a, 2), {a: x}, expected.astype("float32"), 1e-4, 1e-4, X86)


@pytest.mark.parametrize("stride, padding, multiplier", [(1, 1, 1), ((2, 1), (1, 0), 2), (2, "SAME", 1)])
def test_derivatives_of_depthwise_convolutions(stride, padding, multiplier):
    a, x = tensor((2, 5, 6, 3))
    w, y = tensor((3, 2, 3, multiplier), name="w")
    result = nn.depthwise_conv2d_nhwc(a, w, stride, padding, 1)
    shape = tuple(int(n) for n in result.shape)
    head, h = te.placeholder(shape, name="head"), numbers(shape, seed=2)
    by_input = nn.depthwise_conv2d_backward_input_nhwc(w, head, shape, a.shape, stride, padding)
    by_weight = nn.depthwise_conv2d_backward_weight_nhwc(a, head, shape, w.shape, stride, padding)
    assert [by_input.shape, by_weight.shape] == [a.shape, w.shape]
    data, kernel = np.empty(x.shape, "float32"), np.empty(y.shape, "float32")
    tedsl.build(X86([by_input]), [w, head, by_input])(y, h, data)
    tedsl.build(X86([by_weight]), [a, head, by_weight])(x, h, kernel)
    forward = tedsl.build(X86(result), [a, w, result])
    out = np.empty(shape, "float32")
    forward(x, y, out)
    total = (out.astype("float64") * h).sum()  # the convolution is linear in each of them
    np.testing.assert_allclose([(data.astype("float64") * x).sum(), (kernel.astype("float64") * y).sum()], total, rtol=1e-4)
    for wanted, found, (one, other) in ((x, data, (True, False)), (y, kernel, (False, True))):
        at = tuple(n // 2 for n in wanted.shape)
        unit = np.zeros_like(wanted)
        unit[at] = 1
        forward(unit if one else x, unit if other else y, out)
        np.testing.assert_allclose(found[at], (out * h).sum(), rtol=1e-4, atol=1e-4)


def test_convolutions_of_bytes():
    random = np.random.default_rng(0)
    a, x = te.placeholder((1, 2, 5, 4, 8), "uint8", name="a"), random.integers(0, 200, (1, 2, 5, 4, 8)).astype("uint8")
    y = random.integers(-99, 99, (3, 2, 3, 3, 2, 4, 4)).astype("int8")
    w = te.placeholder(y.shape, "int8", name="w")
    data = x.transpose(0, 1, 4, 2, 3).reshape(1, 16, 5, 4).astype("float64")
    kernel = y.transpose(0, 5, 1, 4, 6, 2, 3).reshape(12, 16, 3, 3).astype("float64")
    wanted = testing.conv2d_nchw_python(data, kernel, 1, 1).reshape(1, 3, 4, 5, 4).transpose(0, 1, 3, 4, 2)
    check(nn.conv2d_NCHWc_int8(a, w, 1, 1, 1, "NCHW8c", "NCHW4c"), {a: x, w: y}, wanted.astype("int32"))


def test_dense_of_packed_weights():
    random = np.random.default_rng(0)
    a, x = te.placeholder((3, 8), "uint8", name="a"), random.integers(0, 256, (3, 8)).astype("uint8")
    w, y = te.placeholder((2, 2, 16, 4), "int8", name="w"), random.integers(-128, 128, (2, 2, 16, 4)).astype("int8")
    plain = y.transpose(0, 2, 1, 3).reshape(32, 8).astype("int32")
    check(topi.x86.dense_vnni(a, w), {a: x, w: y}, x.astype("int32") @ plain.T)
    b, z = tensor((3, 5), name="b")
    v, u = tensor((2, 5, 4), name="v")
    check(topi.x86.dense_pack(b, v), {b: z, v: u}, z @ u.transpose(0, 2, 1).reshape(8, 5).T, 1e-4, 1e-4)


def test_names_of_processors():
    for name in ("batch_matmul", "dense_nopack", "dense_pack", "conv3d_ndhwc", "conv3d_transpose_ncdhw", "scatter_nd",
                 "roi_align_nchw", "schedule_dense_nopack", "schedule_conv3d_ndhwc", "schedule_group_conv2d_nchwc"):
        assert callable(getattr(topi.x86, name))
    assert topi.cuda.non_max_suppression is topi.vision.non_max_suppression
    a, w = te.placeholder((1, 4, 6, 6), name="a"), te.placeholder((4, 4, 3, 3), name="w")
    with tedsl.target.Target("llvm -mtriple=aarch64-linux-gnu"):
        made = topi.arm_cpu.conv2d_nchw_spatial_pack(a, w, 1, 1, 1)
        assert isinstance(topi.arm_cpu.schedule_conv2d_nchw_spatial_pack([made]), te.Schedule)
    with pytest.raises(OptionError, match="no BLAS is called"):
        topi.x86.dense_cblas
    with pytest.raises(OptionError, match="saturate"):
        topi.x86.tensor_intrin.dot_16x1x16_uint8_int8_int16
    with tedsl.target.Target("llvm -mcpu=cascadelake"):
        assert topi.x86.tensor_intrin.dot_16x1x16_uint8_int8_int32().name == "dot_u8i8i32"


def test_references():
    x, y = numbers((2, 3, 4)), numbers((2, 5, 4), seed=1)
    np.testing.assert_array_equal(testing.batch_matmul(x, y), x @ y.transpose(0, 2, 1))
    np.testing.assert_array_equal(testing.dense(x[0], y[0], y[0, :, 0], True, True), np.maximum(x[0] @ y[0].T + y[0, :, 0], 0))
    np.testing.assert_array_equal(testing.slice_axis_python(x, -1, 1, 3), x[..., 1:3])
    np.testing.assert_array_equal(testing.adaptive_pool(x, 2, "avg", "NCW"), x.reshape(2, 3, 2, 2).mean(-1))
    np.testing.assert_array_equal(testing.resize1d_python(x, [2], "NWC", "nearest_neighbor", "asymmetric"), x.repeat(2, 1))
    cube = numbers((1, 2, 3, 2, 2))
    doubled = cube.repeat(2, 2).repeat(2, 3).repeat(2, 4)
    np.testing.assert_array_equal(testing.resize3d_python(cube, [2, 2, 2], "NCDHW", "nearest_neighbor", "asymmetric"), doubled)
    compute, schedule = testing.get_conv2d_nchw_implement("llvm")
    assert compute is nn.conv2d_nchw and schedule is topi.x86.schedule_conv2d_nchw
    b, o, v = numbers((1, 4, 4, 2)), np.zeros((1, 2, 2, 18), "float32"), numbers((3, 3, 2, 3))
    np.testing.assert_allclose(testing.deformable_conv2d_nhwc_python(b, o, v, 1, 0, 1, 1, 1),
                               testing.conv2d_nhwc_python(b, v, 1, 0), rtol=1e-5)
    a, w = numbers((1, 3, 3, 2)), numbers((2, 4, 3, 3))
    expected = testing.conv2d_transpose_nchw_python(a.transpose(0, 3, 1, 2), w, 2, 1).transpose(0, 2, 3, 1)
    np.testing.assert_array_equal(testing.conv2d_transpose_nhwc_python(a, w.transpose(2, 3, 1, 0), "HWOI", 2, 1), expected)


A, W = te.placeholder((2, 5, 6, 3), name="A"), te.placeholder((3, 2, 3, 1), name="W")


@pytest.mark.parametrize("made, error, words", [
    (lambda: nn.conv2d_gemm_weight_transform(W, 0, 4), ArgumentError, "tiles of 0 x 4"),
    (lambda: nn.depthwise_conv2d_backward_input_nhwc(W, A, (2, 5, 6, 3), (2, 5, 6, 3), 2, 1), ShapeError, "stride and"),
    (lambda: nn.depthwise_conv2d_backward_weight_nhwc(A, A, (2, 5), (3, 2, 3, 1), 2, 1), ShapeError, "oshape is"),
    (lambda: nn.conv2d_NCHWc_int8(A, W, 1, 1, 1), ShapeError, "A has the shape"),
    (lambda: nn.conv3d_winograd_weight_transform(te.placeholder((1, 1, 3, 3, 2)), 2), ArgumentError, "square window"),
])
def test_what_is_refused(made, error, words):
    with pytest.raises(error, match=words):
        made()
