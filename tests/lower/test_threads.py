"""Loops bound to thread axes: what `lower` prints, how many threads are launched, which regions several threads need."""

from textwrap import dedent

import numpy as np
import pytest

import tedsl
from tedsl import te
from tedsl.driver import schedule_to_module
from tedsl.errors import LoweringError
from tests.passes.programs import body_text
from tests.passes.threads.programs import row_sums, softmax, tiled_matmul, vector_add
from tests.refusing import refused

pytestmark = pytest.mark.usefixtures("strict")  # the words of `build`, from the loops that `lower` makes


def lowered(s, args):
    return body_text(tedsl.lower(s, args, simple_mode=True)["main"])


def axis(name, tag, again=False, dom="(nullptr)"):
    return f'attr [IterVar({name}{"" if again else ": int32"}, {dom}, "ThreadIndex", "{tag}")] "thread_extent"'


BX, TX, TY = axis("blockIdx.x", "blockIdx.x"), axis("threadIdx.x", "threadIdx.x"), axis("threadIdx.y", "threadIdx.y")


def shown(text, **names):
    for name, value in names.items():
        text = text.replace(f"@{name}@", value)
    return dedent(text).strip("\n")


def test_vector_add_prints_as_in_tvm():
    assert lowered(*vector_add(te.var("n"), 64)) == shown("""
        @BX@ = floordiv((n + 63), 64);
        @TX@ = 64;
        if @tir.likely((((blockIdx.x*64) + threadIdx.x) < n), dtype=bool) {
          C_2[(((blockIdx.x*64) + threadIdx.x)*stride_2)] = ((float32*)A_2[(((blockIdx.x*64) + threadIdx.x)*stride)] """
        """+ (float32*)B_2[(((blockIdx.x*64) + threadIdx.x)*stride_1)])
        }""", BX=BX, TX=TX)


def test_a_reduction_across_threads_prints_as_in_tvm():
    assert lowered(*row_sums(8, 16)) == shown("""
        @BX@ = 2;
        allocate(B.rf: Pointer(local float32), float32, [1]), storage_scope = local;
        allocate(reduce_temp0: Pointer(local float32), float32, [1]), storage_scope = local;
        @TY@ = 4;
        @TX@ = 8 {
          B.rf[0] = 0f32
          for (k.outer: int32, 0, 2) {
            B.rf[0] = ((float32*)B.rf[0] + (float32*)A_2[((((blockIdx.x*64) + (threadIdx.y*16)) + (k.outer*8)) + threadIdx.x)])
          }
          attr [meta[tir.CommReducer][0]] "reduce_scope" = @tir.reinterpret(0u64, dtype=handle);
          @tir.tvm_thread_allreduce(1u32, (float32*)B.rf[0], True, reduce_temp0, threadIdx.x, dtype=handle)
          if (threadIdx.x == 0) {
            B_2[((blockIdx.x*4) + threadIdx.y)] = (float32*)reduce_temp0[0]
          }
        }""", BX=BX, TX=TX, TY=TY)


def test_shared_tiles_hold_what_all_threads_need_and_local_ones_what_one_needs():
    text = lowered(*tiled_matmul(16, 16, 8, threads=4, virtual=2, scale=2, step=4))
    start = text[:text.index("for (")]
    assert start == shown("""
        attr [IterVar(blockIdx.y: int32, (nullptr), "ThreadIndex", "blockIdx.y")] "thread_extent" = 1;
        allocate(C.local: Pointer(local float32), float32, [16]), storage_scope = local;
        allocate(A.shared: Pointer(shared float32), float32, [64]), storage_scope = shared;
        allocate(B.shared: Pointer(shared float32), float32, [64]), storage_scope = shared;
        allocate(A.shared.local: Pointer(local float32), float32, [4]), storage_scope = local;
        allocate(B.shared.local: Pointer(local float32), float32, [4]), storage_scope = local;
        attr [IterVar(blockIdx.x: int32, (nullptr), "ThreadIndex", "blockIdx.x")] "thread_extent" = 1;
        attr [IterVar(threadIdx.y: int32, [0:4], "ThreadIndex", "threadIdx.y")] "thread_extent" = 4;
        attr [IterVar(threadIdx.x: int32, [0:4], "ThreadIndex", "threadIdx.x")] "thread_extent" = 4 {
        """).rstrip() + "\n  "
    assert text.count('attr [IterVar(threadIdx.y, [0:4], "ThreadIndex", "threadIdx.y")] "thread_extent" = 4;') == 2
    assert "A.shared[((threadIdx.y*16) + (ax0.inner*4)) + threadIdx.x)]" in text.replace("[(((", "[((")
    assert "virtual_thread" not in text and "storage_sync" not in text


