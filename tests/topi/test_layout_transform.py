"""layout_transform against numpy's reshape and transpose."""

import numpy as np
import pytest

import topi
from tedsl import te
from tedsl.errors import ArgumentError, ShapeError
from tests.topi.checking import check, tensor
from topi.kinds import InjectiveOp

n = te.size_var("n")


@pytest.mark.parametrize("shape, source, target, expected", [
    ((2, 8, 3, 5), "NCHW", "NHWC", lambda x: x.transpose(0, 2, 3, 1)),
    ((2, 8, 3, 5), "NCHW", "NCHW4c", lambda x: x.reshape(2, 2, 4, 3, 5).transpose(0, 1, 3, 4, 2)),
    ((2, 2, 3, 5, 4), "NCHW4c", "NCHW", lambda x: x.transpose(0, 1, 4, 2, 3).reshape(2, 8, 3, 5)),
    ((2, 2, 3, 5, 4), "NCHW4c", "NCHW2c",
     lambda x: x.reshape(2, 2, 3, 5, 2, 2).transpose(0, 1, 4, 2, 3, 5).reshape(2, 4, 3, 5, 2)),
    ((2, 3, 5, 8), "NHWC", "NCHW8c", lambda x: x[:, None]),
    ((8, 4, 3, 3), "OIHW", "OIHW4i2o", lambda x: x.reshape(4, 2, 1, 4, 3, 3).transpose(0, 2, 4, 5, 3, 1)),
    ((2, 7, 3), "NCW", "NCW4c", lambda x: np.pad(x, ((0, 0), (0, 1), (0, 0))).reshape(2, 2, 4, 3).transpose(0, 1, 3, 2)),
    ((1, 1), "AB", "BA", lambda x: x.T), ((0, 4), "AB", "AB2b", lambda x: x.reshape(0, 2, 2)),
    (((n, 2), 8, 3), "NCW", "NCW4c", lambda x: x.reshape(2, 2, 4, 3).transpose(0, 1, 3, 2)),
    (((n, 5), 2), "NC", "NC2n", lambda x: np.pad(x, ((0, 1), (0, 0))).reshape(3, 2, 2).transpose(0, 2, 1)),
])
@pytest.mark.parametrize("dtype", ["float32", "int8"])
def test_layouts(shape, source, target, expected, dtype):
    a, x = tensor(shape, dtype)
    made = topi.layout_transform(a, source, target)
    assert (made.name, made.op.tag, made.op.info) == ("T_layout_trans", "injective", InjectiveOp("layout_transform"))
    assert made.op.attrs["src_layout"] == source and made.op.attrs["dst_layout"] == target
    check(made, {a: x}, expected(x))


def test_there_and_back_and_equal_layouts():
    a, x = tensor((2, 8, 3, 5))
    check(topi.layout_transform(topi.layout_transform(a, "NCHW", "NHWC4c"), "NHWC4c", "NCHW"), {a: x}, x)
    assert topi.layout_transform(a, "NCHW", "NCHW") is a


@pytest.mark.parametrize("source, target, error, words", [
    ("NCH", "NHC", ShapeError, r"layout_transform of a: the layout NCH has 3 dimensions, the shape is \(2, 8, 3, 5\)"),
    ("NCHW", "NCHD", ArgumentError, "NCHW and NCHD do not have the same dimensions"),
    ("NCHW", "NCHW4C", ArgumentError, "names a dimension twice"),
    ("NCHW", "NHW4c", ArgumentError, "'c' is the place in a block of 'C'"),
])
def test_what_is_refused(source, target, error, words):
    with pytest.raises(error, match=words):
        topi.layout_transform(te.placeholder((2, 8, 3, 5), name="a"), source, target)
