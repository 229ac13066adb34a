"""Passes of tir.transform that programs run by themselves, and analyses, on modules written by hand."""

import numpy as np
import pytest

import tedsl
from tedsl import te, tir, transform
from tedsl.errors import AccessError, ArgumentError, ArgumentTypeError, LoweringError, OptionError
from tedsl.ir import build
from tedsl.ir.dtype import DType
from tedsl.ir.evaluate import run
from tedsl.ir.expr import Broadcast, Cast, Load, Ramp, Select, SizeVar, Var, pointer_var
from tedsl.ir.func import IRModule, PrimFunc
from tedsl.ir.stmt import AssertStmt, BufferStore, Evaluate, LetStmt, Store
from tedsl.ir.verify import verify
from tests.passes.programs import PARALLEL, Function, allocate, body_text, check, imm, loop, seq

I, N = Var("i"), SizeVar("n")
BF16 = "bfloat16"


def alone(step):
    """A pass of tir.transform as a function of functions."""
    return lambda func: step(IRModule({"main": func}))["main"]


# --- bfloat16 -------------------------------------------------------------------------------------------------------------

def bfloats(n=7):
    """C[i] = A[i] * B[i] + A[i] where A[i] < B[i], else exp(B[i])."""
    f = Function(A=(n, BF16), B=(n, BF16), C=(n, BF16))
    a, b = f.load("A", I), f.load("B", I)
    return f.func(loop(I, n, f.store("C", I, Select(a < b, a * b + a, te.exp(b)))))


@pytest.mark.parametrize("n", [1, 7])
def test_arithmetic_of_bfloat16_is_that_of_float32(n, golden):
    made = check(alone(tir.transform.BF16Promote()), bfloats(n), golden=golden if n == 7 else None)
    assert alone(tir.transform.BF16Promote())(made) is made


def bits_of(values):
    return (np.asarray(values, "float32").view("uint32") >> 16).astype("uint16")


def test_casts_to_bfloat16_and_back_are_removed(golden):
    before = alone(tir.transform.BF16Promote())(bfloats())
    after = alone(tir.transform.BF16CastElimination())(before)
    golden.sections(before=body_text(before), after=body_text(after))
    a = bits_of([129 / 128] * 7)
    once, twice = np.zeros(7, "uint16"), np.zeros(7, "uint16")
    b = bits_of([131 / 128] * 7)
    run(after, [a, b, once])
    run(before, [a, b, twice])
    value = np.float32(129 / 128 * 131 / 128 + 129 / 128)
    near = ((value.view("uint32") + 0x7FFF + ((value.view("uint32") >> 16) & 1)) >> 16).astype("uint16")
    assert (once == near).all() and (once != twice).all()


def test_bfloat16_as_bits(golden):
    promoted = alone(tir.transform.BF16Promote())(bfloats())
    made = check(alone(tir.transform.BF16TypeLowering()), promoted, golden=golden)
    assert "bfloat" not in str(made) and all(buffer.dtype == "uint16" for buffer in made.buffers)


EVERY = np.concatenate([np.arange(0, 1 << 32, 65521, "uint64").astype("uint32"),
                        np.array([0x7F800000, 0xFF800000, 0x7FC00000, 0x7F800001, 0xFFFFFFFF, 0x3F808000, 0x3F818000,
                                  0x3F807FFF, 0x7F7FFFFF, 1, 0x80000001, 0], "uint32")])


