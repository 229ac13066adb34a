"""trilu, index_put, scatter_elements and slice_scatter, of TVM 0.9 to 0.19, against numpy and torch."""

import numpy as np
import pytest

import topi
from tedsl import te
from tedsl.errors import ArgumentError, ShapeError
from tests.topi.checking import check

rng = np.random.default_rng(4)


def feed(values, name="a"):
    array = np.asarray(values)
    return te.placeholder(array.shape, str(array.dtype), name=name), array


def test_trilu():
    (a, x), (k, n) = feed(rng.standard_normal((2, 3, 4)).astype("float32")), feed(np.array(1, "int64"), "k")
    check([topi.trilu(a, k, True), topi.trilu(a, k, False), topi.trilu(a, -1, True), topi.trilu(a, 0, False)], {a: x, k: n},
          [np.triu(x, 1), np.tril(x, 1), np.triu(x, -1), np.tril(x)])
    with pytest.raises(ShapeError, match="matrices are the last two"):
        topi.trilu(te.placeholder((3,)), 0, True)


@pytest.mark.parametrize("accumulate", [False, True])
def test_index_put(accumulate):
    torch = pytest.importorskip("torch")
    a, x = feed(rng.standard_normal((4, 5)).astype("float32"))
    (i, p), (j, q) = feed(np.array([[0], [-1], [2]], "int32"), "i"), feed(np.array([1, -2], "int64"), "j")
    for shape in ((3, 2), (6,), (2,), (1, 1)):
        v, y = feed(rng.standard_normal(shape).astype("float32"), "v")
        values = torch.from_numpy(y.reshape(3, 2) if shape == (6,) else y)
        expected = torch.from_numpy(x).index_put((torch.from_numpy(p).long(), torch.from_numpy(q)), values, accumulate)
        check(topi.index_put(a, (i, j), v, accumulate), {a: x, i: p, j: q, v: y}, expected.numpy(), 1e-6, 1e-6)
    (b, z), (v, y) = feed(np.zeros(5, "int32"), "b"), feed(np.array([1, 2, 4], "int32"), "v")
    i, p = feed(np.array([3, 3, 0], "int32"), "i")
    check(topi.index_put(b, i, v, accumulate), {b: z, i: p, v: y}, np.array([4, 0, 0, 3 if accumulate else 2, 0], "int32"))


@pytest.mark.parametrize("reduction, join", [("update", None), ("add", np.add), ("mul", np.multiply), ("min", np.minimum),
                                             ("max", np.maximum)])
@pytest.mark.parametrize("axis", [0, -1])
def test_scatter_elements(axis, reduction, join):
    a, x = feed(rng.standard_normal((4, 5)).astype("float32"))
    u, y = feed(rng.standard_normal((3, 2)).astype("float32"), "u")
    i, p = feed(rng.integers(-4, 4, (3, 2)), "i")
    expected = x.copy()
    for row, column in np.ndindex(3, 2):
        at = (p[row, column], column) if axis == 0 else (row, p[row, column])
        expected[at] = y[row, column] if join is None else join(expected[at], y[row, column])
    check(topi.scatter_elements(a, i, u, axis, reduction), {a: x, i: p, u: y}, expected, 1e-6, 1e-6)


@pytest.mark.parametrize("start, end, step, axis", [(1, 5, 2, 0), (0, 6, 1, 0), (-3, -1, 1, 1), (0, 99, 3, -1), (2, 2, 1, 0)])
def test_slice_scatter(start, end, step, axis):
    a, x = feed(rng.standard_normal((6, 7)).astype("float32"))
    expected = x.copy()
    at = [slice(None)] * 2
    at[axis] = slice(start, end, step)
    s, y = feed(rng.standard_normal(x[tuple(at)].shape).astype("float32"), "s")
    expected[tuple(at)] = y
    made, = topi.slice_scatter(a, s, start, end, step, axis)
    if y.size:
        check(made, {a: x, s: y}, expected)


@pytest.mark.parametrize("call, error, words", [
    (lambda a: topi.index_put(a, [a], a), ShapeError, "1 tensors of indices for the 2 dimensions"),
    (lambda a: topi.index_put(a, [topi.cast(a, "int32")] * 2, te.placeholder((5,), name="v")), ShapeError, "do not broadcast"),
    (lambda a: topi.scatter_elements(a, topi.cast(a, "int32"), a, 0, "mean"), ArgumentError, "there is no reduction 'mean'"),
    (lambda a: topi.slice_scatter(a, a, 0, 2, 0, 0), ArgumentError, "the step is at least 1"),
    (lambda a: topi.slice_scatter(a, a, 0, 2, 1, 0), ShapeError, r"src has the shape \(3, 4\), and the slice")])
def test_what_does_not_fit(call, error, words):
    with pytest.raises(error, match=words):
        call(te.placeholder((3, 4), name="a"))
