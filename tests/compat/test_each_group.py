"""Small programs in the styles of TVM 0.6, 0.7, 0.8 and 0.12, each over the names of one group of TVM's API."""

import warnings

import numpy as np
import pytest

import tedsl as tvm
import tedsl.testing
from tedsl import te, tir, topi
from tedsl.compat import v06
from tedsl.ir.calls import datatypes
from tedsl.ir.dtype import CUSTOM_CODES

T = tir.transform


def arrays(*shapes, dtype="float32"):
    rng = np.random.default_rng(1)
    return [rng.integers(-9, 9, shape).astype(dtype) for shape in shapes]


def test_06_a_program_at_the_root_with_passes_over_its_statement():
    t = v06
    n = t.var("n")
    A = t.placeholder((n,), name="A")
    B = t.compute((n,), lambda i: t.expr.Select(A[i] > t.const(0.0), A[i], t.make.Mul(A[i], t.const(0.5))), name="B")
    s = t.create_schedule(B.op)
    xo, xi = s[B].split(B.op.axis[0], factor=4)
    s[B].vectorize(xi)
    stmt = t.schedule.ScheduleOps(s.normalize(), t.schedule.InferBound(s))
    loops = []
    t.ir_pass.PostOrderVisit(t.ir_pass.CanonicalSimplify(stmt),
                             lambda node: loops.append(node) if isinstance(node, t.stmt.For) else None)
    assert len(loops) == 2
    f = t.build(s, [A, B], "llvm", name="leaky")
    a, b = t.nd.array(arrays((11,))[0], t.cpu(0)), t.nd.empty((11,), ctx=t.cpu(0))
    f(a, b)
    want = np.where(a.asnumpy() > 0, a.asnumpy(), a.asnumpy() * 0.5)
    t.testing.assert_allclose(b.asnumpy(), want)


def test_06_a_datatype_of_the_program():
    t = v06
    t.datatype.register("fixed", 140)
    try:
        t.datatype.register_op(lambda op: t.call_pure_intrin("uint16", "tir.reinterpret", (op.value * 256.0).astype("int16")),
                               "Cast", "llvm", "float", "fixed")
        t.datatype.register_op(lambda op: te.reinterpret(op.value, "int16").astype("float32") / 256.0, "Cast", "llvm", "fixed",
                               "float")
        t.datatype.register_op(lambda op: op.a + op.b, "Add", "llvm", "fixed")
        X, Y = (t.placeholder((5,), name=name) for name in "XY")
        Z = topi.cast(topi.cast(X, "custom[fixed]16") + topi.cast(Y, "custom[fixed]16"), "float32")
        x, y = arrays((5,), (5,))
        z = np.zeros(5, "float32")
        t.build(t.create_schedule(Z.op), [X, Y, Z], "llvm")(x, y, z)
        np.testing.assert_array_equal(z, x + y)
    finally:
        CUSTOM_CODES.clear()
        datatypes._RULES.clear()


def test_07_matmul_by_blocks_printed_after_every_directive():
    A, B = te.placeholder((32, 32), name="A"), te.placeholder((32, 32), name="B")
    k = te.reduce_axis((0, 32), name="k")
    C = te.compute((32, 32), lambda y, x: te.sum(A[y, k] * B[k, x], axis=k), name="C")
    s = te.create_schedule(C.op)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what build would refuse half-way
        AA, CL = s.cache_read(A, "shared", [C]), s.cache_write(C, "local")
        print(tvm.lower(s, [A, B, C], simple_mode=True))
        by, ty = s[C].split(C.op.axis[0], factor=8)
        bx, tx = s[C].split(C.op.axis[1], factor=8)
        s[C].reorder(by, bx, ty, tx)
        for axis, thread in ((by, "blockIdx.y"), (bx, "blockIdx.x"), (ty, "threadIdx.y"), (tx, "threadIdx.x")):
            s[C].bind(axis, te.thread_axis(thread))
            print(tvm.lower(s, [A, B, C], simple_mode=True))
        s[CL].compute_at(s[C], tx)
        ko, _ = s[CL].split(s[CL].op.reduce_axis[0], factor=8)
        s[AA].compute_at(s[CL], ko)
        for axis, thread in zip(s[AA].op.axis, ("threadIdx.y", "threadIdx.x")):
            _, inner = s[AA].split(axis, factor=8)
            s[AA].bind(inner, te.thread_axis((0, 8), thread))
    f = tvm.build(s, [A, B, C], target="llvm")
    a, b = arrays((32, 32), (32, 32))
    c = tvm.nd.empty((32, 32), "float32", ctx=tvm.cpu(0))
    f(tvm.nd.array(a, ctx=tvm.cpu()), b, c)
    np.testing.assert_allclose(c.asnumpy(), a @ b)