@pytest.mark.parametrize("lanes", [1, 4])
def test_conversions_as_bits_are_exact(lanes):
    size = len(EVERY) // 4 * 4
    f = Function(A=(size, "float32"), B=(size, BF16), C=(size, "float32"))
    at = I if lanes == 1 else Ramp(I * lanes, imm(1), lanes)
    body = seq(Store(f.data("B"), Cast(f"bfloat16x{lanes}" if lanes > 1 else BF16, f.load("A", at)), at),
               Store(f.data("C"), Cast(f"float32x{lanes}" if lanes > 1 else "float32", f.load("B", at)), at))
    before = f.func(loop(I, size // lanes, body))
    after = alone(tir.transform.BF16TypeLowering())(before)
    verify(after, flat=True)
    a = EVERY[-size:].view("float32")
    results = []
    for func in (before, after):
        b, c = np.zeros(size, "uint16"), np.zeros(size, "float32")
        run(func, [a, b, c])
        results.append((b, c))
    number = ~np.isnan(a)
    np.testing.assert_array_equal(results[0][0][number], results[1][0][number])
    np.testing.assert_array_equal(results[0][1], results[1][1])
    assert np.isnan(results[1][1][~number]).all() and not np.isnan(results[1][1][number]).any()


def test_legalize_is_the_three():
    mod = IRModule({"main": bfloats(5)})
    three = transform.Sequential([tir.transform.BF16Promote(), tir.transform.BF16CastElimination(),
                                  tir.transform.BF16TypeLowering()])
    assert str(tir.transform.BF16Legalize()(mod)) == str(three(mod))
    assert "bfloat16" in str(mod)


def test_lets_constants_and_memory_of_bfloat16_become_bits():
    f = Function(A=(5, BF16), C=(5, "float32"))
    x, data = Var("x", BF16), pointer_var("T", DType(BF16))
    inner = seq(Store(data, f.load("A", I), imm(0)),
                LetStmt(x, Load(DType(BF16), data, imm(0)),
                        f.store("C", I, Cast("float32", Select(I < 2, x, build.const(-1.5, BF16))))))
    check(alone(tir.transform.BF16TypeLowering()), f.func(loop(I, 5, allocate(data, 1, inner, BF16))))


def test_what_has_no_bits_is_refused():
    lower = alone(tir.transform.BF16TypeLowering())
    with pytest.raises(LoweringError, match=r"computes with bfloat16(.|\n)*BF16Promote"):
        lower(bfloats())
    f = Function(A=(5, "float64"), C=(5, BF16))
    with pytest.raises(LoweringError, match="rounded twice"):
        lower(f.func(loop(I, 5, f.store("C", I, Cast(BF16, f.load("A", I))))))


def test_bfloat16_of_buffers_becomes_bits_before_memory_is_flat():
    """The pass by itself, on the loops of a schedule with a stage in the middle."""
    A, B = (te.placeholder((9,), BF16, name=name) for name in "AB")
    D = te.compute((9,), lambda i: A[i] * B[8 - i], name="D")
    C = te.compute((9,), lambda i: te.if_then_else(D[i] > B[i], D[i] + A[8 - i], te.max(A[i], B[i])), name="C")
    mod = tedsl.driver.build_module.schedule_to_module(te.create_schedule(C.op), [A, B, C], "main", None)
    steps = [tir.transform.BF16Promote(), tir.transform.BF16TypeLowering()]
    made = transform.Sequential(steps)(mod)
    assert "bfloat16" in str(mod) and "bfloat16" not in str(made)
    a, b = (bits_of(np.random.default_rng(seed).normal(size=9)) for seed in (1, 2))
    results = []
    for one in (mod, made, transform.Sequential([tir.transform.StorageFlatten(64), *steps])(mod)):
        c = np.zeros(9, "uint16")
        run(one["main"], [a, b, c])
        results.append(c.tolist())
    assert results[0] == results[1] == results[2]
    assert "bfloat16" not in str(tir.transform.BF16Legalize()(mod))


def test_functions_without_bfloat16_stay_the_same_object():
    f = Function(A=(5,), C=(5,))
    func = f.func(loop(I, 5, f.store("C", I, f.load("A", I) + 1.0)))
    for step in ("BF16Promote", "BF16CastElimination", "BF16TypeLowering", "BF16Legalize", "InjectRollingBuffer",
                 "LowerThreadAllreduce", "LowerWarpMemory", "SkipAssert"):
        assert alone(getattr(tir.transform, step)())(func) is func, step


# --- devices ----------------------------------------------------------------------------------------------------------------

def row_sums(n):
    A = te.placeholder((n, 40), name="A")
    k = te.reduce_axis((0, 40), "k")
    B = te.compute((n,), lambda i: te.sum(A[i, k], axis=k), name="B")
    s = te.create_schedule(B.op)
    s[B].bind(B.op.axis[0], te.thread_axis("blockIdx.x"))
    _, inner = s[B].split(k, factor=16)
    s[B].bind(inner, te.thread_axis("threadIdx.x"))
    return tedsl.lower(s, [A, B], name="f")


def for_cuda(func):
    return func.with_attr("target", tedsl.Target("cuda"))


def sums_of(n):
    a = np.arange(n * 40, dtype="float32").reshape(n, 40) % 7
    return a, a.sum(axis=1), np.zeros(n, "float32")


@pytest.mark.parametrize("n", [1, 3, None])
def test_reductions_across_threads_become_shuffles(n, golden):
    mod = tir.transform.Apply(for_cuda)(row_sums(te.var("n") if n is None else n))
    steps = transform.Sequential([tir.transform.ThreadSync("shared"), tir.transform.LowerThreadAllreduce()])
    made = steps(mod)["f"]
    assert "tvm_thread_allreduce" not in str(made) and "shuffle" in str(made)
    a, expected, out = sums_of(n or 5)
    run(made, [a, out])
    np.testing.assert_array_equal(out, expected)
    if n == 3:
        golden.sections(before=body_text(mod["f"]), after=body_text(made))


def test_the_device_has_to_be_known():
    for step in (tir.transform.LowerThreadAllreduce(), tir.transform.LowerWarpMemory(), tir.transform.SplitHostDevice()):
        with pytest.raises(LoweringError, match=r'launches threads and has no attribute "target"(.|\n)*with_attr'):
            step(row_sums(3))


@pytest.mark.parametrize("n", [1, 6, None])
def test_host_and_device_are_split(n, golden):
    mod = tir.transform.Apply(for_cuda)(row_sums(te.var("n") if n is None else n))
    both = transform.Sequential([tir.transform.ThreadSync("shared"), tir.transform.LowerThreadAllreduce(),
                                 tir.transform.SplitHostDevice()])(mod)
    assert list(both) == ["f", "f_kernel0"] and list(mod) == ["f"]
    kernel = both["f_kernel0"]
    assert tir.analysis.undefined_vars(kernel) == [] and tir.analysis.undefined_vars(both["f"]) == []
    a, expected, out = sums_of(n or 5)
    run(both["f"], [a, out], external={"f_kernel0": lambda *given: run_kernel(kernel, given)})
    np.testing.assert_array_equal(out, expected)
    if n == 6:
        golden.sections(before=str(mod), after=str(both))


def run_kernel(kernel, given):
    run(kernel, [np.asarray(x).reshape(-1) if isinstance(x, np.ndarray) else x for x in given[:len(kernel.params)]])
    return 0


def test_a_kernel_does_not_replace_a_function_of_its_name():
    mod = tir.transform.Apply(for_cuda)(row_sums(3))
    other = Function(A=(2,))
    mod["f_kernel0"] = other.func(other.store("A", 0, 1.0)).with_attr("global_symbol", "f_kernel0")
    with pytest.raises(LoweringError, match="has a function of that name"):
        tir.transform.SplitHostDevice()(mod)


def test_memory_of_a_warp_becomes_registers():
    A = te.placeholder((4, 32), name="A")
    B = te.compute((4, 32), lambda r, i: A[r, 31 - i] * 2.0, name="B")
    s = te.create_schedule(B.op)
    copy = s.cache_read(A, "warp", [B])
    x = te.thread_axis((0, 32), "threadIdx.x")
    s[B].bind(B.op.axis[0], te.thread_axis("blockIdx.x"))
    s[B].bind(B.op.axis[1], x)
    s[copy].compute_at(s[B], B.op.axis[0])
    s[copy].bind(copy.op.axis[1], x)
    mod = tir.transform.Apply(for_cuda)(tedsl.lower(s, [A, B]))
    made = tir.transform.LowerWarpMemory()(mod)["main"]
    assert "warp_shuffle" in str(made) and '"warp"' not in str(made)
    a, out = np.arange(128, dtype="float32").reshape(4, 32), np.zeros((4, 32), "float32")
    run(made, [a, out])
    np.testing.assert_array_equal(out, a[:, ::-1] * 2)


@pytest.mark.parametrize("limits, keeps", [
    ({}, True), ({"max_threads_per_block": 16}, True), ({"max_threads_per_block": 15}, False), ({"max_thread_x": 15}, False),
    ({"max_thread_x": 16, "max_thread_y": 1}, True), ({"max_local_memory_per_block": 7}, False),
    ({"max_vector_bytes": 4}, True), ({"max_shared_memory_per_block": 0, "max_vthread": 1}, True),
    ({"max_local_memory_per_block": 8}, True)])
def test_kernels_keep_to_limits(limits, keeps):
    assert tir.analysis.verify_gpu_code(row_sums(3)["f"], limits) is keeps


def test_limits_of_vectors_and_virtual_threads():
    f = Function(A=(16,))
    vector = f.func(Store(f.data("A"), Broadcast(imm(1.0, "float32"), 8), Ramp(imm(0), imm(1), 8)))
    assert tir.analysis.verify_gpu_code(vector, {"max_vector_bytes": 32})
    assert not tir.analysis.verify_gpu_code(vector, {"max_vector_bytes": 31})
    A = te.placeholder((64,), name="A")
    B = te.compute((64,), lambda i: A[i] + 1.0, name="B")
    s = te.create_schedule(B.op)
    outer, inner = s[B].split(B.op.axis[0], nparts=4)
    s[B].bind(outer, te.thread_axis("vthread"))
    s[B].bind(inner, te.thread_axis("threadIdx.x"))
    with transform.PassContext(disabled_pass=[]):
        func = PrimFunc((), tedsl.lower(s, [A, B])["main"].body)
    assert tir.analysis.verify_gpu_code(func, {"max_vthread": 4}) and tir.analysis.verify_gpu_code(func, {"max_thread_x": 16})
    with pytest.raises(OptionError, match="knows no limit 'max_blocks'"):
        tir.analysis.verify_gpu_code(func, {"max_blocks": 4})
    with pytest.raises(ArgumentError, match="is an integer, not '4'"):
        tir.analysis.verify_gpu_code(func, {"max_vthread": "4"})
    with pytest.raises(ArgumentTypeError, match="takes a function"):
        tir.analysis.verify_gpu_code(row_sums(3), {})
    many = row_sums(te.var("n"))["f"]
    assert tir.analysis.verify_gpu_code(many, {"max_threads_per_block": 16})


# --- checks, parameters, memory ---------------------------------------------------------------------------------------------

def test_every_access_is_checked(golden):
    f = Function(A=(5,), C=(5,))
    func = f.func(loop(I, N, f.store("C", I, f.load("A", I + 1) * 2.0)), N)
    made = tir.transform.InstrumentBoundCheckers()(IRModule({"main": func}))["main"]
    golden.sections(before=body_text(func), after=body_text(made))
    a, c = np.arange(5, dtype="float32"), np.zeros(5, "float32")
    run(made, [a, c, 4])
    np.testing.assert_array_equal(c, [2, 4, 6, 8, 0])
    with pytest.raises(AccessError, match=r"reads A\[5\]"):
        run(made, [a, c, 5])


@pytest.mark.parametrize("place", ["input", "root", "inside"])
@pytest.mark.parametrize("n", [8, None])
def test_a_module_with_checks_is_built_and_fails_where_it_reads_outside(n, place):
    """With tir.instrument_bound_checkers nothing is refused before it runs; without it the same read is an error of build."""
    size = te.var("n") if n is None else n
    A = te.placeholder((size,), name="A")
    P = A if place == "input" else te.compute((size,), lambda i: A[i] * 2.0, name="P")
    B = te.compute((size,), lambda i: P[i + 1], name="B")
    s = te.create_schedule(B.op)
    if place == "inside":
        s[P].compute_at(s[B], B.op.axis[0])
    with transform.PassContext(config={"tir.instrument_bound_checkers": True}):
        f = tedsl.build(s, [A, B], "llvm")
    with pytest.raises(AccessError, match=rf"reads {P.op.name}\[8\](.|\n)*loops: i = 7"):
        f(np.zeros(8, "float32"), np.zeros(8, "float32"))
    with pytest.raises(LoweringError, match=rf"reads {P.op.name}\[i \+ 1\] outside"):
        tedsl.build(s, [A, B], "llvm")


def test_functions_with_the_parameters_of_machine_code(golden):
    n, m = SizeVar("n"), SizeVar("m")
    A, C = tir.decl_buffer((n, m), name="A"), tir.decl_buffer((n, m), name="C")
    j = Var("j")
    func = PrimFunc((A, C), loop(I, n, loop(j, m, BufferStore(C, A.vload([I, j]) * 2.0, (I, j)))))
    made = tir.transform.MakeUnpackedAPI()(IRModule({"main": func}))["main"]
    assert [p.name for p in made.params] == ["A", "C", "n", "m"] and not made.buffer_map
    golden.sections(before=str(func), after=str(made))
    a, c = np.arange(6, dtype="float32"), np.zeros(6, "float32")
    run(made, [a, c, 2, 3])
    np.testing.assert_array_equal(c, a * 2)


def test_functions_that_are_called_with_arrays():
    """What the pass takes is built as it is; kernels have a convention of their own."""
    n, pack = SizeVar("n"), tir.transform.MakePackedAPI()
    A, C = tir.decl_buffer((n,), name="A"), tir.decl_buffer((n,), name="C")
    func = PrimFunc((A, C), loop(I, n, BufferStore(C, A.vload([I]) * 2.0, (I,))))
    kernel = PrimFunc((A.data, n), Evaluate(0), attrs={"calling_conv": 2})
    mod = IRModule({"f": func, "k": kernel})
    made = pack(mod)
    assert made["f"].attrs["calling_conv"] == 1 and made["f"].body is func.body and made["k"] is kernel
    assert pack(made)["f"] is made["f"]
    assert tir.transform.MakePackedAPI(num_unpacked_params=-1)(mod)["f"].attrs["calling_conv"] == 1
    flat = tir.transform.StorageFlatten(64)(IRModule({"f": made["f"]}))
    a, c = np.arange(5, dtype="float32"), np.zeros(5, "float32")
    tedsl.build(flat)["f"](a, c)
    np.testing.assert_array_equal(c, a * 2)
    with pytest.raises(LoweringError, match="g cannot be called with an array for A, a pointer that has no buffer"):
        pack(IRModule({"g": PrimFunc((A.data, n), Evaluate(0)).with_attr("global_symbol", "g")}))
    with pytest.raises(LoweringError, match="g uses m, and no parameter gives it a value"):
        pack(IRModule({"g": PrimFunc((n,), Evaluate(n + Var("m"))).with_attr("global_symbol", "g")}))
    with pytest.raises(ArgumentError, match="all parameters are packed"):
        tir.transform.MakePackedAPI(1)


@pytest.mark.parametrize("align, expected", [(1, 100 + 40 + 12), (16, 112 + 48 + 16), (64, 128 + 64 + 64)])
def test_the_largest_workspace(align, expected):
    f = Function(A=(3,))
    first, second, third, fourth, register = (pointer_var(name, DType("float32"), scope) for name, scope in
                                              [*zip("abcd", ["global"] * 4), ("r", "local")])
    touch = f.store("A", 0, 1.0)
    body = allocate(first, 25, seq(allocate(second, 10, allocate(third, 3, touch)), allocate(fourth, 11, touch),
                                   allocate(register, 99, touch)))
    func = f.func(loop(I, 4, body))
    assert tir.analysis.calculate_workspace_bytes(func, align) == expected
    assert tir.analysis.calculate_workspace_bytes(f.func(touch), align) == 0


def test_sizes_that_only_a_call_knows_have_no_number():
    f = Function(A=(N,))
    func = f.func(allocate(pointer_var("T", DType("float32")), N * 2, f.store("A", 0, 1.0)))
    with pytest.raises(ArgumentError, match=r"T has .* which only a call knows"):
        tir.analysis.calculate_workspace_bytes(func, 8)
    with pytest.raises(ArgumentError, match="from 1 on, not 0"):
        tir.analysis.calculate_workspace_bytes(func, 0)
    with pytest.raises(ArgumentTypeError, match="takes a function"):
        tir.analysis.calculate_workspace_bytes(IRModule({"main": func}), 8)


def test_variables_that_nothing_binds():
    f = Function(A=(N, "float32"))
    x, y, j = Var("x"), Var("y"), Var("j")
    inside = f.func(loop(I, N, LetStmt(x, I + y, f.store("A", x + j, Load(DType("float32"), f.data("A"), I)))))
    assert tir.analysis.undefined_vars(inside) == [y, j]
    assert tir.analysis.undefined_vars(inside.body, [N, y]) == [f.data("A"), j] or \
        tir.analysis.undefined_vars(inside.body, [N, y]) == [j, f.data("A")]
    outside = f.func(seq(loop(I, 3, f.store("A", I, 1.0)), f.store("A", I, 2.0)))
    assert tir.analysis.undefined_vars(outside) == [I]
    let = tir.Let(x, y + 1, x * x)
    assert tir.analysis.undefined_vars(let) == [y] and tir.analysis.undefined_vars(let + x) == [y, x]
    k = te.reduce_axis((0, 4), "k")
    assert tir.analysis.undefined_vars(te.sum(k.var * x + j, axis=k)) == [x, j]
    data = pointer_var("T", DType("float32"))
    assert tir.analysis.undefined_vars(f.func(allocate(data, x, Store(data, imm(1.0, "float32"), imm(0))))) == [x]
    with pytest.raises(ArgumentTypeError, match="a statement, an expression or a function"):
        tir.analysis.undefined_vars(3)
    with pytest.raises(ArgumentTypeError, match="a list of variables"):
        tir.analysis.undefined_vars(let, ["x"])


def test_variables_of_deep_and_shared_expressions():
    x = Var("x")
    value = x
    for _ in range(200):
        value = value + value
    assert tir.analysis.undefined_vars(value) == [x]
    deep = x
    for k in range(5000):
        deep = tir.Let(Var(f"v{k}"), deep, imm(k))
    assert tir.analysis.undefined_vars(deep) == [x]


# --- functions of modules -----------------------------------------------------------------------------------------------------

def two_functions():
    f = Function(A=(4,))
    one = f.func(loop(I, 4, f.store("A", I, 1.0), PARALLEL))
    guarded = AssertStmt(imm(1) < 2, tir.StringImm("no"), Evaluate(imm(0)))
    return IRModule({"one": one.with_attr("global_symbol", "one"), "two": f.func(guarded).with_attr("global_symbol", "two")})


def test_filter_and_skip_assert():
    mod = two_functions()
    assert list(tir.transform.Filter(lambda func: func.name == "two")(mod)) == ["two"] and len(mod) == 2
    assert "assert" in str(mod) and "assert" not in str(tir.transform.SkipAssert()(mod))
    for step in (tir.transform.Filter, tir.transform.Apply):
        with pytest.raises(ArgumentTypeError, match="takes a function of functions, not"):
            step("two")


def test_a_pass_of_the_user_never_changes_the_module_it_was_given():
    mod = two_functions()
    before = str(mod)

    @transform.module_pass(opt_level=0)
    def greedy(given, ctx):
        given["three"] = given["one"].with_attr("global_symbol", "three")
        given.update_func("two", given["one"])
        return given

    @tir.transform.prim_func_pass(opt_level=0)
    def greedy_too(func, given, ctx):
        given["four"] = func
        return func.with_attr("seen", True)

    assert list(greedy(mod)) == ["one", "two", "three"] and str(mod) == before
    assert list(greedy_too(mod)) == ["one", "two"] and str(mod) == before
    assert list(transform.Sequential([greedy, greedy_too, greedy])(mod)) == ["one", "two", "three"] and str(mod) == before
    with transform.PassContext(config={"tir.add_lower_pass": [(0, greedy_too)]}):
        A = te.placeholder((4,), name="A")
        B = te.compute((4,), lambda i: A[i] + 1.0, name="B")
        assert tedsl.lower(te.create_schedule(B.op), [A, B])["main"].attrs["seen"]


def test_a_pass_that_changes_nothing_returns_the_module_it_was_given():
    mod = two_functions()
    assert transform.module_pass(lambda given, ctx: given, opt_level=0)(mod) is mod
