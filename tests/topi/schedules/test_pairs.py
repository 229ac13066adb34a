"""Operators and schedules by the names that TVM pairs: topi.x86.X with topi.x86.schedule_X, and so for arm_cpu and cuda."""

import numpy as np
import pytest

import tedsl
import topi
from tedsl import te
from topi import testing

PICTURE, KERNEL, DEEP = (2, 4, 9, 7), (6, 4, 3, 3), (4, 1, 3, 3)
CONVOLVED = testing.conv2d_nchw_python
LAST, FIRST = (0, 2, 3, 1), (2, 3, 1, 0)


def by_channels(x, w):
    return testing.depthwise_conv2d_python_nchw(x, w, 1, "SAME")


def last(function, kernel=FIRST):
    """`function` of data in NCHW for data in NHWC, kernels in HWIO."""
    back = np.argsort(kernel)
    return lambda x, w: function(x.transpose(0, 3, 1, 2), w.transpose(*back)).transpose(LAST)


def turned(x, w):
    return testing.conv2d_transpose_nchw_python(x, w, 2, 1, (1, 1))


def grouped(x, w):
    return CONVOLVED(x, w, 1, 1, 2)


def same(x, w):
    return CONVOLVED(x, w, 1, 1)


def rows(x, w):
    return x @ w.T


def batches(x, w):
    return x @ w.transpose(0, 2, 1)


def cube(x, w):
    return testing.conv3d_ncdhw_python(x, w, 2, 1)


def cube_last(x, w):
    return cube(x.transpose(0, 4, 1, 2, 3), w.transpose(4, 3, 0, 1, 2)).transpose(0, 2, 3, 4, 1)


def line(x, w):
    return testing.conv1d_ncw_python(x, w, 1, 1, 1)


def line_last(x, w):
    return line(x.transpose(0, 2, 1), w.transpose(2, 1, 0)).transpose(0, 2, 1)


def widened(x, w):
    return testing.conv3d_transpose_ncdhw_python(x, w, 2, 1)


