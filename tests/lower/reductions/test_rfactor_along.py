"""rfactor with along: partial results of overlapping windows that are equal are computed once."""

import numpy as np
import pytest

import tedsl
from tedsl import te
from tedsl.ir.evaluate import run
from tests.refusing import refused

RANDOM = np.random.default_rng(0)


def window(rows, columns, kernel, step=1, apart=1, dtype="float32", reducer=te.max):
    """P[y, x] over A[y * step + ky * apart, x + kx], with what numpy says about arrays of A."""
    height = (rows - 1) * step + (kernel - 1) * apart + 1
    A = te.placeholder((height, columns + 2), name="A", dtype=dtype)
    ky, kx = te.reduce_axis((0, kernel), "ky"), te.reduce_axis((0, 3), "kx")
    P = te.compute((rows, columns), lambda y, x: reducer(A[y * step + ky * apart, x + kx], axis=[ky, kx]), name="P")

    def wanted(a):
        read = [a[ky * apart:, kx:kx + columns][:(rows - 1) * step + 1:step] for ky in range(kernel) for kx in range(3)]
        return {te.max: np.max, te.min: np.min, te.sum: np.sum}[reducer](read, axis=0).astype(dtype)

    return A, P, wanted


def agree(s, args, arrays, wanted):
    """The kernel and the interpreter give `wanted`, the last of `args`."""
    for call in (tedsl.build(s, args), lambda *given: run(tedsl.lower(s, args)["main"], given)):
        out = np.zeros_like(wanted)
        call(*arrays, out)
        np.testing.assert_allclose(out, wanted, rtol=1e-5)


def data(shape, dtype="float32"):
    return (RANDOM.random(shape) * 100 - 50).astype(dtype)


@pytest.mark.parametrize("step, apart, rows", [(1, 1, 9), (2, 1, 15), (3, 1, 21), (1, 2, 11), (1, 3, 13), (2, 2, 9)])
def test_rows_of_windows_are_computed_once(step, apart, rows):
    A, P, wanted = window(7, 5, 3, step, apart)
    s = te.create_schedule(P.op)
    R = s.rfactor(P, P.op.reduce_axis[0], along=P.op.axis[0])
    assert list(map(int, R.shape)) == [rows, 5]
    assert [axis.var.name for axis in R.op.axis] == ["y.ky", "x"]
    a = data(tuple(map(int, A.shape)))
    agree(s, [A, P], [a], wanted(a))


@pytest.mark.parametrize("dtype", ["float64", "float16", "int8", "uint8", "int64"])
@pytest.mark.parametrize("reducer", [te.max, te.min, te.sum])
def test_dtypes(dtype, reducer):
    A, P, wanted = window(5, 7, 5, dtype=dtype, reducer=reducer)
    s = te.create_schedule(P.op)
    s.rfactor(P, P.op.reduce_axis[0], along=P.op.axis[0])
    a = RANDOM.integers(0, 9, tuple(map(int, A.shape))).astype(dtype)
    agree(s, [A, P], [a], wanted(a))


def test_columns_are_shared_too():
    """Along the last axis, and then along the first: the stages of a separable maximum."""
    A, P, wanted = window(6, 11, 4)
    s = te.create_schedule(P.op)
    C = s.rfactor(P, P.op.reduce_axis[1], along=P.op.axis[1])
    assert list(map(int, C.shape)) == [6, 13]
    R = s.rfactor(C, C.op.reduce_axis[0], along=C.op.axis[0])
    assert list(map(int, R.shape)) == [9, 13]
    a = data(tuple(map(int, A.shape)))
    agree(s, [A, P], [a], wanted(a))


