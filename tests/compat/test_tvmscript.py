"""TVMScript: functions that are written by hand, and texts that `mod.script()` printed."""

import numpy as np
import pytest
from tedsl.script import from_source
from tedsl.script import ir as I
from tedsl.script import tir as T

import tedsl
from tedsl import te, tir
from tedsl.errors import AbsentModuleError, ArgumentError, ArgumentTypeError, ExpressionError, TedslError
from tedsl.ir.func import IRModule, PrimFunc

N = 6


@I.ir_module
class Blocks:
    @T.prim_func
    def main(a: T.handle, b: T.handle, C: T.Buffer((N, N), "float32")):
        T.func_attr({"global_symbol": "main", "tir.noalias": True})
        A = T.match_buffer(a, (N, N), dtype="float32")
        B = T.match_buffer(b, [N, N])
        Y = T.alloc_buffer((N, N), "float32")
        for i, j, k in T.grid(N, N, N):
            with T.block("Y"):
                vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                T.reads(A[vi, vk], B[vk, vj])
                T.writes(Y[vi, vj])
                with T.init():
                    Y[vi, vj] = T.float32(0)
                Y[vi, vj] = Y[vi, vj] + A[vi, vk] * B[vk, vj]
        for i, j in T.grid(N, N):
            with T.block("C"):
                vi = T.axis.spatial(N, i)
                vj = T.axis.S(N, j)
                T.where(i * N + j < N * N)
                C[vi, vj] = T.max(Y[vi, vj], 0.5)


@T.prim_func
def statements(A: T.Buffer[(N,), "int32"], B: T.Buffer((N,), "int32"), n: T.int32) -> None:  # noqa: F821
    kept = T.allocate([1], "int32", "local")
    K = T.Buffer((1,), "int32", data=kept)
    K[0] = 0
    for i in range(N):
        twice: T.int32 = A[i] * 2
        if i % 2 == 0 and not A[i] > 3:
            K[0] += twice
        else:
            K[0] += -1 if A[i] > n else 1
        B[i] = K[0]


@T.prim_func
def sizes(a: T.handle, b: T.handle):
    n, m = T.int32(), T.var("int32")
    A = T.match_buffer(a, (n, m), "float32")
    B = T.match_buffer(b, (n,), "float32")
    for i in T.parallel(n):
        B[i] = T.float32(0)
        for k in T.serial(0, m):
            B[i] = B[i] + T.exp(A[i, k])


@T.prim_func
def vectors(A: T.Buffer((4, 8), "float32"), B: T.Buffer((4, 8), "float32")):
    for i in T.serial(4):
        for j in T.vectorized(8):
            B[i, j] = A[i, j] + 1.0
    B[0, 0:4] = A[0, T.ramp(0, 1, 4)] * T.Broadcast(T.float32(2), 4)


def run(function, *arrays):
    given = [tedsl.nd.array(a) if isinstance(a, np.ndarray) else a for a in arrays]
    tedsl.build(function)(*given)
    return [a.numpy() for a in given if not isinstance(a, int)]


def test_blocks():
    a, b = (np.random.default_rng(0).random((N, N), "float32") for _ in range(2))
    assert isinstance(Blocks, IRModule) and isinstance(Blocks["main"], PrimFunc)
    np.testing.assert_allclose(run(Blocks, a, b, np.zeros((N, N), "float32"))[2], np.maximum(a @ b, 0.5), rtol=1e-5)


def test_statements():
    a = np.array([1, 5, 4, 2, 3, 9], "int32")
    assert run(statements, a, np.zeros(N, "int32"), 4)[1].tolist() == [2, 1, 2, 3, 9, 8]


def test_sizes_come_from_arrays():
    a = np.random.default_rng(0).random((3, 5), "float32")
    np.testing.assert_allclose(run(sizes, a, np.zeros(3, "float32"))[1], np.exp(a).sum(1), rtol=1e-5)


def test_vectors():
    a = np.arange(32, dtype="float32").reshape(4, 8)
    expected = a + 1
    expected[0, :4] = a[0, :4] * 2
    np.testing.assert_array_equal(run(vectors, a, np.zeros((4, 8), "float32"))[1], expected)


def test_threads():
    @T.prim_func
    def kernel(A: T.Buffer((64,), "float32"), B: T.Buffer((64,), "float32")):
        for block in T.thread_binding(2, thread="blockIdx.x"):
            for thread in T.thread_binding(32, thread="threadIdx.x"):
                B[block * 32 + thread] = A[block * 32 + thread] * 2.0

    assert ".entry" in tedsl.build(kernel, target="cuda").imported_modules[0].get_source("ptx")


def half_of(A, n=None):
    s = te.create_schedule(A.op)
    return s, s[A].split(A.op.axis[0], 4)


@pytest.mark.parametrize("lowered", [True, False])
def test_what_script_prints_is_read(lowered):
    n = te.var("n")
    A = te.placeholder((n, 8), name="A")
    k = te.reduce_axis((0, 8), "k")
    B = te.compute((n,), lambda i: te.sum(te.exp(A[i, k]), axis=k), name="B")
    C = te.compute((n,), lambda i: te.if_then_else(i > 2, B[i], 0.0), name="C")
    s, (outer, _) = half_of(C)
    s[C].parallel(outer)
    s[B].compute_at(s[C], outer)
    func = tedsl.lower(s, [A, C])["main"] if lowered else te.create_prim_func([A, C])
    again = from_source(IRModule({"main": func}).script())["main"]
    a = np.random.default_rng(0).random((7, 8), "float32")
    ours, theirs = (run(f, a, np.zeros(7, "float32"))[1] for f in (func, again))
    np.testing.assert_array_equal(ours, theirs)
    assert from_source(func.script()).script().count("for ") == func.script().count("for ")


