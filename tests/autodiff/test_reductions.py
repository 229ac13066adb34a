"""Derivatives of reductions, and of reads at indices that are data."""

import numpy as np
import pytest

from tedsl import te
from tedsl.errors import DTypeError, TedslError
from tests.autodiff.differences import check, compiled


def placeholder(shape, name, dtype="float64"):
    return te.placeholder(shape, dtype, name=name)


def reduced(reducer, a, **options):
    k = te.reduce_axis((0, a.shape[1]), name="k")
    return te.compute((a.shape[0],), lambda i: reducer(a[i, k] * te.exp(a[i, k]), axis=k, **options), name="B")


def derivative(output, inputs, arrays):
    head = te.compute(output.shape, lambda *_: te.const(1.0, output.dtype), name="ones")
    return compiled(inputs, te.gradient(output, inputs, head))(*arrays)


log_sum_exp = te.comm_reducer(lambda x, y: te.max(x, y) + te.log1p(te.exp(-te.abs(x - y))), lambda t: te.min_value(t),
                              name="log_sum_exp")
argmax = te.comm_reducer(lambda x, y: (te.select(x[1] >= y[1], x[0], y[0]), te.select(x[1] >= y[1], x[1], y[1])),
                         lambda t0, t1: (te.const(-1, t0), te.min_value(t1)), name="argmax")
moments = te.comm_reducer(lambda x, y: (x[0] + y[0], x[1] * y[1]), lambda t0, t1: (te.const(0, t0), te.const(1, t1)))


@pytest.mark.parametrize("shape", [(3, 5), (1, 7), (4, 1)])
@pytest.mark.parametrize("reducer", [te.sum, te.prod, te.max, te.min, log_sum_exp], ids=lambda r: r.__name__)
def test_reductions(reducer, shape):
    a = placeholder(shape, "A")
    check(reduced(reducer, a), [a])


@pytest.mark.parametrize("reducer", [te.prod, te.max, te.min, log_sum_exp], ids=lambda r: r.__name__)
def test_over_two_axes_under_a_condition(reducer):
    a = placeholder((3, 4, 5), "A")
    k, l = te.reduce_axis((0, 4), name="k"), te.reduce_axis((1, 5), name="l")
    check(te.compute((3,), lambda i: reducer(a[i, k, l], axis=[k, l], where=k + l > 2), name="B"), [a])


@pytest.mark.parametrize("reducer", [te.prod, te.max, te.min, log_sum_exp], ids=lambda r: r.__name__)
def test_with_a_start(reducer):
    a, b = placeholder((6, 3), "A"), placeholder((6,), "B")
    k = te.reduce_axis((0, 3), name="k")
    check(te.compute((6,), lambda i: reducer(a[i, k], axis=k, init=b[i]), name="C"), [a, b])


def test_a_tuple_of_two_values():
    a = placeholder((3, 4), "A")
    k = te.reduce_axis((0, 4), name="k")
    b, c = te.compute((3,), lambda i: moments((a[i, k], te.sin(a[i, k])), axis=k), name="B")
    check(te.compute((3,), lambda i: b[i] * c[i], name="D"), [a])


def test_the_value_of_argmax_has_a_derivative():
    a = placeholder((3, 4), "A")
    k = te.reduce_axis((0, 4), name="k")
    at, value = te.compute((3,), lambda i: argmax((k, a[i, k] * a[i, k]), axis=k), name="B")
    check(value, [a])
    with pytest.raises(DTypeError, match="is of dtype int32"):
        te.gradient(at, [a])


@pytest.mark.parametrize("reducer, values, expected", [
    (te.max, [1.0, 3.0, 3.0, 2.0], [0, 1, 0, 0]),
    (te.min, [3.0, 1.0, 1.0, 1.0], [0, 1, 0, 0]),
    (te.max, [-np.inf, -np.inf], [1, 0]),
    (te.max, [1.0, np.nan, 3.0, np.nan], [0, 1, 0, 0]),
    (te.prod, [2.0, 0.0, 3.0], [0, 6, 0]),
    (te.prod, [0.0, 5.0, 0.0], [0, 0, 0]),
])
def test_ties_zeros_and_what_is_no_number(reducer, values, expected):
    a = placeholder((1, len(values)), "A")
    k = te.reduce_axis((0, len(values)), name="k")
    b = te.compute((1,), lambda i: reducer(a[i, k], axis=k), name="B")
    np.testing.assert_array_equal(derivative(b, [a], [np.array([values])])[0], [expected])


def test_the_first_winner_is_that_in_row_major_order():
    a = placeholder((2, 3), "A")
    k, l = te.reduce_axis((0, 2), name="k"), te.reduce_axis((0, 3), name="l")
    b = te.compute((), lambda: te.max(a[k, l], axis=[l, k]), name="B")
    found, = derivative(b, [a], [np.array([[0, 7.0, 0], [7.0, 0, 0]])])
    assert found.tolist() == [[0, 0, 0], [1, 0, 0]]  # the axes are given in the order l, k


def test_windows_of_a_maximum():
    a = placeholder((9,), "A")
    k = te.reduce_axis((0, 3), name="k")
    check(te.compute((4,), lambda i: te.max(a[2 * i + k], axis=k), name="B"), [a])


# --- reads at indices that are data -----------------------------------------------------------------------------------

