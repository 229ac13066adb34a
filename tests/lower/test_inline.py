"""compute_inline of stages with several outputs."""

import pytest

import tedsl
from tedsl import te
from tests.lower.end_to_end import check_both, check_calls, loops
from tests.lower.programs import whole_numbers


def pair(n):
    A = te.placeholder((n,), name="A")
    P, Q = te.compute((n,), lambda i: (A[i] + 1.0, A[i] * 3.0), name="P")
    D = te.compute((n,), lambda i: P[i] - Q[i], name="D")
    return A, P, Q, D, te.create_schedule(D.op)


def test_each_read_takes_the_formula_of_its_output():
    A, P, Q, D, s = pair(20)
    s[P].compute_inline()
    assert loops(s, [A, D]) == "for (i: int32, 0, 20) {\n  D[i] = ((A[i] + 1f32) - (A[i]*3f32))\n}\n"
    check_both(s, [A, D], {A: whole_numbers((20,))})
    assert [stage.attach_type for stage in s.normalize().stages][1] == 3


def test_a_chain_of_pairs():
    n = te.var("n")
    A = te.placeholder((n,), name="A")
    P, Q = te.compute((n,), lambda i: (A[i] + 1.0, A[i] * 3.0), name="P")
    R, T = te.compute((n,), lambda i: (P[i] * Q[i], Q[n - 1 - i] - P[i]), name="R")
    k = te.reduce_axis((0, n), "k")
    D = te.compute((n,), lambda i: te.sum(R[k] + T[i], axis=k), name="D")
    s = te.create_schedule(D.op)
    s[P].compute_inline()
    s[R].compute_inline()
    s[D].split(D.op.axis[0], 4)
    check_calls(s, [A, D], [({A: whole_numbers((size,))}, {n: size}) for size in (0, 1, 2, 7)])


def test_into_a_tuple_reduction():
    A = te.placeholder((6, 5), name="A")
    V, W = te.compute((6, 5), lambda i, j: (A[i, j] * 2.0, A[i, j] + j), name="V")
    pairs = te.comm_reducer(lambda a, b: (a[0] + b[0], te.max(a[1], b[1])),
                            lambda t0, t1: (te.const(0, t0), te.min_value(t1)), name="pairs")
    k = te.reduce_axis((0, 5), "k")
    B, C = te.compute((6,), lambda i: pairs((V[i, k], W[i, k]), axis=k), name="B")
    s = te.create_schedule(B.op)
    s[V].compute_inline()
    check_both(s, [A, B, C], {A: whole_numbers((6, 5))})


def test_caches_of_an_inlined_pair():
    A, P, Q, D, s = pair(20)
    s[P].compute_inline()
    s.cache_write(D, "local")
    check_both(s, [A, D], {A: whole_numbers((20,))})


def test_an_argument_that_nothing_would_write():
    A, P, Q, D, s = pair(20)
    s[P].compute_inline()
    with pytest.raises(tedsl.TedslError, match=r"P\.v1 is an argument, and its stage is computed inline"):
        tedsl.build(s, [A, Q, D])
