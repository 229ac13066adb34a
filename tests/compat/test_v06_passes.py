"""The passes of TVM 0.6 over statements and functions, and its arith, expr, build_module and codegen."""

import numpy as np
import pytest

import tedsl.compat.v06 as tvm
from tedsl.errors import ArgumentError, ArgumentTypeError, DTypeError, OptionError


def added(factor, n=None):
    """Tensors A and B = A + 1, and their schedule, whose loop is split."""
    n = tvm.var("n") if n is None else n
    A = tvm.placeholder((n,), name="A")
    B = tvm.compute((n,), lambda i: A[i] + 1, name="B")
    s = tvm.create_schedule(B.op)
    return n, A, B, s, s[B].split(B.op.axis[0], factor=factor)


def loops(s):
    s = s.normalize()
    return tvm.schedule.ScheduleOps(s, tvm.schedule.InferBound(s))


def launched(n=20):
    """The function of a reversed A by blocks of threads, through memory of the block."""
    A = tvm.placeholder((n,), name="A")
    B = tvm.compute((n,), lambda i: A[n - 1 - i], name="B")
    s = tvm.create_schedule(B.op)
    block, thread = s[B].split(B.op.axis[0], 4)
    shared = s.cache_read(A, "shared", [B])
    s[B].bind(block, tvm.thread_axis("blockIdx.x"))
    s[B].bind(thread, tvm.thread_axis("threadIdx.x"))
    s[shared].compute_at(s[B], block)
    s[shared].bind(s[shared].op.axis[0], tvm.thread_axis("threadIdx.x"))
    buffers = [tvm.decl_buffer(T.shape, T.dtype, T.name) for T in (A, B)]
    return tvm.ir_pass.MakeAPI(tvm.ir_pass.StorageFlatten(loops(s), dict(zip((A, B), buffers)), 64), "f", buffers, 0, True)


def test_from_a_schedule_to_machine_code_step_by_step():
    n, A, B, s, (_, inner) = added(4)
    s[B].vectorize(inner)
    Ab, Bb = (tvm.decl_buffer(T.shape, T.dtype, name=T.name, strides=[2], offset_factor=1) for T in (A, B))
    stmt = tvm.ir_pass.LoopPartition(loops(s), False)
    stmt = tvm.ir_pass.VectorizeLoop(tvm.ir_pass.StorageFlatten(stmt, {A: Ab, B: Bb}, 64))
    f = tvm.ir_pass.MakeAPI(tvm.ir_pass.CanonicalSimplify(stmt), "add", [n, Ab, Bb], 0, True)
    assert isinstance(f, tvm.LoweredFunc) and (f.name, f.attrs["tir.noalias"]) == ("add", True)
    parts = list(tvm.ir_pass.SplitHostDevice(f))
    assert [part.name for part in parts] == ["add"]
    parts[0] = tvm.ir_pass.CombineContextCall(tvm.ir_pass.LowerIntrin(tvm.ir_pass.LowerTVMBuiltin(parts[0]), "llvm"))
    assert tvm.ir_pass.BindDeviceType(parts[0], 1) is parts[0]
    a, b = np.arange(20, dtype="float32"), np.zeros(20, "float32")
    tvm.codegen.build_module(parts, "llvm")["add"](10, a[::2], b[::2])
    np.testing.assert_array_equal(b, np.where(np.arange(20) % 2, 0, a + 1))


@pytest.mark.parametrize("run", [
    tvm.ir_pass.Simplify, tvm.ir_pass.CanonicalSimplify, tvm.ir_pass.StorageFlatten, tvm.ir_pass.VectorizeLoop,
    tvm.ir_pass.UnrollLoop, tvm.ir_pass.ConvertSSA, tvm.ir_pass.VerifySSA, tvm.ir_pass.LowerTVMBuiltin,
    tvm.ir_pass.CombineContextCall, lambda given: tvm.ir_pass.LowerIntrin(given, "llvm"),
    lambda given: tvm.ir_pass.VerifyMemory(func=given, device_type=1),
    lambda given: tvm.ir_pass.IRTransform(given, None, lambda node: None),
    lambda given: tvm.ir_pass.Substitute(given, {}), lambda given: tvm.ir_pass.PostOrderVisit(given, str)])
