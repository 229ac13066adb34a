"""Schedules for threads of a device that were refused, or sent the compiler round in circles."""

import numpy as np
import pytest

import tedsl
from tedsl import te, tir
from tedsl.errors import LoweringError

pytestmark = pytest.mark.usefixtures("strict")  # the words of `build`, from the loops that `lower` makes


def on_threads(body):
    """What `body(builder, read, write, shared, thread)` computes of 0.0 .. 7.0 on the eight threads of a block."""

    def statements(ins, outs):
        builder = tir.ir_builder.create()
        thread = te.thread_axis("threadIdx.x")
        builder.scope_attr(thread, "thread_extent", 8)
        shared = builder.allocate("float32", (8,), name="S", scope="shared")
        body(builder, builder.buffer_ptr(ins[0]), builder.buffer_ptr(outs[0]), shared, thread)
        return builder.get()

    A = te.placeholder((8,), name="A")
    B = te.extern((8,), [A], statements, name="B", dtype="float32")
    b = np.zeros(8, "float32")
    tedsl.build(te.create_schedule(B.op), [A, B])(np.arange(8, dtype="float32"), b)
    return b


@pytest.mark.parametrize("rows", [8, 7])
def test_checked_mode_of_a_reduction_across_threads(rows):
    """The checks of what is combined stood between the combination and its attribute, and were without its condition."""
    A = te.placeholder((rows, 20), name="A")
    k = te.reduce_axis((0, 20), "k")
    B = te.compute((rows,), lambda i: te.sum(A[i, k], axis=k), name="B")
    s = te.create_schedule(B.op)
    _, inner = s[B].split(B.op.reduce_axis[0], factor=8)
    parts = s.rfactor(B, inner)
    block, row = s[B].split(s[B].op.axis[0], factor=2)
    thread = te.thread_axis("threadIdx.x")
    s[B].bind(block, te.thread_axis("blockIdx.x"))
    s[B].bind(row, te.thread_axis("threadIdx.y"))
    s[B].bind(s[B].op.reduce_axis[0], thread)
    s[parts].compute_at(s[B], s[B].op.reduce_axis[0])
    s[B].set_store_predicate(thread.var.equal(0))
    a, b = np.random.default_rng(0).random((rows, 20), "float32"), np.zeros(rows, "float32")
    tedsl.build(s, [A, B], checked=True)(a, b)
    np.testing.assert_allclose(b, a.sum(1), rtol=1e-5)


def test_what_is_written_is_known_for_each_thread():
    """Checked mode remembered for the memory of one thread what another thread had written to its own."""
    A = te.placeholder((8,), name="A")

    def statements(ins, outs):
        builder = tir.ir_builder.create()
        thread = te.thread_axis("threadIdx.x")
        builder.scope_attr(thread, "thread_extent", 8)
        own = builder.allocate("float32", (1,), name="own", scope="local")
        read, write = builder.buffer_ptr(ins[0]), builder.buffer_ptr(outs[0])
        with builder.if_scope(thread < 4):
            own[0] = read[thread]
        write[thread] = own[0]
        return builder.get()

    B = te.extern((8,), [A], statements, name="B", dtype="float32")
    kernel = tedsl.build(te.create_schedule(B.op), [A, B], checked=True)
    with pytest.raises(tedsl.TedslError, match=r"reads own\[0\], to which nothing was written before"):
        kernel(np.zeros(8, "float32"), np.zeros(8, "float32"))


def test_a_value_read_under_a_condition_before_threads_wait():
    """A let that loads could not be divided at the barrier, and was tried again without end."""

    def body(builder, read, write, shared, thread):
        shared[thread] = read[thread]
        with builder.if_scope(thread < 4):
            value = builder.let("value", shared[thread])
            shared[thread] = value + 1.0
            write[thread] = shared[3 - thread]

    np.testing.assert_array_equal(on_threads(body), [4, 3, 2, 1, 0, 0, 0, 0])


def test_a_branch_with_two_sides_under_a_condition_where_threads_wait():
    def body(builder, read, write, shared, thread):
        with builder.if_scope(thread < 4):
            with builder.if_scope(thread < 2):
                shared[thread] = read[thread]
                write[thread] = shared[1 - thread]
            with builder.else_scope():
                write[thread] = 9.0

    np.testing.assert_array_equal(on_threads(body), [1, 0, 9, 9, 0, 0, 0, 0])


