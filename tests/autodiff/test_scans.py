"""Derivatives of recurrences."""

import numpy as np
import pytest

from tedsl import te
from tedsl.errors import TedslError
from tests.autodiff.differences import check, compiled


def placeholder(shape, name, dtype="float64"):
    return te.placeholder(shape, dtype, name=name)


def cumulative(x, step, rows=1, name="S"):
    """A scan over the rows of x that begins with its first ones."""
    m, n = x.shape
    state = te.placeholder((m, n), x.dtype, name=f"{name}.state")
    init = te.compute((rows, n), lambda t, i: x[t, i] * x[t, i], name="init")
    return te.scan(init, te.compute((m, n), lambda t, i: step(state, t, i), name="update"), state, [x], name=name)


def test_running_sums():
    x = placeholder((5, 3), "X")
    check(cumulative(x, lambda s, t, i: s[t - 1, i] + x[t, i] * x[t, i]), [x])


def test_running_products():
    x = placeholder((5, 3), "X")
    check(cumulative(x, lambda s, t, i: s[t - 1, i] * x[t, i]), [x])


def test_two_rows_back():
    x, a = placeholder((7, 2), "X"), placeholder((2,), "A")
    check(cumulative(x, lambda s, t, i: s[t - 1, i] * a[0] + s[t - 2, i] * te.sin(a[i]) + x[t - 1, i], rows=2), [x, a])


def test_a_value_that_stands_in_the_result():
    x = placeholder((5, 3), "X")
    check(cumulative(x, lambda s, t, i: te.tanh(s[t - 1, i] + x[t, i])), [x])


def test_one_row():
    x = placeholder((1, 3), "X")
    check(cumulative(x, lambda s, t, i: s[t - 1, i] * x[t, i]), [x])


def test_a_recurrent_network():
    m, n, h = 5, 2, 3
    x, w, u = placeholder((m, n), "X"), placeholder((h, n), "W"), placeholder((h, h), "U")
    state = placeholder((m, h), "state")
    k, l = te.reduce_axis((0, n), name="k"), te.reduce_axis((0, h), name="l")
    inner = te.compute((m, h), lambda t, i: te.sum(x[t, k] * w[i, k], axis=k), name="inner")
    again = te.compute((m, h), lambda t, i: te.sum(state[t - 1, l] * u[i, l], axis=l), name="again")
    init = te.compute((1, h), lambda _, i: te.const(0.0, "float64"), name="init")
    update = te.compute((m, h), lambda t, i: te.tanh(inner[t, i] + again[t, i]), name="update")
    check(te.scan(init, update, state, [x, w, u]), [x, w, u])


def test_several_states():
    x = placeholder((6, 2), "X")
    s1, s2 = placeholder((6, 2), "s1"), placeholder((6, 2), "s2")
    i1 = te.compute((1, 2), lambda t, i: x[0, i], name="i1")
    i2 = te.compute((1, 2), lambda t, i: te.exp(x[0, i]), name="i2")
    u1 = te.compute((6, 2), lambda t, i: s1[t - 1, i] * s2[t - 1, 1 - i], name="u1")
    u2 = te.compute((6, 2), lambda t, i: s1[t - 1, i] + te.sin(s2[t - 1, i]) * x[t, i], name="u2")
    one, other = te.scan([i1, i2], [u1, u2], [s1, s2], [x])
    check(one, [x])
    check(te.compute((6, 2), lambda t, i: one[t, i] * other[t, i], name="both"), [x])


def test_a_state_that_is_computed_from_the_new_row_of_another():
    """As in an LSTM: the hidden row is made of the new cell, whose formula reads rows that only the steps have."""
    x = placeholder((4, 2), "X")
    h, c = placeholder((5, 2), "h"), placeholder((5, 2), "c")
    begin = [te.compute((1, 2), lambda _, i: te.const(0.5, "float64"), name=f"{name}0") for name in "hc"]
    cell = te.compute((5, 2), lambda t, i: c[t - 1, i] * te.sigmoid(h[t - 1, 1 - i]) + x[t - 1, i], name="cell")
    hidden = te.compute((5, 2), lambda t, i: te.tanh(cell[t, i]) * x[t - 1, 1 - i], name="hidden")
    for rows in te.scan(begin, [hidden, cell], [h, c], [x]):
        check(rows, [x])


def test_a_state_of_integers_counts_along():
    x = placeholder((5, 2), "X")
    s1, s2 = placeholder((5, 2), "s1"), placeholder((5, 2), "s2", "int32")
    i1 = te.compute((1, 2), lambda t, i: x[0, i], name="i1")
    i2 = te.compute((1, 2), lambda t, i: te.const(1, "int32"), name="i2")
    u1 = te.compute((5, 2), lambda t, i: s1[t - 1, i] * s2[t - 1, i] + x[t, i], name="u1")
    u2 = te.compute((5, 2), lambda t, i: s2[t - 1, i] + 1, name="u2")
    check(te.scan([i1, i2], [u1, u2], [s1, s2], [x])[0], [x])


def test_a_sum_over_all_rows_before():
    x = placeholder((5, 2), "X")
    k = te.reduce_axis((0, 5), name="k")
    check(cumulative(x, lambda s, t, i: te.sum(s[k, i] * x[k, i], axis=k, where=k < t)), [x])


def test_the_whole_jacobian_and_second_derivatives():
    x = placeholder((4, 1), "X")
    s = cumulative(x, lambda s, t, i: s[t - 1, i] * x[t, i])
    jacobian, = te.gradient(s, [x])
    values = np.array([[2.0], [3.0], [5.0], [7.0]])
    rows = np.zeros((4, 4))
    rows[:, 0] = [4, 12, 60, 420]
    rows[1:, 1] = [4, 20, 140]
    rows[2:, 2] = [12, 84]
    rows[3, 3] = 60
    np.testing.assert_allclose(compiled([x], [jacobian])(values)[0].reshape(4, 4), rows)
    head = placeholder((4, 1), "head")
    first, = te.gradient(s, [x], head)
    check(first, [x, head], tolerance=1e-5)


def test_sizes_that_are_variables():
    m, n = te.var("m"), te.var("n")
    x, head = placeholder((m, n), "X"), placeholder((m, n), "head")
    found, = te.gradient(cumulative(x, lambda s, t, i: s[t - 1, i] + x[t, i] * x[t, i]), [x], head)
    kernel = __import__("tedsl").build(te.create_schedule(found.op), [x, head, found])
    values, weights, result = np.random.default_rng(0).random((5, 3)), np.ones((5, 3)), np.zeros((5, 3))
    kernel(values, weights, result)
    np.testing.assert_allclose(result, 2 * values * np.arange(5, 0, -1)[:, None])


def test_tensors_inside_of_a_scan_are_not_inputs():
    x = placeholder((4, 1), "X")
    s = cumulative(x, lambda s, t, i: s[t - 1, i] * x[t, i])
    with pytest.raises(TedslError, match=r"update is computed step by step inside of the scan S"):
        te.gradient(s, [s.op.update[0]])
