"""Formulas of every family: the sum that is left has the same values, and as many iterations as it has terms."""

import numpy as np
import pytest

from tedsl import te
from tedsl.autodiff.zeros import eliminate_zeros
from tedsl.ir.expr import Var
from tests.autodiff.zeros.sums import adjoint, iterations, results

W = te.placeholder((4, 3, 3, 3), name="W")
X = te.placeholder((2, 3, 11, 11), name="X")
A = te.placeholder((7, 5), name="A")
DATA = te.placeholder((2, 3, 9, 9), name="D")

FAMILIES = {  # a sum, and the most iterations that it may have after
    "transpose": (lambda: adjoint((4, 6), (6, 4), (), lambda a, b: (b, a)), 24),
    "flip": (lambda: adjoint((9,), (9,), (), lambda a: (8 - a,)), 9),
    "flatten": (lambda: adjoint((6, 4), (24,), (), lambda a: (a // 4, a % 4)), 24),
    "unflatten": (lambda: adjoint((24,), (2, 3, 4), (), lambda a, b, c: (a * 12 + b * 4 + c,)), 24),
    "reshape": (lambda: adjoint((6, 4), (3, 8), (), lambda a, b: ((a * 8 + b) // 4, (a * 8 + b) % 4)), 24),
    "reshape to other factors": (lambda: adjoint((4, 6), (3, 8), (), lambda a, b: ((a * 8 + b) // 6, (a * 8 + b) % 6)), 24),
    "slice": (lambda: adjoint((12,), (7,), (), lambda a: (a + 3,)), 12),
    "strided slice": (lambda: adjoint((20,), (6,), (), lambda a: (a * 3 + 1,)), 20),
    "backward slice": (lambda: adjoint((20,), (6,), (), lambda a: (17 - a * 3,)), 20),
    "pad": (lambda: adjoint((5,), (9,), (), lambda a: (a - 2,), where=lambda a: te.all(a >= 2, a < 7)), 5),
    "dilate": (lambda: adjoint((5,), (13,), (), lambda a: (a // 3,), where=lambda a: a % 3 == 0), 5),
    "concatenate, first": (lambda: adjoint((5,), (9,), (), lambda a: (a,), where=lambda a: a < 5), 5),
    "concatenate, second": (lambda: adjoint((4,), (9,), (), lambda a: (a - 5,), where=lambda a: a >= 5), 4),
    "broadcast": (lambda: adjoint((3, 1), (3, 5), (), lambda a, b: (a, 0)), 15),
    "tile": (lambda: adjoint((4,), (12,), (), lambda a: (a % 4,)), 12),
    "repeat": (lambda: adjoint((4,), (12,), (), lambda a: (a // 3,)), 12),
    "window sum": (lambda: adjoint((10,), (8,), (3,), lambda a, k: (a + k,)), 30),
    "diagonal": (lambda: adjoint((5, 5), (5,), (), lambda a: (a, a)), 25),
    "sum of all": (lambda: adjoint((4, 5), (), (4, 5), lambda a, b: (a, b)), 20),
    "row sums": (lambda: adjoint((4, 5), (4,), (5,), lambda a, b: (a, b)), 20),
    "matmul, left": (lambda: adjoint((6, 7), (6, 5), (7,), lambda i, j, k: (i, k), lambda i, j, k: A[k, j]), 6 * 7 * 5),
    "matmul, right": (lambda: adjoint((5, 7), (7, 7), (5,), lambda i, j, k: (k, j), lambda i, j, k: A[i, k]), 5 * 7 * 7),
    "convolution, data": (
        lambda: adjoint((2, 3, 9, 9), (2, 4, 7, 7), (3, 3, 3), lambda n, o, y, x, c, a, b: (n, c, y + a, x + b),
                        lambda n, o, y, x, c, a, b: W[o, c, a, b]), 2 * 3 * 81 * 4 * 9),
    "convolution, weights": (
        lambda: adjoint((4, 3, 3, 3), (2, 4, 7, 7), (3, 3, 3), lambda n, o, y, x, c, a, b: (o, c, a, b),
                        lambda n, o, y, x, c, a, b: DATA[n, c, y + a, x + b]), 4 * 3 * 9 * 2 * 49),
    "strided convolution, data": (
        lambda: adjoint((2, 3, 11, 11), (2, 4, 5, 5), (3, 3, 3), lambda n, o, y, x, c, a, b: (n, c, 2 * y + a, 2 * x + b),
                        lambda n, o, y, x, c, a, b: W[o, c, a, b]), 2 * 3 * 121 * 4 * 4),
    "strided convolution, weights": (
        lambda: adjoint((4, 3, 3, 3), (2, 4, 5, 5), (3, 3, 3), lambda n, o, y, x, c, a, b: (o, c, a, b),
                        lambda n, o, y, x, c, a, b: X[n, c, 2 * y + a, 2 * x + b]), 4 * 3 * 9 * 2 * 25),
    "dilated convolution": (lambda: adjoint((13,), (9,), (3,), lambda y, k: (y + 2 * k,)), 39),
    "stride 2, dilation 3": (lambda: adjoint((14,), (5,), (3,), lambda y, k: (2 * y + 3 * k,)), 28),
    "stride and dilation 2": (lambda: adjoint((14,), (5,), (3,), lambda y, k: (2 * y + 2 * k,)), 14 * 3),
    "padded pooling": (lambda: adjoint((10, 10), (5, 5), (3, 3), lambda y, x, a, b: (2 * y + a - 1, 2 * x + b - 1),
                                       where=lambda y, x, a, b: te.all(2 * y + a >= 1, 2 * x + b >= 1)), 400),
    "im2col": (lambda: adjoint((3, 8, 8), (27, 36), (), lambda k, p: (k // 9, p // 6 + k // 3 % 3, p % 6 + k % 3)), 3 * 64 * 9),
    "space to depth": (
        lambda: adjoint((2, 6, 6), (8, 3, 3), (), lambda c, y, x: (c % 2, y * 2 + c // 4, x * 2 + c // 2 % 2)), 72),
    "mirror pad": (
        lambda: adjoint((6,), (10,), (), lambda a: (te.if_then_else(a < 2, 2 - a, te.if_then_else(a > 7, 12 - a, a - 2)),)), 6),
    "clipped": (lambda: adjoint((6,), (10,), (), lambda a: (te.min(te.max(a - 2, 0), 5),)), 6 * 2 + 6 * 2 + 6),
    "blocked layout": (lambda: adjoint((8, 5), (2, 5, 4), (), lambda o, y, i: (o * 4 + i, y)), 40),
}


@pytest.mark.parametrize("name", FAMILIES)
def test_the_sum_that_is_left_has_the_same_values_and_few_iterations(name):
    make, most = FAMILIES[name]
    before = make()
    after = eliminate_zeros(before)
    expected, found = results([before, after])
    assert np.array_equal(expected, found)
    assert iterations(after) <= most, after.op.body


def test_what_has_no_zeros_stays():
    k = te.reduce_axis((0, 7), "k")
    total = te.compute((5,), lambda j: te.sum(A[k, j], axis=k))
    assert eliminate_zeros(total) is total
    assert eliminate_zeros(A) is A


N, M, L = te.size_var("n"), te.size_var("m"), te.size_var("l")
SYMBOLIC = {  # a sum over symbolic extents, and the most iterations that it may have after for n = 8, m = 5, l = 3
    "transpose": (lambda: adjoint((N, M), (M, N), (), lambda a, b: (b, a)), 40),
    "flatten": (lambda: adjoint((N, M), (N * M,), (), lambda a: (a // M, a % M)), 40),
    "unflatten": (lambda: adjoint((N * M,), (N, M), (), lambda a, b: (a * M + b,)), 40),
    "flatten three": (lambda: adjoint((N, M, 3), (N * M * 3,), (), lambda a: (a // (M * 3), a // 3 % M, a % 3)), 120),
    "unflatten three": (lambda: adjoint((N * M * 3,), (N, M, 3), (), lambda a, b, c: ((a * M + b) * 3 + c,)), 120),
    "unflatten to symbols": (lambda: adjoint((N * M * L,), (N, M, L), (), lambda a, b, c: ((a * M + b) * L + c,)), 120),
    "pad": (lambda: adjoint((N,), (N + 4,), (), lambda a: (a - 2,), where=lambda a: te.all(a >= 2, a < N + 2)), 8),
    "strided slice": (lambda: adjoint((N,), (N // 2,), (), lambda a: (a * 2,)), 8),
    "concatenate": (lambda: adjoint((N,), (N + M,), (), lambda a: (a - M,), where=lambda a: a >= M), 8),
    "tile": (lambda: adjoint((N,), (N * M,), (), lambda a: (a % N,)), 40),
    "window sum": (lambda: adjoint((N,), (N - 2,), (3,), lambda a, k: (a + k,)), 24),
    "symbolic window": (lambda: adjoint((N,), (N - L + 1,), (L,), lambda a, k: (a + k,)), 24),
    "strided window": (lambda: adjoint((N,), ((N - 3) // 2 + 1,), (3,), lambda a, k: (2 * a + k,)), 16),
    "matmul": (lambda: adjoint((N, M), (N, L), (M,), lambda i, j, k: (i, k)), 120),
}


@pytest.mark.parametrize("name", SYMBOLIC)
def test_symbolic_extents(name):
    make, most = SYMBOLIC[name]
    before, sizes = make(), {"n": 8, "m": 5, "l": 3}
    after = eliminate_zeros(before)
    expected, found = results([before, after], sizes)
    assert np.array_equal(expected, found)
    assert iterations(after, sizes) <= most, after.op.body


def test_terms_with_different_conditions_become_sums_of_their_own():
    head, weights = te.placeholder((20,), name="H"), te.placeholder((5,), name="W")
    i, k = te.reduce_axis((0, 20), "i"), te.reduce_axis((0, 5), "k")
    total = te.compute((9,), lambda j: te.sum(te.select(i == j, head[i], 0.0) * weights[k]
                                              + te.select(i + k == j, head[i], 0.0), axis=[i, k]), name="T")
    after = eliminate_zeros(total)
    assert [[a.name for a in one.op.reduce_axis] for one in after.op.input_tensors] == [["k"], ["k"]]
    expected, found = results([total, after])
    assert np.array_equal(expected, found)


def test_terms_stay_together_where_one_needs_all_iterations():
    head, weights = te.placeholder((20,), name="H"), te.placeholder((5,), name="W")
    i, k = te.reduce_axis((0, 20), "i"), te.reduce_axis((0, 5), "k")
    total = te.compute((9,), lambda j: te.sum(te.select(i == j, head[i], 0.0) + weights[k], axis=[i, k]), name="T")
    assert eliminate_zeros(total) is total


def test_pieces_of_a_sum_without_axes_are_one_formula():
    head = te.placeholder((20,), name="H")
    i = te.reduce_axis((0, 20), "i")
    total = te.compute((9,), lambda j: te.sum(te.select(te.all(i < 9, i == j), head[i], 0.0)
                                              - te.select(te.all(i >= 11, i - 11 == j), head[i] * 2.0, 0.0), axis=i), name="T")
    after = eliminate_zeros(total)
    assert after.op.input_tensors == [head]
    assert after.op.reduce_axis == ()
    expected, found = results([total, after])
    assert np.array_equal(expected, found)


CONDITIONS = {
    "casts of booleans": lambda i, j, x: (i == j).astype("float32") * (i > 2).astype("float32") * x,
    "a product of casts": lambda i, j, x: ((i == j).astype("int32") * (i > 2).astype("int32")).astype("float32") * x,
    "nested choices": lambda i, j, x: te.if_then_else(i > 2, te.select(i == j, x, 0.0), 0.0) / 2.0,
    "the other side of a choice": lambda i, j, x: te.select(te.any(i != j, i <= 2), 0.0, x),
    "both sides of an or": lambda i, j, x: te.select(te.any(te.all(i == j, i > 4), te.all(i == j, i > 2)), x, 0.0),
    "a maximum with 0": lambda i, j, x: te.max(te.select(te.all(i == j, i > 2), x, 0.0), 0.0),
    "a negative": lambda i, j, x: 0.0 - te.select(te.all(i == j, i > 2), x, 0.0),
}


@pytest.mark.parametrize("name", CONDITIONS)
def test_conditions_are_lifted_out_of(name):
    head = te.placeholder((9,), name="H")
    i = te.reduce_axis((0, 9), "i")
    total = te.compute((9,), lambda j: te.sum(CONDITIONS[name](i.var, j, head[i]), axis=i), name="T")
    after = eliminate_zeros(total)
    assert after.op.reduce_axis == ()
    expected, found = results([total, after])
    assert np.array_equal(expected, found)


def test_the_condition_of_a_reduction_counts_and_axes_may_begin_anywhere():
    head = te.placeholder((9,), name="H")
    i = te.reduce_axis((2, 9), "i")
    total = te.compute((12,), lambda j: te.sum(te.select(i == j, head[i], 0.0), axis=i, where=i < 7), name="T")
    after = eliminate_zeros(total)
    assert after.op.reduce_axis == ()
    expected, found = results([total, after])
    assert np.array_equal(expected, found)


def test_equations_with_data_stay_and_are_asked_only_in_range():
    places, head = te.placeholder((6,), "int32", name="I"), te.placeholder((6, 4), name="G")
    i, c = te.reduce_axis((0, 6), "i"), te.reduce_axis((0, 4), "c")
    total = te.compute((12, 4), lambda v, j: te.sum(te.select(te.all(places[i] == v, c == j), head[i, c], 0.0), axis=[i, c]))
    after = eliminate_zeros(total)
    assert [a.name for a in after.op.reduce_axis] == ["i"]
    expected, found = results([total, after])
    assert np.array_equal(expected, found)


def test_a_sum_of_nothing_is_zero():
    head = te.placeholder((9,), name="H")
    i = te.reduce_axis((0, 9), "i")
    total = te.compute((5,), lambda j: te.sum(te.select(i == j + 9, head[i], 0.0), axis=i), name="T")
    after = eliminate_zeros(total)
    assert repr(after.op.body) == "(0f,)"


def test_a_choice_that_the_range_decides():
    head = te.placeholder((9,), name="H")
    whole = te.compute((5,), lambda j: te.if_then_else(j >= 5, 0.0, head[j]), name="T")
    assert repr(eliminate_zeros(whole).op.body) == "(H[j],)"


def test_the_name_tag_and_attributes_stay():
    head = te.placeholder((9,), name="H")
    i = te.reduce_axis((0, 9), "i")
    total = te.compute((9,), lambda j: te.sum(te.select(i == j, head[i], 0.0), axis=i), name="T", tag="t", attrs={"a": 1})
    op = eliminate_zeros(total).op
    assert (op.name, op.tag, int(op.attrs["a"]), op.axis[0].name) == ("T", "t", 1, "j")


def wide(n):
    return te.const(n, "int64")


@pytest.mark.parametrize("place", [13, wide(13), te.var("n", "int64")], ids=str)
@pytest.mark.parametrize("axis", [lambda n: n, wide], ids=["int32", "int64"])
def test_axes_of_64_bits(place, axis):
    head = te.placeholder((axis(6), axis(5)), name="head")
    i, k = te.reduce_axis((axis(0), axis(6)), "i"), te.reduce_axis((axis(0), axis(5)), "k")
    total = te.compute((place,), lambda j: te.sum(te.select((i * 2 + k).equal(j), head[i, k], 0.0), axis=[i, k]), name="T")
    after = eliminate_zeros(total)
    expected, found = results([total, after], {"n": 13})
    assert np.array_equal(expected, found)
    beyond = i.dtype == "int32" and isinstance(place, Var)  # a place may be one that no int32 can name
    assert len(after.op.reduce_axis) == (2 if beyond else 1)
