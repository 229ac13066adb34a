"""Loops at which stages are computed can be split, fused and tiled: the stages move to the loop that covers theirs."""

import numpy as np
import pytest

import tedsl
from tedsl import te
from tedsl.ir.evaluate import run
from tedsl.schedule.journal import Journal


def blur(rows, columns):
    """C reads two rows and two columns of B at each element, B is A squared."""
    A = te.placeholder((rows + 1, columns + 1), name="A")
    B = te.compute((rows + 1, columns + 1), lambda i, j: A[i, j] * A[i, j], name="B")
    C = te.compute((rows, columns), lambda i, j: B[i, j] + B[i + 1, j] + B[i, j + 1], name="C")
    return A, B, C, te.create_schedule(C.op)


def check(s, A, C):
    rows, columns = (int(n) for n in C.shape)
    a = np.random.default_rng(0).integers(0, 9, (rows + 1, columns + 1)).astype("float32")
    squares = a * a
    wanted = squares[:-1, :-1] + squares[1:, :-1] + squares[:-1, 1:]
    for call in (tedsl.build(s, [A, C]), lambda *arrays: run(tedsl.lower(s, [A, C])["main"], arrays)):
        c = np.full((rows, columns), np.nan, "float32")
        call(a, c)
        np.testing.assert_array_equal(c, wanted)


def split_by_factor(s, C):
    return s[C].split(C.op.axis[0], 4)[1]


def split_into_parts(s, C):
    return s[C].split(C.op.axis[0], nparts=3)[1]


def fused(s, C):
    return s[C].fuse(*C.op.axis)


def tiled(s, C):
    return s[C].tile(*C.op.axis, 4, 3)[2]


def split_twice(s, C):
    _, inner = s[C].split(C.op.axis[0], 6)
    return s[C].split(inner, 2)[1]


def split_and_fused(s, C):
    outer, inner = s[C].split(C.op.axis[0], 4)
    s[C].fuse(inner, C.op.axis[1])
    return s[C].leaf_iter_vars[-1]


@pytest.mark.parametrize("rows, columns", [(12, 9), (7, 5), (1, 1), (1, 8)])
@pytest.mark.parametrize("directive", [split_by_factor, split_into_parts, fused, tiled, split_twice, split_and_fused])
def test_stages_are_computed_at_the_loop_that_covers_theirs(directive, rows, columns):
    A, B, C, s = blur(rows, columns)
    s[B].compute_at(s[C], C.op.axis[0])
    loop = directive(s, C)
    assert s[B].attach_ivar is loop
    check(s, A, C)


def test_stages_at_inner_loops_stay_and_those_at_both_fused_loops_meet():
    A, B, C, s = blur(6, 5)
    cached = s.cache_read(A, "global", [B])
    s[B].compute_at(s[C], C.op.axis[1])
    s[cached].compute_at(s[C], C.op.axis[0])
    outer, inner = s[C].split(C.op.axis[0], 4)
    assert (s[B].attach_ivar, s[cached].attach_ivar) == (C.op.axis[1], inner)
    both = s[C].fuse(inner, C.op.axis[1])
    assert s[B].attach_ivar is s[cached].attach_ivar is both
    check(s, A, C)


def test_undo_and_the_journal_know_the_moves():
    A, B, C, s = blur(6, 5)
    s[B].compute_at(s[C], C.op.axis[0])
    before = str(tedsl.lower(s, [A, C]))
    _, inner = s[C].split(C.op.axis[0], 4)
    moved = str(tedsl.lower(s, [A, C]))
    assert s[B].attach_ivar is inner and moved != before
    again = te.create_schedule(C.op)
    again.replay(Journal.from_json(s.journal.to_json()))
    assert str(tedsl.lower(again, [A, C])) == moved
    s.undo()
    assert s[B].attach_ivar is C.op.axis[0]
    assert str(tedsl.lower(s, [A, C])) == before


def test_a_symbolic_number_of_rows():
    n = te.var("n")
    A = te.placeholder((n,), name="A")
    B = te.compute((n,), lambda i: A[i] + 1.0, name="B")
    C = te.compute((n,), lambda i: B[i] * 2.0, name="C")
    s = te.create_schedule(C.op)
    s[B].compute_at(s[C], C.op.axis[0])
    s[C].split(C.op.axis[0], 8)
    kernel = tedsl.build(s, [A, C])
    for size in (0, 1, 8, 19):
        a, c = np.arange(size, dtype="float32"), np.zeros(size, "float32")
        kernel(a, c)
        np.testing.assert_array_equal(c, a * 2 + 2)


def test_threads_of_a_loop_that_was_split_after_compute_at():
    """The order of many programs: place the caches, then split and bind."""
    A, B, C, s = blur(8, 8)
    s[B].compute_at(s[C], C.op.axis[0])
    outer, inner = s[C].split(C.op.axis[0], 4)
    s[C].bind(outer, te.thread_axis("blockIdx.x"))
    s[C].bind(inner, te.thread_axis("threadIdx.x"))
    check(s, A, C)
