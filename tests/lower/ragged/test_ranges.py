"""Reductions whose range is read from a tensor, or differs from element to element."""

import numpy as np
import pytest

import tedsl
from tedsl import te
from tedsl.errors import LoweringError, ScheduleError
from tests.lower.ragged.results import as_written, results

COUNTS = np.array([0, 5, 2, 3, 1, 4], "int32")
VALUES = np.arange(3, 15, dtype="int32")


def rows():
    """B[i] = sum of the first L[i] elements of A."""
    A, L = te.placeholder((12,), "int32", name="A"), te.placeholder((6,), "int32", name="L")

    def row(i):
        k = te.reduce_axis((0, te.max(te.min(L[i], 12), 0)), name="k")
        return te.sum(A[k], axis=k)
    B = te.compute((6,), row, name="B")
    return [A, L, B], te.create_schedule(B.op)


# --- the range is read where the element exists ---

def halves(s, B):
    s[B].split(B.op.axis[0], 4)


def thirds(s, B):
    s[B].split(s[B].split(B.op.axis[0], 4)[1], 3)
    s[B].split(B.op.reduce_axis[0], 3)


def special(s, B):
    version = s[B].specialize(True)
    version.split(version.leaf_iter_vars[0], 4)
    version.split(version.leaf_iter_vars[1], 8, tail="partition")


def partition(s, B):
    s[B].split(B.op.axis[0], 4, tail="partition")


def mask(s, B):
    s[B].split(B.op.axis[0], 4, tail="mask")


def swapped(s, B):
    s[B].reorder(*reversed(s[B].split(B.op.axis[0], 4)))


def lanes(s, B):
    s[B].vectorize(s[B].split(B.op.axis[0], 4)[1])


def decomposed(s, B):
    s[B].decompose_reduction(s[B].split(B.op.axis[0], 4)[1])


def threads(s, B):
    s[B].bind(s[B].split(B.op.axis[0], nparts=4)[0], te.thread_axis("threadIdx.x"))


def across_threads(s, B):
    s[B].split(B.op.axis[0], 4)
    s[B].bind(s[B].split(B.op.reduce_axis[0], 3)[1], te.thread_axis("threadIdx.x"))


@pytest.mark.parametrize("schedule", [halves, thirds, special, partition, mask, swapped, lanes, decomposed, threads,
                                      across_threads])
def test_a_range_is_not_read_for_elements_that_do_not_exist(schedule):
    """The guards stood inside of the loop of the reduction, and its extent was read behind the end of L."""
    args, s = rows()
    schedule(s, args[2])
    expected = [VALUES[:n].sum() for n in COUNTS]
    for got in results(s, args, (VALUES, COUNTS), (6,)):
        np.testing.assert_array_equal(got, expected)


def test_a_range_is_not_read_by_threads_without_an_element():
    """The kernel has 8 threads for the 6 elements, and all of them take part in the combination."""
    (A, L, B), _ = rows()
    E = te.compute((2, 8), lambda x, j: B[j % 6] + x, name="E")
    s = te.create_schedule(E.op)
    s[E].bind(E.op.axis[0], te.thread_axis("blockIdx.x"))
    s[E].bind(E.op.axis[1], te.thread_axis("threadIdx.y"))
    s[B].set_scope("shared")
    s[B].compute_at(s[E], E.op.axis[0])
    s[B].bind(B.op.axis[0], te.thread_axis("threadIdx.y"))
    s[B].bind(s[B].split(B.op.reduce_axis[0], 2)[1], te.thread_axis("threadIdx.x"))
    expected = [[VALUES[:COUNTS[j % 6]].sum() + x for j in range(8)] for x in range(2)]
    for got in results(s, [A, L, E], (VALUES, COUNTS), (2, 8)):
        np.testing.assert_array_equal(got, expected)


def test_a_range_that_is_always_there_is_read_as_it_is():
    """Where the split comes out even there is nothing to guard."""
    args, s = rows()
    s[args[2]].split(args[2].op.axis[0], 3)
    assert "for (k: int32, 0, max(min(L" in str(as_written(s, args))


def triangle():
    """B[i] = sum of the first i + 1 elements of row i of A."""
    A = te.placeholder((6, 6), "int32", name="A")

    def row(i):
        k = te.reduce_axis((0, i + 1), name="k")
        return te.sum(A[i, k], axis=k)
    B = te.compute((6,), row, name="B")
    return A, B, te.create_schedule(B.op)


def test_a_range_that_reads_nothing_needs_no_guard():
    A, B, s = triangle()
    s[B].split(B.op.axis[0], 4)
    assert "for (k: int32, 0, (((i.outer*4) + i.inner) + 1))" in str(as_written(s, [A, B]))


# --- the range comes from another stage ---

def windows(begin):
    """T2[i] = sum of A[k]*k over T0[i] .. T0[i] + 3, or 0 .. T0[i] + 3."""
    A, L = te.placeholder((12,), "int32", name="A"), te.placeholder((6,), "int32", name="L")
    T0 = te.compute((6,), lambda i: te.max(te.min(L[i], 5), 0), name="T0")

    def window(i):
        k = te.reduce_axis((T0[i] if begin else 0, T0[i] + 4), name="k")
        return te.sum(A[k] * k, axis=k)
    T2 = te.compute((6,), window, name="T2")
    return [A, L, T2], T0, te.create_schedule(T2.op)


def expected_windows(begin):
    return [sum(int(VALUES[k]) * k for k in range(n if begin else 0, n + 4)) for n in COUNTS]


