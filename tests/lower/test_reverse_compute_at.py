"""reverse_compute_at: the loops that it makes, the same as a compute_at written by hand, and what it refuses."""

from types import SimpleNamespace

import pytest

import tedsl
from tedsl import te
from tedsl.errors import ScheduleError
from tedsl.ir.walk.equal import assert_structural_equal
from tedsl.schedule.handles import create_schedule
from tests.lower.end_to_end import check_both, check_calls, loops
from tests.lower.programs import whole_numbers


def relu_of_matmul(n, m, swap=False):
    """C = max(A B, 0); swap: C is transposed."""
    A, B = te.placeholder((n, 6), name="A"), te.placeholder((6, m), name="B")
    k = te.reduce_axis((0, 6), name="k")
    P = te.compute((n, m), lambda i, j: te.sum(A[i, k] * B[k, j], axis=k), name="P")
    if swap:
        C = te.compute((m, n), lambda j, i: te.max(P[i, j], 0.0), name="C")
    else:
        C = te.compute((n, m), lambda i, j: te.max(P[i, j], 0.0), name="C")
    return SimpleNamespace(s=create_schedule(C.op), A=A, B=B, P=P, C=C, k=k, args=[A, B, C])


def values(p, n, m):
    return {p.A: whole_numbers((n, 6), seed=1), p.B: whole_numbers((6, m), seed=2)}


def tiled(p):
    io, jo, ii, ji = p.s[p.P].tile(*p.P.op.axis, 8, 4)
    p.s[p.P].reorder(io, jo, p.k, ii, ji)
    p.s[p.P].vectorize(ji)
    p.s[p.P].parallel(io)
    return io, jo, ii, ji


def test_the_same_loops_as_compute_at_by_hand():
    p, q = relu_of_matmul(20, 10), relu_of_matmul(20, 10)
    _, jo, _, _ = tiled(p)
    *_, lanes = p.s[p.C].reverse_compute_at(p.s[p.P], jo)
    p.s[p.C].vectorize(lanes)
    s = q.s
    xo, yo, _, yi = s[q.C].tile(*q.C.op.axis, 8, 4)
    s[q.C].parallel(xo)
    s[q.C].vectorize(yi)
    s[q.P].compute_at(s[q.C], yo)
    i, j = q.P.op.axis
    s[q.P].reorder(q.k, i, j)
    s[q.P].vectorize(j)
    mine, by_hand = (tedsl.driver.schedule_to_module(t.s, t.args)["main"] for t in (p, q))
    assert_structural_equal(mine, by_hand)


@pytest.mark.parametrize("place", range(2))
@pytest.mark.parametrize("swap", [False, True])
@pytest.mark.parametrize("n, m", [(20, 10), (7, 13), (1, 1), (8, 4)])
def test_tiles_of_a_matmul(place, swap, n, m):
    p = relu_of_matmul(n, m, swap)
    loop = tiled(p)[place]
    inner = p.s[p.C].reverse_compute_at(p.s[p.P], loop)
    assert len(inner) == 3 + place and p.s[p.P].attach_stage is p.s[p.C]
    if place == 1 and not swap:
        p.s[p.C].vectorize(inner[-1])
    check_both(p.s, p.args, values(p, n, m))


@pytest.mark.parametrize("size", [1, 7, 24])
def test_symbolic_shapes_parts_and_fused_loops(size):
    n = te.var("n")
    for schedule in range(5):
        p = relu_of_matmul(n, 10)
        st = p.s[p.P]
        i, j = p.P.op.axis
        if schedule == 0:
            loop, _ = st.split(i, nparts=3)
        elif schedule == 1:
            loop = st.fuse(i, j)
        elif schedule == 2:
            outer, inner = st.split(i, 8)
            loop, _ = st.split(inner, 2)
            assert outer is st.leaf_iter_vars[0]
        elif schedule == 3:
            outer, _ = st.split(i, 2, tail="partition")
            loop, _ = st.split(outer, nparts=2)
        else:
            st.reorder(j, i)
            st.fuse()
            loop = j
        p.s[p.C].reverse_compute_at(st, loop)
        check_calls(p.s, p.args, [(values(p, size, 10), {n: size})])


