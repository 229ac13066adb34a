"""Operators on tensors: their values as numpy's, their gradients and the gradients of these by differences."""

import numpy as np
import pytest

import topi
from tedsl import autograd, te
from tedsl.autograd import functional as F
from tedsl.autograd import gradcheck, gradgradcheck, tensor
from tedsl.errors import OptionError, ShapeError
from tests.refusing import refused


def drawn(*shape, seed=0, low=-1.5, high=1.5, dtype="float64"):
    return tensor(np.random.default_rng(seed).uniform(low, high, shape), dtype, requires_grad=True)


def positive(*shape, seed=0):
    return drawn(*shape, seed=seed, low=0.5, high=2.0)


BINARY = {
    "add": lambda a, b: a + b, "subtract": lambda a, b: a - b, "multiply": lambda a, b: a * b, "divide": lambda a, b: a / b,
    "power": lambda a, b: a ** b, "numbers": lambda a, b: 2.0 - a + b * 3 - 1 / b,
    "power_of_number": lambda a, b: 2.0 ** a * b ** 3,
    "roots": lambda a, b: a ** 0.5 + b ** -1.5,
}
SHAPES = [((3, 4), (3, 4)), ((3, 1), (5, 1, 4)), ((), (2, 3))]


@pytest.mark.parametrize("name", BINARY)
def test_binary_operators(name):
    for first, second in SHAPES:
        a, b = positive(*first), positive(*second, seed=1)
        expected = BINARY[name](a.detach().numpy(), b.detach().numpy())
        np.testing.assert_allclose(BINARY[name](a, b).detach().numpy(), expected, rtol=1e-12)
    assert gradcheck(BINARY[name], [a, b])
    assert gradgradcheck(BINARY[name], [a, b])


METHODS = {
    "sum": lambda x: x.sum(axis=1), "sum_all": lambda x: x.sum(), "mean": lambda x: x.mean(axis=(0, 2), keepdims=True),
    "var": lambda x: x.var(axis=1), "max": lambda x: x.max(axis=2), "min": lambda x: x.min(axis=0),
    "prod": lambda x: x.prod(axis=1),
    "reshape": lambda x: x.reshape(4, -1), "transpose": lambda x: x.transpose(2, 0, 1), "T": lambda x: x.T,
    "flatten": lambda x: x.flatten() * 2, "cumsum": lambda x: x.cumsum(1), "clip": lambda x: x.clip(-0.5, 0.5),
    "exp": lambda x: x.exp(), "tanh": lambda x: x.tanh(), "sigmoid": lambda x: x.sigmoid(), "sin": lambda x: x.sin() * x.cos(),
    "erf": lambda x: x.erf(), "relu": lambda x: x.relu(), "abs": lambda x: abs(x), "neg": lambda x: -x,
    "softmax": lambda x: x.softmax(1), "log_softmax": lambda x: x.log_softmax(-1), "maximum": lambda x: x.maximum(0.25 * x * x),
    "item": lambda x: x[1], "slices": lambda x: x[:, 1:3, ::2], "ellipsis": lambda x: x[..., -1],
    "new": lambda x: x[None, :, 0],
    "log": lambda x: (x * x + 1).log(), "sqrt": lambda x: (x * x + 1).sqrt() + (x * x + 1).rsqrt(),
    "rows": lambda x: x[tensor([1, 0, 1, 1], "int32")], "squeeze": lambda x: x.expand_dims(1).squeeze(1),
    "clone": lambda x: x.clone(),
    "broadcast_to": lambda x: x[0, 0].broadcast_to(3, 4) * 2,
}


@pytest.mark.parametrize("name", METHODS)
def test_methods(name):
    x = drawn(2, 3, 4)
    assert gradcheck(METHODS[name], x)
    assert gradgradcheck(METHODS[name], x) if name not in LINEAR else True


LINEAR = {"sum", "sum_all", "mean", "max", "min", "reshape", "transpose", "T", "flatten", "cumsum", "clip", "relu", "abs",
          "neg", "item", "slices", "ellipsis", "new", "rows", "squeeze", "clone", "broadcast_to"}
NN = {
    "conv2d": (lambda x, w: F.conv2d(x, w, 1, 1, 1), (2, 3, 5, 5), (4, 3, 3, 3)),
    "conv2d_strided": (lambda x, w: F.conv2d(x, w, 2, 0, 1), (1, 2, 7, 7), (3, 2, 3, 3)),
    "depthwise": (lambda x, w: F.depthwise_conv2d_nchw(x, w, 1, 1, 1), (1, 3, 5, 5), (3, 1, 3, 3)),
    "dense": (lambda x, w: F.dense(x, w), (3, 5), (4, 5)),
    "batch_matmul": (lambda x, w: F.batch_matmul(x, w), (2, 3, 5), (2, 4, 5)),
    "matmul": (lambda x, w: x @ w, (3, 5), (5, 4)),
    "matmul_batched": (lambda x, w: x @ w, (2, 1, 3, 5), (3, 5, 2)),
    "matmul_vector": (lambda x, w: x @ w, (3, 5), (5,)),
    "einsum": (lambda x, w: F.einsum("ijk,kl->jl", x, w), (2, 3, 4), (4, 3)),
    "concatenate": (lambda x, w: F.concatenate([x, w * w], 1), (2, 3), (2, 2)),
    "layer_norm": (lambda x, w: F.layer_norm(x, w, w * 2, axis=[1]), (3, 5), (5,)),
    "where": (lambda x, w: F.where((x > 0).astype("int32"), x * w, w), (3, 4), (3, 4)),
    "max_pool": (lambda x, w: F.pool2d(x, (2, 2), (2, 2), (1, 1), (0, 0, 0, 0), "max") * w, (1, 2, 4, 4), (1, 2, 2, 2)),
}