def inline(s, T0, T2):
    s[T0].compute_inline()


def inline_decomposed(s, T0, T2):
    s[T0].compute_inline()
    s[T2].decompose_reduction(T2.op.axis[0])


def inline_split(s, T0, T2):
    s[T0].compute_inline()
    s[T2].split(T2.op.axis[0], 4)
    s[T2].split(T2.op.reduce_axis[0], 3)


def inline_rfactor(s, T0, T2):
    s.rfactor(T2, s[T2].split(T2.op.reduce_axis[0], 2)[1])
    s[T0].compute_inline()


def auto_inline(s, T0, T2):
    te.schedule.AutoInlineInjective(s)


def reverse(s, T0, T2):
    outer, _ = s[T0].split(T0.op.axis[0], 4)
    s[T2].reverse_compute_at(s[T0], outer)


@pytest.mark.parametrize("begin", [True, False])
@pytest.mark.parametrize("schedule", [inline, inline_decomposed, inline_split, inline_rfactor, auto_inline, reverse])
def test_what_gives_a_range_is_computed_inline_or_around(schedule, begin):
    """compute_inline left the range reading a stage that was gone; reverse_compute_at said that a diagonal is read."""
    args, T0, s = windows(begin)
    schedule(s, T0, args[2])
    for got in results(s, args, (VALUES, COUNTS), (6,)):
        np.testing.assert_array_equal(got, expected_windows(begin))


def test_an_inlined_range_is_no_argument_and_no_memory():
    args, T0, s = windows(True)
    s[T0].compute_inline()
    assert "T0" not in str(as_written(s, args))


def test_a_chain_of_ranges_inline():
    args, T0, _ = windows(False)
    T1 = te.compute((6,), lambda i: T0[5 - i], name="T1")

    def row(i):
        k = te.reduce_axis((0, T1[i]), name="k")
        return te.sum(args[0][k], axis=k)
    B = te.compute((6,), row, name="B")
    s = te.create_schedule(B.op)
    te.schedule.AutoInlineInjective(s)
    s[B].split(B.op.axis[0], 4)
    for got in results(s, [*args[:2], B], (VALUES, COUNTS), (6,)):
        np.testing.assert_array_equal(got, [VALUES[:n].sum() for n in COUNTS[::-1]])


# --- what is refused ---

@pytest.mark.parametrize("around", [False, True])
def test_a_range_that_differs_is_no_number_of_threads(around):
    """It was called a variable that no argument gives a value."""
    A, B, s = triangle()
    if around:
        s[B].bind(B.op.axis[0], te.thread_axis("threadIdx.y"))
    s[B].bind(B.op.reduce_axis[0], te.thread_axis("threadIdx.x"))
    with pytest.raises(LoweringError, match=r"loop k of B is bound to threadIdx.x, and its extent is i \+ 1, which differs "
                                            r"(.|\n)*bind\(s\[B\].op.reduce_axis(.|\n)*hint: split k by a constant"):
        tedsl.lower(s, [A, B])


def copy_of_a_stage():
    args, T0, s = windows(False)
    return s, T0, args[2]


def copy_of_a_placeholder():
    args, s = rows()
    return s, args[1], args[2]


def copy_after_another_directive():
    args, T0, s = windows(False)
    s.cache_write(T0, "local")
    return s, T0, args[2]


@pytest.mark.parametrize("made", [copy_of_a_stage, copy_of_a_placeholder, copy_after_another_directive])
def test_cache_read_of_what_only_gives_a_range(made):
    """The copy was made, and nothing read it."""
    s, tensor, reader = made()
    before = [stage.op.name for stage in s.stages]
    with pytest.raises(ScheduleError, match=f"{reader.name} reads {tensor.name} only for the range of its reduction"):
        s.cache_read(tensor, "local", [reader])
    assert [stage.op.name for stage in s.stages] == before


def test_cache_read_of_what_gives_a_range_too():
    """A formula reads the copy; its range still comes from the tensor."""
    A, L = te.placeholder((12,), "int32", name="A"), te.placeholder((6,), "int32", name="L")

    def row(i):
        k = te.reduce_axis((0, L[i]), name="k")
        return te.sum(A[k] * L[i], axis=k)
    B = te.compute((6,), row, name="B")
    s = te.create_schedule(B.op)
    copy = s.cache_read(L, "local", [B])
    s[copy].compute_at(s[B], B.op.axis[0])
    for got in results(s, [A, L, B], (VALUES, COUNTS), (6,)):
        np.testing.assert_array_equal(got, [VALUES[:n].sum() * n for n in COUNTS])


def test_a_range_that_is_read_where_it_exists():
    """The user may write the condition too."""
    A, L = te.placeholder((12,), "int32", name="A"), te.placeholder((6,), "int32", name="L")

    def row(choose):
        def at(i):
            k = te.reduce_axis((0, choose(i < 6, L[i], te.const(2, "int32"))), name="k")
            return te.sum(A[k], axis=k)
        return te.compute((8,), at, name="B")
    B = row(te.if_then_else)
    s = te.create_schedule(B.op)
    s[B].split(B.op.axis[0], 5)
    for got in results(s, [A, L, B], (VALUES, COUNTS), (8,)):
        np.testing.assert_array_equal(got, [*(VALUES[:n].sum() for n in COUNTS), *[VALUES[:2].sum()] * 2])
    B = row(tedsl.tir.Select)  # evaluates both sides
    with pytest.raises(LoweringError, match="cannot be proved to lie inside of L"):
        tedsl.lower(te.create_schedule(B.op), [A, L, B])
