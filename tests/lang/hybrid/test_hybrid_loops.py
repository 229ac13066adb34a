"""Directives on the loops of hybrid scripts: what they make of them, and where the order of a loop matters."""

import numpy as np
import pytest

import tedsl
from tedsl import te, tir
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


def test_the_loops_that_replace_those_marked_in_the_script_are_plain():
    C = scripts.marked_product(A, B)
    s = te.create_schedule(C.op)
    i, j = C.op.axis
    with pytest.warns(UserWarning, match="split.i, factor=4. on stage .*: i was parallel, and what replaces it is not"):
        s[C].split(i, 4)
    with pytest.warns(UserWarning, match="j was vectorized"):
        s[C].split(j, 3)
    assert loops(s, A, B, C) == [
        "for (i.outer: int32, 0, 3) {", "for (i.inner: int32, 0, 4) {",
        "if @tir.likely((((i.outer*4) + i.inner) < 10), dtype=bool) {",
        "for (j.outer: int32, 0, 2) {", "for (j.inner: int32, 0, 3) {"]
    check(s, C)
    s = te.create_schedule(C.op)
    with pytest.warns(UserWarning) as both:
        s[C].fuse(i, j)
    assert len(both) == 2
    assert loops(s, A, B, C) == ["for (i.j.fused: int32, 0, 60) {"]
    check(s, C)


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
    with pytest.raises(ScheduleError, match=r"several iterations of k may write the same element of c"):
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


@te.hybrid.script
def smoothed(a):
    c = output_tensor((10,), "float32")  # noqa: F821
    t = 0.0
    for i in range(10):
        t = t * 0.5 + a[i]
        c[i] = t
    return c


@te.hybrid.script
def last_of(a):
    c = output_tensor((1,), "float32")  # noqa: F821
    for i in range(10):
        if a[i] > 0.3:
            c[0] = a[i]
    return c


@te.hybrid.script
def smoothed_rows(a):
    c = output_tensor((2,), "float32")  # noqa: F821
    for i in range(2):
        c[i] = 0.0
    for i in range(2):
        for j in range(5):
            c[i] = c[i] * 0.5 + a[i * 5 + j]
    return c


@te.hybrid.script
def totals(a):
    c = output_tensor((2,), "float32")  # noqa: F821
    for i in range(2):
        c[i] = 0.0
    for i in range(2):
        for j in range(5):
            c[i] = c[i] + a[i * 5 + j]
    return c


@te.hybrid.script
def swapped_sides(a):
    c = output_tensor((10,), "float32")  # noqa: F821
    for i in range(10):
        c[9 - i] = a[i]
    return c


@pytest.mark.parametrize("script, loop", [(smoothed, 0), (last_of, 0), (smoothed_rows, 2)])
@pytest.mark.parametrize("split", [lambda stage, axis: stage.split(axis, 4), lambda stage, axis: stage.split(axis, nparts=3)])
def test_parts_of_a_loop_that_carries_a_value_stay_in_order(script, loop, split):
    """Both halves of a split loop come from one axis: they were taken to be a sum, and changed places."""
    C = script(A)
    s = te.create_schedule(C.op)
    outer, inner = split(s[C], C.op.axis[loop])
    with pytest.raises(ScheduleError, match=r"the order of the loops matters: several iterations of \w may write the same"):
        s[C].reorder(inner, outer)


def test_a_loop_between_two_that_change_places_counts_too():
    """c, a and b, outermost first: with a and c exchanged, b runs outside of a, though the directive does not name it."""
    @te.hybrid.script
    def kept(a):
        c = output_tensor((2,), "float32")  # noqa: F821
        for i in range(2):
            for j in range(2):
                for k in range(2):
                    c[k] = c[k] * 0.5 + a[i * 4 + j * 2 + k]
        return c

    C = kept(A)
    s = te.create_schedule(C.op)
    i, j, k = C.op.axis
    with pytest.raises(ScheduleError, match="several iterations of i, j may write"):
        s[C].reorder(j, i, k)
    s[C].reorder(k, i, j)
    with pytest.raises(ScheduleError, match="several iterations of i, j may write"):
        s[C].reorder(j, i, k)


