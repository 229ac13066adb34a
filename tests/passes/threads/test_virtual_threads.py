"""Virtual threads become interleaved copies."""

from textwrap import dedent

import numpy as np
import pytest

import tedsl
from tedsl import te, tir
from tedsl.errors import LoweringError
from tedsl.ir import build
from tedsl.ir.expr import Load, Ramp, Var, pointer_var
from tedsl.ir.iters import IterType, IterVar
from tedsl.ir.stmt import Allocate, AttrStmt, Store, seq
from tedsl.passes.threads.inject_virtual_threads import inject_virtual_threads
from tests.passes.programs import Function, body_text, check, loop, when

F = Function(A=(64,), B=(64,))
V, K = Var("vthread"), Var("k")
L = pointer_var("L", "float32", "local")


def virtual(body, count=2, tag="vthread", var=V):
    return AttrStmt(IterVar(None, var, IterType.THREAD_INDEX, tag), "virtual_thread", build.as_expr(count), body)


def local(body, size=2):
    return Allocate(L, "float32", (build.as_expr(size),), build.true(), body)


def own(index):
    return Load("float32", L, build.as_expr(index))


def keep(index, value):
    return Store(L, value, build.as_expr(index))


def copies(body, golden=None):
    return body_text(check(inject_virtual_threads, F.func(body), golden=golden))


def test_statements_that_depend_on_the_thread_are_copied_within_the_loops():
    at = build.add(build.mul(V, 8), K)
    assert copies(virtual(local(loop(K, 8, seq(keep(0, F.load("A", at)), F.store("B", at, own(0))))))) == dedent("""\
        allocate(L: Pointer(local float32), float32, [2, 2]), storage_scope = local;
        for (k: int32, 0, 8) {
          L[(0*2)] = (float32*)A_1[((0*8) + k)]
          L[(1*2)] = (float32*)A_1[((1*8) + k)]
          B_1[((0*8) + k)] = (float32*)L[(0*2)]
          B_1[((1*8) + k)] = (float32*)L[(1*2)]
        }""")


def test_memory_without_the_thread_is_shared(golden):
    copies(virtual(local(seq(keep(0, F.load("A", 0)), F.store("B", V, own(0))))), golden)


def test_a_condition_on_the_thread_makes_memory_its_own(golden):
    copies(virtual(local(seq(keep(0, F.load("A", 0)), when(build.equal(V, 1), keep(0, F.load("A", 1))),
                                    F.store("B", V, own(0))))), golden)


def test_a_loop_whose_bounds_depend_on_the_thread_is_copied_as_a_whole(golden):
    copies(virtual(loop(K, build.add(V, 1), F.store("B", build.add(build.mul(V, 8), K), 1.0))), golden)


def test_many_threads_are_a_loop():
    assert "for (vthread.s: int32, 0, 20)" in copies(virtual(F.store("B", V, F.load("A", V)), 20))


def test_nested_threads(golden):
    other = Var("vy")
    at = build.add(build.mul(V, 2), other)
    copies(virtual(virtual(local(seq(keep(0, F.load("A", at)), F.store("B", at, own(0)))), 2, "vthread", other), 3), golden)


def test_threads_that_share_nothing(golden):
    copies(virtual(local(seq(keep(0, F.load("A", 0)), F.store("B", V, own(0)))), 2, "cthread"), golden)


def test_vectors(golden):
    lanes = Ramp(build.mul(V, 4), build.const(1, "int32"), 4)
    kept = Ramp(build.const(0, "int32"), build.const(1, "int32"), 4)
    body = local(seq(Store(L, F.load("A", lanes), kept), Store(F.data("B"), Load("float32x4", L, kept), lanes)), 4)
    copies(virtual(body), golden)


def test_the_number_is_a_constant():
    n = Var("n")
    with pytest.raises(LoweringError, match="virtual threads vthread is n, which is not a constant"):
        inject_virtual_threads(F.func(virtual(F.store("B", V, 0.0), n), n))



def test_no_virtual_thread_does_nothing():
    """A loop over nothing, fused with another: what it writes does not name the thread any more."""
    A = te.placeholder((3,), name="A")
    B = te.compute((0,), lambda i: A[i] * 2.0, name="B")
    s = te.create_schedule(B.op)
    s[B].fuse()
    s[B].bind(s[B].fuse(*s[B].leaf_iter_vars), te.thread_axis("vthread"))
    b = np.zeros(0, "float32")
    tedsl.build(s, [A, B])(np.ones(3, "float32"), b)
    assert "B_2[" not in str(tedsl.lower(s, [A, B]))


