"""Buffers of the type auto_broadcast: a dimension of extent 1 serves for any extent of the formula."""

import numpy as np
import pytest

import tedsl
from tedsl import te, tir
from tedsl.errors import ArgumentError


def sum_of_two(binds):
    a = te.placeholder([te.size_var(f"m{i}") for i in range(3)], name="a")
    b = te.placeholder([te.size_var(f"n{i}") for i in range(3)], name="b")
    c = te.compute([te.size_var(f"o{i}") for i in range(3)], lambda i, j, k: a[i, j, k] + b[i, j, k], name="c")
    bound = {t: tir.decl_buffer(t.shape, t.dtype, t.op.name, buffer_type="auto_broadcast") for t in (a, b)} if binds else None
    return tedsl.build(te.create_schedule(c.op), [a, b, c], binds=bound)


@pytest.mark.parametrize("shape", [(2, 1, 1), (1, 4, 3), (1, 1, 3), (2, 4, 3)])
def test_dimensions_of_extent_1_broadcast(shape):
    f = sum_of_two(binds=True)
    a, b = np.random.rand(2, 4, 3).astype("float32"), np.random.rand(*shape).astype("float32")
    for first, second in ((a, b), (b, a)):
        found = np.zeros((2, 4, 3), "float32")
        f(first, second, found)
        np.testing.assert_array_equal(found, first + second)


@pytest.mark.parametrize(("binds", "shape"), [(True, (2, 2, 1)), (False, (2, 1, 1))])
def test_other_extents_are_refused(binds, shape):
    with pytest.raises(ArgumentError, match="dimension 1"):
        sum_of_two(binds)(np.zeros((2, 4, 3), "float32"), np.zeros(shape, "float32"), np.zeros((2, 4, 3), "float32"))