def test_parts_of_a_sum_have_no_order():
    C = totals(A)
    s = te.create_schedule(C.op)
    outer, inner = s[C].split(C.op.axis[2], 2)
    s[C].reorder(inner, outer, C.op.axis[1])
    a, c = np.arange(10, dtype="float32"), np.zeros(2, "float32")
    tedsl.build(s, [A, C])(a, c)
    np.testing.assert_array_equal(c, a.reshape(2, 5).sum(1))


def test_rows_of_what_carries_a_value_may_change_places_with_it():
    C = smoothed_rows(A)
    s = te.create_schedule(C.op)
    _, i, j = C.op.axis
    outer, inner = s[C].split(j, 2)
    s[C].reorder(outer, i, inner)
    a, c = np.random.default_rng(0).random(10, "float32"), np.zeros(2, "float32")
    tedsl.build(s, [A, C])(a, c)
    want = np.zeros(2, "float32")
    for column in a.reshape(2, 5).T:
        want = want * np.float32(0.5) + column
    np.testing.assert_allclose(c, want, rtol=1e-6)


def test_elements_named_backwards_are_still_different():
    C = swapped_sides(A)
    s = te.create_schedule(C.op)
    s[C].parallel(C.op.axis[0])
    a, c = np.arange(10, dtype="float32"), np.zeros(10, "float32")
    tedsl.build(s, [A, C])(a, c)
    np.testing.assert_array_equal(c, a[::-1])


def test_lanes_that_meet_in_different_iterations_of_a_loop_inside():
    """b[i, j] reads what lane i - 1 wrote one column on: the distance from lane to lane is the same in no single column."""
    @te.hybrid.script
    def wave(a):
        b = output_tensor((5, 10), "float32")  # noqa: F821
        for i in range(5):
            for j in range(10):
                b[i, j] = a[i, j]
        for i in range(1, 5):
            for j in range(9):
                b[i, j] = b[i - 1, j + 1] + a[i, j]
        return b

    A = te.placeholder((5, 10), name="A")
    B = wave(A)
    s = te.create_schedule(B.op)
    s[B].vectorize(B.op.axis[2])
    a, b = np.random.default_rng(0).random((5, 10), "float32"), np.zeros((5, 10), "float32")
    want = a.copy()
    for i in range(1, 5):
        want[i, :9] = want[i - 1, 1:] + a[i, :9]
    tedsl.build(s, [A, B])(a, b)
    np.testing.assert_allclose(b, want, rtol=1e-6)


@pytest.mark.parametrize("directive", [
    lambda st: st.fuse(), lambda st: st.env_threads([te.thread_axis((0, 4), "threadIdx.x")])], ids=["fuse", "env_threads"])
def test_a_script_gets_no_loops_around_its_own(directive):
    C, s, i, j = scheduled()
    with pytest.raises(ScheduleError, match=r"a hybrid script, whose loops are those that are written in it(.|\n)*fuse its "
                                            r"loops: i, j"):
        directive(s[C])
    assert not s.journal and s[C].leaf_iter_vars == [i, j]
    s[C].reorder(j, i)
    check(s, C)


def test_an_assertion_that_the_loops_prove_does_not_hold_their_order():
    C = scripts.within_bounds(tir.const(10, "int32"), A, B)
    s = te.create_schedule(C.op)
    s[C].reorder(*reversed(C.op.axis))
    s[C].parallel(C.op.axis[1])
    check(s, C)
    C = scripts.of_positive_values(A, B)
    s = te.create_schedule(C.op)
    with pytest.raises(ScheduleError, match="the order of the loops matters: the loop calls functions, or may end early"):
        s[C].reorder(*reversed(C.op.axis))
