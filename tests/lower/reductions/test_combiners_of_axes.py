"""Reductions whose combiner, or its identity, uses an axis of the formula."""

import numpy as np
import pytest

import tedsl
from tedsl import te, tir


@pytest.mark.parametrize("cached", [False, True])
@pytest.mark.parametrize("factor", [None, 4])
def test_a_combiner_uses_the_row(cached, factor):
    x = te.placeholder((10,), name="x")

    def row(n):
        k = te.reduce_axis((0, n), "k")
        above = te.comm_reducer(lambda a, b: te.max(a + b, n.astype("float32")),
                                lambda of: tir.Select(n > 1, tir.const(0, of), n.astype(of)), name="above")
        return above(x[k], axis=k)

    y = te.compute((10,), row, name="y")
    s = te.create_schedule(y.op)
    if cached:
        s.cache_write(y, "local")
    if factor:
        s[y].split(y.op.axis[0], factor)
    values, found = np.random.rand(10).astype("float32") * 3, np.zeros(10, "float32")
    tedsl.build(s, [x, y])(values, found)
    expected = []
    for n in range(10):
        total = np.float32(0 if n > 1 else n)
        for value in values[:n]:
            total = max(np.float32(total + value), np.float32(n))
        expected.append(total)
    np.testing.assert_allclose(found, expected, rtol=1e-6)
