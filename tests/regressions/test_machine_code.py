"""Machine code that was once wrong, or was not made."""

import re

import numpy as np
import pytest

import tedsl
import topi
from tedsl import te, tir
from tedsl.errors import LoweringError
from tedsl.ir.evaluate import run as interpret
from tedsl.passes.default import target_pipeline
from tedsl.target import Target


def unary(name, dtype, lanes, n=24, target=None):
    a = te.placeholder((n,), dtype, name="A")
    c = te.compute((n,), lambda i: getattr(te, name)(a[i]), name="C")
    s = te.create_schedule(c.op)
    if lanes > 1:
        s[c].vectorize(s[c].split(c.op.axis[0], lanes)[1])
    return tedsl.build(s, [a, c], target=target)


@pytest.mark.parametrize("target", [None, "llvm -mcpu=x86-64"])
@pytest.mark.parametrize("lanes", [1, 16])
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("name", ["tanh", "sinh", "sin", "tan", "asin", "atan", "asinh", "atanh", "erf", "log1p", "round"])
def test_odd_functions_keep_the_sign_of_zero(name, dtype, lanes, target):
    a, c = np.array([0.0, -0.0] * 12, dtype), np.ones(24, dtype)
    unary(name, dtype, lanes, target=target)(a, c)
    np.testing.assert_array_equal(np.signbit(c), np.signbit(a))
    assert not c.any()


@pytest.mark.parametrize("target", ["llvm -mcpu=haswell", "llvm -mcpu=x86-64", "llvm -mtriple=aarch64-linux-gnu", None])
def test_a_sign_from_elsewhere_is_rounded_to_half_without_a_library(target):
    # LLVM made of it __truncdfhf2(x): InternalError
    a, x = te.placeholder((5,), "float64", name="A"), te.var("x", "float64")
    c = te.compute((5,), lambda i: tir.copysign(a[i], x).astype("float32").astype("float16"), name="C")
    f = tedsl.build(te.create_schedule(c.op), [a, x, c], target=target)
    assert "__truncdfhf2" not in f.get_source("asm")
    if target is None:
        got = np.zeros(5, "float16")
        f(np.arange(5.0), -1.0, got)
        np.testing.assert_array_equal(got, -np.arange(5.0).astype("float16"))


def test_two_functions_of_half_in_one_kernel():
    a = te.placeholder((8057,), "float16", name="A")
    outs = [te.compute((8057,), lambda i, f=f: f(a[i]), name=f.__name__) for f in (te.tan, te.asin)]
    s = te.create_schedule([o.op for o in outs])
    for o in outs:
        s[o].vectorize(s[o].split(o.op.axis[0], 16)[1])
    assert tedsl.build(s, [a, *outs], target="llvm -mcpu=haswell").get_source("asm")


def test_long_names_of_variables_stay_apart():
    n = te.var("x" * 3000)
    a = te.placeholder((n,), name="x" * 3000)
    c = te.compute((n,), lambda i: a[i] + n, name="x" * 3000)
    got = np.zeros(3, "float32")
    tedsl.build(te.create_schedule(c.op), [a, c])(np.ones(3, "float32"), got)
    assert (got == 4).all()


@pytest.mark.parametrize("name", ["begin", "end", "env", "entry", "self", "args", "count", "answer", "kwnames", "v1", "x"])
def test_a_tensor_of_a_parallel_loop_may_have_any_name(name):
    """LLVM refused the body of a parallel loop over a tensor called begin or end: those are its parameters."""
    n = te.var(name)
    A = te.placeholder((8, n), name=name)
    B = te.compute((8, n), lambda i, j: A[i, j] + 1.0, name="B")
    s = te.create_schedule(B.op)
    s[B].parallel(B.op.axis[0])
    a, b = np.random.rand(8, 5).astype("float32"), np.zeros((8, 5), "float32")
    tedsl.build(s, [A, B])(a, b)
    np.testing.assert_array_equal(b, a + 1)