def test_a_window_that_is_turned_counts_from_its_first_place():
    A = te.placeholder((9,), name="A")
    k, j = te.reduce_axis((0, 3), "k"), te.reduce_axis((0, 2), "j")
    B = te.compute((6,), lambda i: te.sum(A[i - k + 2] * (j + 1), axis=[k, j]), name="B")
    s = te.create_schedule(B.op)
    R = s.rfactor(B, k, along=B.op.axis[0])
    assert list(map(int, R.shape)) == [8]
    a = data((9,))
    agree(s, [A, B], [a], 3 * (a[2:8] + a[1:7] + a[:6]))


def test_a_border_is_of_rows_alone():
    """Its condition and its index say nothing about y and ky but their sum."""
    A = te.placeholder((7, 5), name="A")
    ky, kx = te.reduce_axis((0, 3), "ky"), te.reduce_axis((0, 3), "kx")

    def bordered(y, x):
        return te.if_then_else(te.all(y >= 1, y < 8, x >= 1, x < 6), A[y - 1, x - 1], te.const(-1e9, "float32"))

    P = te.compute((7, 5), lambda y, x: te.max(bordered(y + ky, x + kx), axis=[ky, kx]), name="P")
    s = te.create_schedule(P.op)
    s.rfactor(P, ky, along=P.op.axis[0])
    a = data((7, 5))
    whole = np.pad(a, 1, constant_values=-1e9)
    agree(s, [A, P], [a], np.lib.stride_tricks.sliding_window_view(whole, (3, 3)).max((2, 3)))


@pytest.mark.parametrize("rows, down", [(8, 4), (7, 3), (1, 4)])
def test_rows_of_a_piece_are_computed_where_they_are_needed(rows, down):
    A, P, wanted = window(rows, 13, 5)
    s = te.create_schedule(P.op)
    L = s.cache_write(P, "local")
    yo, yi = s[P].split(P.op.axis[0], down)
    xo, xi = s[P].split(P.op.axis[1], 8)
    s[P].reorder(yo, xo, yi, xi)
    s[P].vectorize(xi)
    R = s.rfactor(L, s[L].op.reduce_axis[0], along=s[L].op.axis[0])
    for stage in (s[R], s[L]):
        stage.compute_at(s[P], xo)
        stage.vectorize(stage.leaf_iter_vars[1])
    a = data(tuple(map(int, A.shape)))
    agree(s, [A, P], [a], wanted(a))


@pytest.mark.parametrize("outer", [False, True])
def test_a_part_of_the_window(outer):
    """Of a loop that was split, the inner part or the outer one, which moves by the factor."""
    A, P, wanted = window(6, 4, 6)
    s = te.create_schedule(P.op)
    ko, ki = s[P].split(P.op.reduce_axis[0], 3)
    R = s.rfactor(P, ko if outer else ki, along=P.op.axis[0])
    assert int(R.shape[0]) == (5 + 3 if outer else 5 + 2) + 1
    a = data(tuple(map(int, A.shape)))
    agree(s, [A, P], [a], wanted(a))


def test_the_place_of_the_largest():
    """A reduction of two values, of which one is a place in the image."""
    A = te.placeholder((8, 6), name="A")
    later = te.comm_reducer(lambda x, y: (te.if_then_else(x[1] >= y[1], x[0], y[0]), te.max(x[1], y[1])),
                            lambda t0, t1: (te.const(-1, t0), te.min_value(t1)), name="largest")
    ky, kx = te.reduce_axis((0, 3), "ky"), te.reduce_axis((0, 3), "kx")
    at, value = te.compute((6, 4), lambda y, x: later(((y + ky) * 6 + x + kx, A[y + ky, x + kx]), axis=[ky, kx]), name="P")
    s = te.create_schedule(at.op)
    made = s.rfactor(at, ky, along=at.op.axis[0])
    assert [list(map(int, t.shape)) for t in made] == [[8, 4], [8, 4]]
    a = data((8, 6))
    f, places, values = tedsl.build(s, [A, at, value]), np.zeros((6, 4), "int32"), np.zeros((6, 4), "float32")
    f(a, places, values)
    np.testing.assert_array_equal(a.ravel()[places], values)
    np.testing.assert_array_equal(values, np.lib.stride_tricks.sliding_window_view(a, (3, 3)).max((2, 3)))