def built(s, args, rows, checked):
    a = np.random.default_rng(0).integers(-9, 9, (rows, 8)).astype("int32")
    b = np.full(rows, 77, "int32")
    tedsl.build(s, args, checked=checked)(a, b)
    return a.sum(1), b


def sums(rows=4):
    A = te.placeholder((rows, 8), "int32", name="A")
    k = te.reduce_axis((0, 8), name="k")
    B = te.compute((rows,), lambda i: te.sum(A[i, k], axis=k), name="B")
    return A, B, k


@pytest.mark.parametrize("checked", [False, True])
@pytest.mark.parametrize("tag", ["vthread", "cthread"])
@pytest.mark.parametrize("scope", ["caller", "", "shared", "local"])
def test_a_reduction_that_all_virtual_threads_do_counts_once(tag, scope, checked):
    """Copies for "cthread" counted every element twice."""
    A, B, _ = sums()
    C = B if scope == "caller" else te.compute((4,), lambda i: B[i] * 1, name="C")
    s = te.create_schedule(C.op)
    if scope != "caller":
        outer, _ = s[C].split(C.op.axis[0], nparts=2)
        s[C].bind(outer, te.thread_axis(tag))
        s[B].compute_at(s[C], outer)
        s[B].set_scope(scope)
    s[B].env_threads([te.thread_axis((0, 2), tag)])
    expected, b = built(s, [A, C], 4, checked)
    np.testing.assert_array_equal(b, expected)


@pytest.mark.parametrize("tag", ["vthread", "cthread"])
@pytest.mark.parametrize("apart", [False, True])
def test_an_intrinsic_that_all_virtual_threads_call_counts_once(tag, apart):
    """Calls were copied whatever they did. apart: each thread has rows of its own, and calls it for these."""
    A, B, k = sums()
    a, part = te.placeholder((2, 4), "int32", name="a"), te.reduce_axis((0, 4))
    b = te.compute((2,), lambda i: te.sum(a[i, part], axis=part), name="b")

    def intrinsic(ins, outs):
        def rows(value):
            builder = tir.ir_builder.create()
            for row in range(2):
                builder.emit(outs[0].vstore(row, value(row)))
            return builder.get()

        def update():
            return rows(lambda row: sum([ins[0].vload((row, j)) for j in range(4)], outs[0].vload(row)))
        return update(), rows(lambda row: tir.const(0, "int32")), update()

    rows = tir.decl_buffer(a.shape, a.dtype, offset_factor=1, strides=[te.var("stride"), 1])
    sum_rows = te.decl_tensor_intrin(b.op, intrinsic, binds={a: rows, b: tir.decl_buffer(b.shape, b.dtype, offset_factor=1)})
    s = te.create_schedule(B.op)
    (outer, inner), (far, near) = s[B].split(B.op.axis[0], factor=2), s[B].split(k, factor=4)
    s[B].reorder(outer, far, inner, near)
    if apart:
        s[B].bind(outer, te.thread_axis(tag))
    else:
        s[B].env_threads([te.thread_axis((0, 2), tag)])
    s[B].tensorize(inner, sum_rows)
    expected, got = built(s, [A, B], 4, False)
    np.testing.assert_array_equal(got, expected)


def test_threads_that_share_nothing_share_what_is_outside_of_them(golden):
    copies(virtual(local(seq(keep(0, F.load("A", 0)), F.store("B", 0, own(0)))), 2, "cthread"), golden)


@pytest.mark.parametrize("virtual_threads", [2, 16])
def test_each_virtual_thread_reduces_across_threads_by_itself(virtual_threads):
    A, k = te.placeholder((64, 8), name="A"), te.reduce_axis((0, 8), "k")
    B = te.compute((64,), lambda i: te.sum(A[i, k], axis=k), name="B")
    s = te.create_schedule(B.op)
    sums = s.cache_write(B, "local")
    block, inner = s[B].split(s[B].op.axis[0], 2 * virtual_threads)
    each, thread = s[B].split(inner, nparts=virtual_threads)
    for loop_, tag in ((block, "blockIdx.x"), (each, "vthread"), (thread, "threadIdx.x")):
        s[B].bind(loop_, te.thread_axis(tag))
    s[sums].compute_at(s[B], thread)
    s[sums].bind(s[sums].op.reduce_axis[0], te.thread_axis("threadIdx.y"))
    a, b = np.arange(512, dtype="float32").reshape(64, 8), np.zeros(64, "float32")
    tedsl.build(s, [A, B], "llvm")(a, b)
    np.testing.assert_array_equal(b, a.sum(1))
