"""Statements in machine code: loops, allocation, failures and what they clean up, parallel regions, depth."""

import numpy as np
import pytest

from tedsl.codegen.kernels import abi
from tedsl.codegen.llvm.emit import emit_module
from tedsl.errors import InternalError, LoweringError
from tedsl.ir import build
from tedsl.ir.dtype import dtype
from tedsl.ir.expr import Add, Broadcast, Call, IntImm, Let, Load, Ramp, SizeVar, StringImm, Var, pointer_var
from tedsl.ir.ops import Op
from tedsl.ir.stmt import (
    Allocate,
    AssertStmt,
    Evaluate,
    For,
    ForKind,
    IfThenElse,
    LetStmt,
    SeqStmt,
    Store,
    While,
    seq,
)
from tests.codegen.kernels import HOST, PLAIN, Kernel, array, const, function

F32, I32 = dtype("float32"), dtype("int32")
TRUE = IntImm(dtype("bool"), 1)


def load(buffer, index):
    return Load(buffer[1].dtype.with_lanes(index.dtype.lanes), buffer[1].data, index)


def store(buffer, value, index):
    return Store(buffer[1].data, value, index)


def loop(i, extent, body, kind=ForKind.SERIAL, start=0):
    return For(i, build.as_expr(start), build.as_expr(extent), kind, body)


@pytest.mark.parametrize("vectorize", [False, True])
def test_loops_with_symbolic_bounds(vectorize):
    a, n, m, i, j = array("a", (100,), "int32"), Var("n"), Var("m"), Var("i"), Var("j")
    body = loop(i, n, loop(j, build.sub(m, i), store(a, Add(load(a, j), const(1)), j), start=i), start=2)
    kernel = Kernel(function(body, a, n, m), vectorize=vectorize)
    for extent, top in ((0, 5), (3, 10), (-4, 10), (20, 3), (5, 90)):
        x, expected = np.zeros(100, "int32"), np.zeros(100, "int32")
        for p in range(2, 2 + max(extent, 0)):
            for q in range(p, p + max(top - p, 0)):
                expected[q] += 1
        assert kernel(x, extent, top) == 0
        np.testing.assert_array_equal(x, expected)


def test_a_while_loop():
    a, n = array("a", (4,), "int32"), Var("n")
    zero = const(0)
    body = seq(store(a, n, zero), While(build.less(1, load(a, zero)), seq(
        IfThenElse(build.equal(build.floormod(load(a, zero), 2), 0), store(a, build.floordiv(load(a, zero), 2), zero),
                   store(a, build.add(build.mul(load(a, zero), 3), 1), zero)),
        store(a, build.add(load(a, const(1)), 1), const(1)))))
    x = np.zeros(4, "int32")
    assert Kernel(function(body, a, n))(x, 27) == 0
    assert x[:2].tolist() == [1, 111]


def accumulate(extents, count):
    """A buffer of `extents` is filled, and its sum stored."""
    a, i, j = array("a", (1,), "int32"), Var("i"), Var("j")
    t = pointer_var("t", I32, "local")
    body = Allocate(t, I32, extents, TRUE, seq(
        loop(i, count, Store(t, i, i)), store(a, const(0), const(0)),
        loop(j, count, store(a, build.add(load(a, const(0)), Load(I32, t, j)), const(0)))))
    return a, body


def test_small_constant_arrays_live_on_the_stack():
    a, body = accumulate((const(10), const(10)), 100)
    kernel, x = Kernel(function(body, a)), np.zeros(1, "int32")
    assert "tedsl_workspace" not in kernel.text and "alloca [100 x i32], align 64" in kernel.text
    assert kernel(x) == 0 and x[0] == 4950


def test_large_and_symbolic_arrays_live_in_workspaces():
    n = SizeVar("n")
    for extents, count, params, args in (((const(100), const(1000)), 1000, (), ()), ((n,), n, (n,), (100,))):
        a, body = accumulate(extents, count)
        kernel, x = Kernel(function(body, a, *params)), np.zeros(1, "int32")
        assert kernel.text.count("call ptr @tedsl_workspace_alloc") == 1
        assert kernel.text.count("call void @tedsl_workspace_free") == 1
        assert kernel(x, *args) == 0 and x[0] == sum(range(args[0] if args else 1000))


def test_a_large_array_does_not_take_the_stack_from_the_accumulators():
    big, small, a = pointer_var("big", F32), pointer_var("small", F32, "local"), array("a", (1,), "float32")
    body = Allocate(big, F32, (const(16384),), TRUE, Allocate(small, F32, (const(32),), TRUE, seq(
        Store(big, const(1.0, "float32"), const(5)), Store(small, Load(F32, big, const(5)), const(0)),
        store(a, Load(F32, small, const(0)), const(0)))))
    kernel, x = Kernel(function(body, a)), np.zeros(1, "float32")
    assert "%small = alloca [32 x float], align 64" in kernel.text and "%big = call ptr @tedsl_workspace_alloc" in kernel.text
    assert kernel(x) == 0 and x[0] == 1


