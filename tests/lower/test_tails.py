"""The tails of a split: the loops of each, the same results from all, and where a tail cannot be."""

from textwrap import dedent

import numpy as np
import pytest

import tedsl
from tedsl import te, tir
from tedsl.errors import LoweringError, ScheduleError
from tedsl.schedule.handles import create_schedule
from tedsl.schedule.relations import TAILS
from tests.lower.end_to_end import check_both, check_calls, loops
from tests.lower.programs import whole_numbers

pytestmark = pytest.mark.sampled(2)


def chain(n, tail, factor=4, vectorize=True, nparts=None):
    """C = (A + 1) * 2, whose first step B is split with `tail`."""
    A = te.placeholder((n,), name="A")
    B = te.compute((n,), lambda i: A[i] + 1.0, name="B")
    C = te.compute((n,), lambda i: B[i] * 2.0, name="C")
    s = create_schedule(C.op)
    _, inner = s[B].split(B.op.axis[0], factor, nparts, tail=tail)
    if vectorize:
        s[B].vectorize(inner)
    return s, A, B, C


# --- the loops -----------------------------------------------------------------------------------------------------------

LOOPS = {
    "guard": """\
        for (i.outer: int32, 0, 3) {
          for (i.inner: int32, 0, 4) {
            if @tir.likely((((i.outer*4) + i.inner) < 10), dtype=bool) {
              B[((i.outer*4) + i.inner)] = (A[((i.outer*4) + i.inner)] + 1f32)
            }
          }
        }
        """,
    "mask": """\
        for (i.outer: int32, 0, 3) annotations = {"tail": "mask"} {
          for (i.inner: int32, 0, 4) {
            if (((i.outer*4) + i.inner) < 10) {
              B[((i.outer*4) + i.inner)] = (A[((i.outer*4) + i.inner)] + 1f32)
            }
          }
        }
        """,
    "partition": """\
        for (i.outer: int32, 0, 3) annotations = {"tail": "partition"} {
          for (i.inner: int32, 0, 4) {
            if @tir.likely((((i.outer*4) + i.inner) < 10), dtype=bool) {
              B[((i.outer*4) + i.inner)] = (A[((i.outer*4) + i.inner)] + 1f32)
            }
          }
        }
        """,
    "shift_inwards": """\
        for (i.outer: int32, 0, 3) {
          for (i.inner: int32, 0, 4) {
            B[(min((i.outer*4), 6) + i.inner)] = (A[(min((i.outer*4), 6) + i.inner)] + 1f32)
          }
        }
        """,
    "round_up": """\
        for (i.outer: int32, 0, 3) {
          for (i.inner: int32, 0, 4) {
            B[((i.outer*4) + i.inner)] = (@tir.if_then_else((((i.outer*4) + i.inner) < 10), A[((i.outer*4) + i.inner)],\
 0f32, dtype=float32) + 1f32)
          }
        }
        """,
}

PASSED = {  # after the passes, the inner loop vectorized
    "mask": """\
          for (i.outer: int32, 0, 3) annotations = {"tail": "mask"} {
            B[ramp((i.outer*4), 1, 4)] = ((float32x4*)A_2[ramp((i.outer*4), 1, 4)] if (ramp((i.outer*4), 1, 4) <\
 broadcast(10, 4)) + broadcast(1f32, 4)) if (ramp((i.outer*4), 1, 4) < broadcast(10, 4))
          }
        """,
    "partition": """\
          for (i.outer: int32, 0, 2) annotations = {"tail": "partition"} {
            B[ramp((i.outer*4), 1, 4)] = ((float32x4*)A_2[ramp((i.outer*4), 1, 4)] + broadcast(1f32, 4))
          }
          B[ramp(8, 1, 4)] = ((float32x4*)A_2[ramp(8, 1, 4)] if (ramp(8, 1, 4) < broadcast(10, 4)) + broadcast(1f32, 4)) if\
 (ramp(8, 1, 4) < broadcast(10, 4))
        """,
    "shift_inwards": """\
          for (i.outer: int32, 0, 3) {
            B[ramp(min((i.outer*4), 6), 1, 4)] = ((float32x4*)A_2[ramp(min((i.outer*4), 6), 1, 4)] + broadcast(1f32, 4))
          }
        """,
    "round_up": """\
          for (i.outer: int32, 0, 3) {
            B[ramp((i.outer*4), 1, 4)] = ((float32x4*)A_2[ramp((i.outer*4), 1, 4)] if (ramp((i.outer*4), 1, 4) <\
 broadcast(10, 4)) + broadcast(1f32, 4))
          }
        """,
}


