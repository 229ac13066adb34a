"""Barriers: where threads share memory, and nowhere else; a missing one shows in the interpreter."""

import numpy as np
import pytest

import tedsl
from tedsl import te
from tedsl.errors import InternalError, LoweringError
from tedsl.ir import build
from tedsl.ir.evaluate import run
from tedsl.ir.expr import Load, Var, pointer_var
from tedsl.ir.iters import IterType, IterVar
from tedsl.ir.stmt import Allocate, AttrStmt, Evaluate, Store, seq
from tedsl.ir.verify import verify
from tedsl.ir.walk.rewriter import ScopedRewriter
from tedsl.ir.walk.visitor import post_order
from tedsl.passes.machine.lower_threads import lower_threads
from tedsl.passes.threads.gather_threads import gather_threads
from tedsl.passes.threads.insert_barriers import barrier, insert_barriers, is_barrier
from tests.passes.programs import Function, body_text, loop, when
from tests.passes.threads.programs import forms, softmax, tiled_matmul, vector_add, whole_numbers

T = Var("threadIdx.x")
K = Var("k")
S = pointer_var("S", "float32", "shared")
COUNT = 8


def on_threads(body, var=T, tag="threadIdx.x", count=COUNT):
    return AttrStmt(IterVar(None, var, IterType.THREAD_INDEX, tag), "thread_extent", build.as_expr(count), body)


def shared(body, size=64):
    return Allocate(S, "float32", (build.as_expr(size),), build.true(), body)


def put(index, value):
    return Store(S, build.as_expr(value), build.as_expr(index))


def get(index):
    return Load("float32", S, build.as_expr(index))


def kernel(body, **shapes):
    f = Function(**(shapes or {"A": (64,), "B": (64,)}))
    return f, lambda made: f.func(on_threads(shared(made)))


F, FUNC = kernel(None)


def barriers(body, golden=None):
    """The kernel around `body` with barriers, and how many there are; checked against loops in both orders. golden: the
    fixture; its file holds the kernel before and after."""
    func = FUNC(body)
    made = insert_barriers(gather_threads(func))
    verify(made, flat=True)
    loops = lower_threads(made)
    verify(loops, flat=True)
    results = []
    for form in (func, made, loops):
        for backwards in (False, True):
            a, b = whole_numbers(64), np.full(64, 7, "float32")
            run(form, [a, b], reverse_parallel=backwards)
            results.append(b)
    for b in results[1:]:
        np.testing.assert_array_equal(b, results[0])
    if golden is not None:
        golden.sections(before=body_text(func), after=body_text(made))
    return body_text(made), sum(is_barrier(node) for node in post_order(made.body) if isinstance(node, Evaluate))


def test_another_threads_value_is_waited_for():
    text, count = barriers(seq(put(T, F.load("A", T)), F.store("B", T, get(build.sub(7, T)))))
    assert count == 1 and text.index("S[threadIdx.x]") < text.index("tvm_storage_sync") < text.index("B")


def test_a_thread_does_not_wait_for_itself():
    own = build.add(build.mul(T, 4), K)
    assert barriers(loop(K, 4, seq(put(own, F.load("A", own)), F.store("B", own, get(own)))))[1] == 0
    own = build.add(build.mul(K, 8), T)
    assert barriers(loop(K, 4, seq(put(own, F.load("A", own)), F.store("B", own, get(own)))))[1] == 0


def test_the_next_iteration_waits_for_the_readers_of_this_one():
    at = build.add(build.mul(K, 8), T)
    text, count = barriers(loop(K, 4, seq(put(T, F.load("A", at)), F.store("B", at, get(build.sub(7, T))))))
    assert count == 2 and text.index("tvm_storage_sync") < text.index("S[threadIdx.x] =")


def test_overlapping_parts_of_threads():
    at = build.add(build.mul(T, 2), K)  # element 2 belongs to thread 0 at k = 2 and to thread 1 at k = 0
    body = seq(loop(K, 3, put(at, F.load("A", at))), F.store("B", T, get(build.mul(T, 2))))
    assert barriers(body)[1] >= 1


def test_a_guard_that_differs_among_threads_moves_inwards(golden):
    body = when(build.less(T, 6), seq(put(T, F.load("A", T)), loop(K, 2, seq(
        F.store("B", build.add(build.mul(K, 8), T), get(build.sub(5, T))), put(T, build.add(get(T), 1.0))))))
    barriers(body, golden)


def test_the_other_side_of_a_guard_as_well(golden):
    body = when(build.less(T, 6), seq(put(T, F.load("A", T)), F.store("B", T, get(build.sub(5, T)))), F.store("B", T, 0.0))
    barriers(body, golden)


def test_a_condition_that_is_the_same_for_all_threads_stays(golden):
    body = loop(K, 4, when(build.greater(K, 1), seq(put(T, F.load("A", T)), F.store("B", T, get(build.sub(7, T))))))
    barriers(body, golden)


def test_a_loop_that_may_not_run_is_no_barrier():
    at = build.add(build.mul(K, 8), T)
    n = Var("n")
    inner = loop(K, n, seq(barrier(), F.store("B", at, 1.0)))
    f = Function(A=(64,), B=(64,))
    func = f.func(on_threads(shared(seq(put(T, f.load("A", T)), inner, f.store("B", T, get(build.sub(7, T)))))), n)
    made = insert_barriers(gather_threads(func))
    assert sum(is_barrier(node) for node in post_order(made.body) if isinstance(node, Evaluate)) == 2


