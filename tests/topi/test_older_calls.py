"""Operators as TVM 0.6 and 0.7 call them, whose parameters were others: the results are those of today's calls."""

import numpy as np
import pytest

import tedsl
import topi
from tedsl import te
from tedsl.errors import ArgumentTypeError


def run(make, *arrays):
    """The results of what `make` computes of tensors like the arrays."""
    tensors = [te.placeholder(array.shape, str(array.dtype), name=f"t{k}") for k, array in enumerate(arrays)]
    made = make(*tensors)
    outs = made if isinstance(made, (list, tuple)) else [made]
    results = [np.empty([int(n) for n in out.shape], str(out.dtype)) for out in outs]
    tedsl.build(topi.generic.schedule_extern(outs), [*tensors, *outs])(*arrays, *results)
    return results


def data(*shape):
    return np.random.default_rng(5).standard_normal(shape).astype("float32")


IMAGE, VOLUME, REGIONS = data(1, 3, 6, 5), data(1, 2, 4, 5, 6), np.array([[0, 0, 0, 4, 5]], "float32")
BOXES = np.array([[[0, 0.9, 0, 0, 4, 4], [1, 0.8, 0, 0, 4, 4], [0, 0.7, 0, 0, 4, 3], [0, 0.6, 5, 5, 9, 9]]], "float32")
COUNT, PLACES = np.array([4], "int32"), np.arange(4, dtype="int32").reshape(1, 4)
SIZES, WIDTHS = [2, 3, 2], [1, 0, 1, 0, 1, 0]


@pytest.mark.parametrize("older, today, arrays", [
    (lambda x: topi.nn.pool3d(x, SIZES, [1, 2, 2], WIDTHS, "avg", False, "NCDHW", False),
     lambda x: topi.nn.pool3d(x, SIZES, [1, 2, 2], 1, WIDTHS, "avg", False, "NCDHW", False), [VOLUME]),
    (lambda x: topi.nn.pool3d(x, kernel=SIZES, stride=[1, 2, 2], padding=WIDTHS, pool_type="max", layout="NCDHW"),
     lambda x: topi.nn.pool3d(x, SIZES, [1, 2, 2], [1, 1, 1], WIDTHS, "max"), [VOLUME]),
    (lambda x: topi.nn.pool1d(x, 3, 2, [1, 0], pool_type="avg"),
     lambda x: topi.nn.pool1d(x, 3, 2, 1, [1, 0], "avg"), [data(2, 3, 9)]),
    (lambda x: topi.image.resize3d(x, (8, 5, 3), "NCDHW", "trilinear", "align_corners"),
     lambda x: topi.image.resize3d(x, None, (8, 5, 3), "NCDHW", "linear", "align_corners"), [VOLUME]),
    (lambda x: topi.image.resize3d(x, (8, 5, 3), layout="NCDHW", method="nearest_neighbor",
                                   coordinate_transformation_mode="asymmetric"),
     lambda x: topi.image.resize3d(x, None, (8, 5, 3), "NCDHW", "nearest_neighbor", "asymmetric"), [VOLUME]),
    (lambda x: topi.image.resize2d(x, size=(3, 4)), lambda x: topi.image.resize2d(x, None, (3, 4)), [IMAGE]),
    (lambda x, r: topi.vision.rcnn.roi_align_nchw(x, r, pooled_size=(2, 2), spatial_scale=0.5, sample_ratio=2),
     lambda x, r: topi.vision.rcnn.roi_align_nchw(x, r, (2, 2), 0.5, "avg", 2), [IMAGE, REGIONS]),
    (lambda b, n: topi.vision.non_max_suppression(b, n, -1, 0.5, True, 3, return_indices=False),
     lambda b, n: topi.vision.non_max_suppression(b, n, n, -1, 0.5, True, 3, return_indices=False), [BOXES, COUNT]),
    (lambda b, n: topi.vision.non_max_suppression(b, n, max_output_size=2, iou_threshold=0.5),
     lambda b, n: topi.vision.non_max_suppression(b, n, places(), 2, 0.5), [BOXES, COUNT]),
    (lambda x, w: topi.nn.conv1d_transpose_ncw(x, w, 2, 1, "float32"),
     lambda x, w: topi.nn.conv1d_transpose_ncw(x, w, 2, 1, "float32", 0), [data(2, 3, 7), data(3, 4, 3)]),
    (lambda x, w: topi.nn.conv2d_winograd_without_weight_transform(
        x, topi.nn.conv2d_winograd_weight_transform(w, 2), 1, 1, 1, "NCHW", "float32", 2),
     lambda x, w: topi.nn.conv2d_nchw(x, w, 1, 1, 1), [IMAGE, data(4, 3, 3, 3)])])
def test_the_result_is_that_of_todays_call(older, today, arrays):
    for found, wanted in zip(run(older, *arrays), run(today, *arrays), strict=True):
        assert found.dtype == wanted.dtype
        np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-5)


def places():
    return te.compute((1, 4), lambda i, j: j.astype("int32"), name="given")


def test_todays_calls_are_still_told_what_is_missing():
    x = te.placeholder(IMAGE.shape)
    with pytest.raises(ArgumentTypeError, match="'padding' and 'pool_type' are missing"):
        topi.nn.pool2d(x, 2, 2)
    with pytest.raises(ArgumentTypeError, match=r"the arguments? .*'size'.* missing"):
        topi.image.resize2d(x)


def test_references_of_poolings():
    for kind in ("max", "avg"):
        (found,) = run(lambda x, kind=kind: topi.nn.pool3d(x, SIZES, [1, 2, 2], 1, WIDTHS, kind), VOLUME)
        np.testing.assert_allclose(topi.testing.pool3d_ncdhw_python(VOLUME, SIZES, [1, 2, 2], WIDTHS, found.shape, kind), found,
                                   rtol=1e-5)
        line = data(2, 3, 9)
        (found,) = run(lambda x, kind=kind: topi.nn.pool1d(x, 3, 2, 1, [1, 1], kind), line)
        np.testing.assert_allclose(topi.testing.pool1d_ncw_python(line, 3, 2, 1, found.shape, kind), found, rtol=1e-5)