def test_a_module_stands_for_its_only_function(run):
    _, A, B, s, _ = added(4, 8)
    func = tvm.lower(s, [A, B])
    assert tvm.ir_pass.Equal(run(tvm.IRModule({"main": func})), run(func))
    with pytest.raises(ArgumentError, match=r"takes one function; the module has 2: f, g\n  hint: pass .* one by one"):
        run(tvm.IRModule({"f": func, "g": func}))
    with pytest.raises(ArgumentError, match="the module has 0"):
        run(tvm.IRModule({}))


def test_a_number_is_not_transformed():
    with pytest.raises(ArgumentTypeError, match="a statement or an expression, not an int"):
        tvm.ir_pass.IRTransform(3, None, lambda node: None)


def test_nodes_are_asked_for_by_the_names_of_0_6():
    _, A, B, s, _ = added(4)
    body, seen = tvm.lower(s, [A, B]).body, []
    tvm.ir_pass.IRTransform(body, lambda node: seen.append(type(node).__name__), None, ["Variable", "Free"])
    assert set(seen) == {"Var"}
    with pytest.raises(OptionError, match="no nodes called 'Variables'"):
        tvm.ir_pass.IRTransform(body, None, None, ["Variables"])


def test_what_functions_are_not_made_of():
    n, A, B, s, _ = added(4)
    with pytest.raises(ArgumentTypeError, match="an argument of f is a Tensor"):
        tvm.ir_pass.MakeAPI(loops(s), "f", [n, A], 0, False)
    for taken in ("LowerTVMBuiltin", "SplitHostDevice", "CombineContextCall"):
        with pytest.raises(ArgumentTypeError, match=f"ir_pass.{taken} takes a function"):
            getattr(tvm.ir_pass, taken)(loops(s))


def test_kernels_of_threads():
    f = launched()
    synced = tvm.ir_pass.ThreadSync(f, "shared")
    assert "storage_sync" not in str(f) and str(synced).count("storage_sync") >= 1
    host, kernel = tvm.ir_pass.SplitHostDevice(synced)
    assert (host.name, kernel.name) == ("f", "f_kernel0") and "f_kernel0" in str(host)
    assert "blockIdx.x" in str(tvm.ir_pass.LowerThreadAllreduce(tvm.ir_pass.LowerWarpMemory(f, 32), 32))


def test_memory_that_the_host_would_access():
    _, A, B, s, _ = added(4, 16)
    serial = tvm.lower(s, [A, B])
    assert not tvm.ir_pass.VerifyMemory(serial, tvm.gpu(0).device_type)
    assert tvm.ir_pass.VerifyMemory(serial, tvm.cpu(0).device_type)
    assert tvm.ir_pass.VerifyMemory(launched(), tvm.gpu(0).device_type)


@pytest.mark.parametrize(("number", "gpu"), [(2, True), (3, False), (4, True), (7, True), (8, True), (9, False), (10, True),
                                             (11, True), (12, False)])
def test_memory_of_devices_that_tedsl_does_not_run_on(number, gpu):
    """dlpack's numbers, and TVM's of opengl: programs try all of them, whatever stands in the machine."""
    _, A, B, s, _ = added(4, 16)
    assert tvm.ir_pass.VerifyMemory(tvm.lower(s, [A, B]), number) is not gpu
    assert tvm.ir_pass.VerifyMemory(launched(), number)


def test_pointers_of_a_builder_are_handed_over_as_nodes():
    ib = tvm.ir_builder.create()
    A = ib.pointer("float32", name="A")
    ib.emit(tvm.call_extern("int32", "f", A.asnode()))
    assert A.asnode() is A.asobject() and A.asnode().name == "A" and ib.get().value.args[-1].same_as(A.asnode())