def test_the_scope_of_a_stage_follows_from_the_threads_around_it():
    text = lowered(*softmax(4, 16))
    assert "allocate(top: Pointer(shared float32), float32, [1])" in text
    A = te.placeholder((8, 8), name="A")
    B = te.compute((8, 8), lambda i, j: A[i, j] + 1.0, name="B")
    C = te.compute((8, 8), lambda i, j: B[i, j] * 2.0, name="C")
    for loop, scope, size in ((0, "shared", 8), (1, "local", 1)):
        s = te.create_schedule(C.op)
        s[C].bind(s[C].op.axis[0], te.thread_axis("blockIdx.x"))
        s[C].bind(s[C].op.axis[1], te.thread_axis("threadIdx.x"))
        s[B].compute_at(s[C], s[C].op.axis[loop])
        assert f"allocate(B: Pointer({scope} float32), float32, [{size}]), storage_scope = {scope}" in lowered(s, [A, C])


def stencil(threads=4, own=4):
    """B, of which a block needs two elements more than it has threads, computed by the threads of C."""
    A = te.placeholder((16,), name="A")
    B = te.compute((16,), lambda i: A[i] + 1.0, name="B")
    C = te.compute((14,), lambda i: B[i] + B[i + 2], name="C")
    s = te.create_schedule(C.op)
    tx = te.thread_axis("threadIdx.x")
    block, thread = s[C].split(C.op.axis[0], factor=threads)
    s[C].bind(block, te.thread_axis("blockIdx.x"))
    s[C].bind(thread, tx)
    s[B].compute_at(s[C], block)
    _, inner = s[B].split(s[B].op.axis[0], factor=own)
    s[B].bind(inner, tx)
    return s, [A, C], inner


def test_a_loop_with_fewer_iterations_than_threads_is_guarded():
    s, args, _ = stencil(own=3)
    text = lowered(s, args)
    assert text.count("= 4;\n") + text.count("= 4 {\n") == 3
    assert "if @tir.likely((threadIdx.x < 3), dtype=bool)" in text


def test_a_kernel_launches_as_many_threads_as_its_largest_loop_needs():
    s, args, _ = stencil(own=6)
    text = lowered(s, args)
    assert f"{TX} = 6;" in text and "if @tir.likely((threadIdx.x < 4), dtype=bool)" in text


def test_threads_in_front_of_which_a_split_stands_are_not_made_fewer():
    s, args = vector_add(3, 8)
    assert f"{TX} = 8;" in lowered(s, args)


def refuses(s, args, match):
    refused(lambda: tedsl.lower(s, args), match=match, error=LoweringError)


def test_the_range_of_an_axis_and_the_loop_must_agree():
    A = te.placeholder((16,), name="A")
    B = te.compute((16,), lambda i: A[i] + 1.0, name="B")
    s = te.create_schedule(B.op)
    s[B].bind(s[B].op.axis[0], te.thread_axis((0, 8), "threadIdx.x"))
    refuses(s, [A, B], r"loop i of B is bound to threadIdx.x, which has 8 threads; the loop has 16(.|\n)*split i with factor=8")


def test_memory_of_one_thread_is_not_computed_by_several():
    s, args, inner = stencil()
    B = s.stages[1]
    B.set_scope("local")
    refuses(s, args, r"thread of threadIdx.x computes B\[(.|\n)*belongs to one thread, and reads B\[(.|\n)*set_scope")