def test_rows_at_indices_add_up_where_they_are_equal():
    a, rows = placeholder((5, 3), "A"), placeholder((7,), "rows", "int32")
    b = te.compute((7, 3), lambda i, j: a[rows[i], j] * a[rows[i], j], name="B")
    rng = np.random.default_rng(0)
    check(b, [a, rows], [rng.random((5, 3)), np.array([0, 3, 3, 1, 3, 4, 0], "int32")])


def test_an_index_beyond_the_ends_counts_as_the_nearest():
    a, rows = placeholder((3,), "A"), placeholder((4,), "rows", "int32")
    b = te.compute((4,), lambda i: a[rows[i]] * 2.0, name="B")
    found, = compiled([rows], te.gradient(b, [a], te.compute((4,), lambda i: te.const(1.0, "float64"), name="ones")))(
        np.array([-5, 0, 1, 9], "int32"))
    assert found.tolist() == [4, 2, 2]


def test_indices_under_a_condition_and_in_sums():
    a, rows, w = placeholder((6, 2), "A"), placeholder((4, 3), "rows", "int32"), placeholder((4, 3), "W")
    k = te.reduce_axis((0, 3), name="k")
    b = te.compute((5, 2), lambda i, j: te.sum(
        te.if_then_else(i > 0, a[rows[i - 1, k] + 1, j] * w[i - 1, k], 0.0), axis=k), name="B")
    check(b, [a, rows, w])


def test_several_heads_and_second_derivatives_of_a_gather():
    a, rows, w = placeholder((4,), "A"), placeholder((5,), "rows", "int32"), placeholder((5,), "W")
    b = te.compute((5,), lambda i: a[rows[i]] * a[rows[i]] * w[i], name="B")
    jacobian, = te.gradient(b, [a])
    x, at, y = np.arange(1.0, 5), np.array([0, 3, 3, 1, 0], "int32"), np.arange(1.0, 6)
    expected = np.zeros((5, 4))
    expected[np.arange(5), at] = 2 * x[at] * y
    np.testing.assert_allclose(compiled([a, rows, w], [jacobian])(x, at, y)[0], expected)
    head = placeholder((5,), "head")
    first, = te.gradient(b, [a], head)
    check(first, [a, rows, w, head], [x, at, y, y[::-1].copy()])


def test_derivatives_of_the_derivatives_of_reductions():
    for reducer in (te.sum, te.prod, te.max, log_sum_exp):
        a, head = placeholder((2, 4), "A"), placeholder((2,), "h")
        first, = te.gradient(reduced(reducer, a), [a], head)
        check(first, [a, head], tolerance=1e-5)


def test_second_derivatives_of_a_product_with_zeros():
    a, head = placeholder((1, 3), "A"), placeholder((1,), "h")
    k = te.reduce_axis((0, 3), name="k")
    first, = te.gradient(te.compute((1,), lambda i: te.prod(a[i, k], axis=k), name="B"), [a], head)
    check(first, [a, head], [np.array([[0.0, 2.0, 0.0]]), np.ones(1)])


def test_tuples_without_a_rule_name_what_has_none():
    a = placeholder((3, 4), "A")
    k = te.reduce_axis((0, 4), name="k")
    mine = te.comm_reducer(lambda x, y: te.nextafter(x, y), lambda t: te.const(0, t), name="mine")
    b = te.compute((3,), lambda i: mine(a[i, k], axis=k), name="B")
    with pytest.raises(DTypeError, match=r"no rule for tir\.nextafter"):
        te.gradient(b, [a])


# --- ranges that depend on other axes ---------------------------------------------------------------------------------

def test_ranges_that_depend_on_an_axis():
    x, w = placeholder((6,), "X"), placeholder((4, 6), "W")

    def triangle(i):
        k = te.reduce_axis((0, i + 1), name="k")
        return te.sum(x[k] * x[k] * w[i, k], axis=k)

    check(te.compute((4,), triangle, name="Y"), [x, w])


def test_ranges_that_are_data():
    x, ends = placeholder((10,), "X"), placeholder((5,), "ends", "int32")

    def segment(i):
        k = te.reduce_axis((ends[i], ends[i + 1]), name="k")
        return te.sum(x[k] * x[k], axis=k)

    check(te.compute((4,), segment, name="Y"), [x, ends], [np.arange(10.0), np.array([0, 3, 3, 7, 10], "int32")])


def test_ranges_that_depend_on_a_summed_axis_are_refused():
    x = placeholder((6,), "X")

    def triangle(i):
        k = te.reduce_axis((0, i + 1), name="k")
        return te.sum(x[0] * 2.0, axis=k)

    with pytest.raises(TedslError, match="sums over k, whose range depends on another axis of the sum"):
        te.gradient(te.compute((4,), triangle, name="Y"), [x], placeholder((4,), "head"))


def test_products_over_ranges_that_depend_on_an_axis_are_refused():
    x = placeholder((6,), "X")

    def triangle(i):
        k = te.reduce_axis((0, i + 1), name="k")
        return te.prod(x[k], axis=k)

    with pytest.raises(TedslError, match="Y reduces over k, whose range depends on another axis or on data"):
        te.gradient(te.compute((4,), triangle, name="Y"), [x], placeholder((4,), "head"))
