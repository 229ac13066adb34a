"""Start values that a stage gives which is computed inside of the loops."""

import numpy as np
import pytest

import tedsl
from tedsl import te
from tedsl.errors import LoweringError
from tests.lower.ragged.results import results


def started():
    """C[i] starts from I[i]."""
    A, P = te.placeholder((7, 9), "int32", name="A"), te.placeholder((7,), "int32", name="P")
    I = te.compute((7,), lambda i: P[6 - i] + 1, name="I")
    k = te.reduce_axis((0, 9), name="k")
    C = te.compute((7,), lambda i: te.sum(A[i, k], axis=k, init=I[i]), name="C")
    return [A, P, C], I, te.create_schedule(C.op)


def test_start_values_that_decompose_reduction_put_before_what_gives_them():
    """compute_at was blamed, and the loop called one inside of the reduction. What the hint says does it."""
    args, I, s = started()
    C = args[2]
    s[I].compute_at(s[C], C.op.axis[0])
    s[C].decompose_reduction(C.op.axis[0])
    with pytest.raises(LoweringError, match=r"I gives the start values of C, which decompose_reduction put before loop i, "
                                            r"and is computed at loop i behind(.|\n)*decompose_reduction\(s\[C\].op.axis\[0\]\)"
                                            r"(.|\n)*decompose_reduction\(k\)"):
        tedsl.lower(s, args)
    args, I, s = started()
    C = args[2]
    s[I].compute_at(s[C], C.op.axis[0])
    s[C].decompose_reduction(C.op.reduce_axis[0])
    a, p = np.arange(63, dtype="int32").reshape(7, 9), np.arange(7, dtype="int32")
    for got in results(s, args, (a, p), (7,)):
        np.testing.assert_array_equal(got, a.sum(1) + p[::-1] + 1)


def test_start_values_inside_of_the_reduction_are_blamed_on_their_place():
    args, I, s = started()
    C = args[2]
    s[I].compute_at(s[C], C.op.reduce_axis[0])
    with pytest.raises(LoweringError, match=r"at loop k, inside of its reduction(.|\n)*compute_at"):
        tedsl.lower(s, args)
