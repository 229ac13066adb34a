"""Layers and losses against those of torch, where it is installed."""

import numpy as np
import pytest

from tedsl import nn
from tedsl.autograd import Tensor, from_numpy

torch = pytest.importorskip("torch")
LAYERS = {
    "linear": (lambda n: n.Linear(5, 3), (4, 5)),
    "linear of three dimensions, without a bias": (lambda n: n.Linear(5, 3, bias=False), (2, 7, 5)),
    "conv": (lambda n: n.Conv2d(3, 4, 3, padding=1), (2, 3, 7, 5)),
    "conv with a stride and a rectangle": (lambda n: n.Conv2d(3, 4, (3, 2), stride=(2, 1), padding=(0, 1)), (1, 3, 8, 5)),
    "conv dilated": (lambda n: n.Conv2d(2, 3, 3, dilation=2, bias=False), (2, 2, 9, 8)),
    "conv in groups": (lambda n: n.Conv2d(4, 6, 3, groups=2), (2, 4, 6, 5)),
    "batch norm": (lambda n: n.BatchNorm2d(3), (4, 3, 5, 2)),
    "layer norm": (lambda n: n.LayerNorm(6), (3, 4, 6)),
    "layer norm of two dimensions": (lambda n: n.LayerNorm((4, 6)), (3, 4, 6)),
    "max pool": (lambda n: n.MaxPool2d(2), (2, 3, 7, 6)),
    "max pool with a border": (lambda n: n.MaxPool2d(3, 2, 1), (2, 3, 7, 6)),
    "relu": (lambda n: n.ReLU(), (3, 4)),
    "gelu": (lambda n: n.GELU(), (3, 4)),
    "flatten": (lambda n: n.Flatten(), (3, 4, 2)),
    "several": (lambda n: n.Sequential(n.Conv2d(2, 3, 3), n.BatchNorm2d(3), n.ReLU(), n.Flatten(), n.Linear(12, 4)),
                (5, 2, 4, 4)),
}


def pair(name):
    """Our layer and torch's with the same parameters, in float64, and an input."""
    make, shape = LAYERS[name]
    ours, theirs = make(nn), make(torch.nn).double()
    rng = np.random.default_rng(len(name))
    values = [rng.standard_normal(p.shape) for p in theirs.parameters()]
    for p, value in zip(theirs.parameters(), values, strict=True):
        p.data = torch.tensor(value)
    for module in [module for _, module in ours.modules()]:
        for attribute, value in list(vars(module).items()):
            if isinstance(value, Tensor):
                made = value.data.numpy().astype("float64")
                setattr(module, attribute, from_numpy(made).requires_grad_(value.requires_grad))
    for p, value in zip(ours.parameters(), values, strict=True):
        p.detach().copy_(value)
    return ours, theirs, rng.standard_normal(shape)


@pytest.mark.parametrize("name", LAYERS)
def test_a_layer_and_its_gradients_are_those_of_torch(name):
    ours, theirs, x = pair(name)
    a, b = from_numpy(x.copy()).requires_grad_(), torch.tensor(x, requires_grad=True)
    out, expected = ours(a), theirs(b)
    head = np.random.default_rng(0).standard_normal(expected.shape)
    out.backward(from_numpy(head))
    expected.backward(torch.tensor(head))
    np.testing.assert_allclose(out.detach().numpy(), expected.detach().numpy(), rtol=1e-10, atol=1e-10)
    for mine, other in zip([a, *ours.parameters()], [b, *theirs.parameters()], strict=True):
        np.testing.assert_allclose(mine.grad.numpy(), other.grad.numpy(), rtol=1e-9, atol=1e-9)


def test_batch_norm_keeps_the_running_statistics_of_torch_and_uses_them_afterwards():
    ours, theirs, x = pair("batch norm")
    for scale in (1.0, 3.0):
        ours(from_numpy(x * scale + scale))
        theirs(torch.tensor(x * scale + scale))
    state = ours.state_dict()
    np.testing.assert_allclose(state["running_mean"], theirs.running_mean.numpy(), rtol=1e-12)
    np.testing.assert_allclose(state["running_var"], theirs.running_var.numpy(), rtol=1e-12)
    np.testing.assert_allclose(ours.eval()(from_numpy(x)).detach().numpy(), theirs.eval()(torch.tensor(x)).detach().numpy())


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("shape", [(5, 3), (1, 4), (2, 5, 3)], ids=str)
def test_cross_entropy_is_that_of_torch(shape, reduction):
    rng = np.random.default_rng(1)
    x, target = rng.standard_normal(shape), rng.integers(0, shape[1], (shape[0], *shape[2:]))
    target.flat[0] = -100 if target.size > 1 else 0  # left out
    a, b = from_numpy(x.copy()).requires_grad_(), torch.tensor(x, requires_grad=True)
    out = nn.CrossEntropyLoss(reduction)(a, from_numpy(target))
    expected = torch.nn.functional.cross_entropy(b, torch.tensor(target), reduction=reduction)
    np.testing.assert_allclose(out.detach().numpy(), expected.detach().numpy(), rtol=1e-12)
    head = rng.standard_normal(expected.shape)
    out.backward(from_numpy(np.asarray(head)))
    expected.backward(torch.tensor(head))
    np.testing.assert_allclose(a.grad.numpy(), b.grad.numpy(), rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("causal", [False, True])
def test_attention_is_that_of_torch(causal):
    rng = np.random.default_rng(2)
    arrays = [rng.standard_normal((2, 5, 4)) for _ in range(3)]
    ours, theirs = [from_numpy(a).requires_grad_() for a in arrays], [torch.tensor(a, requires_grad=True) for a in arrays]
    out = nn.functional.attention(*ours, causal=causal)
    expected = torch.nn.functional.scaled_dot_product_attention(*theirs, is_causal=causal)
    out.sum().backward()
    expected.sum().backward()
    np.testing.assert_allclose(out.detach().numpy(), expected.detach().numpy(), rtol=1e-10)
    for a, b in zip(ours, theirs):
        np.testing.assert_allclose(a.grad.numpy(), b.grad.numpy(), rtol=1e-9, atol=1e-12)