def test_guests_and_attributes_move():
    p = relu_of_matmul(20, 10)
    io, jo, ii, _ = tiled(p)
    local = p.s.cache_read(p.A, "local", [p.P])
    packed = p.s.cache_read(p.B, "local", [p.P])
    p.s[local].compute_at(p.s[p.P], io)
    p.s[packed].compute_at(p.s[p.P], ii)
    p.s[p.C].reverse_compute_at(p.s[p.P], jo)
    assert p.s[local].attach_stage is p.s[p.C] and p.s[local].attach_ivar is p.s[p.C].leaf_iter_vars[0]
    assert p.s[packed].attach_stage is p.s[p.P] and p.s[packed].attach_ivar is ii
    assert "x" not in str(p.s[p.P]) and "(parallel)" in str(p.s[p.C])
    check_both(p.s, p.args, values(p, 20, 10))


def test_more_dimensions_and_inlined_formulas():
    A = te.placeholder((9,), name="A")
    P = te.compute((9,), lambda i: A[i] * A[i], name="P")
    B = te.compute((9,), lambda i: P[i] + 1.0, name="B")
    C = te.compute((3, 9), lambda r, i: B[i] * 2.0, name="C")
    s = create_schedule(C.op)
    s[B].compute_inline()
    outer, _ = s[P].split(P.op.axis[0], 4)
    s[C].reverse_compute_at(s[P], outer)
    assert [loop.name for loop in s[C].leaf_iter_vars] == ["i.outer", "r", "i.inner"]
    check_both(s, [A, C], {A: whole_numbers((9,))})


def test_the_journal_copies_and_undo():
    p = relu_of_matmul(20, 10)
    _, jo, _, _ = tiled(p)
    before = str(p.s)
    p.s[p.C].reverse_compute_at(p.s[p.P], jo)
    assert str(p.s.journal).splitlines()[-1] == \
        "i_outer_1, j_outer_1, i_inner_1, j_inner_1 = s[C].reverse_compute_at(s[P], j_outer)"
    p.s[p.C].unroll(p.s[p.C].leaf_iter_vars[1])
    twin = create_schedule(p.C.op)
    twin.replay(p.s.journal)
    assert loops(twin, p.args) == loops(p.s, p.args) == loops(p.s.copy(), p.args) == loops(p.s.normalize(), p.args)
    p.s.undo(2)
    assert str(p.s) == before


# --- refusals ------------------------------------------------------------------------------------------------------------

def refusal(directive):
    with pytest.raises(ScheduleError) as caught:
        directive()
    return str(caught.value)


def test_an_unfinished_reduction():
    p = relu_of_matmul(20, 10)
    _, _, ii, _ = tiled(p)
    message = refusal(lambda: p.s[p.C].reverse_compute_at(p.s[p.P], ii))
    assert "k is a reduction loop: inside of it no element is finished" in message and "i.outer, j.outer" in message


def one(formula, shape=(8,), then=(8,)):
    A = te.placeholder(shape, name="A")
    P = te.compute(shape, lambda *i: A[i] + 1.0, name="P")
    C = te.compute(then, lambda *i: formula(P, *i), name="C")
    return create_schedule(C.op), P, C


@pytest.mark.parametrize("formula, shape, then, words", [
    (lambda P, i: P[i] * P[7 - i], (8,), (8,), "an element of it needs other elements of P"),
    (lambda P, i: P[7 - i], (8,), (8,), "needs other elements of P"),
    (lambda P, i: P[i], (8,), (7,), "i0 of C ranges over"),
    (lambda P, i: P[i, i], (8, 8), (8,), "reads a diagonal of P"),
    (lambda P, i: P[i, 0], (8, 8), (8,), "needs other elements of P"),
    (lambda P, i, j: P[i, j] + P[j, i], (8, 8), (8, 8), "needs other elements of P"),
])
def test_consumers_that_need_other_elements(formula, shape, then, words):
    s, P, C = one(formula, shape, then)
    message = refusal(lambda: s[C].reverse_compute_at(s[P], P.op.axis[0]))
    assert words in message and "s[P].compute_at(s[C], loop)" in message


