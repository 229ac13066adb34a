"""cache_write of some of the outputs of one operation: all are computed in the new stage, and all are copied from it."""

import numpy as np
import pytest

import tedsl
from tedsl import te


@pytest.mark.parametrize("which", [[0], [1], [0, 1], [1, 0]])
@pytest.mark.parametrize("rows", [1, 7])
def test_both_outputs_are_right(which, rows):
    A = te.placeholder((rows, 5), "int32", name="A")
    both = te.compute((rows, 5), lambda i, j: (A[i, j] + 1, A[i, j] * 2), name="B")
    s = te.create_schedule(both[0].op)
    given = [both[at] for at in which]
    caches = s.cache_write(given if len(given) > 1 else given[0], "local")
    first = caches[0] if len(given) > 1 else caches
    assert first.value_index == which[0] and s[first].op.num_outputs == 2
    s[first].compute_at(s[both[0]], both[0].op.axis[0])
    a, sums, products = np.arange(rows * 5, dtype="int32").reshape(rows, 5), *np.zeros((2, rows, 5), "int32")
    tedsl.build(s, [A, *both])(a, sums, products)
    np.testing.assert_array_equal(sums, a + 1)
    np.testing.assert_array_equal(products, a * 2)


@pytest.mark.parametrize("which", [0, 1])
def test_the_largest_element_and_its_place(which):
    def larger(x, y):
        first = x[1] >= y[1]
        return te.if_then_else(first, x[0], y[0]), te.if_then_else(first, x[1], y[1])

    argmax = te.comm_reducer(larger, lambda at, of: (tedsl.tir.const(-1, at), te.min_value(of)))
    A, P = te.placeholder((4, 9), name="A"), te.placeholder((4, 9), "int32", name="P")
    k = te.reduce_axis((0, 9), "k")
    place, value = te.compute((4,), lambda i: argmax((P[i, k], A[i, k]), axis=k), name="T")
    s = te.create_schedule(place.op)
    s.cache_write((place, value)[which], "local")
    a = np.random.default_rng(0).permutation(36).reshape(4, 9).astype("float32")
    p = np.tile(np.arange(9, dtype="int32"), (4, 1))
    at, of = np.zeros(4, "int32"), np.zeros(4, "float32")
    tedsl.build(s, [A, P, place, value])(a, p, at, of)
    np.testing.assert_array_equal(at, a.argmax(1))
    np.testing.assert_array_equal(of, a.max(1))
