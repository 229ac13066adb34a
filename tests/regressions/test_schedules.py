"""Schedules that were miscompiled, or directives that left something behind when they were refused. All found by the fuzzer."""

import numpy as np
import pytest

import tedsl
from tedsl import te
from tedsl.errors import LoweringError, ScheduleError

pytestmark = pytest.mark.usefixtures("strict")  # the words of `build`, from the loops that `lower` makes


def sum_of_rows():
    A = te.placeholder((6, 8), name="A")
    k = te.reduce_axis((0, 8), "k")
    return te.compute((6,), lambda i: te.sum(A[i, k], axis=k), name="B")


def test_a_refused_tile_splits_nothing():
    """The reorder inside tile was refused after the splits had been made."""
    B = sum_of_rows()
    s = te.create_schedule(B.op)
    outer, inner = s[B].split(B.op.axis[0], 2)
    s[B].decompose_reduction(inner)
    before = str(s)
    with pytest.raises(ScheduleError, match="inside of the reduction loop"):
        s[B].tile(B.op.reduce_axis[0], outer, 2, 2)
    assert str(s) == before
    assert len(s[B].relations) == 1


@pytest.mark.parametrize("rows", [1, 4])
def test_a_store_predicate_over_virtual_threads(rows):
    """A virtual thread is a loop with a variable of its own, which the predicate did not know."""
    A = te.placeholder((rows, 5), name="A")
    B = te.compute((rows, 5), lambda i, j: A[i, j] + 1.0, name="B")
    s = te.create_schedule(B.op)
    thread = te.thread_axis("vthread")
    s[B].bind(B.op.axis[0], thread)
    s[B].set_store_predicate(thread.var % 2 < 2)
    a, b = np.zeros((rows, 5), "float32"), np.zeros((rows, 5), "float32")
    tedsl.build(s, [A, B])(a, b)
    np.testing.assert_array_equal(b, 1)
    s[B].set_store_predicate(thread.var % 2 < 1)
    if rows > 1:
        with pytest.raises(LoweringError, match="no thread stores the elements of vthread = 1 "):
            tedsl.lower(s, [A, B])


def test_auto_inline_leaves_out_a_stage_with_versions():
    """compute_inline refused it, after the stages before it had been inlined."""
    n = te.var("n")
    A = te.placeholder((n,), name="A")
    B = te.compute((n,), lambda i: A[i] + 1.0, name="B")
    C = te.compute((n,), lambda i: B[i] + 1.0, name="C")
    D = te.compute((n,), lambda i: C[i] + 1.0, name="D")
    s = te.create_schedule(D.op)
    s[C].specialize(n > 3)
    te.schedule.AutoInlineInjective(s)
    assert [s[t].attach_type.name for t in (B, C)] == ["INLINE", "ROOT"]


def test_blocks_that_wait_for_each_other_are_refused():
    """A producer shared out among blocks inside the threads of its reader: each block read what others had yet to compute."""
    A = te.placeholder((7, 17), name="A")
    B = te.compute((7, 17), lambda i, j: A[i, j] + 1.0, name="B")
    C = te.compute((7, 17), lambda i, j: B[i, j] * 2.0, name="C")
    s = te.create_schedule(C.op)
    s[C].bind(C.op.axis[1], te.thread_axis("threadIdx.x"))
    s[C].reorder(C.op.axis[1], C.op.axis[0])
    s[B].compute_at(s[C], C.op.axis[0])
    s[B].bind(B.op.axis[0], te.thread_axis("blockIdx.y"))
    s[B].set_scope("global")
    with pytest.raises(LoweringError, match="blocks cannot wait for each other"):
        tedsl.lower(s, [A, C])


@pytest.mark.parametrize("tag", ["vthread", "threadIdx.x", "blockIdx.x"])
@pytest.mark.parametrize("shape", [(0, 13, 7), (4, 0, 3)])
def test_no_iterations_on_threads(tag, shape):
    """A loop without iterations that is bound to threads wrote beyond its array: a launch has at least one thread."""
    B = te.compute(shape, lambda i, j, l: te.const(-1, "float32"), name="B")
    s = te.create_schedule(B.op)
    fused = s[B].fuse(B.op.axis[0], B.op.axis[1])
    s[B].bind(fused, te.thread_axis(tag))
    s[B].split(B.op.axis[2], 2)
    memory = np.full(64, 5, "float32")
    b = memory[32:32].reshape(shape)
    tedsl.build(s, [B])(b)
    assert (memory == 5).all()