def test_an_allocation_that_fails_is_a_status():
    n = SizeVar("n", "int64")
    a, body = accumulate((n,), 0)
    assert Kernel(function(body, a, n))(np.zeros(1, "int32"), 1 << 60) == abi.NO_MEMORY


def test_assertions_return_the_number_of_their_message_and_free_workspaces():
    n = SizeVar("n")
    a = array("a", (1,), "int32")
    t = pointer_var("t", I32)
    body = Allocate(t, I32, (n,), TRUE, AssertStmt(build.less(n, 10), StringImm("too large"), AssertStmt(
        build.greater(n, 2), StringImm("too small"), store(a, const(1), const(0)))))
    func = function(body, a, n)
    kernel, messages = Kernel(func), abi.assertion_messages(func)
    assert sorted(messages) == ["too large", "too small"]
    assert kernel.text.count("@tedsl_workspace_free(ptr %t)") == 3
    x = np.zeros(1, "int32")
    assert abi.assertion_message(kernel(x, 20), messages) == "too large"
    assert abi.assertion_message(kernel(x, 1), messages) == "too small"
    assert x[0] == 0 and kernel(x, 5) == 0 and x[0] == 1
    with pytest.raises(InternalError):
        abi.assertion_message(99, messages)


def test_return_leaves_the_loops():
    a, i = array("a", (10,), "int32"), Var("i")
    stop = IfThenElse(build.equal(i, 4), Evaluate(build.call("tir.ret", const(0))))
    x = np.zeros(10, "int32")
    kernel = Kernel(function(loop(i, 10, seq(stop, store(a, const(1), i))), a))
    assert kernel(x) == 0 and kernel.result.value == 0
    assert x.tolist() == [1] * 4 + [0] * 6
    kernel = Kernel(function(Evaluate(build.call("tir.ret", const(3))), a))
    assert kernel(x) == 0 and kernel.result.value == 3


def test_scalar_arguments_of_every_dtype():
    kinds = ["int8", "uint8", "int16", "uint32", "int64", "uint64", "float32", "float64", "float16", "bfloat16", "bool"]
    vars_ = [Var(f"v_{k}", k) for k in kinds]
    b = array("b", (len(kinds),), "float64")
    f = function(seq(*(store(b, build.cast("float64", v), const(k)) for k, v in enumerate(vars_))), b, *vars_)
    y = np.zeros(len(kinds))
    values = [-5, 250, -3000, 4000000000, -2**40, 2**63, 1.5, 2.25, 0.5, -2.0, 1]
    assert Kernel(f)(y, *(v if not isinstance(v, int) or v < 2**63 else v - 2**64 for v in values)) == 0
    assert y.tolist() == [float(v) for v in values]


def test_lets_bind_indices_and_data():
    a, b, i, k, v = array("a", (64,), "float32"), array("b", (64,), "float32"), Var("i"), Var("k"), Var("v", "float32")
    twice = Let(Var("w", F32), v, build.add(v, v))
    inner = LetStmt(k, build.mul(i, 8), LetStmt(v, load(a, k), store(b, twice, build.add(k, 1))))
    x, y = np.arange(64, dtype="f"), np.zeros(64, "f")
    assert Kernel(function(loop(i, 8, inner), a, b))(x, y) == 0
    np.testing.assert_array_equal(y[1::8], x[::8] * 2)


# --- parallel --------------------------------------------------------------------------------------------------------------

def parallel_function(start=0):
    """b[i*w + j] = a[i*w + j] * s + i through a temporary row, rows in parallel."""
    n, w, s = SizeVar("n"), SizeVar("w"), Var("s", "float32")
    a, b, i, j, q = array("a", (n, w), "float32"), array("b", (n, w), "float32"), Var("i"), Var("j"), Var("q")
    t = pointer_var("t", F32)
    row = build.mul(build.sub(i, start), w)
    body = Allocate(t, F32, (w,), TRUE, seq(
        loop(j, w, Store(t, build.mul(load(a, build.add(row, j)), s), j)),
        loop(q, w, store(b, build.add(Load(F32, t, q), build.cast("float32", i)), build.add(row, q)))))
    return function(loop(i, n, body, ForKind.PARALLEL, start), a, b, n, w, s)


@pytest.mark.parametrize("start", [0, 3])
@pytest.mark.parametrize("vectorize", [False, True])
def test_parallel_loops_run_on_the_pool(vectorize, start):
    kernel = Kernel(parallel_function(start), vectorize=vectorize)
    assert "define internal i32 @f.kernel.b.parallel0(ptr noalias %env, i64 %begin, i64 %end)" in kernel.text
    assert "!noalias" in kernel.text
    for n, w in ((1, 5), (37, 11), (0, 4), (100, 64)):
        x = np.random.default_rng(0).random((n, w)).astype("f")
        y = np.zeros_like(x)
        assert kernel(x, y, n, w, 3.0) == 0
        np.testing.assert_array_equal(y, x * np.float32(3) + (np.arange(n, dtype="f") + start)[:, None])