def part_of_b(text):
    """The loops of B, inside of its memory."""
    lines = text.splitlines()
    until = next(k for k, line in enumerate(lines) if line.strip().startswith("for (i: "))
    return "\n".join(lines[1:until]) + "\n"


@pytest.mark.parametrize("tail", TAILS)
def test_the_loops(tail):
    s, A, _, C = chain(10, tail, vectorize=False)
    assert dedent(part_of_b(loops(s, [A, C]))) == dedent(LOOPS[tail])


@pytest.mark.parametrize("tail", PASSED)
def test_the_vectors(tail):
    s, A, _, C = chain(10, tail)
    assert dedent(part_of_b(loops(s, [A, C], passes=True))) == dedent(PASSED[tail])


def test_round_up_enlarges_the_memory():
    s, A, _, C = chain(10, "round_up")
    assert "[0:12]" in loops(s, [A, C]) and "float32, [12])" in loops(s, [A, C], passes=True)


def test_round_up_asks_nothing_where_the_input_is_large_enough():
    A = te.placeholder((16,), name="A")
    B = te.compute((10,), lambda i: A[i] + 1.0, name="B")
    C = te.compute((10,), lambda i: B[i] * 2.0, name="C")
    s = create_schedule(C.op)
    s[B].split(B.op.axis[0], 4, tail="round_up")
    assert "if" not in loops(s, [A, C])
    check_both(s, [A, C], {A: whole_numbers((16,))})


@pytest.mark.parametrize("tail", TAILS)
def test_a_split_that_comes_out_even_needs_no_tail(tail):
    plain, *_ = chain(12, "guard")
    s, A, _, C = chain(12, tail)
    assert loops(s, [A, C]) == loops(plain, [plain[plain.outputs[0]].op.input_tensors[0].op.input_tensors[0],
                                             plain.outputs[0].output(0)])


def test_masks_are_never_split_off():
    s, A, _, C = chain(1001, "mask", factor=8)
    assert tedsl.build(s, [A, C]).get_source("tir").count("ramp((i.outer*8), 1, 8)") and \
        'annotations = {"tail": "mask"}' in tedsl.build(s, [A, C]).get_source("tir")


# --- the results ---------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("tail", TAILS)
@pytest.mark.parametrize("size", [1, 7, 13])
@pytest.mark.parametrize("factor, nparts", [(4, None), (None, 3), (None, 8)])
def test_constant_sizes(tail, size, factor, nparts):
    for vectorize in (False, True):
        s, A, _, C = chain(size, tail, factor, vectorize and factor is not None, nparts)
        check_both(s, [A, C], {A: whole_numbers((size,))})


@pytest.mark.parametrize("tail", TAILS)
@pytest.mark.parametrize("factor, nparts", [(4, None), (8, None), (None, 3)])
def test_symbolic_sizes(tail, factor, nparts):
    n = te.var("n")
    for vectorize in (False, True):
        s, A, _, C = chain(n, tail, factor, vectorize and factor is not None, nparts)
        check_calls(s, [A, C], [({A: whole_numbers((size,))}, {n: size}) for size in (0, 1, 3, 4, 5, 8, 17)])


def stencil(n, tail, at, factor=4):
    """O = B[i] + B[i + 1] with B attached to a loop of O; O (or B) is split with `tail`."""
    A = te.placeholder((n,), name="A")
    B = te.compute((n,), lambda i: A[i] * 3.0, name="B")
    O = te.compute((n - 1,), lambda i: B[i] + B[i + 1], name="O")
    s = create_schedule(O.op)
    outer, inner = s[O].split(O.op.axis[0], factor, tail=tail if at == "consumer" else "guard")
    s[B].compute_at(s[O], outer)
    if at == "producer":
        _, lanes = s[B].split(B.op.axis[0], 4, tail=tail)
        s[B].vectorize(lanes)
    else:
        s[O].vectorize(inner)
    return s, A, O