def rows_of_rows():
    A = te.placeholder((4, 6), name="A")
    B = te.compute((4, 6), lambda i, j: A[i, j] + 1.0, name="B")
    C = te.compute((4, 6), lambda i, j: B[i, j] * 2.0, name="C")
    return A, B, C, te.create_schedule(C.op)


@pytest.mark.parametrize("tag", ["vthread", "threadIdx.x"])
def test_a_version_shares_the_memory_of_its_stage(tag):
    """A version that was placed after it was made computed what all threads need, in memory for one."""
    A, B, C, s = rows_of_rows()
    s[B].specialize(True)
    s[C].bind(C.op.axis[0], te.thread_axis(tag))
    s[B].compute_at(s[C], C.op.axis[1])
    a, c = np.ones((4, 6), "float32"), np.zeros((4, 6), "float32")
    tedsl.build(s, [A, C])(a, c)
    np.testing.assert_array_equal(c, 4)


def test_a_group_follows_its_loop():
    """It could be split while the only stage of the group stood elsewhere; compute_root then put the stage at no loop."""
    A, B, C, s = rows_of_rows()
    s[B].compute_at(s[C], C.op.axis[0])
    group = s.create_group([B], [B.op.input_tensors[0]])
    group.compute_at(s[C], C.op.axis[1])
    _, inner = s[C].split(C.op.axis[1], 2)
    s[B].compute_root()
    assert s[B].attach_ivar is inner
    a, c = np.ones((4, 6), "float32"), np.zeros((4, 6), "float32")
    tedsl.build(s, [A, C])(a, c)
    np.testing.assert_array_equal(c, 4)


def test_a_store_predicate_over_threads_that_are_not_there():
    """Only the verifier saw that the variable had no value."""
    A, B, C, s = rows_of_rows()
    thread = te.thread_axis("threadIdx.x")
    s[C].bind(C.op.axis[0], thread)
    s[B].set_store_predicate(thread.var >= 0)
    with pytest.raises(LoweringError, match=r"is about threadIdx\.x: B does not run on these threads"):
        tedsl.lower(s, [A, C])


def test_a_reduction_without_iterations_across_threads():
    """Its start values are stored, although no thread has anything to add."""
    A = te.placeholder((7, 0), name="A")
    k = te.reduce_axis((0, 0), "k")
    B = te.compute((7,), lambda i: te.sum(A[i, k], axis=k), name="B")
    s = te.create_schedule(B.op)
    s[B].bind(k, te.thread_axis("threadIdx.x"))
    b = np.ones(7, "float32")
    tedsl.build(s, [A, B])(np.zeros((7, 0), "float32"), b)
    assert (b == 0).all()


def test_an_order_of_a_version_in_which_a_guest_reads_what_is_computed_further_in():
    """Only the order of the general loops was checked: the version read `B.global` before it was computed."""
    B = te.placeholder((13, 2), name="B")
    T = te.compute((2, 13), lambda i, j: B[j, i], name="T")
    k = te.reduce_axis((0, 2), "k")
    C = te.compute((13, 13), lambda i, j: te.sum(B[i, k] * T[k, j], axis=k), name="C")
    s = te.create_schedule(C.op)
    s[T].compute_at(s[C], k)
    cached = s.cache_read(B, "global", [C, T])
    version = s[C].specialize(True)
    i, j = C.op.axis
    s[cached].compute_at(s[C], i)
    with pytest.raises(ScheduleError, match=r"T reads B\.global, .* T stands outside that loop in the version where True"):
        version.reorder(k, i)
    version.reorder(j, k)
    b, c = np.ones((13, 2), "float32"), np.zeros((13, 13), "float32")
    tedsl.build(s, [B, C])(b, c)
    assert (c == 2).all()
