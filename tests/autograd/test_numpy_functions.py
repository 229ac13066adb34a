"""Functions of numpy called with tensors."""

import numpy as np
import pytest

from tedsl.autograd import Tensor, value_and_grad
from tedsl.errors import ArgumentTypeError
from tests.refusing import refused

X = np.random.default_rng(0).uniform(0.2, 0.9, (3, 4))
FUNCTIONS = {
    "exp": np.exp, "abs": np.abs, "tanh": np.tanh, "arctan": np.arctan, "negative": np.negative,
    "maximum": lambda x: np.maximum(0.5, x),
    "sum": np.sum, "sum of rows": lambda x: np.sum(x, axis=1, keepdims=True), "keepdims": lambda x: np.mean(x, keepdims=True),
    "max": lambda x: np.max(x, 0), "var": lambda x: np.var(x, axis=0), "prod": lambda x: np.prod(x, axis=(0, 1)),
    "cumsum": lambda x: np.cumsum(x, axis=1), "reshape": lambda x: np.reshape(x, (2, 6)),
    "clip": lambda x: np.clip(x, 0.3, 0.6),
    "transpose": np.transpose, "axes": lambda x: np.transpose(x, (1, 0)), "expand": lambda x: np.expand_dims(x, 1),
    "array + x": lambda x: X + x, "array @ x": lambda x: X.T @ x, "number * x": lambda x: np.float64(2) * x,
    "array / x": lambda x: X / x, "array < x": lambda x: X[::-1] < x,
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_are_operators(name):
    result, expected = FUNCTIONS[name](Tensor(X, requires_grad=True)), FUNCTIONS[name](X)
    assert isinstance(result, Tensor)
    np.testing.assert_allclose(result.detach().numpy(), expected, rtol=1e-12)
    assert result.requires_grad == (expected.dtype == "float64")


def test_functions_are_recorded_and_traced():
    x = Tensor(X, requires_grad=True)
    np.sum(np.exp(x)).backward()
    np.testing.assert_allclose(x.grad.numpy(), np.exp(X))
    value, gradient = value_and_grad(lambda x: np.sum(np.exp(x) * X))(x)
    np.testing.assert_allclose(value.item(), (np.exp(X) * X).sum())
    np.testing.assert_allclose(gradient.numpy(), np.exp(X) * X)


def test_functions_that_are_no_operators_take_arrays():
    x = Tensor(X)
    assert type(np.concatenate([x, X])) is np.ndarray and np.linalg.norm(x) == np.linalg.norm(X)
    assert np.allclose(x, X) and np.stack((x, x)).shape == (2, 3, 4)
    refused(lambda: np.concatenate([Tensor(X, requires_grad=True), X]), "not recorded", "detach()")


def test_what_tensors_do_not_do_is_refused():
    x = Tensor(X, requires_grad=True)
    refused(lambda: np.sum(x, dtype="float32"), "numpy.sum does not take tensors with dtype", "x.sum(axis, keepdims)",
            error=ArgumentTypeError)
    refused(lambda: np.sum(x, 0, "float32"), "with dtype", error=ArgumentTypeError)
    refused(lambda: np.add(x, 1, out=np.ones(X.shape)), "with out", error=ArgumentTypeError)
    refused(lambda: np.add.reduce(x), "by reduce", error=ArgumentTypeError)
    refused(lambda: np.spacing(x), "numpy.spacing has no operator", "detach()", error=ArgumentTypeError)