def test_07_a_module_through_the_passes_of_its_driver():
    A = te.placeholder((64,), name="A")
    B = te.compute((64,), lambda i: A[i] + 1, name="B")
    s = te.create_schedule(B.op)
    s[B].vectorize(s[B].split(B.op.axis[0], 8)[1])
    stmt = te.schedule.ScheduleOps(s.normalize(), te.schedule.InferBound(s))
    mod = tvm.IRModule.from_expr(te.schedule.SchedulePostProcToPrimFunc([A, B], stmt, None))
    passes = [T.InjectPrefetch(), T.StorageFlatten(64), T.BF16Legalize(), T.NarrowDataType(32), T.Simplify(), T.LoopPartition(),
              T.VectorizeLoop(True), T.InjectVirtualThread(), T.InjectDoubleBuffer(), T.StorageRewrite(), T.UnrollLoop(),
              T.Simplify(), T.RemoveNoOp(), T.RewriteUnsafeSelect(), T.HoistIfThenElse(), T.LowerCustomDatatypes(),
              T.MakePackedAPI(), T.LowerIntrin()]
    mod = tvm.transform.Sequential(passes)(mod)
    assert tir.analysis.verify_ssa(mod["main"]) and tir.analysis.verify_memory(mod["main"])
    (a,), b = arrays((64,)), np.zeros(64, "float32")
    tvm.build(mod, target="llvm")(a, b)
    np.testing.assert_array_equal(b, a + 1)


def test_07_a_pragma_with_its_pass():
    """The pass finds the loop by its pragma, and runs it backwards."""
    A = te.placeholder((8,), name="A")
    B = te.compute((8,), lambda i: A[i] * 2, name="B")
    s = te.create_schedule(B.op)
    with pytest.warns(UserWarning, match="pragma_backwards"):
        s[B].pragma(B.op.axis[0], "backwards", 7)

    def turned(op):
        if op.attr_key != "pragma_backwards":
            return None
        loop = op.body
        return tir.For(loop.loop_var, loop.min, loop.extent, loop.kind,
                       tir.stmt_functor.substitute(loop.body, {loop.loop_var: op.value - loop.loop_var}))

    @T.prim_func_pass(opt_level=0)
    def backwards(func, mod, ctx):
        return func.with_body(tir.stmt_functor.ir_transform(func.body, None, turned, ["tir.AttrStmt"]))

    with tvm.transform.PassContext(config={"tir.add_lower_pass": [(1, backwards)]}):
        text = str(tvm.lower(s, [A, B]))
        f = tvm.build(s, [A, B])
    assert "pragma_backwards" not in text and "7 - i" in text
    (a,), b = arrays((8,)), np.zeros(8, "float32")
    f(a, b)
    np.testing.assert_array_equal(b, a * 2)


def test_08_operators_with_their_schedules():
    with tvm.target.Target("llvm"):
        D, W = te.placeholder((1, 4, 8, 8), name="D"), te.placeholder((6, 4, 3, 3), name="W")
        R = topi.nn.relu(topi.x86.conv2d_nchw(D, W, 1, 1, 1, "float32"))
        s = topi.x86.schedule_conv2d_nchw([R])
        U = topi.image.resize2d(D, [0.0] * 4, (16, 16), layout="NCHW", method="nearest_neighbor",
                                coordinate_transformation_mode="asymmetric", rounding_method="floor")
    d, w = arrays((1, 4, 8, 8), (6, 4, 3, 3))
    r, u = np.zeros((1, 6, 8, 8), "float32"), np.zeros((1, 4, 16, 16), "float32")
    tvm.build(s, [D, W, R], "llvm")(d, w, r)
    np.testing.assert_allclose(r, np.maximum(topi.testing.conv2d_nchw_python(d, w, 1, 1), 0), rtol=1e-5)
    tvm.build(topi.generic.schedule_injective(U), [D, U])(d, u)
    np.testing.assert_array_equal(u, d.repeat(2, axis=2).repeat(2, axis=3))


