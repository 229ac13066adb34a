"""A stage that nobody reads once formulas are written into one another was refused; it is computed nowhere."""

import numpy as np

import tedsl
from tedsl import te


def test_a_cache_of_what_only_an_unused_output_reads():
    B = te.placeholder((5, 2), "int16", name="B")
    numbers, _ = te.compute((5, 2), lambda i, j: (j, B[i, j]), name="pair")
    out = te.compute((5, 2), lambda i, j: numbers[i, j] + 1, name="out")
    s = te.create_schedule(out.op)
    near = s.cache_read(B, "local", [numbers])
    s[numbers].compute_inline()
    s[near].compute_at(s[out], out.op.axis[0])
    result = np.zeros((5, 2), "int32")
    tedsl.build(s, [B, out])(np.ones((5, 2), "int16"), result)
    np.testing.assert_array_equal(result, [[1, 2]] * 5)
    assert "B.local" not in str(tedsl.lower(s, [B, out]))