NHWC, HWIO, HWCM = (2, 9, 7, 4), (3, 3, 4, 6), (3, 3, 4, 1)
PLAIN, EXTENDED = (1, 1, 1, "float32"), ((2, 2), (1, 1), "float32", (1, 1))
DEPTHS, DEPTHS_LAST = ((1, 2, 4, 5, 3), (3, 2, 3, 3, 3)), ((1, 4, 5, 3, 2), (3, 3, 3, 2, 3))
PAIRS = [
    ("x86", "batch_matmul", ((3, 5, 7), (3, 6, 7)), (), batches), ("x86", "conv2d_nchw", (PICTURE, KERNEL), PLAIN, same),
    ("x86", "conv2d_transpose_nchw", (PICTURE, (4, 5, 3, 3)), EXTENDED, turned),
    ("x86", "conv3d_ncdhw", DEPTHS, (2, 1, 1, 1, "float32"), cube),
    ("x86", "conv3d_ndhwc", DEPTHS_LAST, (2, 1, 1, 1, "float32"), cube_last),
    ("x86", "conv3d_transpose_ncdhw", ((1, 3, 3, 4, 5), (3, 2, 3, 3, 3)), ((2, 2, 2), (1, 1, 1), "float32", (0,) * 3), widened),
    ("x86", "dense_nopack", ((5, 33), (7, 33)), (), rows), ("x86", "dense_pack", ((5, 33), (7, 33)), (), rows),
    ("x86", "depthwise_conv2d_nchw", (PICTURE, DEEP), PLAIN, by_channels),
    ("x86", "group_conv2d_nchw", (PICTURE, (6, 2, 3, 3)), (1, 1, 1, 2, "float32"), grouped),
    ("arm_cpu", "conv2d_nchw_spatial_pack", (PICTURE, KERNEL), PLAIN, same),
    ("arm_cpu", "conv2d_nchw_winograd", (PICTURE, KERNEL), PLAIN, same),
    ("arm_cpu", "conv2d_nhwc_spatial_pack", (NHWC, HWIO), PLAIN, last(same)),
    ("arm_cpu", "conv2d_transpose_nchw", (PICTURE, (4, 5, 3, 3)), EXTENDED, turned),
    ("arm_cpu", "depthwise_conv2d_nchw", (PICTURE, DEEP), PLAIN, by_channels),
    ("arm_cpu", "depthwise_conv2d_nchw_spatial_pack", (PICTURE, DEEP), PLAIN, by_channels),
    ("arm_cpu", "compute_depthwise_conv2d_nhwc", (NHWC, HWCM), PLAIN, last(by_channels, (2, 3, 0, 1))),
    ("arm_cpu", "group_conv2d_nchw", (PICTURE, (6, 2, 3, 3)), (1, 1, 1, 2, "float32"), grouped),
    ("cuda", "batch_matmul", ((3, 5, 7), (3, 6, 7)), (), batches), ("cuda", "conv2d_nchw", (PICTURE, KERNEL), PLAIN, same),
    ("cuda", "conv1d_ncw", ((2, 3, 11), (4, 3, 3)), (1, 1, 1), line),
    ("cuda", "conv1d_nwc", ((2, 11, 3), (3, 3, 4)), (1, 1, 1), line_last),
    ("cuda", "conv2d_nchw_winograd", (PICTURE, KERNEL), PLAIN, same),
    ("cuda", "conv2d_nhwc_winograd_direct", (NHWC, HWIO), PLAIN, last(same)),
    ("cuda", "conv2d_transpose_nchw", (PICTURE, (4, 5, 3, 3)), EXTENDED, turned),
    ("cuda", "conv3d_ncdhw", DEPTHS, (2, 1, 1, 1), cube), ("cuda", "conv3d_ndhwc", DEPTHS_LAST, (2, 1, 1, 1), cube_last),
    ("cuda", "dense_small_batch", ((5, 33), (7, 33)), (), rows), ("cuda", "dense_large_batch", ((5, 33), (7, 33)), (), rows),
    ("cuda", "depthwise_conv2d_nchw", (PICTURE, DEEP), PLAIN, by_channels),
    ("cuda", "group_conv2d_nchw", (PICTURE, (6, 2, 3, 3)), (1, 1, 1, 2), grouped),
    ("cuda", "cumsum", ((3, 5, 7),), (1,), lambda x: x.cumsum(1)), ("cuda", "sort", ((3, 5, 7),), (), np.sort),
]
SCHEDULES = {"compute_depthwise_conv2d_nhwc": "depthwise_conv2d_nhwc", "cumsum": "scan"}


@pytest.mark.sampled(6)
@pytest.mark.parametrize("home, name, shapes, arguments, expected", PAIRS, ids=[f"{home}.{name}" for home, name, *_ in PAIRS])
def test_a_pair_computes_what_its_reference_says(home, name, shapes, arguments, expected):
    names, on_cuda = getattr(topi, home), home == "cuda"
    rng = np.random.default_rng(0)
    given = [rng.random(shape, dtype="float32") for shape in shapes]
    tensors = [te.placeholder(shape, name=f"in{at}") for at, shape in enumerate(shapes)]
    target = "cuda" if on_cuda else "llvm"
    with tedsl.target.Target(target):
        made = getattr(names, name)(*tensors, *arguments)
        schedule = getattr(names, f"schedule_{SCHEDULES.get(name, name)}")([made])
        built = tedsl.build(schedule, [*tensors, made], target)
    device = tedsl.sim(0) if on_cuda else tedsl.cpu(0)
    out = tedsl.nd.empty([int(extent) for extent in made.shape], made.dtype, device)
    built(*[tedsl.nd.array(array, device) for array in given], out)
    np.testing.assert_allclose(out.numpy(), expected(*given), rtol=1e-3, atol=1e-3)
