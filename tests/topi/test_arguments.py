"""Arguments as people write them: axes of numpy, no axes at all, arrays in the place of tensors."""

import numpy as np
import pytest

import topi
from tedsl import te
from tedsl.errors import ArgumentTypeError, ShapeError, TedslError
from tests.topi.checking import check, numbers, tensor
from topi import nn

A = te.placeholder((2, 3, 4, 5), name="A")
ARRAY = np.zeros((2, 3, 4, 5), "float32")
V = te.placeholder((3,), name="V")


@pytest.mark.parametrize("schedule", [topi.generic.schedule_reduce, topi.x86.schedule_reduce, topi.cuda.schedule_reduce])
@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_a_reduction_over_no_axis_is_a_copy(dtype, schedule):
    a, x = tensor((3, 5), dtype)
    made = [topi.sum(a, ()), topi.max(a, (), True), topi.prod(a, [])]
    check(made, {a: x}, [x, x, x], schedule=schedule)
    b, y = tensor((), dtype)
    check([topi.sum(b), topi.min(b)], {b: y}, [y, y], schedule=schedule)


def test_axes_of_numpy():
    a, x = tensor((3, 5, 2))
    made = [topi.sum(a, np.int64(1)), topi.max(a, np.array([0, -1])), topi.argmax(a, np.int32(-1)), topi.sum(a, range(2))]
    check(made, {a: x}, [x.sum(1), x.max((0, 2)), x.argmax(-1).astype("int32"), x.sum((0, 1))])
    for axis in (1.0, "0", "x", (0, 1.5)):
        with pytest.raises(ShapeError, match="sum of a: axis="):
            topi.sum(a, axis)


@pytest.mark.parametrize("call", [
    lambda: topi.sum(ARRAY), lambda: topi.argmax(ARRAY), lambda: topi.full_like(ARRAY, 0), lambda: topi.einsum("abcd", ARRAY),
    lambda: topi.expand_like(A, ARRAY, 0), lambda: topi.strided_set(A, ARRAY, [0], [1]),
    lambda: topi.tensordot(A, ARRAY, 1), lambda: nn.relu(ARRAY), lambda: nn.relu(3), lambda: nn.flatten(ARRAY),
    lambda: nn.pad(ARRAY, (0, 0, 0, 0)), lambda: nn.softmax(ARRAY), lambda: nn.dense(A, None),
    lambda: nn.batch_matmul(ARRAY, A),
    lambda: nn.conv2d(ARRAY, A, 1, 0, 1), lambda: nn.conv2d(A, ARRAY, 1, 0, 1),
    lambda: nn.depthwise_conv2d_nchw(A, ARRAY, 1, 0, 1),
    lambda: nn.conv2d_transpose_nchw(A, ARRAY, 1, 0, "float32", 0), lambda: nn.conv2d_winograd_nchw(A, ARRAY, 1, 1, 1),
    lambda: nn.pool2d(ARRAY, 2, 1, 1, 0, "max"), lambda: nn.global_pool(ARRAY, "avg"), lambda: nn.bias_add(ARRAY, V),
    lambda: nn.batch_norm(A, ARRAY, V, V, V), lambda: nn.layer_norm(A, None, None, -1), lambda: nn.lrn(ARRAY, 3),
    lambda: nn.upsampling(ARRAY, 2, 2), lambda: topi.image.resize2d(ARRAY, (0.0,) * 4, (2, 2)),
    lambda: topi.generic.schedule_injective(ARRAY), lambda: topi.x86.schedule_reduce([A, None]),
])
def test_an_array_is_no_tensor(call):
    with pytest.raises(ArgumentTypeError, match="where a tensor is meant"):
        call()


def test_widths_of_padding_are_a_list():
    with pytest.raises(ShapeError, match="pad of A: pad_before is 1"):
        nn.pad(A, 1)
    with pytest.raises(TedslError):
        nn.pad(A, None)
    a, x = tensor((2, 3))
    check(nn.pad(a, np.array([1, 0]), [0, 2]), {a: x}, np.pad(x, ((1, 0), (0, 2))))


def test_references_of_rows():
    x = numbers((3, 4, 5))
    a = te.placeholder(x.shape, name="a")
    testing, axis = topi.testing, 1
    check([nn.softmax(a, axis), nn.log_softmax(a, axis)], {a: x}, [testing.softmax_python(x), testing.log_softmax_python(x)],
          1e-5, 1e-5)
    scale, shift = tensor((5,), name="scale"), tensor((5,), name="shift")
    check(nn.layer_norm(a, scale[0], shift[0], -1), {a: x, **dict([scale, shift])},
          testing.layer_norm_python(x, scale[1], shift[1], -1), 1e-4, 1e-4)
