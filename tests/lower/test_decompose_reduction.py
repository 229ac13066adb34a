"""decompose_reduction: the start values in a nest of their own."""

from textwrap import dedent

import numpy as np
import pytest

import tedsl
from tedsl import te
from tedsl.errors import ScheduleError
from tedsl.schedule.handles import create_schedule
from tests.lower.end_to_end import check_both, loops
from tests.lower.programs import whole_numbers


def row_sum(n, m):
    A = te.placeholder((n, m), name="A")
    k = te.reduce_axis((0, m), name="k")
    B = te.compute((n,), lambda i: te.sum(A[i, k], axis=k), name="B")
    return A, B, create_schedule(B.op)


def test_before_and_after():
    A, B, s = row_sum(8, 6)
    assert loops(s, [A, B]) == dedent("""\
        for (i: int32, 0, 8) {
          B[i] = 0f32
          for (k: int32, 0, 6) {
            B[i] = (B[i] + A[i, k])
          }
        }
        """)
    s[B].decompose_reduction(B.op.axis[0])
    assert loops(s, [A, B]) == dedent("""\
        for (i.init: int32, 0, 8) {
          B[i.init] = 0f32
        }
        for (i: int32, 0, 8) {
          for (k: int32, 0, 6) {
            B[i] = (B[i] + A[i, k])
          }
        }
        """)


def test_the_reduction_loop_itself_changes_nothing():
    A, B, s = row_sum(8, 6)
    before = loops(s, [A, B])
    s[B].decompose_reduction(B.op.reduce_axis[0])
    assert loops(s, [A, B]) == before


@pytest.mark.parametrize("n, m", [(1, 1), (7, 5), (13, 1), (16, 8)])
@pytest.mark.parametrize("place", range(4))
def test_every_place_of_a_tiled_matmul(n, m, place):
    left, right = te.placeholder((n, 5), name="A"), te.placeholder((5, m), name="B")
    k = te.reduce_axis((0, 5), name="k")
    C = te.compute((n, m), lambda i, j: te.sum(left[i, k] * right[k, j], axis=k), name="C")
    s = create_schedule(C.op)
    io, jo, ii, ji = s[C].tile(*C.op.axis, 4, 4)
    s[C].reorder(io, jo, k, ii, ji)
    s[C].vectorize(ji)
    if place:
        s[C].decompose_reduction([io, jo, k][place - 1])
    check_both(s, [left, right, C], {left: whole_numbers((n, 5)), right: whole_numbers((5, m), seed=1)})


@pytest.mark.parametrize("size", [0, 1, 7, 16])
def test_symbolic_shapes_and_an_attached_stage(size):
    n = te.var("n")
    A, B, _ = row_sum(n, 6)
    C = te.compute((n,), lambda i: B[i] * 2.0, name="C")
    s = create_schedule(C.op)
    io, _ = s[C].split(C.op.axis[0], 4)
    s[B].compute_at(s[C], io)
    s[B].decompose_reduction(B.op.axis[0])
    check_both(s, [A, C], {A: whole_numbers((size, 6))}, {n: size})


def test_the_journal_builds_it_again():
    A, B, s = row_sum(8, 6)
    s[B].decompose_reduction(B.op.axis[0])
    twin = create_schedule(B.op)
    exec(str(s.journal), {"s": twin, "B": B})
    assert loops(twin, [A, B]) == loops(s, [A, B])
    assert loops(s.copy(), [A, B]) == loops(s.normalize(), [A, B]) == loops(s, [A, B])


def refusal(directive):
    with pytest.raises(ScheduleError) as caught:
        directive()
    return str(caught.value)


def test_inside_of_the_reduction():
    _, B, s = row_sum(8, 6)
    i, k = B.op.axis[0], B.op.reduce_axis[0]
    s[B].reorder(k, i)
    message = refusal(lambda: s[B].decompose_reduction(i))
    assert "decompose_reduction(i) on stage B: i is inside of the reduction loop k" in message and "choose one of k" in message


def test_later_directives_keep_the_place():
    _, B, s = row_sum(8, 6)
    i, k = B.op.axis[0], B.op.reduce_axis[0]
    s[B].decompose_reduction(i)
    assert "i is already the place of the start values" in refusal(lambda: s[B].split(i, 2))
    assert "are inside of the reduction loop k" in refusal(lambda: s[B].reorder(k, i))
    assert "stand before i already" in refusal(lambda: s[B].decompose_reduction(k))


def test_a_stage_that_is_no_reduction():
    A = te.placeholder((4,), name="A")
    B = te.compute((4,), lambda i: A[i] + 1.0, name="B")
    s = create_schedule(B.op)
    assert "B is not a reduction" in refusal(lambda: s[B].decompose_reduction(B.op.axis[0]))
    assert "A is a placeholder" in refusal(lambda: s[A].decompose_reduction(B.op.axis[0]))


def test_start_values_stand_inside_of_the_threads_around_a_stage():
    """Outside of them, the loops said that each thread adds to what the others have; machine code added once."""
    A = te.placeholder((4, 8), name="A")
    k = te.reduce_axis((0, 8), name="k")
    B = te.compute((4,), lambda i: te.sum(A[i, k], axis=k), name="B")
    s = te.create_schedule(B.op)
    thread = te.thread_axis((0, 2), "vthread")
    s[B].env_threads([thread])
    with pytest.raises(ScheduleError, match=r"outside of the threads vthread(.|\n)*keep vthread outside of the red"):
        s[B].decompose_reduction(s[B].leaf_iter_vars[0])
    with pytest.raises(ScheduleError, match=r"reorder(.|\n)*outside of the threads vthread"):
        s[B].reorder(k, thread)
    s[B].decompose_reduction(B.op.axis[0])
    a, b = np.ones((4, 8), "float32"), np.zeros(4, "float32")
    tedsl.build(s, [A, B])(a, b)
    np.testing.assert_array_equal(b, a.sum(1))
