"""One loop over elements and over their reduction: the start values stand before it, and the order of each sum is kept."""

import numpy as np
import pytest

import tedsl
from tedsl import te
from tedsl.errors import ScheduleError
from tedsl.ir.evaluate import run


def product(n, m, l):
    A, B = te.placeholder((n, l), name="A"), te.placeholder((l, m), name="B")
    k = te.reduce_axis((0, l), "k")
    C = te.compute((n, m), lambda i, j: te.sum(A[i, k] * B[k, j], axis=k), name="C")
    return A, B, C, te.create_schedule(C.op)


def check(s, A, B, C):
    a, b = (np.random.default_rng(0).integers(-4, 5, [int(size) for size in t.shape]).astype("float32") for t in (A, B))
    for call in (tedsl.build(s, [A, B, C]), lambda *arrays: run(tedsl.lower(s, [A, B, C])["main"], arrays)):
        c = np.full([int(size) for size in C.shape], np.nan, "float32")
        call(a, b, c)
        np.testing.assert_array_equal(c, a @ b)


def elements_outside(stage, i, j, k):
    return stage.fuse(j, k)


def reduction_outside(stage, i, j, k):
    stage.reorder(i, k, j)
    return stage.fuse(k, j)


def parts_of_both(stage, i, j, k):
    outer, inner = stage.split(k, 3)
    stage.reorder(i, outer, j, inner)
    return stage.fuse(i, outer)


def everything(stage, i, j, k):
    return stage.fuse(i, j, k)


def everything_split(stage, i, j, k):
    return stage.split(stage.fuse(i, j, k), 7)[1]


def split_and_unrolled(stage, i, j, k):
    inner = stage.split(stage.fuse(j, k), nparts=4)[1]
    stage.unroll(inner)
    return inner


@pytest.mark.parametrize("n, m, l", [(5, 4, 6), (1, 1, 1), (3, 1, 7), (2, 5, 1)])
@pytest.mark.parametrize("directive", [elements_outside, reduction_outside, parts_of_both, everything, everything_split,
                                       split_and_unrolled])
def test_sums_are_right(directive, n, m, l):
    A, B, C, s = product(n, m, l)
    directive(s[C], *C.op.axis, *C.op.reduce_axis)
    check(s, A, B, C)


def test_a_copy_is_read_inside_and_threads_run_outside():
    A, B, C, s = product(4, 6, 5)
    kept = s.cache_read(A, "local", [C])
    both = s[C].fuse(C.op.axis[1], C.op.reduce_axis[0])
    s[C].bind(C.op.axis[0], te.thread_axis("threadIdx.x"))
    s[kept].compute_at(s[C], both)
    check(s, A, B, C)


def test_a_symbolic_number_of_elements():
    n = te.var("n")
    A = te.placeholder((n, 3), name="A")
    k = te.reduce_axis((0, 3), "k")
    B = te.compute((n,), lambda i: te.max(A[i, k], axis=k), name="B")
    s = te.create_schedule(B.op)
    s[B].split(s[B].fuse(B.op.axis[0], k), 4)
    kernel = tedsl.build(s, [A, B])
    for size in (0, 1, 5):
        a, b = np.random.default_rng(0).random((size, 3)).astype("float32"), np.zeros(size, "float32")
        kernel(a, b)
        np.testing.assert_array_equal(b, a.max(1))


def test_what_cannot_be_one_loop():
    A, B, C, s = product(4, 6, 8)
    n = te.var("n")
    k = te.reduce_axis((0, n), "k")
    D = te.placeholder((4, n), name="D")
    E = te.compute((4,), lambda i: te.sum(D[i, k], axis=k), name="E")
    longer = te.create_schedule(E.op)
    with pytest.raises(ScheduleError, match=r"k may have no iteration: one loop cannot be both"):
        longer[E].fuse(E.op.axis[0], k)
    both = s[C].fuse(C.op.axis[1], C.op.reduce_axis[0])
    for call, words in ((lambda: s[C].vectorize(both), "lanes would race"), (lambda: s[C].parallel(both), "threads would race"),
                        (lambda: s.rfactor(C, both), "over elements and over the reduction at once")):
        with pytest.raises(ScheduleError, match=words):
            call()
    s[C].bind(both, te.thread_axis("threadIdx.x"))
    with pytest.raises(tedsl.errors.LoweringError, match="over elements and over the reduction at once"):
        tedsl.build(s, [A, B, C])


def test_an_empty_reduction_keeps_its_own_loop():
    A = te.placeholder((4, 0), name="A")
    k = te.reduce_axis((0, 0), "k")
    B = te.compute((4,), lambda i: te.sum(A[i, k], axis=k), name="B")
    s = te.create_schedule(B.op)
    with pytest.raises(ScheduleError, match="k may have no iteration"):
        s[B].fuse(B.op.axis[0], k)


@pytest.mark.parametrize("size", [0, te.var("n")], ids=["constant", "symbolic"])
@pytest.mark.parametrize("part", ["outer", "inner"])
def test_a_part_of_a_reduction_that_may_be_empty_keeps_its_own_loop(size, part):
    """The part has the iterations that split was given, and the loop over it and the elements never ran: 1s were not stored."""
    A = te.placeholder((size, 8), name="A")
    k = te.reduce_axis((0, size), "k")
    B = te.compute((8,), lambda i: te.prod(A[k, i], axis=k), name="B")
    s = te.create_schedule(B.op)
    outer, inner = s[B].split(k, **{"nparts" if part == "outer" else "factor": 3})
    loop = outer if part == "outer" else inner
    others = [other for other in (outer, inner) if other is not loop]
    s[B].reorder(*others, loop, B.op.axis[0])
    with pytest.raises(ScheduleError, match="k may have no iteration: one loop cannot be both"):
        s[B].fuse(loop, B.op.axis[0])
    b = np.zeros(8, "float32")
    tedsl.build(s, [A, B])(np.zeros((0, 8), "float32"), b)
    np.testing.assert_array_equal(b, 1)