def test_start_values_count_once():
    A = te.placeholder((9,), name="A")
    k = te.reduce_axis((0, 4), "k")
    B = te.compute((6,), lambda i: te.sum(A[i + k], axis=k, init=i * 10.0), name="B")
    s = te.create_schedule(B.op)
    s.rfactor(B, k, along=B.op.axis[0])
    a = data((9,))
    agree(s, [A, B], [a], (np.lib.stride_tricks.sliding_window_view(a, 4).sum(1) + 10 * np.arange(6)).astype("float32"))


def program(formula, extent=6, parts=3):
    A, W = te.placeholder((40,), name="A"), te.placeholder((8,), name="W")
    k = te.reduce_axis((0, parts), "k")
    B = te.compute((extent,), lambda i: te.sum(formula(A, W, i, k), axis=k), name="B")
    return B, k, te.create_schedule(B.op)


@pytest.mark.parametrize("formula, words", [
    (lambda A, W, i, k: A[i + k] * W[k], "beside i + k they depend on W[k]"),
    (lambda A, W, i, k: A[i * 2 + k] * W[i], "beside i*2 + k they depend on W[i]"),
    (lambda A, W, i, k: A[i + k] + A[i + k * 2], "beside i + k they depend on A[i + k*2]"),
    (lambda A, W, i, k: te.if_then_else(k < 2, A[i + k], 0.0), "beside i + k they depend on k < 2"),
    (lambda A, W, i, k: A[i] * W[k], "no index adds i and k"),
    (lambda A, W, i, k: W[k], "no index adds i and k"),
    (lambda A, W, i, k: A[i * 2 + k * 3], "i and k move by 2 and 3, of which neither is 1"),
])
def test_partial_results_that_differ(formula, words):
    B, k, s = program(formula)
    before = str(s)
    refused(lambda: s.rfactor(B, k, along=B.op.axis[0]), "rfactor(B, k, along=i) on stage B", words, "leave")
    assert str(s) == before and len(s.journal) == 0


def test_what_along_may_be():
    B, k, s = program(lambda A, W, i, k: A[i + k])
    refused(lambda: s.rfactor(B, k, along=k), "along is an axis of the elements of B, got k", "choose one of i")
    refused(lambda: s.rfactor(B, k, along=0), "along is an axis of the elements of B, got", "choose one of i")
    refused(lambda: s.rfactor(B, k, 1, along=B.op.axis[0]),
            "with along=i the new axis has the place of i", "leave factor_axis out")


def test_a_number_of_elements_that_is_not_known():
    n = te.size_var("n")
    A, k = te.placeholder((n + 2,), name="A"), te.reduce_axis((0, 3), "k")
    B = te.compute((n,), lambda i: te.sum(A[i + k], axis=k), name="B")
    s = te.create_schedule(B.op)
    refused(lambda: s.rfactor(B, k, along=B.op.axis[0]), "i has n iterations, which is no constant")


def test_the_tail_of_a_split_differs():
    B, k, s = program(lambda A, W, i, k: A[i + k], parts=5)
    _, inner = s[B].split(k, 2)
    refused(lambda: s.rfactor(B, inner, along=B.op.axis[0]), "they depend on k.outer*2 + k.inner < 5", "leave along out")


def test_the_journal_says_along():
    A, P, wanted = window(6, 5, 3)
    s = te.create_schedule(P.op)
    s.rfactor(P, P.op.reduce_axis[0], along=P.op.axis[0])
    assert str(s.journal) == "P_rf = s.rfactor(P, s[P].op.reduce_axis[0], along=s[P].op.axis[0])"
    twin = te.create_schedule(P.op)
    exec(str(s.journal), {"s": twin, "P": P})
    assert str(twin) == str(s)
    s.undo()
    assert str(s) == str(te.create_schedule(P.op))
