"""Gradients and gradients of gradients as torch computes them."""

import numpy as np
import pytest

from tedsl.autograd import functional as F
from tedsl.autograd import grad, tensor

torch = pytest.importorskip("torch")
TF = torch.nn.functional
X, Y = (3, 4), (4, 5)
IMAGE, KERNEL = (2, 3, 6, 6), (4, 3, 3, 3)

# Shapes of the operands, ours, torch's.
OPERATORS = {
    "add": ([X, X], lambda a, b: a + b * b, lambda a, b: a + b * b),
    "subtract": ([X, (4,)], lambda a, b: (a - b) ** 3, lambda a, b: (a - b) ** 3),
    "multiply": ([X, (3, 1)], lambda a, b: a * b, lambda a, b: a * b),
    "divide": ([X, X], lambda a, b: a / b, lambda a, b: a / b),
    "power": ([X, X], lambda a, b: a ** b, lambda a, b: a ** b),
    "exp": ([X], lambda a: a.exp(), lambda a: a.exp()),
    "log": ([X], lambda a: a.log(), lambda a: a.log()),
    "sqrt": ([X], lambda a: a.sqrt(), lambda a: a.sqrt()),
    "rsqrt": ([X], lambda a: a.rsqrt(), lambda a: a.rsqrt()),
    "sin": ([X], lambda a: a.sin(), lambda a: a.sin()),
    "cos": ([X], lambda a: a.cos(), lambda a: a.cos()),
    "tanh": ([X], lambda a: a.tanh(), lambda a: a.tanh()),
    "sigmoid": ([X], lambda a: a.sigmoid(), lambda a: a.sigmoid()),
    "erf": ([X], lambda a: a.erf(), lambda a: a.erf()),
    "relu": ([X], lambda a: (a - 1).relu() * a, lambda a: (a - 1).relu() * a),
    "abs": ([X], lambda a: abs(a - 1) * a, lambda a: abs(a - 1) * a),
    "softmax": ([X], lambda a: a.softmax(1), lambda a: a.softmax(1)),
    "log_softmax": ([X], lambda a: a.log_softmax(1), lambda a: a.log_softmax(1)),
    "sum": ([X], lambda a: (a * a).sum(axis=0), lambda a: (a * a).sum(dim=0)),
    "mean": ([X], lambda a: (a * a).mean(), lambda a: (a * a).mean()),
    "var": ([X], lambda a: a.var(axis=1), lambda a: a.var(dim=1, correction=0)),
    "max": ([X], lambda a: (a * a).max(axis=1), lambda a: (a * a).amax(dim=1)),
    "prod": ([X], lambda a: a.prod(axis=1), lambda a: a.prod(dim=1)),
    "cumsum": ([X], lambda a: (a * a).cumsum(1), lambda a: (a * a).cumsum(1)),
    "matmul": ([X, Y], lambda a, b: a @ b, lambda a, b: a @ b),
    "dense": ([X, (5, 4)], lambda a, b: F.dense(a, b).tanh(), lambda a, b: TF.linear(a, b).tanh()),
    "batch_matmul": ([(2, 3, 4), (2, 5, 4)], lambda a, b: F.batch_matmul(a, b), lambda a, b: a @ b.transpose(1, 2)),
    "einsum": ([X, Y], lambda a, b: F.einsum("ij,jk->ki", a, b), lambda a, b: torch.einsum("ij,jk->ki", a, b)),
    "conv2d": ([IMAGE, KERNEL], lambda a, b: F.conv2d(a, b, 1, 1, 1), lambda a, b: TF.conv2d(a, b, padding=1)),
    "conv2d_strided": ([IMAGE, KERNEL], lambda a, b: F.conv2d(a, b, 2, 1, 1),
                       lambda a, b: TF.conv2d(a, b, stride=2, padding=1)),
    "depthwise": ([IMAGE, (3, 1, 3, 3)], lambda a, b: F.depthwise_conv2d_nchw(a, b, 1, 1, 1),
                  lambda a, b: TF.conv2d(a, b, padding=1, groups=3)),
    "avg_pool": ([IMAGE], lambda a: F.pool2d(a * a, (2, 2), (2, 2), (1, 1), (0, 0, 0, 0), "avg"),
                 lambda a: TF.avg_pool2d(a * a, 2)),
    "max_pool": ([IMAGE], lambda a: F.pool2d(a * a, (2, 2), (2, 2), (1, 1), (0, 0, 0, 0), "max"),
                 lambda a: TF.max_pool2d(a * a, 2)),
    "layer_norm": ([X, (4,), (4,)], lambda a, b, c: F.layer_norm(a, b, c, axis=[1], epsilon=1e-5),
                   lambda a, b, c: TF.layer_norm(a, (4,), b, c, 1e-5)),
    "reshape": ([X], lambda a: (a * a).reshape(2, 6).T, lambda a: (a * a).reshape(2, 6).T),
    "slices": ([X], lambda a: a[1:, ::2] ** 3, lambda a: a[1:, ::2] ** 3),
    "concatenate": ([X, X], lambda a, b: F.concatenate([a, b], 1) ** 3, lambda a, b: torch.cat([a, b], 1) ** 3),
}


def gradients(function, operands, grad_of, **options):
    """The result, the gradients of its weighted sum, and those of the sum of the squares of these."""
    out = function(*operands)
    first = grad_of((out * out * 0.5).sum(), operands, create_graph=True)
    total = sum((one * one).sum() for one in first)
    return out, first, grad_of(total, operands, **options)


@pytest.mark.parametrize("name", OPERATORS)
def test_as_torch(name):
    shapes, ours, theirs = OPERATORS[name]
    rng = np.random.default_rng(3)
    arrays = [rng.uniform(0.5, 1.5, shape) for shape in shapes]
    out, first, second = gradients(ours, [tensor(a, "float64", requires_grad=True) for a in arrays], grad)
    expected = gradients(theirs, [torch.tensor(a, requires_grad=True) for a in arrays], torch.autograd.grad)
    for found, wanted in zip([out, *first, *second], [expected[0], *expected[1], *expected[2]]):
        np.testing.assert_allclose(found.detach().numpy(), wanted.detach().numpy(), rtol=1e-8, atol=1e-9)
