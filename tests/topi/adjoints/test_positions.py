"""Adjoints of what stores at positions, with positions that occur twice, count from the end, or lie outside."""

import numpy as np
import pytest

import topi
from tedsl import te
from tests.topi.adjoints.differences import check_record, compiled, distinct, values


def operand(name, array):
    return te.placeholder(array.shape, str(array.dtype), name=name), array


@pytest.mark.parametrize("operator", [topi.scatter, topi.scatter_add])
@pytest.mark.parametrize("axis, places", [
    (0, [[0, 1, 2], [2, 1, 0]]), (0, [[1, 1, 1], [1, 1, -1]]), (1, [[0, 0, 3], [-1, 2, 2]]), (1, [[9, 0, -7], [1, 1, 5]])])
def test_scatter(operator, axis, places):
    data, feed = operand("data", distinct((3, 4)))
    indices, at = operand("indices", np.array(places, "int32"))
    updates, new = operand("updates", distinct((2, 3), seed=1))
    check_record(operator(data, indices, updates, axis), {data: feed, indices: at, updates: new})


@pytest.mark.parametrize("mode", ["add", "update"])
@pytest.mark.parametrize("places", [[[0, 2, 2], [1, 0, 0]], [[0, 9, -1], [1, 1, 1]], [[1, 1, 1]]])
def test_scatter_nd(places, mode):
    at = np.array(places, "int32")
    data, feed = operand("data", distinct((3, 2, 2)))
    indices, _ = operand("indices", at)
    updates, new = operand("updates", distinct((3, *(3, 2, 2)[len(at):]), seed=1))
    check_record(topi.scatter_nd(data, indices, updates, mode), {data: feed, indices: at, updates: new})


@pytest.mark.parametrize("mode", ["add", "update"])
@pytest.mark.parametrize("places", [[[0, 2, 2], [1, 0, -2]], [[0, 9, -1]]])
def test_jacobians_of_scatter_nd_are_its_gradients_head_by_head(places, mode):
    at = np.array(places, "int32")
    data, feed = operand("data", distinct((3, 2, 2)))
    indices, _ = operand("indices", at)
    updates, new = operand("updates", distinct((3, *(3, 2, 2)[len(at):]), seed=1))
    feeds = {data: feed, indices: at, updates: new}
    out = topi.scatter_nd(data, indices, updates, mode)
    head = te.placeholder((3, 2, 2), "float64", name="head")
    one = compiled(te.gradient(out, [data, updates], head), [*feeds, head])
    whole = values(te.gradient(out, [data, updates]), feeds)
    for place in np.ndindex(3, 2, 2):
        unit, results = np.zeros((3, 2, 2)), [np.empty(array.shape) for array in (feed, new)]
        unit[place] = 1
        one(*feeds.values(), unit, *results)
        for jacobian, expected in zip(whole, results):
            np.testing.assert_allclose(jacobian[place], expected)


def test_sparse_to_dense():
    indices, at = operand("indices", np.array([[0, 1], [2, 3], [0, 1], [7, 0]], "int32"))
    numbers, new = operand("numbers", distinct((4,)))
    default, old = operand("default", np.array(0.5))
    check_record(topi.sparse_to_dense(indices, (3, 4), numbers), {indices: at, numbers: new})
    check_record(topi.sparse_to_dense(indices, (3, 4), numbers, default), {indices: at, numbers: new, default: old})
    single, one = operand("single", np.array(2.0))
    check_record(topi.sparse_to_dense(indices, (3, 4), single, default), {indices: at, single: one, default: old})