def test_stages_that_cannot_take_part():
    p = relu_of_matmul(20, 10)
    s, i = p.s, p.P.op.axis[0]
    assert "P does not read C" in refusal(lambda: s[p.P].reverse_compute_at(s[p.C], p.C.op.axis[0]))
    assert "A is a placeholder" in refusal(lambda: s[p.P].reverse_compute_at(s[p.A], i))
    outer, _ = s[p.C].split(p.C.op.axis[0], 4)
    assert "the loops of C are scheduled already" in refusal(lambda: s[p.C].reverse_compute_at(s[p.P], i))
    s[p.P].compute_at(s[p.C], outer)
    assert "P is not computed at the root" in refusal(lambda: s[p.C].reverse_compute_at(s[p.P], i))


def test_outputs_and_other_readers():
    A = te.placeholder((8,), name="A")
    P = te.compute((8,), lambda i: A[i] + 1.0, name="P")
    C = te.compute((8,), lambda i: P[i] + 1.0, name="C")
    D = te.compute((8,), lambda i: P[i] + 2.0, name="D")
    s = create_schedule([C.op, P.op])
    assert "P is an output" in refusal(lambda: s[C].reverse_compute_at(s[P], P.op.axis[0]))
    s = create_schedule([C.op, D.op])
    assert "D uses P too" in refusal(lambda: s[C].reverse_compute_at(s[P], P.op.axis[0]))


def test_places_that_leave_no_block():
    s, P, C = one(lambda P, i, j: P[i, j] * 2.0, (8, 6), (8, 6))
    outer, inner = s[P].split(P.op.axis[0], 4)
    s[P].reorder(inner, outer)
    assert "i0.inner is outside of the place and i0.outer" in refusal(lambda: s[C].reverse_compute_at(s[P], inner))
    s, P, C = one(lambda P, i, j: P[i, j] * 2.0, (8, 6), (8, 6))
    outer, _ = s[P].split(s[P].fuse(*P.op.axis), 5)
    assert "i0.i1.fused, a fused loop, is cut by the place" in refusal(lambda: s[C].reverse_compute_at(s[P], outer))
    s, P, C = one(lambda P, i: P[i] * 2.0)
    outer, _ = s[P].split(P.op.axis[0], 3, tail="round_up")
    assert 'tail="round_up"' in refusal(lambda: s[C].reverse_compute_at(s[P], outer))


def test_loops_that_were_handed_over():
    p = relu_of_matmul(20, 10)
    io, jo, _, _ = tiled(p)
    p.s[p.C].reverse_compute_at(p.s[p.P], jo)
    refused = refusal(lambda: p.s[p.P].unroll(io))
    assert "i.outer became the loop i.outer of C by reverse_compute_at" in refused
    assert "hint: write s[C] and the loop that reverse_compute_at returned" in refused
    assert len(p.s[p.P].leaf_iter_vars) == 3


def test_the_loops_that_are_left_may_be_handed_over_again():
    p = relu_of_matmul(20, 10)
    outer, _ = p.s[p.P].split(p.P.op.axis[0], 4)
    p.s[p.C].reverse_compute_at(p.s[p.P], outer)
    p.s[p.P].compute_root()
    copy = p.s.cache_read(p.P, "global", [p.C])
    first = p.s[p.P].leaf_iter_vars[0]  # starts where the tile of C did, now at 0
    assert [loop.name for loop in p.s[copy].reverse_compute_at(p.s[p.P], first)] == ["ax0", "ax1"]
    check_both(p.s, p.args, values(p, 20, 10))