@pytest.mark.parametrize("tail", TAILS)
@pytest.mark.parametrize("at", ["consumer", "producer"])
@pytest.mark.parametrize("size", [2, 6, 17])
def test_attached_producers(tail, at, size):
    if tail == "round_up" and at == "consumer":
        return  # an output
    n = te.var("n")
    for extent, sizes in ((size, {}), (n, {n: size})):
        for factor in (4, 5):
            s, A, O = stencil(extent, tail, at, factor)
            check_both(s, [A, O], {A: whole_numbers((size,))}, sizes)


@pytest.mark.parametrize("tail", TAILS)
@pytest.mark.parametrize("second", TAILS)
@pytest.mark.parametrize("size", [1, 29])
def test_splits_of_splits(tail, second, size):
    n = te.var("n")
    for extent, sizes in ((size, {}), (n, {n: size}))[size == 1:]:
        for which in (0, 1):
            s, A, B, C = chain(extent, tail, 6, vectorize=False)
            parts = s[B].leaf_iter_vars
            try:
                s[B].split(parts[which], 4, tail=second)
            except ScheduleError as error:
                assert second == "round_up" and which == 1, str(error)
                continue
            check_both(s, [A, C], {A: whole_numbers((size,))}, sizes)


@pytest.mark.parametrize("tail", TAILS)
def test_fused_tiles_and_reordered_loops(tail):
    A = te.placeholder((7, 10), name="A")
    B = te.compute((7, 10), lambda i, j: A[i, j] + 1.0, name="B")
    C = te.compute((7, 10), lambda i, j: B[i, j] * 2.0, name="C")
    for fuse in (False, True):
        s = create_schedule(C.op)
        i, j = B.op.axis
        io, ii = s[B].split(i, 4, tail=tail)
        jo, ji = s[B].split(j, 4, tail=tail)
        s[B].reorder(io, jo, ii, ji)
        if fuse:
            s[B].fuse(io, jo)
        s[B].vectorize(ji)
        check_both(s, [A, C], {A: whole_numbers((7, 10))})


@pytest.mark.parametrize("tail", ["guard", "mask", "partition", "round_up"])
@pytest.mark.parametrize("size", [1, 5, 8])
def test_reductions(tail, size):
    A = te.placeholder((size, 6), name="A")
    k = te.reduce_axis((0, 6), name="k")
    B = te.compute((size,), lambda i: te.sum(A[i, k], axis=k), name="B")
    C = te.compute((size,), lambda i: B[i] * 2.0, name="C")
    s = create_schedule(C.op)
    io, ii = s[B].split(B.op.axis[0], 4, tail=tail)
    s[B].reorder(io, k, ii)
    s[B].vectorize(ii)
    check_both(s, [A, C], {A: whole_numbers((size, 6))})
    if tail != "round_up":
        s = create_schedule(C.op)
        s[B].split(k, 4, tail=tail)
        check_both(s, [A, C], {A: whole_numbers((size, 6))})


@pytest.mark.parametrize("tail", ["mask", "partition"])
def test_parallel_tiles(tail):
    s, A, B, C = chain(1003, tail, 8)
    s[B].parallel(s[B].leaf_iter_vars[0])
    check_both(s, [A, C], {A: whole_numbers((1003,))})


def test_reads_of_reads_in_padded_iterations():
    rows, table = te.placeholder((5,), "int32", name="I"), te.placeholder((3,), name="T")
    B = te.compute((5,), lambda i: table[rows[i]] + 1.0, name="B")
    C = te.compute((5,), lambda i: B[i] * 2.0, name="C")
    s = create_schedule(C.op)
    s[B].split(B.op.axis[0], 4, tail="round_up")
    check_both(s, [rows, table, C], {rows: np.array([2, 0, 1, 1, 2], "int32"), table: whole_numbers((3,))})


def test_the_journal_says_the_tail():
    s, A, B, C = chain(10, "partition")
    assert "s[B].split(s[B].op.axis[0], factor=4, tail='partition')" in str(s.journal)
    twin = create_schedule(C.op)
    exec(str(s.journal), {"s": twin, "B": B, "C": C})
    assert loops(twin, [A, C]) == loops(s, [A, C])


# --- refusals ------------------------------------------------------------------------------------------------------------

def refusal(directive, kind=ScheduleError):
    with pytest.raises(kind) as caught:
        directive()
    return str(caught.value)


def matrix():
    A = te.placeholder((10, 6), name="A")
    k = te.reduce_axis((0, 6), name="k")
    B = te.compute((10,), lambda i: te.sum(A[i, k], axis=k), name="B")
    return A, B, k, create_schedule(B.op)


