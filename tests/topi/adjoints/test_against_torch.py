"""Gradients by te.gradient against torch's, in float32 and float64."""

import numpy as np
import pytest

import topi
from tedsl import te
from tests.topi.adjoints.differences import shape_of, values
from topi import nn

torch = pytest.importorskip("torch")
F = torch.nn.functional


def conv(stride, padding, dilation, groups):
    def ours(x, w):
        return nn.group_conv2d_nchw(x, w, stride, padding, dilation, groups)

    return ours, lambda x, w: F.conv2d(x, w, None, stride, padding, dilation, groups)


CASES = {
    "conv2d": ([(2, 6, 9, 8), (4, 6, 3, 2)], *conv(1, 1, 1, 1)),
    "conv2d, strides": ([(2, 6, 9, 8), (4, 6, 3, 3)], *conv((2, 3), 1, 1, 1)),
    "conv2d, groups": ([(2, 6, 9, 8), (4, 3, 3, 3)], *conv(2, (1, 0), 2, 2)),
    "conv2d, transposed": ([(2, 3, 5, 4), (3, 4, 3, 3)], lambda x, w: nn.conv2d_transpose_nchw(x, w, 2, 1, None, (1, 1)),
                           lambda x, w: F.conv_transpose2d(x, w, None, 2, 1, 1)),
    "dense": ([(5, 7), (3, 7), (3,)], nn.dense, F.linear),
    "batch_matmul": ([(2, 5, 7), (2, 3, 7)], nn.batch_matmul, lambda a, b: a @ b.transpose(1, 2)),
    "einsum": ([(2, 3, 4), (4, 5)], lambda a, b: topi.einsum("bij,jk->bki", a, b),
               lambda a, b: torch.einsum("bij,jk->bki", a, b)),
    "softmax": ([(4, 9)], nn.softmax, lambda x: torch.softmax(x, -1)),
    "log_softmax": ([(4, 9)], lambda x: nn.log_softmax(x, 0), lambda x: torch.log_softmax(x, 0)),
    "layer_norm": ([(3, 4, 5), (5,), (5,)], lambda x, g, b: nn.layer_norm(x, g, b, -1),
                   lambda x, g, b: F.layer_norm(x, (5,), g, b)),
    "batch_norm": ([(3, 4, 5, 2), (4,), (4,)], lambda x, g, b: nn.batch_norm(x, g, b, g, b, training=True)[0],
                   lambda x, g, b: F.batch_norm(x, None, None, g, b, True)),
    "max_pool": ([(2, 3, 9, 8)], lambda x: nn.pool2d(x, (3, 3), (2, 2), (1, 1), (1, 1, 1, 1), "max"),
                 lambda x: F.max_pool2d(x, 3, 2, 1)),
    "avg_pool": ([(2, 3, 9, 8)], lambda x: nn.pool2d(x, (3, 2), (2, 1), (1, 1), (1, 0, 1, 0), "avg"),
                 lambda x: F.avg_pool2d(x, (3, 2), (2, 1), (1, 0))),
    "max": ([(4, 5, 3)], lambda x: topi.max(x, 1), lambda x: x.max(1).values),
    "cumsum": ([(4, 5)], lambda x: topi.cumsum(x, 1), lambda x: x.cumsum(1)),
    "cumprod": ([(4, 5)], lambda x: topi.cumprod(x, 1), lambda x: x.cumprod(1)),
    "sort": ([(4, 5)], lambda x: topi.sort(x, 0), lambda x: x.sort(0).values),
}


@pytest.mark.parametrize("dtype, tolerance", [("float32", 2e-5), ("float64", 1e-12)])
@pytest.mark.parametrize("name", CASES)
def test_gradients_are_those_of_torch(name, dtype, tolerance):
    shapes, ours, theirs = CASES[name]
    rng = np.random.default_rng(0)
    inputs = {te.placeholder(shape, dtype, name=f"x{n}"): rng.standard_normal(shape).astype(dtype)
              for n, shape in enumerate(shapes)}
    out = ours(*inputs)
    head = te.placeholder(out.shape, dtype, name="head")
    given = rng.standard_normal(shape_of(out)).astype(dtype)
    made = values(te.gradient(out, list(inputs), head), {**inputs, head: given})
    with torch.enable_grad():
        leaves = [torch.from_numpy(array).requires_grad_() for array in inputs.values()]
        theirs(*leaves).backward(torch.from_numpy(given))
    for found, leaf in zip(made, leaves):
        expected = leaf.grad.numpy()
        np.testing.assert_allclose(found, expected, rtol=0, atol=tolerance * max(1.0, np.abs(expected).max()))
