"""rfactor of reductions with start values of their own, and of those whose other axes are split."""

import numpy as np
import pytest

import tedsl
from tedsl import te
from tedsl.ir.evaluate import run


def both(s, args, arrays, wanted):
    """The kernel and the interpreter give `wanted`, the last of `args`."""
    for call in (tedsl.build(s, args), lambda *given: run(tedsl.lower(s, args)["main"], given)):
        out = np.zeros_like(wanted)
        call(*arrays, out)
        np.testing.assert_allclose(out, wanted, rtol=1e-5)


def rows(n, m, init, reducer=te.sum):
    A, start = te.placeholder((n, m), name="A"), te.placeholder((n,), name="start")
    k = te.reduce_axis((0, m), "k")
    B = te.compute((n,), lambda i: reducer(A[i, k], axis=k, init=start[i] if init is None else init), name="B")
    return A, start, B, te.create_schedule(B.op)


@pytest.mark.parametrize("n, m, factor", [(5, 12, 4), (5, 13, 4), (1, 1, 1), (3, 2, 8)])
@pytest.mark.parametrize("reducer, combine", [(te.sum, lambda a, start: a.sum(1) + start),
                                              (te.max, lambda a, start: np.maximum(a.max(1), start)),
                                              (te.min, lambda a, start: np.minimum(a.min(1), start))])
@pytest.mark.parametrize("init", [None, 0.75])
def test_start_values_count_once(n, m, factor, reducer, combine, init):
    A, start, B, s = rows(n, m, init, reducer)
    _, inner = s[B].split(B.op.reduce_axis[0], factor)
    partial = s.rfactor(B, inner)
    assert not partial.op.reduction.init
    a, given = np.random.default_rng(0).random((n, m)).astype("float32"), np.full(n, 0.25, "float32")
    wanted = combine(a, given if init is None else np.float32(init)).astype("float32")
    both(s, [A, start, B] if init is None else [A, B], [a, given] if init is None else [a], wanted)


def test_a_whole_axis_with_a_start_value():
    """Nothing is left to reduce in B.rf: it holds the values, and B begins with the start value."""
    A, _, B, s = rows(4, 6, 2.0)
    s.rfactor(B, B.op.reduce_axis[0])
    a = np.random.default_rng(0).random((4, 6)).astype("float32")
    both(s, [A, B], [a], a.sum(1) + 2)


def test_start_values_of_an_index_that_is_moved():
    """The start value depends on both axes, of which the new stage has variables of its own."""
    A, start = te.placeholder((4, 6, 3), name="A"), te.placeholder((3, 4), name="start")
    k = te.reduce_axis((0, 6), "k")
    B = te.compute((4, 3), lambda i, j: te.sum(A[i, k, j], axis=k, init=start[j, i] * (i + 1)), name="B")
    s = te.create_schedule(B.op)
    _, inner = s[B].split(k, 4)
    s.rfactor(B, inner, factor_axis=1)
    random = np.random.default_rng(0)
    a, given = random.random((4, 6, 3)).astype("float32"), random.random((3, 4)).astype("float32")
    both(s, [A, start, B], [a, given], a.sum(1) + given.T * np.arange(1, 5, dtype="float32")[:, None])


@pytest.mark.parametrize("threads", [False, True])
def test_loops_of_other_axes_are_given_up(threads):
    A = te.placeholder((12, 16, 8), name="A")
    k, l = te.reduce_axis((0, 16), "k"), te.reduce_axis((0, 8), "l")
    B = te.compute((12,), lambda i: te.sum(A[i, k, l], axis=[k, l]), name="B")
    s = te.create_schedule(B.op)
    rows_outer, _ = s[B].split(B.op.axis[0], 5)
    s[B].split(l, 3)
    _, inner = s[B].split(k, 4)
    partial = s.rfactor(B, inner)
    assert list(s[B].leaf_iter_vars) == [*s[B].op.axis, *s[B].op.reduce_axis]
    with pytest.raises(tedsl.errors.ScheduleError, match=r"i\.outer belongs to the old operation: rfactor"):
        s[B].parallel(rows_outer)
    if threads:
        s[B].bind(s[B].op.axis[0], te.thread_axis("blockIdx.x"))
        s[B].bind(s[B].op.reduce_axis[0], te.thread_axis("threadIdx.x"))
        s[partial].compute_at(s[B], s[B].op.reduce_axis[0])
    a = np.random.default_rng(0).random((12, 16, 8)).astype("float32")
    both(s, [A, B], [a], a.sum((1, 2)))