def test_no_such_tail():
    _, B, _, s = matrix()
    message = refusal(lambda: s[B].split(B.op.axis[0], 4, tail="roundup"))
    assert "there is no tail the str 'roundup'" in message and "choose one of guard, mask, partition, shift_inwards" in message


def test_shifting_a_reduction():
    _, B, k, s = matrix()
    for loop in (B.op.axis[0], k):
        message = refusal(lambda loop=loop: s[B].split(loop, 4, tail="shift_inwards"))
        assert "B is a reduction" in message and "add up elements twice" in message
        assert ("cache_write(B" in message) == (loop is not k)  # k would be the same loop of the new stage


def test_rounding_up_an_output():
    A = te.placeholder((10,), name="A")
    B = te.compute((10,), lambda i: A[i] + 1.0, name="B")
    s = create_schedule(B.op)
    message = refusal(lambda: s[B].split(B.op.axis[0], 4, tail="round_up"))
    assert "B is an output" in message and "nothing proves that 4 divides 10" in message
    s[B].split(B.op.axis[0], 5, tail="round_up")
    check_both(s, [A, B], {A: whole_numbers((10,))})


def test_rounding_up_what_is_passed_as_an_argument():
    s, A, B, C = chain(10, "round_up")
    message = refusal(lambda: tedsl.lower(s, [A, B, C]), LoweringError)
    assert "B is an argument" in message and "memory of the caller cannot be enlarged" in message


def test_rounding_up_inner_fused_and_reduction_loops():
    A = te.placeholder((10, 6), name="A")
    k = te.reduce_axis((0, 6), name="k")
    B = te.compute((10,), lambda i: te.sum(A[i, k], axis=k), name="B")
    C = te.compute((10, 6), lambda i, j: A[i, j] + B[i], name="C")
    D = te.compute((10, 6), lambda i, j: C[i, j] + 1.0, name="D")
    s = create_schedule(D.op)
    assert "k is a reduction loop" in refusal(lambda: s[B].split(k, 4, tail="round_up"))
    _, inner = s[B].split(B.op.axis[0], 5)
    assert "the inner loop of a split" in refusal(lambda: s[B].split(inner, 3, tail="round_up"))
    fused = s[C].fuse(*C.op.axis)
    assert "a fused loop" in refusal(lambda: s[C].split(fused, 7, tail="round_up"))
    s[C].split(fused, 6, tail="round_up")
    check_both(s, [A, D], {A: whole_numbers((10, 6))})


def test_threads_may_not_share_out_tiles_that_overlap():
    s, _, B, _ = chain(10, "shift_inwards")
    outer = s[B].leaf_iter_vars[0]
    assert "two threads would write the same elements" in refusal(lambda: s[B].parallel(outer))
    assert "two threads" in refusal(lambda: s[B].bind(outer, te.thread_axis("threadIdx.x")))


def test_threads_that_each_go_through_all_tiles_that_overlap():
    s, A, B, C = chain(10, "shift_inwards", vectorize=False)
    outer, inner = s[B].leaf_iter_vars
    s[B].reorder(inner, outer)
    s[B].parallel(inner)
    message = refusal(lambda: tedsl.lower(s, [A, C]), LoweringError)
    assert "two threads would write the same elements of B" in message and "reorder i.outer outside of i.inner" in message
    s[B].reorder(outer, inner)
    check_both(s, [A, C], {A: whole_numbers((10,))})


def test_in_place():
    A = te.placeholder((10,), name="A")
    B = te.compute((10,), lambda i: A[i] + 1.0, name="B")
    s = create_schedule(B.op)
    s[B].split(B.op.axis[0], 4, tail="shift_inwards")
    shared = tir.decl_buffer((10,), "float32", "AB")
    assert "B is computed in place" in refusal(lambda: tedsl.lower(s, [shared], binds={A: shared, B: shared}), LoweringError)
    with tedsl.PassContext(config={"tir.noalias": False}):
        assert "computes elements twice" in refusal(lambda: tedsl.lower(s, [A, B]), LoweringError)


def test_directives_that_would_lose_the_tail():
    s, _, B, _ = chain(10, "partition", vectorize=False)
    assert 'split with tail="partition", which would be lost' in refusal(lambda: s.cache_write(B, "local"))