def test_a_loop_that_reads_its_extent_under_a_condition_where_threads_wait():
    def body(builder, read, write, shared, thread):
        with builder.if_scope(thread < 4), builder.for_range(0, read[0].astype("int32"), name="i"):
            shared[thread] = read[thread]
            write[thread] = shared[3 - thread]

    with pytest.raises(LoweringError, match="which differs among the threads of a block") as refused:
        on_threads(body)
    assert "put the condition into that loop" in str(refused.value)


@pytest.mark.parametrize("on", ["", "B", "BC"])
@pytest.mark.parametrize("checked", [False, True])
def test_a_reduction_across_threads_into_memory_of_each_thread(on, checked):
    """TVM's test_rfactor_elemwise_threads: the place of B makes its memory local, and every thread gets the result.

    A store predicate over those threads chooses which of them stores: in memory of each thread, all of them do.
    """
    rows, columns = 10, 37
    A = te.placeholder((rows, columns), name="A")
    k = te.reduce_axis((0, columns), "k")
    B = te.compute((rows,), lambda i: te.sum(A[i, k], axis=k, where=i > 1), name="B")
    C = te.compute((rows,), lambda i: B[i] + 1, name="C")
    s = te.create_schedule(C.op)
    _, inner = s[B].split(k, factor=16)
    parts = s.rfactor(B, inner)
    block, row = s[C].split(C.op.axis[0], factor=16)
    thread = te.thread_axis("threadIdx.x")
    s[C].bind(block, te.thread_axis("blockIdx.x"))
    s[C].bind(row, te.thread_axis("threadIdx.y"))
    s[B].bind(s[B].op.reduce_axis[0], thread)
    s[B].compute_at(s[C], row)
    s[parts].compute_at(s[B], s[B].op.reduce_axis[0])
    for stage in on:
        s[{"B": B, "C": C}[stage]].set_store_predicate(thread.var.equal(0))
    a, c = np.random.default_rng(0).random((rows, columns), "float32"), np.zeros(rows, "float32")
    tedsl.build(s, [A, C], checked=checked)(a, c)
    np.testing.assert_allclose(c, np.where(np.arange(rows) > 1, a.sum(1), 0) + 1, rtol=1e-5)


def test_memory_that_a_launch_reads_is_not_what_it_writes():
    """T lost its memory to S: within the launch of S the last read of T stood before the first store of S, in each thread."""
    n = 40
    A = te.placeholder((n,), name="A")
    T = te.compute((n,), lambda i: A[i] * 2.0, name="T")
    S = te.compute((n,), lambda i: T[n - 1 - i] + 1.0, name="S")
    D = te.compute((n,), lambda i: S[i] * S[n - 1 - i], name="D")
    s = te.create_schedule(D.op)
    own = s.cache_write(S, "local")
    for stage in (T, S, D):
        s[stage].bind(s[stage].op.axis[0], te.thread_axis("threadIdx.x"))
    s[own].compute_at(s[S], s[S].op.axis[0])
    a, d = np.random.default_rng(0).random(n, "float32"), np.zeros(n, "float32")
    tedsl.build(s, [A, D])(a, d)
    expected = a[::-1] * 2 + 1
    np.testing.assert_allclose(d, expected * expected[::-1], rtol=1e-5)


@pytest.mark.parametrize("times", [1, 2, 3])
def test_a_value_is_read_before_another_thread_replaces_it(times):
    """Threads did not wait between a let and the store of it: half of them read what the others had stored."""

    def body(builder, read, write, shared, thread):
        shared[thread] = read[thread]
        with builder.for_range(0, times, name="t"):
            value = builder.let("value", shared[7 - thread])
            shared[thread] = value
        write[thread] = shared[thread]

    np.testing.assert_array_equal(on_threads(body), np.arange(8)[::-1] if times % 2 else np.arange(8))