@pytest.mark.parametrize("own, width", [(lambda i: i, 1), (lambda i: i // 4 * 4 + (3 - i % 4), 4)])
def test_memory_of_one_thread_of_which_each_computes_and_reads_a_part(own, width):
    A = te.placeholder((60,), name="A")
    B = te.compute((60,), lambda i: A[i] * 2.0, name="B")
    C = te.compute((60,), lambda i: B[own(i)] + 1.0, name="C")
    s = te.create_schedule(C.op)
    block, inside = s[C].split(C.op.axis[0], 20)
    for stage, loop in ((s[C], inside), (s[B], None)):
        if loop is None:
            stage.set_scope("local")
            stage.compute_at(s[C], block)
            loop = B.op.axis[0]
        stage.bind(stage.split(loop, width)[0], te.thread_axis("threadIdx.x"))
    s[C].bind(block, te.thread_axis("blockIdx.x"))
    a, c = np.arange(60, dtype="float32"), np.zeros(60, "float32")
    tedsl.build(s, [A, C])(a, c)
    np.testing.assert_array_equal(c, a[[own(i) for i in range(60)]] * 2 + 1)
    memory = tedsl.build(s, [A, C], "cuda")  # each thread has memory of its own there
    assert memory.imported_modules


def test_threads_that_read_what_others_have():
    A = te.placeholder((64,), name="A")
    B = te.compute((64,), lambda i: A[i] * 2.0, name="B")
    C = te.compute((64,), lambda i: B[63 - i] + 1.0, name="C")
    s = te.create_schedule(C.op)
    one, only = s[C].split(C.op.axis[0], 64)
    s[C].bind(one, te.thread_axis("blockIdx.x"))
    s[B].set_scope("local")
    s[B].compute_at(s[C], one)
    for stage, loop in ((s[C], only), (s[B], B.op.axis[0])):
        stage.bind(loop, te.thread_axis("threadIdx.x"))
    refuses(s, [A, C], r"reads B\[63 - threadIdx.x\], which is not known to be the same thread's")


def test_threads_that_read_what_others_have_of_several_results():
    A = te.placeholder((64,), name="A")
    B, _ = te.compute((64,), lambda i: (A[i] * 2.0, A[i] + 1.0), name="B")
    C = te.compute((64,), lambda i: B[63 - i] + 1.0, name="C")
    s = te.create_schedule(C.op)
    one, only = s[C].split(C.op.axis[0], 64)
    s[C].bind(one, te.thread_axis("blockIdx.x"))
    s[B].set_scope("local")
    s[B].compute_at(s[C], one)
    for stage, loop in ((s[C], only), (s[B], B.op.axis[0])):
        stage.bind(loop, te.thread_axis("threadIdx.x"))
    refuses(s, [A, C], r"reads B.v0\[63 - threadIdx.x\], which is not known to be the same thread's")


def sums_read_by_threads(read, scope=""):
    """B, sums of the rows of A by threadIdx.x, inside of a loop of C over the same threads; C is `read(B, i, j)`."""
    A = te.placeholder((6, 4), "int32", name="A")
    k = te.reduce_axis((0, 4), name="k")
    B = te.compute((6,), lambda i: te.sum(A[i, k], axis=k), name="B")
    C = te.compute((6, 6), lambda i, j: read(B, i, j), name="C")
    s = te.create_schedule(C.op)
    s[B].compute_at(s[C], C.op.axis[1])
    s[B].set_scope(scope)
    s[C].bind(C.op.axis[1], te.thread_axis("threadIdx.x"))
    s[B].bind(k, te.thread_axis("threadIdx.x"))
    return s, [A, C]


@pytest.mark.parametrize("iterations", [1, 4])
def test_threads_do_not_combine_parts_of_what_each_needs_for_itself(iterations):
    """Wrong values before: each thread has an element of B of its own, and all of them were added up."""
    A = te.placeholder((6, iterations), "int32", name="A")
    k = te.reduce_axis((0, iterations), name="k")
    B = te.compute((6,), lambda i: te.sum(A[i, k], axis=k), name="B")
    C = te.compute((6,), lambda i: B[i], name="C")
    s = te.create_schedule(C.op)
    s[B].compute_at(s[C], C.op.axis[0])
    s[C].bind(C.op.axis[0], te.thread_axis("threadIdx.x"))
    s[B].bind(k, te.thread_axis("threadIdx.x"))
    refuses(s, [A, C], r"loop k of B is bound to threadIdx.x, and so is loop i of C: each thread needs elements of B of its "
                       r'own(.|\n)*s\[B\].bind(.|\n)*leave loop k unbound(.|\n)*set_scope\("shared"\)')


@pytest.mark.parametrize("checked", [False, True])
@pytest.mark.parametrize("read,scope", [(lambda B, i, j: B[i] + j, ""), (lambda B, i, j: B[i] + j, "shared"),
                                        (lambda B, i, j: B[j] + i, "shared"), (lambda B, i, j: B[(i + j) % 6], "shared")])
def test_threads_combine_parts_of_what_all_of_them_read(read, scope, checked):
    s, args = sums_read_by_threads(read, scope)
    a, c = np.random.default_rng(0).integers(-9, 9, (6, 4)).astype("int32"), np.zeros((6, 6), "int32")
    tedsl.build(s, args, checked=checked)(a, c)
    i, j = np.indices((6, 6))
    np.testing.assert_array_equal(c, read(a.sum(1), i, j))


@pytest.mark.parametrize("iterations", [1, 2])
@pytest.mark.parametrize("predicate", [False, True])
def test_each_thread_gets_the_result_of_fewer_threads(iterations, predicate):
    """Only threads that have an iteration stored it, each in memory of its own, where there was one: 1 of 3 here."""
    A = te.placeholder((3, iterations), "int32", name="A")
    k = te.reduce_axis((0, iterations), name="k")
    B = te.compute((3,), lambda i: te.max(A[i, k], axis=k), name="B")
    C = te.compute((3, 7), lambda i, j: B[i] + j, name="C")
    s = te.create_schedule(C.op)
    thread = te.thread_axis((0, 3), "threadIdx.x")
    s[C].env_threads([thread])
    mine = te.thread_axis("threadIdx.x")
    s[B].bind(k, mine)
    if predicate:
        s[B].set_store_predicate(mine.var.equal(0))
    s[B].compute_at(s[C], s[C].leaf_iter_vars[0])
    a, c = np.arange(3 * iterations, dtype="int32").reshape(3, iterations), np.zeros((3, 7), "int32")
    tedsl.build(s, [A, C])(a, c)
    np.testing.assert_array_equal(c, a.max(1)[:, None] + np.arange(7))


def test_a_block_does_not_wait_for_another():
    A = te.placeholder((4, 4), name="A")
    B = te.compute((4, 4), lambda i, j: A[i, j] + 1.0, name="B")
    C = te.compute((4, 4), lambda i, j: B[i, j] * 2.0, name="C")
    s = te.create_schedule(C.op)
    bx = te.thread_axis("blockIdx.x")
    s[C].bind(s[C].op.axis[0], bx)
    s[B].compute_at(s[C], s[C].op.axis[0])
    s[B].bind(s[B].op.axis[1], bx)
    refuses(s, [A, C], "blocks cannot wait for each other")


def test_virtual_threads_are_a_constant_number():
    A = te.placeholder((te.var("n"),), name="A")
    B = te.compute(A.shape, lambda i: A[i] + 1.0, name="B")
    s = te.create_schedule(B.op)
    s[B].bind(s[B].op.axis[0], te.thread_axis("vthread"))
    refuses(s, [A, B], "virtual threads are copies of the code(.|\n)*nparts=2")


def test_elements_inside_of_a_reduction_across_threads():
    A = te.placeholder((4, 8), name="A")
    k = te.reduce_axis((0, 8), name="k")
    B = te.compute((4,), lambda i: te.sum(A[i, k], axis=k), name="B")
    s = te.create_schedule(B.op)
    s[B].reorder(k, s[B].op.axis[0])
    s[B].bind(k, te.thread_axis("threadIdx.x"))
    refuses(s, [A, B], "the loop i over elements stands inside of it(.|\n)*reorder i to the outside of k")


def test_a_reduction_across_threads_has_no_start_value_of_its_own():
    A = te.placeholder((4, 8), name="A")
    k = te.reduce_axis((0, 8), name="k")
    B = te.compute((4,), lambda i: te.sum(A[i, k], axis=k, init=2.0), name="B")
    s = te.create_schedule(B.op)
    s[B].bind(k, te.thread_axis("threadIdx.x"))
    refuses(s, [A, B], "starts from a value of its own")


def test_a_predicate_may_name_threads_that_only_inner_stages_are_bound_to():
    A = te.placeholder((4, 8), name="A")
    k = te.reduce_axis((0, 8), name="k")
    B = te.compute((4,), lambda i: te.sum(A[i, k], axis=k), name="B")
    C = te.compute((4,), lambda i: B[i] + 1.0, name="C")
    s = te.create_schedule(C.op)
    tx = te.thread_axis("threadIdx.x")
    s[C].bind(s[C].op.axis[0], te.thread_axis("blockIdx.x"))
    s[B].compute_at(s[C], s[C].op.axis[0])
    s[B].bind(k, tx)
    s[C].set_store_predicate(tx.var.equal(0))
    text = lowered(s, [A, C])
    last = text[text.rindex("attr ["):]
    assert last == shown("""
        attr [IterVar(threadIdx.x, (nullptr), "ThreadIndex", "threadIdx.x")] "thread_extent" = 8;
          if (threadIdx.x == 0) {
            C_2[blockIdx.x] = ((float32*)B[0] + 1f32)
          }
        }""")


@pytest.mark.parametrize("tag", ["vthread", "cthread", "threadIdx.x"])
def test_threads_of_a_loop_that_fuse_made_of_nothing(tag):
    """Two threads for its one iteration: inside of the reduction each of them added."""
    B = te.placeholder((4,), "int32", name="B")
    k = te.reduce_axis((0, 4), name="k")
    T = te.compute((), lambda: te.sum(B[k], axis=k), name="T")
    s = te.create_schedule(T.op)
    _, _, inner, _ = s[T].tile(s[T].fuse(), k, 2, 2)
    s[T].bind(inner, te.thread_axis(tag))
    assert f"{tag} < 1" in str(schedule_to_module(s, [B, T]))
    t = np.zeros((), "int32")
    tedsl.build(s, [B, T])(np.arange(4, dtype="int32"), t)
    assert t == 6


def test_shared_memory_of_what_several_results_read_has_the_elements_of_one_block():
    A = te.placeholder((64, 20), name="A")
    B = te.compute((128, 20), lambda c, i: A[c // 2, i] + 1.0, name="B")
    s = te.create_schedule(B.op)
    L = s.cache_write(B, "local")
    S = s.cache_read(A, "shared", [L])
    c, i = s[B].op.axis
    s[B].bind(c, te.thread_axis("blockIdx.x"))
    s[B].bind(i, te.thread_axis("threadIdx.x"))
    s[L].compute_at(s[B], i)
    s[S].compute_at(s[L], s[L].op.axis[0])
    s[S].bind(s[S].op.axis[1], te.thread_axis("threadIdx.x"))
    assert "allocate(A.shared: Pointer(shared float32), float32, [20])" in str(tedsl.lower(s, [A, B], simple_mode=True))
    given = np.arange(64 * 20, dtype="float32").reshape(64, 20)
    result = np.zeros((128, 20), "float32")
    tedsl.build(s, [A, B], target="llvm")(given, result)
    np.testing.assert_array_equal(result, np.repeat(given, 2, axis=0) + 1)