def test_a_failure_in_a_parallel_body_comes_back():
    a, i, n = array("a", (100,), "int32"), Var("i"), SizeVar("n")
    body = AssertStmt(build.not_equal(i, n), StringImm("hit"), store(a, const(1), i))
    kernel = Kernel(function(loop(i, 100, body, ForKind.PARALLEL), a, n))
    assert kernel(np.zeros(100, "int32"), 50) == abi.FIRST_ASSERTION
    assert kernel(np.zeros(100, "int32"), 500) == 0


def test_a_parallel_loop_within_another_runs_in_its_thread():
    a, i, j = array("a", (200,), "int32"), Var("i"), Var("j")
    at = build.add(build.mul(i, 20), j)
    body = loop(i, 10, loop(j, 20, store(a, at, at), ForKind.PARALLEL), ForKind.PARALLEL)
    kernel, x = Kernel(function(body, a)), np.zeros(200, "int32")
    assert kernel.text.count("call i32 @tedsl_parallel_launch") == 1
    assert kernel(x) == 0
    np.testing.assert_array_equal(x, np.arange(200))


def test_no_alias_is_promised_only_where_it_holds():
    assert "noalias %a" in Kernel(parallel_function()).text
    f = parallel_function().with_attr("tir.noalias", False)
    kernel = Kernel(f)
    assert "noalias %a" not in kernel.text
    x = np.ones((4, 4), "f")
    assert kernel(x, x, 4, 4, 2.0) == 0
    np.testing.assert_array_equal(x, np.full((4, 4), 2) + np.arange(4)[:, None])


# --- depth and length ------------------------------------------------------------------------------------------------------

DEPTH = 10_000


def chain(start, step):
    for k in range(DEPTH):
        start = step(start, k)
    return start


def test_ten_thousand_nested_operations():
    a, b, n = array("a", (16,), "int32"), array("b", (16,), "int32"), Var("n")
    at = Ramp(const(0), const(1), 8)
    deep = chain(load(a, at), lambda e, k: Add(e, Broadcast(const(1), 8)))
    index = chain(n, lambda e, k: Add(e, const(1)))
    f = function(seq(store(b, deep, at), store(b, const(7), build.sub(index, DEPTH))), a, b, n)
    x, y = np.arange(16, dtype="int32"), np.zeros(16, "int32")
    assert Kernel(f, vectorize=False)(x, y, 9) == 0
    assert y[:8].tolist() == [v + DEPTH for v in range(8)] and y[9] == 7


def test_hundreds_of_nested_branches_lets_and_loads():
    a, b, n = array("a", (16,), "int32"), array("b", (16,), "int32"), Var("n")
    ite = lambda c, x, y: Call(I32, Op.get("tir.if_then_else"), (c, x, y))

    def step(e, k):
        if k >= 400:
            return e
        if k % 3 == 0:
            return ite(build.less(n, k), load(a, const(1)), e)
        if k % 3 == 1:
            v = Var(f"v{k}")
            return Let(v, e, Add(v, v) if k < 20 else Add(v, const(1)))
        return load(a, build.minimum(build.maximum(build.floormod(e, 16), 0), 15))
    deep = chain(load(a, const(2)), step)
    x, y = np.arange(16, dtype="int32")[::-1].copy(), np.zeros(16, "int32")
    from tedsl.ir.evaluate import evaluate

    kernel = Kernel(function(store(b, deep, const(0)), a, b, n), vectorize=False)
    for value in (0, 200, 1000):
        assert kernel(x, y, value) == 0
        assert y[0] == evaluate(deep, {n: value, a[1].data: x})


def test_ten_thousand_statements():
    a = array("a", (DEPTH,), "int32")
    whole = function(SeqStmt(tuple(store(a, const(k), const(k)) for k in range(DEPTH))), a)
    assert emit_module([whole], PLAIN).count("store i32") == DEPTH
    part = whole.with_body(SeqStmt(whole.body.seq[:1000]))  # LLVM takes quadratic time over one block
    x = np.zeros(DEPTH, "int32")
    assert Kernel(part, PLAIN, vectorize=False)(x) == 0
    np.testing.assert_array_equal(x[:1000], np.arange(1000))


def test_what_must_not_reach_machine_code_is_refused():
    a, i = array("a", (10,), "int32"), Var("i")
    with pytest.raises(LoweringError, match="bound to threads of a GPU"):
        Kernel(function(loop(i, 10, store(a, i, i), ForKind.THREAD_BINDING), a))
    with pytest.raises(InternalError, match="still marked vectorized"):
        Kernel(function(loop(i, 10, store(a, i, i), ForKind.VECTORIZED), a))
    with pytest.raises(InternalError, match="variable j is used"):
        Kernel(function(store(a, Var("j"), const(0)), a))


def test_names_that_llvm_would_not_take():
    a = array("a b-c", (4,), "int32")
    x = np.zeros(4, "int32")
    func = function(loop(Var("i"), 3, store(a, const(1), const(0)), ForKind.PARALLEL), a, name="my func+")
    assert Kernel(func, HOST)(x) == 0 and x[0] == 1