def test_two_values_are_read_under_a_condition_before_they_are_replaced():
    def body(builder, read, write, shared, thread):
        shared[thread] = read[thread]
        with builder.if_scope(thread < 6):
            mine = builder.let("mine", shared[thread])
            other = builder.let("other", shared[7 - thread])
            shared[thread] = mine * 10.0 + other
        write[thread] = shared[thread]

    np.testing.assert_array_equal(on_threads(body), [7, 16, 25, 34, 43, 52, 6, 7])


def sums_inside_threads(scope, tags, order=0):
    """Row sums in memory of `scope` inside of a loop over threads of each of `tags`, which read them."""
    A = te.placeholder((9, 6), "int32", name="A")
    k = te.reduce_axis((0, 6), name="k")
    B = te.compute((9,), lambda i: te.sum(A[i, k], axis=k), name="B")
    C = te.compute((9, *[2] * (len(tags) - 1)), lambda i, *j: B[i] + sum(j), name="C")
    s = te.create_schedule(C.op)
    for loop, tag in zip(C.op.axis, tags):
        s[C].bind(loop, te.thread_axis(tag))
    s[B].compute_at(s[C], C.op.axis[-1])
    s[B].set_scope(scope)
    if order:
        s[B].reorder(k, B.op.axis[0])
    return s, [A, C], B


@pytest.mark.parametrize("order", [0, 1])
@pytest.mark.parametrize("tags", [("threadIdx.x",), ("threadIdx.y", "threadIdx.x"), ("threadIdx.x", "threadIdx.y")])
def test_threads_of_a_warp_race_for_its_memory(tags, order):
    """Only shared memory was looked at: each of the nine threads added its part, which made nine times the sums."""
    s, args, _ = sums_inside_threads("warp", tags, order)
    with pytest.raises(LoweringError, match=r"threads of threadIdx.x update B\[.*they would race"):
        tedsl.lower(s, args)


@pytest.mark.parametrize("scope,tags,bound", [("warp", ("threadIdx.y",), None), ("warp", ("threadIdx.z",), None),
                                              ("local", ("threadIdx.x",), None), ("warp", ("threadIdx.x",), "threadIdx.x"),
                                              ("warp", ("threadIdx.y", "threadIdx.x"), "threadIdx.x"),
                                              ("shared", ("threadIdx.y",), "threadIdx.y")])
@pytest.mark.parametrize("checked", [False, True])
def test_rows_of_threads_have_a_warp_each(scope, tags, bound, checked):
    s, args, B = sums_inside_threads(scope, tags)
    if bound is not None:
        s[B].bind(B.op.axis[0], te.thread_axis(bound))
    a = np.random.default_rng(0).integers(-9, 9, (9, 6)).astype("int32")
    c = np.zeros((9, *[2] * (len(tags) - 1)), "int32")
    tedsl.build(s, args, checked=checked)(a, c)
    np.testing.assert_array_equal(c, a.sum(1) if len(tags) == 1 else a.sum(1)[:, None] + np.arange(2))


@pytest.mark.parametrize("rows", [0, 3])
def test_a_block_of_no_threads(rows, monkeypatch):
    """OpenCL C declared 0 threads, which compilers refuse: nothing is declared, and nothing runs."""
    monkeypatch.setenv("TEDSL_CUDA", "sim")
    A, k = te.placeholder((rows, 4), name="A"), te.reduce_axis((0, 4), name="k")
    B = te.compute((rows,), lambda i: te.sum(A[i, k], axis=k), name="B")
    s = te.create_schedule(B.op)
    s[B].bind(B.op.axis[0], te.thread_axis("threadIdx.y"))
    s[B].bind(s[B].op.reduce_axis[0], te.thread_axis("threadIdx.x"))
    text = tedsl.build(s, [A, B], target="opencl").imported_modules[0].get_source()
    assert text.count("reqd_work_group_size") == (rows > 0) and text.count("__kernel") == 1
    device, a = tedsl.cuda(0), np.arange(4 * rows, dtype="float32").reshape(rows, 4)
    b = tedsl.nd.empty((rows,), "float32", device)
    tedsl.build(s, [A, B], target="cuda")(tedsl.nd.array(a, device), b)
    np.testing.assert_array_equal(b.numpy(), a.sum(1))