@pytest.mark.parametrize("begin, end, expected", [("0", "c[0]", 6), ("c[0]", "10", 3 + 7), ("c[0] - 3", "c[0] + 1", 3 + 4)])
@pytest.mark.parametrize("body", ["serial", "vectorize"])
def test_a_loop_that_counts_by_what_it_accumulates(begin, end, expected, body):
    """Its accumulator went into a register, and the store that the count reads went with it."""
    def kernel(_, outs):
        ib = tir.ir_builder.create()
        c = ib.buffer_ptr(outs[0])
        lanes = 1 if body == "serial" else 4
        with ib.for_range(0, lanes, name="lane") as lane:
            c[lane] = 3
        with ib.for_range(eval(begin, {"c": c}), eval(end, {"c": c})), ib.for_range(0, lanes, name="v", kind=body) as lane:
            c[lane] = c[lane] + 1
        return ib.get()

    C = te.extern((4,), [], kernel, dtype="int32", name="C")
    result = np.full(4, 77, "int32")
    tedsl.build(te.create_schedule(C.op), [C])(result)
    assert result[0] == expected


@pytest.mark.parametrize("target, dtype", [("llvm", "int64"), ("cuda", "int32")])
def test_a_let_whose_first_use_as_an_index_stands_in_an_inner_loop(target, dtype):
    # its register counted as one of the inner loop: IndexError where an index behind the loop was made of it
    A, P = te.placeholder((8,), name="A"), te.placeholder((1,), dtype, name="P")

    def body(ins, outs):
        ib = tir.ir_builder.create()
        (a, p), (o, q) = ([ib.buffer_ptr(buffer) for buffer in buffers] for buffers in (ins, outs))
        if target == "cuda":
            ib.scope_attr(te.thread_axis("threadIdx.x"), "thread_extent", 1)
        j = ib.let("j", p[0])
        with ib.for_range(0, 3, name="k") as k, ib.if_scope(a[k] > 0.0):
            o[k] = a[te.min(j, te.const(5, dtype)) + k]
        q[0] = a[te.min(j, te.const(4, dtype))]
        return ib.get()

    O, Q = te.extern([(3,), (1,)], [A, P], body, dtype=["float32", "float32"], name="O")
    f = tedsl.build(te.create_schedule(O.op), [A, P, O, Q], target)
    place = tedsl.sim(0) if target == "cuda" else tedsl.cpu(0)
    for at in (2, 7):
        arrays = [tedsl.nd.array(x, place) for x in (np.arange(1, 9, dtype="float32"), np.array([at], dtype),
                                                     np.zeros(3, "float32"), np.zeros(1, "float32"))]
        f(*arrays)
        np.testing.assert_array_equal(arrays[2].numpy(), min(at, 5) + np.arange(1, 4))
        assert arrays[3].numpy() == min(at, 4) + 1


def test_sums_of_two_branches_stay_in_registers():
    """A parallel loop over tiles is one loop with two branches. LLVM set the sums of both to zero before, 45 vectors."""
    a, b = te.placeholder((15, 482), name="A"), te.placeholder((482, 48), name="B")
    k = te.reduce_axis((0, 482), "k")
    c = te.compute((15, 48), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="C")
    s = te.create_schedule(c.op)
    sums = s.cache_write(c, "local")
    io, ii = s[c].split(c.op.axis[0], factor=9)
    s[c].unroll(ii)
    s[c].vectorize(c.op.axis[1])
    s[c].parallel(io)
    s[sums].compute_at(s[c], io)
    s[sums].reorder(*s[sums].op.reduce_axis, *s[sums].op.axis)
    s[sums].unroll(s[sums].op.axis[0])
    s[sums].vectorize(s[sums].op.axis[1])
    f = tedsl.build(s, [a, b, c], target="llvm -mcpu=skylake-avx512")
    assert "(%rsp)" not in "".join(line for line in f.get_source("asm").splitlines() if "zmm" in line)


