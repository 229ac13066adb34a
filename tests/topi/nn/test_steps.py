"""Parts of convolutions, and the names that topi.x86, arm_cpu and cuda have for operators."""

import numpy as np
import pytest

import tedsl
import topi
from tedsl import te
from tedsl.errors import ArgumentError


def evaluated(result, *pairs):
    """The value of a tensor; pairs: inputs and their arrays."""
    outs = result if isinstance(result, (list, tuple)) else [result]
    arrays = [np.zeros([int(d) for d in out.shape], str(out.dtype)) for out in outs]
    tedsl.build(te.create_schedule([out.op for out in outs]), [*(p for p, _ in pairs), *outs])(*(a for _, a in pairs), *arrays)
    return arrays if isinstance(result, (list, tuple)) else arrays[0]


@pytest.mark.parametrize("rank, strides, padding, more", [(2, (2, 1), (1, 0, 0, 1), (1, 0)), (3, 2, 1, 0)])
def test_transposed_convolutions_are_plain_ones_of_what_preprocess_makes(rank, strides, padding, more):
    rng = np.random.default_rng(0)
    a, w = (rng.standard_normal(shape).astype("float32") for shape in ((1, 3, *[4] * rank), (3, 2, *[3] * rank)))
    A, W = te.placeholder(a.shape, name="A"), te.placeholder(w.shape, name="W")
    name, plain, reference = (
        ("conv2d_transpose_nchw_preprocess", topi.nn.conv2d_nchw, topi.nn.conv2d_transpose_nchw) if rank == 2 else
        ("conv3d_transpose_ncdhw_preprocess", topi.nn.conv3d_ncdhw, topi.nn.conv3d_transpose_ncdhw))
    spread, turned = getattr(topi.nn, name)(A, W, strides, padding, "float32", more)
    got = evaluated(plain(spread, turned, 1, 0, 1), (A, a), (W, w))
    np.testing.assert_allclose(got, evaluated(reference(A, W, strides, padding, "float32", more), (A, a), (W, w)), atol=1e-5)


def test_matrices_of_winograd():
    a, b, g = evaluated(topi.nn.winograd_transform_matrices(2, 3, "float64"))
    rng = np.random.default_rng(0)
    tile, kernel = rng.standard_normal((4, 4)), rng.standard_normal((3, 3))
    want = [[(tile[y:y + 3, x:x + 3] * kernel).sum() for x in range(2)] for y in range(2)]
    np.testing.assert_allclose(a.T @ ((g @ kernel @ g.T) * (b.T @ tile @ b)) @ a, want, atol=1e-12)


def test_unpacking():
    P = te.placeholder((2, 3, 4, 5, 8), "int32", name="P")
    p = np.arange(960, dtype="int32").reshape(2, 3, 4, 5, 8)
    want = p.transpose(0, 1, 4, 2, 3).reshape(2, 24, 4, 5)
    np.testing.assert_array_equal(evaluated(topi.nn.unpack_NCHWc_to_nchw(P, "int64"), (P, p)), want)


def test_strides_and_padding_of_tensors():
    A, W = te.placeholder((1, 2, 9, 11)), te.placeholder((4, 2, 3, 3))
    padded = topi.nn.pad(A, (0, 0, 2, 1))
    C = topi.nn.conv2d_nchw(padded, W, (2, 4), 0, 1)
    utils = topi.nn.utils
    assert utils.infer_pad(A, padded) == (2, 1) and utils.infer_pad(A, None) == (0, 0)
    assert utils.infer_stride(padded, W, C) == (2, 5)  # 13 columns in 3 windows: as TVM infers it
    assert utils.infer_pad3d(te.placeholder((1, 4, 5, 6, 2)), te.placeholder((1, 6, 5, 8, 2)), "NDHWC") == (2, 0, 2)
    assert utils.get_pad_tuple_generic("SAME", (3, 4, 5)) == (1, 2, 2, 1, 1, 2)
    with pytest.raises(ArgumentError, match="NCDHW or NDHWC"):
        utils.infer_pad3d(A, A, "NCHW")
    assert topi.nn.Workload(*range(17)).stride_w == 16


def test_the_workload_of_a_convolution():
    from topi.nn.conv2d import _get_workload

    A, W = te.placeholder((2, 6, 9, 11)), te.placeholder((4, 3, 3, 5))
    work = _get_workload(A, W, (2, 1), (1, 2), (1, 2), "int32")
    assert work == ("float32", "int32", 9, 11, 6, 2, 4, 3, 5, 1, 2, 1, 2, 1, 2, 2, 1) and work.groups == 2 and work.padr == 2
    A2, W2 = te.placeholder((2, 9, 11, 6)), te.placeholder((3, 5, 3, 4))
    assert _get_workload(A2, W2, (2, 1), (1, 2), (1, 2), "int32", "NHWC") == work
    with pytest.raises(ArgumentError, match=r"no data_layout 'NCHW8c'\n.*NCHW, NHWC, HWCN"):
        _get_workload(A, W, 1, 0, 1, "int32", "NCHW8c")


@pytest.mark.parametrize("module", [topi.x86, topi.arm_cpu, topi.cuda])
def test_operators_of_targets_are_those_of_nn(module):
    A, W, D = te.placeholder((1, 4, 6, 6), "int8"), te.placeholder((8, 4, 3, 3), "int8"), te.placeholder((4, 1, 3, 3), "int8")
    names = {"kernel": W, "data": A, "padding": 1, "strides": 2, "dilation": 1}
    plain = getattr(module, "conv2d_nchw", None) or module.conv2d_nchw_spatial_pack
    assert plain(**names, out_dtype="int32").shape == topi.nn.conv2d_nchw(A, W, 2, 1, 1, "int32").shape
    assert module.depthwise_conv2d_nchw(**{**names, "kernel": D}, out_dtype="int16").dtype == "int16"
    assert module.group_conv2d_nchw(**{**names, "kernel": te.placeholder((8, 2, 3, 3), "int8")}, groups=2).shape[1].value == 8


def test_what_processors_have():
    utils = topi.x86.utils
    assert [utils.target_has_avx2(cpu) for cpu in ("x86-64", "haswell", "skylake-avx512")] == [False, True, True]
    assert utils.target_has_avx512("skylake-avx512") and not utils.target_has_vnni("skylake-avx512")
    assert utils.target_has_vnni("cascadelake") and utils.target_has_sse42("haswell")
    with tedsl.target.Target("llvm -mcpu=haswell"):
        assert utils.get_fp32_len() == utils.get_simd_32bit_lanes() == 8 and topi.x86.is_int8_hw_support("uint8", "int8")
        assert not topi.x86.is_int8_hw_support("int8", "int8")
