"""Threads as loops: what is run once, what each thread keeps, which programs race."""

import numpy as np
import pytest

import tedsl
from tedsl import te
from tedsl.errors import LoweringError
from tedsl.ir import build
from tedsl.ir.evaluate import run
from tedsl.ir.expr import Load, Var, pointer_var
from tedsl.ir.stmt import Allocate, LetStmt, Store, seq
from tedsl.passes.machine.lower_threads import lower_threads
from tedsl.passes.threads.gather_threads import gather_threads
from tedsl.passes.threads.insert_barriers import barrier, insert_barriers
from tests.passes.programs import Function, body_text
from tests.passes.threads.programs import whole_numbers
from tests.passes.threads.test_barriers import COUNT, T, get, on_threads, put, shared

F = Function(A=(64,), B=(64,))
LOCAL = pointer_var("L", "float32", "local")


def loops(body, golden):
    """Threads as loops do what threads do; both texts stand in the golden file."""
    func = F.func(on_threads(body))
    made = lower_threads(insert_barriers(gather_threads(func)))
    results = []
    for form in (func, made):
        a, b = whole_numbers(64), np.full(64, 7, "float32")
        run(form, [a, b])
        results.append(b)
    np.testing.assert_array_equal(*results)
    golden.sections(before=body_text(func), after=body_text(made))


def test_memory_of_a_thread_lives_across_a_barrier(golden):
    own = Load("float32", LOCAL, build.const(0, "int32"))
    body = Allocate(LOCAL, "float32", (build.const(1, "int32"),), build.true(), shared(seq(
        Store(LOCAL, F.load("A", T), build.const(0, "int32")), put(T, own),
        F.store("B", T, build.add(get(build.sub(7, T)), own)))))
    loops(body, golden)


def test_memory_of_a_thread_within_a_phase_stays_its_own(golden):
    own = Load("float32", LOCAL, build.const(0, "int32"))
    body = Allocate(LOCAL, "float32", (build.const(1, "int32"),), build.true(), seq(
        Store(LOCAL, F.load("A", T), build.const(0, "int32")), F.store("B", T, own)))
    loops(body, golden)


def test_a_let_lives_across_a_barrier(golden):
    x = Var("x", "float32")
    both = seq(put(T, x), F.store("B", T, build.add(get(build.sub(7, T)), x)))
    loops(shared(LetStmt(x, F.load("A", T), both)), golden)


def test_what_names_no_thread_is_run_once(golden):
    loops(shared(seq(put(0, F.load("A", 3)), F.store("B", T, get(0)))), golden)


def test_blocks_are_outer_loops(golden):
    block = Var("blockIdx.x")
    at = build.add(build.mul(block, COUNT), T)
    func = F.func(on_threads(on_threads(F.store("B", at, F.load("A", at))), block, "blockIdx.x", 4))
    golden.sections(before=body_text(func), after=body_text(lower_threads(insert_barriers(gather_threads(func)))))


def test_different_variables_of_one_tag_are_one_thread(golden):
    other = Var("threadIdx.x")
    func = F.func(shared(seq(on_threads(put(T, F.load("A", T))), on_threads(F.store("B", other, get(other)), other))))
    block = Var("blockIdx.x")
    func = F.func(on_threads(func.body, block, "blockIdx.x", 1))
    golden.sections(before=body_text(func), after=body_text(gather_threads(func)))


def test_one_number_of_threads_per_launch():
    block, other = Var("blockIdx.x"), Var("threadIdx.x")
    body = seq(on_threads(F.store("B", T, 0.0)), on_threads(F.store("B", other, 1.0), other, count=4))
    with pytest.raises(LoweringError, match=r"launches 8 threads of threadIdx.x and then 4|launches 4 threads .* then 8"):
        gather_threads(F.func(on_threads(body, block, "blockIdx.x", 1)))


def test_threads_that_update_one_element_race():
    func = gather_threads(F.func(on_threads(F.store("B", 0, build.add(F.load("B", 0), F.load("A", T))))))
    with pytest.raises(LoweringError, match=r"all 8 threads of threadIdx.x update B\[0\]: they would race(.|\n)*predicate"):
        lower_threads(insert_barriers(func))


def test_a_reduction_whose_elements_no_thread_owns_races():
    A = te.placeholder((4, 8), name="A")
    k = te.reduce_axis((0, 8), name="k")
    B = te.compute((4,), lambda i: te.sum(A[i, k], axis=k), name="B")
    s = te.create_schedule(B.op)
    kept = s.cache_read(A, "shared", [B])
    s[B].bind(s[B].op.axis[0], te.thread_axis("blockIdx.x"))
    s[kept].compute_at(s[B], s[B].op.axis[0])
    s[kept].bind(s[kept].op.axis[1], te.thread_axis("threadIdx.x"))
    with pytest.raises(LoweringError, match=r"all 8 threads of threadIdx.x update B"):
        tedsl.build(s, [A, B])


def test_a_barrier_alone_does_no_harm(golden):
    loops(shared(seq(put(T, F.load("A", T)), barrier(), F.store("B", T, get(T)))), golden)