@pytest.mark.parametrize("name", NN)
def test_operators_of_networks(name):
    function, first, second = NN[name]
    assert gradcheck(function, [drawn(*first), drawn(*second, seed=1)])


SAMPLE = ("conv2d", "dense", "matmul_batched", "layer_norm")


@pytest.mark.parametrize("name", [*SAMPLE, *[pytest.param(name, marks=pytest.mark.whole) for name in NN if name not in SAMPLE]])
def test_gradients_of_gradients_of_networks(name):
    function, first, second = NN[name]
    assert gradgradcheck(function, [drawn(*first), drawn(*second, seed=1)])


def test_products_of_matrices_are_numpys():
    for first, second in [((3,), (3,)), ((3,), (3, 2)), ((2, 3), (3,)), ((4, 2, 3), (3, 5)), ((4, 1, 2, 3), (5, 3, 2))]:
        a, b = drawn(*first), drawn(*second)
        np.testing.assert_allclose((a @ b).detach().numpy(), a.detach().numpy() @ b.detach().numpy(), rtol=1e-12)


def test_formulas_of_a_program():
    def shifted(x, by):
        return te.compute(x.shape, lambda i: te.if_then_else(i >= by, x[i - by], 0.0), name="shifted")

    assert gradcheck(lambda x: autograd.op(shifted)(x, 2), drawn(5))
    assert autograd.op(shifted) is autograd.op(shifted)
    assert autograd.op(shifted)(drawn(5), 2).grad_fn.name() == "ShiftedBackward0"


def test_a_formula_is_compiled_once_for_each_kind():
    written = []

    def doubled(x):
        written.append(x)
        return topi.multiply(x, x)

    double = autograd.op(doubled)
    for _ in range(3):
        double(drawn(3)).sum().backward()
        double(drawn(3).detach())
    double(drawn(4))
    assert len(written) == 2


def test_comparisons_and_dtypes():
    x = tensor([1.0, 2.0, 3.0])
    assert (x > 2).tolist() == [False, False, True] and (x == 2).tolist() == [False, True, False]
    assert (x.astype("int32") // 2).tolist() == [0, 1, 1] and (x % 2).tolist() == [1, 0, 1]
    assert (tensor([1, 2]) * 0.5).dtype == "float32" and tensor([1, 2]).dtype == "int64"
    assert (np.float32([1, 2, 3]) * x).tolist() == [1, 4, 9]


def test_half_floats():
    x = drawn(8, dtype="float16")
    (x * x).sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), 2 * x.detach().numpy(), rtol=1e-3)


def test_names_that_are_not_there():
    refused(lambda: F.con2d, "con2d", "conv2d", error=OptionError)
    refused(lambda: drawn(3)[5], "index 5", error=ShapeError)
    refused(lambda: drawn(3)[0, 0], "2 indices", error=ShapeError)
    refused(lambda: drawn(3)[::0], "step of a slice is 0", error=ShapeError)
    refused(lambda: drawn(3)["a":], "no slice", error=TypeError)
    refused(lambda: drawn(3)["a"], "no index", error=TypeError)
    refused(lambda: drawn(3).reshape(2, 2), "3 elements", error=ShapeError)
    refused(lambda: drawn(3, 2) @ drawn(3), "2 columns, 3 rows", error=ShapeError)


def test_slices_that_go_backwards():
    x, head = drawn(4, 5), drawn(2, 3)
    part = x[::-2, 3:0:-1]
    np.testing.assert_array_equal(part.detach().numpy(), x.detach().numpy()[::-2, 3:0:-1])
    (part * head.detach()).sum().backward()
    expected = np.zeros((4, 5))
    expected[::-2, 3:0:-1] = head.detach().numpy()
    np.testing.assert_array_equal(x.grad.numpy(), expected)
    assert gradgradcheck(lambda z: z[::-1, ::-2] * z[:, 4:0:-1][:, :3], [drawn(3, 5)])
    assert drawn(0, 3)[::-1].shape == (0, 3) and drawn(3)[0:2:-1].shape == (0,)


def test_elements_set_backwards():
    x, v = drawn(5), drawn(3)
    y = x * 1
    y[::-2] = v
    weights = tensor([1.0, 2.0, 3.0, 4.0, 5.0], "float64")
    (y * weights).sum().backward()
    assert x.grad.tolist() == [0, 2, 0, 4, 0] and v.grad.tolist() == [5, 3, 1]


def test_quotients_and_counts_of_integers():
    assert (tensor([2, 3]) / 2).tolist() == [1, 1.5] and (1 / tensor([2, 4])).tolist() == [0.5, 0.25]
    assert (tensor([2, 3]) > 2).sum().item() == 1 and (tensor([2, 3]) > 2).mean().item() == 0.5
    whole = tensor([2, 3])
    with pytest.raises(ShapeError, match="does not fit into the tensor int64"):
        whole /= 2


def test_gradients_of_no_elements_are_zeros():
    x, w = drawn(0, 2, 3), drawn(6, 4)
    ((x * 2.0).reshape(0, 6) @ w).sum().backward()
    assert x.grad.shape == (0, 2, 3) and not w.grad.numpy().any()


def test_bfloat16():
    x = tensor([1.0, 2.0, 3.0], "bfloat16", requires_grad=True)
    (x * x + x.exp()).sum().backward()
    expected = 2 * np.arange(1, 4) + np.exp(np.arange(1, 4))
    np.testing.assert_allclose(x.grad.astype("float32").numpy(), expected, rtol=1e-2)
