"""Stages computed inside a vectorized loop become vector code with it: a copy of their memory for each lane."""

import itertools
from textwrap import dedent

import pytest

import tedsl
from tedsl import te
from tedsl.errors import LoweringError
from tedsl.schedule.handles import create_schedule
from tests.lower.end_to_end import check_both, check_calls, loops
from tests.lower.programs import whole_numbers


def row_sums(n):
    A = te.placeholder((n, 5), name="A")
    k = te.reduce_axis((0, 5), "k")
    P = te.compute((n,), lambda i: te.sum(A[i, k], axis=k), name="P")
    C = te.compute((n,), lambda i: P[i] * 2.0, name="C")
    return A, P, C, create_schedule(C.op)


def test_a_reduction_for_all_lanes_at_once():
    A, P, C, s = row_sums(8)
    outer, lanes = s[C].split(C.op.axis[0], 4)
    s[P].compute_at(s[C], lanes)
    s[C].vectorize(lanes)
    assert loops(s, [A, C], passes=True) == dedent("""\
        allocate(P: Pointer(global float32), float32, [4]), storage_scope = global;
        for (i.outer: int32, 0, 2) {
          P[ramp(0, 1, 4)] = broadcast(0f32, 4)
          for (k: int32, 0, 5) {
            P[ramp(0, 1, 4)] = ((float32x4*)P[ramp(0, 1, 4)] + (float32x4*)A_2[ramp(((i.outer*20) + k), 5, 4)])
          }
          C_2[ramp((i.outer*4), 1, 4)] = ((float32x4*)P[ramp(0, 1, 4)]*broadcast(2f32, 4))
        }
        """)


@pytest.mark.parametrize("size", [1, 3, 8, 13])
@pytest.mark.parametrize("first", [False, True])
def test_sizes(size, first):
    n = te.var("n")
    for extent in (size, n):
        A, P, C, s = row_sums(extent)
        _, lanes = s[C].split(C.op.axis[0], 4)
        if first:
            s[C].vectorize(lanes)
        s[P].compute_at(s[C], lanes)
        if not first:
            s[C].vectorize(lanes)
        check_calls(s, [A, C], [({A: whole_numbers((size, 5))}, {} if extent == size else {n: size})])


@pytest.mark.parametrize("n, f, tail", list(itertools.product([1, 6, 17], [4, 8], ["guard", "mask", "shift_inwards"])))
def test_stencils_and_chains(n, f, tail):
    A = te.placeholder((n + 3,), name="A")
    P = te.compute((n + 3,), lambda i: A[i] + 1.0, name="P")
    Q = te.compute((n + 1,), lambda i: P[i] * P[i + 2], name="Q")
    C = te.compute((n,), lambda i: Q[i] + Q[i + 1] * P[i], name="C")
    s = create_schedule(C.op)
    _, lanes = s[C].split(C.op.axis[0], f, tail=tail)
    s[C].vectorize(lanes)
    s[Q].compute_at(s[C], lanes)
    s[P].compute_at(s[C], lanes)
    check_both(s, [A, C], {A: whole_numbers((n + 3,))})
    q = s[Q].op.axis[0]
    s[Q].unroll(q)
    check_both(s, [A, C], {A: whole_numbers((n + 3,))})


def test_a_stage_inside_of_a_stage_inside_of_a_vector():
    A, B = te.placeholder((9, 5), name="A"), te.placeholder((5, 6), name="B")
    k = te.reduce_axis((0, 5), "k")
    C = te.compute((9, 6), lambda i, j: te.sum(A[i, k] * B[k, j], axis=k), name="C")
    s = create_schedule(C.op)
    local = s.cache_write(C, "local")
    _, lanes = s[C].split(C.op.axis[1], 4)
    s[C].vectorize(lanes)
    s[local].compute_at(s[C], lanes)
    copy = s.cache_read(A, "local", [local])
    s[copy].compute_at(s[local], s[local].op.reduce_axis[0])
    check_both(s, [A, B, C], {A: whole_numbers((9, 5)), B: whole_numbers((5, 6))})


def test_lanes_that_need_different_numbers_of_elements():
    A = te.placeholder((9, 9), name="A")
    P = te.compute((9, 9), lambda i, j: A[i, j] + 1.0, name="P")
    k = te.reduce_axis((0, 9), "k")
    C = te.compute((9,), lambda i: te.sum(P[i, te.min(k, i)], axis=k), name="C")
    s = create_schedule(C.op)
    s[P].compute_at(s[C], C.op.axis[0])
    s[C].vectorize(C.op.axis[0])
    with pytest.raises(LoweringError, match=r"each lane needs another number of elements(.|\n)*hint: compute P at a loop out"):
        tedsl.lower(s, [A, C])
    s[P].compute_root()
    check_both(s, [A, C], {A: whole_numbers((9, 9))})