@pytest.mark.parametrize("reduction", [te.sum, te.max])
@pytest.mark.parametrize("count", [None, 4])
def test_masks_and_infinities_that_script_prints_are_read(reduction, count):
    A, k = te.placeholder((13,) if count is None else (count, 13), name="A"), te.reduce_axis((0, 13), "k")
    B = te.compute((count or 1,), lambda i: reduction(A[k] if count is None else A[i, k], axis=k), name="B")
    C = te.compute(A.shape, lambda *at: A(*at) * 2.0, name="C")
    s = te.create_schedule([B.op, C.op])
    s[B].vectorize(s[B].split(k, 8)[1])
    s[C].vectorize(s[C].split(C.op.axis[-1], 8, tail="mask")[1])
    func = tedsl.lower(s, [A, B, C])["main"]
    assert ".vload(" in func.script() and ".vstore(" in func.script()
    again = from_source(from_source(func.script()).script())
    a = np.random.default_rng(0).standard_normal(tuple(map(int, A.shape)), "float32")
    for ours, theirs in zip(*(run(f, a, np.zeros(count or 1, "float32"), np.zeros_like(a)) for f in (func, again))):
        assert ours.tobytes() == theirs.tobytes()


def test_prefetches_that_script_prints_are_read():
    A = te.placeholder((64,), name="A")
    B = te.compute((64,), lambda i: A[i] + 1.0, name="B")
    s = te.create_schedule(B.op)
    s[B].prefetch(A, s[B].split(B.op.axis[0], 16)[0], 1)
    func = tedsl.lower(s, [A, B])["main"]
    assert "tir.prefetch" in func.script()
    a = np.arange(64, dtype="float32")
    again = from_source(func.script())
    assert "tir.prefetch" in again.script() and run(again, a, np.zeros(64, "float32"))[1].tolist() == (a + 1).tolist()


def test_several_functions_are_a_module():
    text = "".join(f"def {name}(A: T.Buffer((4,), 'float32')):\n    A[{k}] = 1.0\n" for k, name in enumerate("fg"))
    assert [var.name_hint for var in from_source(text).functions] == ["f", "g"]


def test_names_of_T_in_formulas():
    A = te.placeholder((4,), "int32", name="A")
    B = te.compute((4,), lambda i: T.min(T.max(A[i], T.int32(1)), T.int32(2)).astype("float32") * T.float32(0.5), name="B")
    assert run(te.create_prim_func([A, B]), np.array([0, 1, 2, 3], "int32"), np.zeros(4, "float32"))[1].tolist() \
        == [0.5, 0.5, 1.0, 1.0]
    assert T.Select is tir.Select and T.int64(3).dtype == "int64"


@pytest.mark.parametrize(("body", "words"), [
    ("for i in [1, 2]:\n        pass", "a loop is over range, T.serial, T.grid"),
    ("for i, j in T.grid(4):\n        pass", "2 variables for 1 loops"),
    ("A[0, 0] = 1.0", "1 dimensions and is read or written with 2 indices"),
    ("import os", "import os is no statement of a script"),
    ("with T.allocate((4,), 'float32'):\n        pass", "gives memory that has no name"),
    ("D = T.match_buffer()", "line 2: T.match_buffer"), ("T.realize()", "line 2: T.realize.* names no region of a buffer"),
    ("T.realize(A, 'x')", "names no region"), ("T.where()", "line 2: T.where"),
    ("T.func_attr(3)", "takes a dict of values by their names, not an int"),
    ("A[0] = T.float32('x')", r"T.float32\('x'\): a string is no number"), ("A[0] = T.int32('inf')", "a string is no number"),
    ("A[0] = (3).vload([0], predicate=True)", "a vector of int cannot be read"),
    ("A.vstore([0], 1.0, mask=3)", "line 2: .*vstore.* unexpected keyword argument 'mask'"),
    ("vi = T.axis.remap('Q', [1])", "axes are S .spatial. or R .reduced., not 'Q'"),
    ("with open('x'):\n        pass", "line 2"), ("A[0] = nothing", "line 2: nothing: name 'nothing' is not defined")])
def test_mistakes_are_named(body, words):
    with pytest.raises(TedslError, match=words):
        from_source(f"def f(A: T.Buffer((4,), 'float32')):\n    {body}\n")


def test_what_is_refused():
    with pytest.raises(AbsentModuleError, match=r"tedsl\.script is not part of tedsl|tedsl\.script\.tir\.Tensor"):
        T.Tensor_of_relax
    with pytest.raises(ArgumentError, match="no function that `def` defines"):
        T.prim_func(lambda a: a)
    with pytest.raises(ArgumentError, match="line 2 of the text is no Python"):
        from_source("x = 1\nhello world")
    with pytest.raises(ArgumentTypeError, match="decorates a class"):
        I.ir_module(3)
    with pytest.raises(AbsentModuleError, match=r"script\.relax\.function is not part of tedsl"):
        from tedsl.script import relax as R

        @R.function
        def f():
            pass
    with pytest.raises(ExpressionError, match="no name that a script can assign to"):
        from_source("def f(A: T.Buffer((4,), 'float32')):\n    A.x = 3\n")