def test_limits_of_kernels_in_a_pass_of_the_user():
    _, A, B, s, (block, thread) = added(32, 128)
    s[B].bind(block, tvm.thread_axis("blockIdx.x"))
    s[B].bind(thread, tvm.thread_axis("threadIdx.x"))
    for most, fits in ((32, True), (16, False)):
        found = []

        def check(stmt, most=most, found=found):
            found.append(tvm.ir_pass.VerifyGPUCode(stmt, {"max_threads_per_block": most}))
            return stmt

        with tvm.build_config(add_lower_pass=[(2, check)]):
            tvm.lower(s, [A, B])
        assert found == [fits]


def test_loops_that_are_not_vectors():
    _, A, B, s, (_, inner) = added(4, 16)
    s[B].vectorize(inner)
    stmt = tvm.ir_pass.SkipVectorize(tvm.ir_pass.StorageFlatten(loops(s), {}, 64))
    assert "vectorized" not in str(stmt) and "ramp" not in str(stmt)


def test_a_variable_that_two_loops_have():
    i, x = tvm.var("i"), tvm.var("x")
    loop = tvm.make.For(i, 0, 3, tvm.stmt.For.Serial, 0, tvm.make.Evaluate(i + x))
    twice = tvm.stmt.SeqStmt([loop, loop])
    assert not tvm.ir_pass.VerifySSA(twice) and isinstance(twice, tvm.stmt.Block)
    once = tvm.ir_pass.ConvertSSA(twice)
    assert tvm.ir_pass.VerifySSA(once) and tvm.ir_pass.Equal(once.seq[0], twice.seq[1])


def test_attributes_that_are_the_same():
    x = tvm.var("x")
    one, other = {"axis": [x + 1]}, {"axis": [x + 1]}
    assert tvm.ir_pass.AttrsEqual(one, other) and not tvm.ir_pass.AttrsEqual(one, {"axis": [x + 2]})
    assert tvm.ir_pass.AttrsHash([x + 1]) == tvm.ir_pass.AttrsHash([x + 1])


@pytest.mark.parametrize("name, instead", [("CoProcSync", "there are no coprocessors"), ("Inline", "compute_inline"),
                                           ("InstrumentBoundCheckers", "checked=True")])
def test_passes_that_are_refused_by_name(name, instead):
    with pytest.raises(OptionError, match=instead):
        getattr(tvm.ir_pass, name)


def test_copies_are_replaced_by_what_a_program_writes():
    A = tvm.placeholder((8,), name="A")
    B = tvm.compute((8,), lambda i: A[i], name="B")
    s = tvm.create_schedule(B.op)
    s[B].pragma(B.op.axis[0], "memcpy")
    body = tvm.lower(s, [A, B]).body
    seen = []
    assert isinstance(tvm.ir_pass.InjectCopyIntrin(body, "memcpy", lambda *given: seen.append(given) or tvm.make.Evaluate(0)),
                      tvm.stmt.Evaluate)
    assert seen[0][0].shape[0].value == 8
    assert tvm.ir_pass.DecorateDeviceScope(body).attr_key == "device_scope"


def test_attributes_and_contexts_of_accelerators():
    core, n = tvm.thread_axis((0, 1), "core"), tvm.var("n")
    context = tvm.tir.call_intrin("handle", "tir.tvm_thread_context", tvm.call_extern("handle", "queue", n))
    body = tvm.tir.AttrStmt(core, "scope", 1, tvm.make.Evaluate(tvm.call_extern("int32", "run", context, context)))
    loop = tvm.make.For(tvm.var("i"), 0, 4, tvm.stmt.For.Serial, 0, body)
    assert tvm.ir_pass.LiftAttrScope(loop, "scope").body.loop_var is loop.loop_var
    made = tvm.ir_pass.CombineContextCall(tvm.tir.PrimFunc([n], loop)).body
    assert made.var.name == "queue_cache" and made.body.loop_var is loop.loop_var and str(made).count('"queue"') == 1
    for step in (tvm.ir_pass.InferFragment, tvm.ir_pass.LowerDeviceStorageAccessInfo):
        assert step(loop) is loop


