"""Errors of passes over threads and intrinsics name the directive as well: each kind that a schedule can cause."""

import pytest

import tedsl
from tedsl import te, tir
from tedsl.errors import LoweringError

pytestmark = pytest.mark.usefixtures("strict")  # the words of `build`, from the loops that `lower` makes


def matrix():
    A = te.placeholder((4, 8), name="A")
    k = te.reduce_axis((0, 8), name="k")
    B = te.compute((4,), lambda i: te.sum(A[i, k], axis=k), name="B")
    return A, B, te.create_schedule(B.op)


def update_of_one_element():
    A, B, s = matrix()
    kept = s.cache_read(A, "shared", [B])
    s[B].bind(s[B].op.axis[0], te.thread_axis("blockIdx.x"))
    s[kept].compute_at(s[B], s[B].op.axis[0])
    s[kept].bind(s[kept].op.axis[1], te.thread_axis("threadIdx.x"))
    return s, [A, B]


def tensorized(strides=None, factor=1, extent=8):
    x = te.placeholder((2, 4), name="x")
    z = te.compute((2, 4), lambda i, j: x[i, j] + 1.0, name="z")
    X = tir.decl_buffer((2, 4), name="X", offset_factor=factor, strides=strides)
    Z = tir.decl_buffer((2, 4), name="Z", offset_factor=1, strides=[te.var("ld"), 1])
    plus = te.decl_tensor_intrin(z.op, lambda ins, outs: tir.call_extern(
        "int32", "plus", ins[0].access_ptr("r"), outs[0].access_ptr("w")), binds={x: X, z: Z}, name="plus")
    A = te.placeholder((4, extent), name="A")
    C = te.compute((4, extent), lambda i, j: A[i, j] + 1.0, name="C")
    s = te.create_schedule(C.op)
    yo, xo, yi, xi = s[C].tile(*s[C].op.axis, 2, 4)
    s[C].tensorize(yi, plus)
    return s, [A, C]


def chain(n=32):
    A = te.placeholder((n,), name="A")
    B = te.compute((n,), lambda i: A[i] + 1.0, name="B")
    C = te.compute((n,), lambda i: B[i] * 2.0, name="C")
    return A, B, C, te.create_schedule(C.op)


def nothing_to_roll():
    A, B, C, s = chain()
    s[B].compute_at(s[C], C.op.axis[0])
    s[B].rolling_buffer()
    return s, [A, C]


def no_next_iteration():
    A, B, C, s = chain()
    s[B].double_buffer()
    return s, [A, C]


def prefetch_of_what_is_not_read():
    A, B, C, s = chain()
    s[C].prefetch(A, C.op.axis[0], 1)
    return s, [A, C]


def memory_of_one_thread():
    A, B, C, s = chain()
    s[B].set_scope("local")
    s[B].bind(B.op.axis[0], te.thread_axis("threadIdx.x"))
    s[C].bind(C.op.axis[0], te.thread_axis("threadIdx.x"))
    return s, [A, C]


def thread_counts_that_differ():
    A, B, C, s = chain()
    block, thread = s[C].split(C.op.axis[0], 8)
    s[C].bind(block, te.thread_axis((0, 5), "blockIdx.x"))
    s[C].bind(thread, te.thread_axis((0, 8), "threadIdx.x"))
    s[B].compute_inline()
    return s, [A, C]


CASES = [
    (nothing_to_roll, "cannot roll along loop i of C", "s[B].rolling_buffer()"),
    (no_next_iteration, "double-buffered and computed at the root", "s[B].double_buffer()"),
    (prefetch_of_what_is_not_read, "A is not read inside that loop", "s[C].prefetch("),
    (memory_of_one_thread, "local", "s[B]."),
    (thread_counts_that_differ, "blockIdx.x", ".bind("),
    (update_of_one_element, "they would race", ".bind("),
    (tensorized, "is compact (it has no strides)", "s[C].tensorize("),
    (lambda: tensorized(strides=[4, 1]), "stride 0 is declared as 4", "s[C].tensorize("),
    (lambda: tensorized(strides=[te.var("ldx"), 1], factor=0), "is declared to begin at element 0", "s[C].tensorize("),
]


@pytest.mark.parametrize("program, problem, directive", CASES)
def test_the_directive_and_the_line(program, problem, directive):
    s, args = program()
    with pytest.raises(LoweringError) as caught:
        tedsl.build(s, args)
    words = str(caught.value)
    assert problem in words
    assert words.count("\n  from: ") == 1
    source = next(line for line in words.splitlines() if line.startswith("  from: "))
    assert directive in source and "(test_blame_of_passes.py:" in source


def a_stage_on_fewer_threads_than_read_it():
    """Found by random schedules: three threads compute the rows that all others read, each of them all rows."""
    n = te.var("n")
    B, C = te.placeholder((n,), name="B"), te.placeholder((17,), "int32", name="C")
    k = te.reduce_axis((0, 2), name="k")
    T = te.compute((n - 1,), lambda i: te.sum(B[i + k], axis=k), name="T")
    U = te.compute((17,), lambda i: T[C[i]], name="U")
    s = te.create_schedule(U.op)
    s[U].bind(U.op.axis[0], te.thread_axis("threadIdx.x"))
    s[T].env_threads([te.thread_axis((0, 3), "threadIdx.x")])
    s[T].compute_at(s[U], U.op.axis[0])
    s[T].set_scope("global")
    return s, [B, C, U]


@pytest.mark.parametrize("step", [tedsl.lower, tedsl.build])
@pytest.mark.parametrize("program", [update_of_one_element, a_stage_on_fewer_threads_than_read_it])
def test_races_are_refused_by_lower_too(program, step):
    s, args = program()
    with pytest.raises(LoweringError, match="race"):
        step(s, args)