@pytest.mark.parametrize("target", ["llvm -mcpu=znver3", "llvm -mcpu=znver5"])
def test_code_for_a_named_processor_uses_the_features_of_the_target(target):
    """LLVM took SSE4A, which only AMD's processors have: an illegal instruction elsewhere, though `runs_here` said yes."""
    target = Target(f"{target} -mtriple=x86_64-linux-gnu")
    with target:
        a, b = te.placeholder((16, 188), "int8", name="a"), te.placeholder((188, 230), "int8", name="b")
        sums = topi.right_shift(topi.nn.matmul(a, b, None, "int32"), te.const(5, "int32"))
        out = topi.cast(topi.clip(sums, -128, 127), "int8")
        s = topi.schedules.schedule([out])
    assert not re.search(r"\b(insertq|extrq|movnts[sd])\b", tedsl.build(s, [a, b, out], target).get_source("asm"))
    assert "-sse4a" not in Target("llvm -mcpu=znver3 -mattr=+sse4a -mtriple=x86_64-linux-gnu").feature_string


def test_tiles_of_loops_whose_ends_depend_on_each_other_are_refused():
    """The outer loop of a split inside of the inner one ends by its variable: InternalError, the call was outside of it."""
    a, b = te.placeholder((48, 64), "int8", name="a"), te.placeholder((4, 16, 32, 4), "uint8", name="b")
    k = te.reduce_axis((0, 64), "k")
    c = te.compute((48, 100), lambda i, j: te.sum(
        a[i, k].astype("int32") * b[j // 32, k // 4, j % 32, k % 4].astype("int32"), axis=k), name="c")
    out = te.compute(c.shape, lambda i, j: c[i, j] + 1, name="out")
    s = te.create_schedule(out.op)
    panel, _ = s[out].split(out.op.axis[1], factor=32)
    s[c].compute_at(s[out], panel)
    outer, inner = s[c].split(c.op.axis[1], factor=8)
    steps, inside = s[c].split(k, factor=4)
    s[c].reorder(c.op.axis[0], steps, inner, outer, inside)
    s[c].pragma(c.op.axis[0], "tile_products")
    with pytest.raises(LoweringError, match="where one of its loops begins or ends depends on another one"):
        tedsl.build(s, [a, b, out], "llvm -mcpu=sapphirerapids -mtriple=x86_64-linux-gnu")


def test_tiles_begin_from_sums_of_the_loop_around_them():
    """A loop around a product that comes to half of its rows again: each product began from zero."""
    a, b, c = (tir.decl_buffer((512,), of, name=name) for name, of in (("a", "uint8"), ("b", "int8"), ("c", "int32")))
    t, i, j, k, r = (tir.Var(name, "int32") for name in "tijkr")
    at = t * 32 + i * 8 + j
    value = a.vload([t * 32 + i * 16 + k * 4 + r]).astype("int32") * b.vload([t * 64 + k * 32 + j * 4 + r]).astype("int32")
    zero, add = tir.BufferStore(c, tir.const(0, "int32"), [at]), tir.BufferStore(c, c.vload([at]) + value, [at])
    for var, extent in ((j, 8), (i, 8), (t, 3)):
        zero = tir.For(var, 0, extent, tir.ForKind.SERIAL, zero)
    for var, extent in ((r, 4), (j, 8), (k, 4), (i, 8), (t, 3)):
        add = tir.For(var, 0, extent, tir.ForKind.SERIAL, add)
    body = tir.AttrStmt(t, "pragma_tile_products", tir.const(1, "int32"), tir.SeqStmt([zero, add]))
    func = tir.PrimFunc([a, b, c], body).with_attr("tir.noalias", True)
    tiles = target_pipeline(Target("llvm -mcpu=sapphirerapids -mtriple=x86_64-linux-gnu"))(tedsl.lower(func)["main"])
    assert "tile_product" in str(tiles)
    rng, results = np.random.default_rng(0), []
    x, y = rng.integers(0, 256, 512, "uint8"), rng.integers(-128, 128, 512, "int8")
    for program in (func, tiles):
        results.append(np.zeros(512, "int32"))
        interpret(program, [x, y, results[-1]])
    np.testing.assert_array_equal(*results)
