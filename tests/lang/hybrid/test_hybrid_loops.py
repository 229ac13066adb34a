"""Directives on the loops of hybrid scripts: what they make of them, and where the order of a loop matters."""

import numpy as np
import pytest

import tedsl
from tedsl import te
from tedsl.errors import ScheduleError
from tests.lang.hybrid import scripts

A = te.placeholder((10,), name="A")
B = te.placeholder((6,), name="B")


def loops(s, *args):
    """The lines of the loops, without what is around."""
    text = str(tedsl.lower(s, list(args), simple_mode=True))
    return [line.strip() for line in text.splitlines() if line.strip().startswith(("for ", "if "))]


def check(s, C):
    a, b, c = np.arange(10, dtype="float32"), np.arange(6, dtype="float32"), np.zeros((10, 6), "float32")
    tedsl.build(s, [A, B, C])(a, b, c)
    np.testing.assert_array_equal(c, np.outer(a, b))


def scheduled():
    C = scripts.product(A, B)
    return C, te.create_schedule(C.op), *C.op.axis


def test_split_reorder_annotate():
    C, s, i, j = scheduled()
    io, ii = s[C].split(i, 5)
    jo, ji = s[C].split(j, 2)
    s[C].reorder(ii, jo, io, ji)
    s[C].parallel(ii)
    s[C].vectorize(ji)
    s[C].unroll(io)
    assert loops(s, A, B, C) == ["for (i.inner: int32, 0, 5) \"parallel\" {", "for (j.outer: int32, 0, 3) {"]
    check(s, C)


def test_a_split_that_does_not_come_out_even_is_guarded():
    C, s, i, _ = scheduled()
    s[C].split(i, 4)
    assert loops(s, A, B, C) == ["for (i.outer: int32, 0, 3) {", "for (i.inner: int32, 0, 4) {",
                                 "if @tir.likely((((i.outer*4) + i.inner) < 10), dtype=bool) {", "for (j: int32, 0, 6) {"]
    check(s, C)


def test_fuse():
    C, s, i, j = scheduled()
    s[C].parallel(s[C].fuse(i, j))
    assert loops(s, A, B, C) == ['for (i.j.fused: int32, 0, 60) "parallel" {']
    check(s, C)


def test_nothing_said_leaves_the_loops_as_they_are_written():
    C, s, _, _ = scheduled()
    assert loops(s, A, B, C) == ["for (i: int32, 0, 10) {", "for (j: int32, 0, 6) {"]
    D = scripts.everything(A, 4, True)
    s = te.create_schedule(D.op)
    assert 'for (i: int32, 0, 10) "parallel" {' in str(tedsl.lower(s, [A, D]))


def test_a_sum_may_be_reordered_with_the_loops_around_it():
    X, Y = te.placeholder((4, 5), name="X"), te.placeholder((5, 6), name="Y")
    Z = scripts.matmul(X, Y)
    s = te.create_schedule(Z.op)
    i0, j0, i, j, k = Z.op.axis
    s[Z].reorder(k, i, j)
    s[Z].vectorize(j)
    s[Z].parallel(i0)
    x, y, z = np.random.rand(4, 5).astype("float32"), np.random.rand(5, 6).astype("float32"), np.zeros((4, 6), "float32")
    tedsl.build(s, [X, Y, Z])(x, y, z)
    np.testing.assert_allclose(z, x @ y, rtol=1e-5)
    with pytest.raises(ScheduleError, match=r"several iterations of k write the same element of c"):
        s[Z].parallel(k)
    with pytest.raises(ScheduleError, match=r"do not stand directly inside one another"):
        s[Z].reorder(i, i0)
    with pytest.raises(ScheduleError, match=r"do not stand directly inside one another|not neighbours"):
        s[Z].fuse(j0, k)


def test_where_the_order_matters():
    C = scripts.running_sum(A)
    s = te.create_schedule(C.op)
    i, = C.op.axis
    with pytest.raises(ScheduleError, match=r"depend on one another: b is written and read at different elements"):
        s[C].parallel(i)
    io, ii = s[C].split(i, 4)
    with pytest.raises(ScheduleError, match=r"the order of the loops matters"):
        s[C].reorder(ii, io)
    s[C].vectorize(ii)  # runs in order where it has to
    a, c = np.arange(10, dtype="float32"), np.zeros(10, "float32")
    tedsl.build(s, [A, C])(a, c)
    np.testing.assert_array_equal(c, np.cumsum(a))


def test_loops_that_have_their_kind_already():
    D = scripts.everything(A, 4, True)
    s = te.create_schedule(D.op)
    names = [axis.name for axis in D.op.axis]
    parallel = D.op.axis[names.index("j") - 1]
    with pytest.raises(ScheduleError, match=r"already parallel"):
        s[D].split(parallel, 2)


def test_what_hybrid_stages_cannot_do():
    C, s, i, _ = scheduled()
    E = te.compute(C.shape, lambda x, y: C[x, y] + 1.0, name="E")
    s = te.create_schedule(E.op)
    with pytest.raises(ScheduleError):
        s[C].compute_inline()
    F = te.compute((10,), lambda x: A[x] + 1.0, name="F")
    G = scripts.product(F, B)
    s = te.create_schedule(G.op)
    with pytest.raises(ScheduleError, match=r"uses the whole of F in every iteration"):
        s[F].compute_at(s[G], G.op.axis[0])


@pytest.mark.parametrize("directive", ["parallel", "threads"])
def test_rows_are_independent_though_elements_of_a_row_are_not(directive):
    A = te.placeholder((5, 6), name="A")
    B = scripts.running_sums(A)
    s = te.create_schedule(B.op)
    rows, columns = B.op.axis
    with pytest.raises(ScheduleError, match="b is written and read at different elements"):
        s[B].parallel(columns)
    if directive == "parallel":
        s[B].parallel(rows)
    else:
        s[B].bind(rows, te.thread_axis("threadIdx.x"))
    a, b = np.random.default_rng(0).random((5, 6), "float32"), np.zeros((5, 6), "float32")
    tedsl.build(s, [A, B], checked=True)(a, b)
    np.testing.assert_allclose(b, a.cumsum(1), rtol=1e-5)
