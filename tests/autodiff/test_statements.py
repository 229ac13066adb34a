"""Derivatives of operators that are statements: forwards too, second derivatives, and what is refused."""

import numpy as np
import pytest

import tedsl
from tedsl import arith, te, topi
from tedsl.errors import ArgumentTypeError, TedslError
from tests.autodiff.differences import check, compiled


def placeholder(shape, name, dtype="float64"):
    return te.placeholder(shape, dtype, name=name)


@pytest.mark.parametrize("operator", [
    lambda a: topi.cumsum(a, axis=1), lambda a: topi.cumsum(a, exclusive=True), lambda a: topi.cumprod(a, axis=0),
    lambda a: topi.sort(a, axis=0), lambda a: topi.topk(a, 2, axis=1, ret_type="values"),
], ids=["cumsum", "cumsum of all", "cumprod", "sort", "topk"])
def test_operators_of_statements_have_tangents(operator):
    a = placeholder((4, 3), "A")
    check(operator(a), [a])


@pytest.mark.parametrize("operator", [topi.scatter, topi.scatter_add])
def test_scattered_updates_have_tangents(operator):
    a, u, n = placeholder((3, 4), "A"), placeholder((3, 2), "U"), placeholder((3, 2), "N", "int32")
    rng = np.random.default_rng(0)
    doubled = te.compute(a.shape, lambda i, j: 2.0 * a[i, j], name="doubled")
    check(operator(doubled, n, u, axis=1), [a, u, n],
          arrays=[rng.random((3, 4)), rng.random((3, 2)), np.array([[0, 3], [1, 1], [2, 1]], "int32")])


def test_the_derivative_of_a_convolution_with_strides_has_a_tangent():
    a, w = placeholder((1, 2, 5, 5), "A"), placeholder((2, 2, 3, 3), "W")
    c = topi.nn.conv2d_nchw(topi.tanh(a), w, 2, 1, 1, "float64")
    first, = te.gradient(c, [a], topi.full(c.shape, "float64", 1.0))
    check(te.compute(first.shape, lambda *i: first[i] * first[i]), [a, w], tolerance=1e-4, step=1e-5)


def test_integers_that_statements_make_of_floats_count_as_constants():
    a = placeholder((4, 3), "A")
    check(topi.gather(a, 0, topi.argsort(a, axis=0, dtype="int32")), [a])
    both = topi.topk(a, 2, axis=0, dtype="int32")
    check(te.compute((2, 3), lambda i, j: both[0][i, j] * a[both[1][i, j], j], name="C"), [a])


@pytest.mark.parametrize("operator", [
    lambda a: topi.cumsum(a, axis=1), lambda a: topi.cumsum(a, axis=0, exclusive=True), lambda a: topi.cumprod(a, axis=0),
    lambda a: topi.sort(a, axis=0), lambda a: topi.topk(a, 2, axis=1, ret_type="values"),
    lambda a: topi.exp(topi.cumsum(topi.sin(a))),
], ids=["cumsum", "exclusive", "cumprod", "sort", "topk", "of all, between formulas"])
def test_jacobians_of_statements_are_their_gradients_head_by_head(operator):
    a = placeholder((3, 4), "A")
    out = operator(a)
    head = placeholder(out.shape, "H")
    values = np.random.default_rng(1).permutation(12).reshape(3, 4) / 5 - 1  # one of them is 0
    whole, = compiled([a], te.gradient(out, [a]))(values)
    one = compiled([a, head], te.gradient(out, [a], head))
    shape = tuple(map(int, out.shape))
    for place in np.ndindex(*shape):
        unit = np.zeros(shape)
        unit[place] = 1
        np.testing.assert_allclose(whole[place], one(values, unit)[0])


@pytest.mark.parametrize("operator", [topi.scatter, topi.scatter_add])
def test_jacobians_of_scattered_updates(operator):
    a, u, n = placeholder((3, 4), "A"), placeholder((3, 2), "U"), placeholder((3, 2), "N", "int32")
    out = operator(a, n, u, axis=1)
    heads = placeholder((2, 3, 4), "H")
    places, rng = np.array([[0, 3], [1, 1], [2, 1]], "int32"), np.random.default_rng(0)
    values, updates, weights = rng.random((3, 4)), rng.random((3, 2)), rng.random((2, 3, 4))
    both = compiled([a, u, n, heads], te.gradient(out, [a, u], heads))(values, updates, places, weights)
    head = placeholder((3, 4), "H")
    one = compiled([a, u, n, head], te.gradient(out, [a, u], head))
    for at in range(2):
        for found, expected in zip(both, one(values, updates, places, weights[at])):
            np.testing.assert_allclose(found[at], expected)


def test_jacobians_that_there_are_not_are_refused_with_what_is_possible():
    u, n = placeholder((2,), "U"), placeholder((2, 1), "N", "int32")
    with pytest.raises(TedslError, match="for heads of the shape of the output alone"):
        te.gradient(topi.sparse_to_dense(n, (4,), u), [u])


def test_ranges_that_are_no_mapping_are_refused():
    i = te.var("i")
    for solve in (arith.solve_linear_equations, arith.solve_linear_inequalities):
        with pytest.raises(ArgumentTypeError, match="not a mapping"):
            solve([i <= 2], [i], [tedsl.ir.Range(0, 3)])