@pytest.mark.parametrize("condition", [build.less(T, 4), build.less(build.cast("int32", F.load("A", T)), 0)])
def test_a_barrier_that_only_some_threads_come_to_is_refused(condition):
    func = gather_threads(FUNC(when(condition, seq(put(T, F.load("A", T)), barrier(), F.store("B", T, get(build.sub(7, T)))))))
    for step in (insert_barriers, lower_threads):
        with pytest.raises(LoweringError, match=r"the barrier tvm_storage_sync stands under the condition"):
            step(func)
    with pytest.raises(InternalError, match=r"wait at a barrier that the others do not reach"):
        run(func, [whole_numbers(64), np.zeros(64, "float32")])


def test_a_barrier_in_a_loop_of_different_lengths_is_refused():
    func = gather_threads(FUNC(loop(K, T, seq(put(T, 0.0), F.store("B", K, get(build.sub(7, T)))))))
    with pytest.raises(LoweringError, match=r"stands under the loop k, one of whose bounds is threadIdx.x"):
        insert_barriers(func)


def test_needed_barriers_under_a_condition_on_data_are_refused():
    condition = build.less(build.cast("int32", F.load("A", T)), 0)
    func = gather_threads(FUNC(when(condition, seq(put(T, 1.0), F.store("B", T, get(build.sub(7, T)))))))
    with pytest.raises(LoweringError, match=r"which reads memory and differs among the threads"):
        insert_barriers(func)


@pytest.mark.parametrize("program, shapes", [
    (lambda: tiled_matmul(16, 16, 16), [(16, 16), (16, 16), (16, 16)]), (lambda: softmax(3, 16), [(3, 16), (3, 16)])])
def test_every_barrier_is_needed(program, shapes):
    """The interpreter runs freely between barriers: without one of them, in one order of the threads, results differ."""
    made = forms(*program())["barriers"]
    inputs = [whole_numbers(*shape, seed=k) for k, shape in enumerate(shapes[:-1])]

    def results(func):
        for backwards in (False, True):
            out = np.zeros(shapes[-1], "float32")
            run(func, [*inputs, out], reverse_parallel=backwards)
            yield out

    expected = next(results(made))
    found = [node for node in post_order(made.body) if isinstance(node, Evaluate) and is_barrier(node)]
    assert found
    for gone in found:
        broken = made.with_body(without(made.body, gone))
        assert any(not np.array_equal(out, expected) for out in results(broken))


def without(body, gone):
    class Without(ScopedRewriter):
        def stmt(self, stmt):
            return seq() if stmt is gone else self.descend(stmt)

    return Without()(body)


def test_functions_without_kernels_stay_the_same_object():
    from tedsl.passes.threads.inject_virtual_threads import inject_virtual_threads

    func = Function(A=(8,)).func(F.store("B", 0, 1.0))
    for step in (gather_threads, insert_barriers, lower_threads, inject_virtual_threads):
        assert step(func) is func


def test_by_the_name_of_tvm():
    s, args = vector_add(16)
    module = tedsl.lower(s, args)
    assert "storage_sync" not in str(tedsl.tir.transform.ThreadSync("shared")(module))
    assert "storage_sync" in str(tedsl.tir.transform.ThreadSync("shared")(tedsl.lower(*tiled_matmul(16, 16, 16))))


def test_a_vector_that_is_kept_beyond_a_barrier():
    """Its memory was made for one lane: an error of types ended the build of an argmax in vectors on threads."""
    n, m = te.var("n"), te.var("m")
    A = te.placeholder((n, m, m), name="A")
    k = te.reduce_axis((0, m), name="k")
    argmax = te.comm_reducer(lambda x, y: (te.if_then_else(x[1] >= y[1], x[0], y[0]), te.max(x[1], y[1])),
                             lambda i, v: (te.const(-1, i), te.min_value(v)), name="argmax")
    where, largest = te.compute((n, m), lambda i, j: argmax((k.var, A[i, k, j]), axis=k), name="B")
    s = te.create_schedule(where.op)
    _, lane = s[where].split(where.op.axis[0], factor=3)
    s[where].bind(where.op.axis[1], te.thread_axis("threadIdx.x"))
    s[where].vectorize(lane)
    a = np.random.default_rng(0).random((5, 4, 4)).astype("float32")
    places, values = np.zeros((5, 4), "int32"), np.zeros((5, 4), "float32")
    tedsl.build(s, [A, where, largest])(a, places, values)
    np.testing.assert_array_equal(places, a.argmax(1))
    np.testing.assert_array_equal(values, a.max(1))


def test_stores_farther_apart_than_the_threads_can_be_do_not_wait():
    """Copies of a loop that was unrolled store one part of the memory after the other."""
    _, count = barriers(seq(put(T, F.load("A", T)), put(build.add(T, 8), F.load("A", build.add(T, 8)))))
    assert count == 0
    _, count = barriers(seq(put(T, F.load("A", T)), put(build.add(T, 7), F.load("A", build.add(T, 8)))))
    assert count == 1