def test_08_arith():
    x, y = te.var("x"), te.var("y")
    known = tvm.arith.Analyzer()
    known.bind(x, tvm.ir.Range(0, 8))
    known.update(y, tvm.arith.ConstIntBound(0, 3))
    assert known.const_int_bound(x * 2 + y).max_value == 17 and known.modular_set(x * 4 + 1).base == 1
    with known.constraint_scope(y > 1):
        assert known.simplify(y > 0).value == 1
    sums = tvm.arith.detect_iter_map([x // 4, x % 4], {x: tvm.ir.Range(0, 8)})
    assert [str(known.simplify(tvm.arith.normalize_iter_map_to_expr(e) - want)) for e, want in zip(sums, (x // 4, x % 4))] == \
        ["0", "0"]
    solved = tvm.arith.solve_linear_equations([tir.EQ(x + y, 10)], [x, y], {v: tvm.ir.Range(0, 20) for v in (x, y)})
    assert isinstance(solved, tvm.arith.IntConstraintsTransform) and len(solved.dst.variables) == 1
    tvm.testing.assert_prim_expr_equal(x * y + x, x * (y + 1))


def test_08_a_function_by_tensors_and_returned_values():
    A, B = te.placeholder((4,), name="A"), te.placeholder((4,), name="B")
    i, x = tir.Var("i", "int32"), tir.Var("x", "int32")
    stmt = tir.For(i, 0, 4, tir.ForKind.SERIAL, tir.ProducerStore(B, tir.ProducerLoad(A, [i]) + 1, [i]))
    func = te.schedule.SchedulePostProcToPrimFunc([A, B], stmt, None).with_attr("global_symbol", "plus")
    square = tir.PrimFunc([x], tir.Evaluate(tir.ret(x * x))).with_attr("global_symbol", "square")
    mod = tvm.build(tvm.IRModule({"plus": func, "square": square}))
    (a,), b = arrays((4,)), np.zeros(4, "float32")
    mod["plus"](a, b)
    np.testing.assert_array_equal(b, a + 1)
    assert mod["square"](7) == 49
    with pytest.raises(tvm.TVMError):
        tir.BufferRegion(tir.decl_buffer((4, 4)), [tvm.ir.Range(0, 4)])


def test_012_targets_functions_and_layouts():
    target = tvm.target.Target({"kind": "llvm", "num-cores": 2}, host="llvm")
    A, W = te.placeholder((1, 5, 5, 3), name="A"), te.placeholder((3, 3, 3, 4), name="W")
    B = topi.nn.conv2d(A, W, 1, 0, 1, "NHWC", "HWIO", "float32")
    func = te.create_prim_func([A, W, B])
    assert "for" in func.readable() and tvm.ir.structural_equal(func, te.create_prim_func([A, W, B]))
    with target:
        f = tvm.build(func, target=target)
    a, w = arrays((1, 5, 5, 3), (3, 3, 3, 4))
    b = np.zeros((1, 3, 3, 4), "float32")
    f(a, w, b)
    np.testing.assert_allclose(b, topi.testing.conv2d_nhwc_python(a, w, 1, 0), rtol=1e-5)
    took = f.time_evaluator(f.entry_name, tvm.cpu(), number=1, repeat=2, min_repeat_ms=0, cooldown_interval_ms=0,
                            repeats_to_cooldown=1)(a, w, b)
    assert len(took.results) == 2


def test_012_kernels_split_from_their_host():
    A = te.placeholder((40,), name="A")
    B = te.compute((40,), lambda i: A[i] - 1, name="B")
    s = te.create_schedule(B.op)
    block, thread = s[B].split(B.op.axis[0], 16)
    s[B].bind(block, te.thread_axis("blockIdx.x"))
    s[B].bind(thread, te.thread_axis("threadIdx.x"))
    mod = T.Apply(lambda func: func.with_attr("target", tvm.target.Target("cuda")))(tvm.lower(s, [A, B], name="minus"))
    mod = tvm.transform.Sequential([T.ThreadSync("shared"), T.SplitHostDevice()])(mod)
    (a,), b = arrays((40,)), np.zeros(40, "float32")
    tvm.build(mod, target="llvm")(a, b)
    np.testing.assert_array_equal(b, a - 1)
