"""sliding_window and collapse_sum against numpy; a shape of the result that does not fit is refused."""

import numpy as np
import pytest

import tedsl
import topi
from tedsl import te
from tedsl.errors import ShapeError

X = te.placeholder((2, 3, 8, 9), name="X")
x = np.random.default_rng(2).standard_normal((2, 3, 8, 9)).astype("float32")


def result(made):
    out = np.empty([int(n) for n in made.shape], "float32")
    tedsl.build(topi.generic.schedule_extern([made]), [X, made])(x, out)
    return out


@pytest.mark.parametrize("axis, window, strides", [(1, [3, 4, 5], [3, 2, 2]), (-1, [1], [1]), (0, [2, 1, 8, 9], [1, 1, 1, 1]),
                                                   (2, [3, 2], [1, 5])])
def test_windows(axis, window, strides):
    first = axis % 4
    want = np.lib.stride_tricks.sliding_window_view(x, window, tuple(range(first, 4)))
    want = want[(*[slice(None)] * first, *[slice(None, None, step) for step in strides])]
    np.testing.assert_array_equal(result(topi.sliding_window(X, axis, window, strides)), want)


@pytest.mark.parametrize("target", [(9,), (3, 1, 9), (1,), (2, 3, 8, 9), (1, 1, 1, 1), (8, 9), (2, 1, 8, 1), ()])
def test_collapsed(target):
    want = x.astype("float64").sum(tuple(range(4 - len(target))))
    narrow = tuple(d for d, extent in enumerate(target) if extent == 1)
    np.testing.assert_allclose(result(topi.collapse_sum(X, target)), want.sum(narrow, keepdims=True), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("make, words", [
    (lambda: topi.collapse_sum(X, (4,)), r"\(4,\) cannot be broadcast to its shape"),
    (lambda: topi.collapse_sum(X, (1, 2, 3, 8, 9)), "cannot be broadcast to its shape"),
    (lambda: topi.sliding_window(X, 1, [3], [1]), "for the 3 dimensions from 1 on"),
    (lambda: topi.sliding_window(X, 3, [30], [1]), r"a window of \(30,\) is larger than the data"),
    (lambda: topi.nn.upsampling(X, 2, 2, output_shape=(16, 18)), r"output_shape is \(16, 18\) for data of 4 dimensions")])
def test_shapes_that_do_not_fit(make, words):
    with pytest.raises(ShapeError, match=words):
        make()