def test_a_lowered_function_stands_for_its_body():
    _, A, B, s, _ = added(4, 16)
    func = tvm.lower(s, [A, B], name="f", simple_mode=True)
    assert isinstance(tvm.ir_pass.UnrollLoop(func, 64, 8, 0, True), tvm.LoweredFunc)
    seen = []
    tvm.ir_pass.PostOrderVisit(func, lambda node: seen.append(type(node)))
    assert tvm.stmt.Store in seen and tvm.ir_pass.Equal(tvm.ir_pass.Simplify(func), tvm.ir_pass.Simplify(func.body))
    b = np.zeros(16, "float32")
    tvm.build(func, target="llvm")["f"](np.ones(16, "float32"), b)
    assert (b == 2).all() and tvm.build_module.current_build_config() is not None


def test_a_loop_of_a_program_of_the_next_versions_is_split_before_its_memory_is_flat():
    n, A, B, s, _ = added(4)
    mod = tvm.IRModule.from_expr(tvm.tir.PrimFunc([n], loops(s)))
    first, second = tvm.tir.transform.Simplify()(tvm.tir.transform.LoopPartition()(mod))["main"].body.body.body.seq
    assert "if" not in str(first) and "if" in str(second)


def test_a_copied_allocation_is_another_one():
    A = tvm.placeholder((21,), name="A")
    B = tvm.compute((21,), lambda i: A[i] * 2, name="B")
    C = tvm.compute((21,), lambda i: B[i] + 1, name="C")
    s = tvm.create_schedule(C.op)
    outer, _ = s[C].split(C.op.axis[0], 4)
    s[B].compute_at(s[C], outer)
    made = tvm.ir_pass.LoopPartition(loops(s), True)
    realized = []
    tvm.ir_pass.PostOrderVisit(made, lambda node: realized.append(node.buffer) if isinstance(node, tvm.stmt.Realize) else None)
    assert len(realized) == len(set(realized)) > 1 and tvm.ir_pass.VerifySSA(made)


def test_constants_of_unsigned_integers():
    one = tvm.expr.UIntImm("uint8", 200)
    assert isinstance(one, tvm.expr.UIntImm) and (one.dtype, one.value) == ("uint8", 200)
    assert isinstance(tvm.const(1, "bool"), tvm.expr.UIntImm) and not isinstance(tvm.const(1, "int32"), tvm.expr.UIntImm)
    with pytest.raises(DTypeError, match="int32 is no dtype of unsigned"):
        tvm.expr.UIntImm("int32", 1)


def test_arith():
    x, y = tvm.var("x"), tvm.var("y")
    factors = tvm.arith.DetectLinearEquation(x * 3 + y * 2 + 7, [x, y])
    assert [tvm.ir_pass.Simplify(factor).value for factor in factors] == [3, 2, 7]
    assert not tvm.arith.DetectLinearEquation(x * y, [x, y])
    low, high = tvm.arith.DetectClipBound(tvm.all(x >= 2, x < 9), [x])
    assert [tvm.ir_pass.Simplify(end).value for end in (low, high)] == [2, 8]
    found = tvm.arith.DeduceBound(x, x * 4 < 17, {}, {})
    assert tvm.ir_pass.Simplify(found.max_value).value == 4 and isinstance(found, tvm.arith.IntervalSet)
    inner = tvm.arith.DeduceBound(x, x + y < 10, {y: tvm.arith.intset_interval(0, 3)}, {y: tvm.arith.intset_interval(0, 3)})
    assert tvm.ir_pass.Simplify(inner.max_value).value == 6
    lanes, point = tvm.arith.intset_vector(tvm.make.Ramp(x, 2, 4)), tvm.arith.intset_single_point(x)
    assert tvm.ir_pass.Equal(tvm.ir_pass.Simplify(lanes.max_value - x), tvm.const(6)) and point.min_value is x


def test_functions_of_the_environment():
    tvm.register_func("tests.compat.twice", lambda x: 2 * x, override=True)
    assert tvm.get_env_func("tests.compat.twice")(4) == 8
