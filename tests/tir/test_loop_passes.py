"""Passes of tir.transform over loops, on functions written by hand: before, after, and the same results."""

import numpy as np
import pytest

import tedsl
from tedsl import te, tir, transform
from tedsl.errors import ArgumentError, LoweringError
from tedsl.ir import build
from tedsl.ir.dtype import DType
from tedsl.ir.evaluate import run
from tedsl.ir.expr import Load, Select, SizeVar, Var
from tedsl.ir.func import IRModule, PrimFunc
from tedsl.ir.stmt import AttrStmt, For, ForKind, IfThenElse
from tedsl.ir.verify import verify
from tedsl.ir.walk.visitor import post_order
from tests.passes.programs import VECTORIZED, Function, body_text, check, imm, loop, seq, when

I, J, K, N = Var("i"), Var("j"), Var("k"), SizeVar("n")


def alone(step, **config):
    """A pass of tir.transform, under options, as a function of functions."""
    def run_pass(func):
        with transform.PassContext(config=config):
            return step(IRModule({"main": func}))["main"]
    return run_pass


# --- NarrowDataType -------------------------------------------------------------------------------------------------------

def sums(rows, columns, dtype):
    """B[i] += A[i, j], with indices of a dtype."""
    f = Function(A=(rows * columns,), B=(rows,))
    i, j = Var("i", dtype), Var("j", dtype)
    body = f.store("B", i, f.load("B", i) + f.load("A", i * columns + j))
    return f.func(loop(i, imm(rows, dtype), loop(j, imm(columns, dtype), body)))


def widths(func):
    return [str(node.loop_var.dtype) for node in post_order(func.body) if isinstance(node, For)]


@pytest.mark.parametrize("rows, columns, dtype, bits, expected", [
    (3, 5, "int64", 32, "int32"), (3, 5, "int64", 16, "int16"), (3, 5, "int32", 16, "int16"), (3, 5, "int64", 64, "int64"),
    (1, 1, "int64", 16, "int16"), (3, 0, "int64", 16, "int16"), (2, 5, "int32", 32, "int32")])
def test_indices_get_narrow(rows, columns, dtype, bits, expected):
    made = check(alone(tir.transform.NarrowDataType(bits)), sums(rows, columns, dtype))
    assert widths(made) == [expected] * 2


@pytest.mark.parametrize("extents, dtype, bits, loops, index", [
    ((2**16, 2**16), "int64", 32, "int64", "int64"), ((2**31, 1), "int64", 32, "int64", "int64"),
    ((200, 200), "int64", 16, "int64", "int64"), ((200, 200), "int32", 16, "int32", "int32"),
    ((2**15, 1), "int32", 16, "int32", "int32"), ((127, 258), "int32", 16, "int16", "int16")])
def test_what_may_not_fit_stays_wide(extents, dtype, bits, loops, index):
    """A loop as well as its index."""
    made = alone(tir.transform.NarrowDataType(bits))(sums(*extents, dtype))
    inside = {str(node.index.dtype) for node in post_order(made.body) if isinstance(node, Load) and node.buffer_var.name == "A"}
    assert widths(made)[-1] == loops and inside == {index}


def test_sixteen_bits_before_and_after(golden):
    f = Function(A=(40,), B=(40, "int32"))
    value = build.cast("int32", I * 900) + build.cast("int32", f.load("A", I * 5 + J))
    before = f.func(loop(K, 2, loop(I, 8, loop(J, 5, seq(f.store("B", I * 5 + J, value + K), f.store("B", K, K * 20000))))))
    made = check(alone(tir.transform.NarrowDataType(16)), before, golden=golden)
    assert widths(made) == ["int32", "int32", "int16"][::-1], "the sum with data, and 20000, may not fit"


def test_all_that_an_index_is_made_of_gets_narrow(golden):
    """Conditions, choices, data that is narrow already, and variables of lets."""
    f = Function(A=(64,), B=(64,), C=(64, "int32"))
    wide = lambda value: imm(value, "int64")
    i, j, x = Var("i", "int64"), Var("j", "int64"), Var("x", "int64")
    chosen = build.if_then_else(build.less(i, j), i * 8 + j, Select(build.equal(j, wide(2)), wide(0), i))
    data = build.cast("int64", f.load("C", i * 8 + j))
    inside = when(build.logical_and(i * 8 + j >= wide(3), i * 8 + j < wide(60)),
                  tir.LetStmt(x, i * 8, f.store("B", x + j, f.load("A", chosen) + f.load("A", data) + x.astype("float32"))))
    made = check(alone(tir.transform.NarrowDataType(32)), f.func(loop(i, wide(8), loop(j, wide(8), inside))), golden=golden)
    assert "int64" not in str(made) and "i64" not in str(made)


@pytest.mark.parametrize("blocks, dtype, bits, expected", [
    (3, "int32", 16, "int16"), (3, "int64", 32, "int32"), (3, "int32", 32, "int32"), (2**14, "int32", 16, "int32")])
def test_threads_get_narrow(blocks, dtype, bits, expected):
    f = Function(A=(4 * blocks,), B=(4 * blocks,))
    x, b = Var("threadIdx.x", "int32"), Var("blockIdx.x", "int32")
    axes = [tir.IterVar(None, var, tir.IterVar.ThreadIndex, var.name) for var in (b, x)]
    body = f.store("B", b * 4 + x, f.load("A", b * 4 + x) + 1.0)
    inner = AttrStmt(axes[1], "thread_extent", imm(4, dtype), body)
    before = f.func(AttrStmt(axes[0], "thread_extent", imm(blocks, dtype), inner))
    step = alone(tir.transform.NarrowDataType(bits))
    made = check(step, before) if blocks == 3 else step(before)
    assert [str(attr.node.var.dtype) for attr in (made.body, made.body.body)] == [expected] * 2
    assert blocks != 3 or str(made.body.value.dtype) == expected


def test_widths_that_there_are():
    for bits in (8, 0, "32", None):
        with pytest.raises(ArgumentError, match="16, 32 or 64 bits"):
            tir.transform.NarrowDataType(bits)


# --- HoistIfThenElse ------------------------------------------------------------------------------------------------------

HOIST = tir.transform.HoistIfThenElse
BLOCKS = {"tir.HoistIfThenElse": {"support_block_scope_hosting": True}}


@pytest.mark.parametrize("rows, columns", [(5, 7), (1, 1), (3, 0)])
def test_nested_conditions_move_to_their_loops(rows, columns, golden):
    f = Function(B=(5 * 7 * 8,))
    at = (I * 7 + J) * 8 + K
    inside = when(tir.likely(I < 2), when(build.greater_equal(J, 3), when(build.less(K, I), f.store("B", at, 1))))
    before = f.func(loop(I, rows, loop(J, columns, loop(K, 8, inside))))
    made = check(alone(HOIST()), before, golden=golden if rows == 5 else None)
    assert str(alone(HOIST())(made)) == str(made)


def test_conditions_that_all_statements_have_in_common_move(golden):
    f = Function(A=(6,), B=(6,), C=(6,))
    both = build.logical_and(build.less(I, 4), build.greater(N, 2))
    body = seq(when(both, f.store("B", I, f.load("A", I))), when(build.greater(N, 2), f.store("C", I, 3)))
    before = f.func(loop(I, 6, body), N)
    check(alone(HOIST()), before, sizes=((2,), (3,)), golden=golden)


@pytest.mark.parametrize("second", [lambda f: when(build.less(N, 1), f.store("C", I, 3)), lambda f: f.store("C", I, 3),
                                    lambda f: when(build.greater(N, 2), f.store("C", I, 3), f.store("C", I, 4))])
def test_conditions_of_some_statements_stay(second):
    f = Function(A=(6,), B=(6,), C=(6,))
    body = seq(when(build.greater(N, 2), f.store("B", I, f.load("A", I))), second(f))
    before = f.func(loop(I, 6, body), N)
    assert check(alone(HOIST()), before, sizes=((0,), (3,))) is before


def test_branches_inside_of_both_sides_move(golden):
    f = Function(B=(6,), C=(6,))
    sides = when(build.greater(N, 2), when(build.less(N, 9), f.store("B", I, 1)),
                 when(build.less(N, 1), f.store("B", I, 2), f.store("C", I, 3)))
    check(alone(HOIST()), f.func(loop(I, 6, sides), N), sizes=((0,), (2,), (5,), (9,)), golden=golden)


def launch_of(body, f, *scalars, threads=4, blocks=3):
    x, b = te.thread_axis("threadIdx.x"), te.thread_axis("blockIdx.x")
    return f.func(AttrStmt(b, "thread_extent", build.as_expr(blocks),
                           AttrStmt(x, "thread_extent", build.as_expr(threads), body(b.var, x.var))), *scalars)


def guarded_by_block(otherwise):
    f = Function(B=(12,))
    return launch_of(lambda b, x: loop(I, 2, when(build.less(b, 2), f.store("B", b * 4 + x, f.load("B", b * 4 + x) + 1.0),
                                                  f.store("B", b * 4 + x, 5) if otherwise else None)), f)


@pytest.mark.parametrize("otherwise", [False, True])
def test_conditions_of_blocks_move_out_of_threads_if_asked(otherwise, golden):
    before = guarded_by_block(otherwise)
    assert alone(HOIST())(before) is before and alone(HOIST("basic"), **BLOCKS)(before) is before
    outside = check(alone(HOIST(), **BLOCKS), before)
    golden.sections(before=body_text(before), outside=body_text(outside))


@pytest.mark.parametrize("condition, moves", [
    (lambda x, b, i: build.less(x + N, 3), "asked"), (lambda x, b, i: build.less(N, 3), "always"),
    (lambda x, b, i: build.less(x + b, 2), "asked"), (lambda x, b, i: build.less(x + i, 2), "never"),
    (lambda x, b, i: build.logical_and(build.less(i, 1), build.less(N, 3)), "always")])
def test_which_conditions_move_out_of_loops_of_threads(condition, moves):
    f = Function(B=(12,))
    at = lambda b, x: b * 4 + x
    store = lambda b, x: f.store("B", at(b, x), f.load("B", at(b, x)) + 1.0)
    before = launch_of(lambda b, x: loop(I, 2, when(condition(x, b, I), store(b, x))), f, N)
    for step, changes in ((alone(HOIST()), moves == "always"), (alone(HOIST("basic"), **BLOCKS), moves == "always"),
                          (alone(HOIST(), **BLOCKS), moves != "never")):
        assert (check(step, before, sizes=((0,), (2,), (4,))) is not before) == changes


@pytest.mark.parametrize("otherwise", [False, True])
def test_conditions_on_memory_move_where_the_loop_leaves_it_alone(otherwise):
    """And has an iteration in which they are looked at."""
    for stored, extent, noalias, moves in (("B", 6, True, True), ("A", 6, True, False), ("B", 0, True, False),
                                           ("B", N, True, False), ("B", 6, False, False)):
        f = Function(noalias=noalias, A=(6,), B=(6,))
        condition = build.less(f.load("A", 2), imm(3.0, "float32"))
        branch = when(condition, f.store(stored, I, 7), f.store("B", I, 5) if otherwise else None)
        made = check(alone(HOIST()), f.func(loop(I, extent, branch), N), sizes=((0,), (6,)))
        assert isinstance(made.body, IfThenElse) == moves


@pytest.mark.parametrize("otherwise", [False, True])
def test_pragmas_do_not_hold_conditions_back(otherwise, golden):
    f = Function(B=(20,))
    branch = when(build.less(N, 3), f.store("B", I * 5 + J, 1), f.store("B", I * 5 + J, 2) if otherwise else None)
    pragma = AttrStmt(J, "pragma_auto_unroll_max_step", imm(16), loop(J, 5, branch))
    made = check(alone(HOIST()), f.func(loop(I, 4, pragma), N), sizes=((0,), (3,)), golden=golden)
    assert isinstance(made.body, IfThenElse) and str(made).count("pragma") == 1 + otherwise


# --- LoopPartition --------------------------------------------------------------------------------------------------------

CONSTANT = {"tir.LoopPartition": {"partition_const_loop": True}}


def partitioned(func, **options):
    both = transform.Sequential([tir.transform.LoopPartition(), tir.transform.Simplify()])
    with transform.PassContext(config=CONSTANT):
        return both(IRModule({"main": func}))["main"]


def first_loop(func):
    return func.body.seq[0]


@pytest.mark.parametrize("condition, extent", [
    (lambda i: build.equal(i, 5), 10), (lambda i: build.not_equal(i, 5), 10), (lambda i: build.equal(i, 0), 10),
    (lambda i: build.not_equal(i, 9), 10), (lambda i: build.equal(i * 3, 12), 7), (lambda i: build.less(i, 3), 10),
    (lambda i: build.greater_equal(i, 3), 10), (lambda i: build.equal(i, 50), 10), (lambda i: build.equal(i, 0), 1)])
def test_equalities_and_inequalities_are_decided(condition, extent):
    f = Function(A=(10,), B=(10,))
    branch = when(tir.likely(condition(I)), f.store("B", I, f.load("A", I)), f.store("B", I, 2))
    made = check(partitioned, f.func(loop(I, extent, branch)))
    assert not any(isinstance(node, IfThenElse) for node in post_order(made.body))


def test_selects_are_guards(golden):
    f = Function(A=(50,), B=(64,))
    guard = tir.likely(build.less(I * 8 + J, 50))
    before = f.func(loop(I, 8, loop(J, 8, f.store("B", I * 8 + J, Select(guard, imm(1.0, "float32"), imm(2.0, "float32"))))))
    made = check(partitioned, before, golden=golden)
    assert not any(isinstance(node, Select) for node in post_order(first_loop(made)))


@pytest.mark.parametrize("n", [1, 31, 32, 50])
def test_splits_inside_of_splits_that_do_not_divide(n):
    f = Function(A=(n,), B=(n,))
    at = (I * 3 + J) * 5 + K
    guard = build.logical_and(tir.likely(build.less(at, n)), tir.likely(build.less(I * 3 + J, (n + 4) // 5)))
    before = f.func(loop(I, ((n + 4) // 5 + 2) // 3, loop(J, 3, loop(K, 5, when(guard, f.store("B", at, f.load("A", at)))))))
    check(partitioned, before)


@pytest.mark.parametrize("n", [1, 4, 12, 13])
def test_an_equality_with_a_size_is_somewhere_in_the_loop_or_not(n, golden):
    f = Function(B=(13,))
    before = f.func(loop(I, 13, when(tir.likely(build.equal(I, N)), f.store("B", I, 1), f.store("B", I, 2))), N)
    check(partitioned, before, scalars=(n,), golden=golden if n == 1 else None)


@pytest.mark.parametrize("step", ["LoopPartition", "UnrollLoop"])
@pytest.mark.parametrize("n", [30, None])
def test_memory_in_a_loop_that_is_split_is_another_one_in_each_part(n, step):
    """Before memory is flat too: each part realizes a buffer of its own, with its alignment."""
    size = te.size_var("n") if n is None else n
    A = te.placeholder((size,), name="A")
    B = te.compute((size,), lambda i: A[i] + 1.0, name="B")
    C = te.compute((size,), lambda i: B[i] * 2.0, name="C")
    s = te.create_schedule(C.op)
    outer, _ = s[C].split(C.op.axis[0], 8)
    s[B].compute_at(s[C], outer)
    s[B].storage_align(B.op.axis[0], 4, 1)
    if step == "UnrollLoop" and n is not None:
        s[C].unroll(outer)
    loops = te.schedule.ScheduleOps(s, te.schedule.InferBound(s))
    func = te.schedule.SchedulePostProcToPrimFunc([A, C], loops, None).with_attr({"global_symbol": "main", "tir.noalias": True})
    made = alone(getattr(tir.transform, step)(), **{"tir.LoopPartition": {"partition_const_loop": True}})(func)
    realized = [node.buffer for node in post_order(made.body) if isinstance(node, tir.BufferRealize)]
    parts = 2 if step == "LoopPartition" else 1 if n is None else 4
    assert len(set(realized)) == len(realized) == parts
    verify(made, flat=False)
    data, out = np.arange(30, dtype="float32"), np.zeros(30, "float32")
    flat = alone(tir.transform.StorageFlatten(64))(made)
    verify(flat, flat=True)
    for func in (made, flat):
        out[:] = 0
        run(func, [data, out])
        np.testing.assert_array_equal(out, (data + 1) * 2)


@pytest.mark.parametrize("n, blocks", [(50, 2), (64, 2), (3, 1)])
def test_blocks_of_a_launch_get_branches(n, blocks):
    f = Function(A=(n,), B=(n,))
    at = lambda b, x: b * 32 + x
    guarded = lambda b, x: when(tir.likely(build.less(at(b, x), n)), f.store("B", at(b, x), f.load("A", at(b, x)) + 1.0))
    check(partitioned, launch_of(guarded, f, threads=32, blocks=blocks))


def launched_rows():
    """B = A + 1 on blocks along two axes, of sizes that only a call knows."""
    n, m = SizeVar("n"), SizeVar("m")
    A, B = tir.decl_buffer((n, m), name="A"), tir.decl_buffer((n, m), name="B")
    ib = tir.ir_builder.create()
    y, x, t = te.thread_axis("blockIdx.y"), te.thread_axis("blockIdx.x"), te.thread_axis("threadIdx.x")
    ib.scope_attr(y, "thread_extent", (n + 3) // 4)
    ib.scope_attr(x, "thread_extent", (m + 15) // 16)
    ib.scope_attr(t, "thread_extent", 16)
    a, b = ib.buffer_ptr(A), ib.buffer_ptr(B)
    held = ib.allocate("float32", (4,), name="held", scope="local")
    with ib.for_range(0, 4, "r") as r:
        i, j = y.var * 4 + r, x.var * 16 + t.var
        with ib.if_scope(tir.likely(tir.all(i < n, j < m))):
            held[r] = a[i, j]
            b[i, j] = held[r] + 1.0
    return PrimFunc((A, B), ib.get()).with_attr("global_symbol", "main")


@pytest.mark.parametrize("n, m", [(1, 1), (4, 16), (9, 33)])
def test_blocks_along_two_axes_of_any_sizes(n, m, golden):
    before = tir.transform.StorageFlatten(64)(IRModule({"main": launched_rows()}))["main"]
    made = partitioned(before)
    a = np.arange(n * m, dtype="float32").reshape(n, m)
    for backwards in (False, True):
        out = np.zeros_like(a)
        run(made, [a, out], reverse_parallel=backwards)
        np.testing.assert_array_equal(out, a + 1)
    if n == 1:
        golden.sections(before=body_text(before), after=body_text(made))


def if_or_select(func):
    return any(isinstance(node, (IfThenElse, Select)) for node in post_order(func.body))


@pytest.mark.parametrize("rows, columns", [(94, 62), (1, 62), (16, 7), (0, 5)])
def test_the_rest_of_each_loop_has_no_guards_either(rows, columns):
    f = Function(A=(max(rows, 1) * columns,), B=(max(rows, 1) * columns,))
    y, x = Var("y"), Var("x")
    at = (y * 16 + I) * columns + x * 16 + J
    guard = lambda: build.logical_and(tir.likely(y * 16 + I < rows), tir.likely(x * 16 + J < columns))
    inside = when(guard(), f.store("B", at, f.load("A", at) + 1.0))
    before = f.func(loop(y, (rows + 15) // 16, loop(x, (columns + 15) // 16, loop(I, 16, loop(J, 16, inside)))))
    assert not if_or_select(check(partitioned, before))


@pytest.mark.parametrize("condition", [
    lambda i: i * 10 + 10 > 112, lambda i: build.logical_and(tir.likely(i > 3), tir.likely(i < 9)),
    lambda i: build.logical_and(i >= 4, tir.likely(i < 9)), lambda i: 3 - i >= 0])
def test_conditions_that_fail_in_whole_iterations_are_decided(condition):
    f = Function(A=(16,), B=(16,))
    sides = when(tir.likely(condition(I)), f.store("B", I, f.load("A", I)), f.store("B", I, 2))
    made = check(partitioned, f.func(loop(I, 12, sides)))
    assert not if_or_select(made)


def test_values_of_statements_without_effect_are_guards():
    n = SizeVar("n")
    ib = tir.ir_builder.create()
    with ib.for_range(0, tir.truncdiv(n + 3, 4), "i") as i, ib.for_range(0, 4, "j") as j:
        ib.emit(tir.Evaluate(Select(ib.likely(i * 4 + j < n), N, n)))
    made = tir.transform.LoopPartition()(IRModule({"main": PrimFunc((N, n), ib.get())}))["main"]
    main, rest = made.body.seq
    assert not any(isinstance(node, Select) for node in post_order(main))
    assert any(isinstance(node, Select) for node in post_order(rest)) and not rest.annotations
    assert "likely" not in str(made), "as in TVM, the pass leaves no marks"


def test_a_parted_loop_inside_of_another_part_is_a_loop_of_its_own():
    """Parts of a stage that is computed at a loop which is itself parted: no condition is left, every element is computed."""
    A = te.placeholder((48,), name="A")
    C = te.compute((48,), lambda i: A[i], name="C")
    D = te.compute((48,), lambda i: C[i], name="D")
    s = te.create_schedule(D.op)
    s[C].split(C.op.axis[0], factor=10)
    outer, _ = s[D].split(D.op.axis[0], 32)
    s[C].compute_at(s[D], outer)
    with transform.PassContext(config=CONSTANT):
        lowered = tedsl.lower(s, [A, C, D])
    assert not if_or_select(lowered["main"])
    a, c, d = np.arange(48, dtype="float32"), np.zeros(48, "float32"), np.zeros(48, "float32")
    run(lowered["main"], [a, c, d])
    np.testing.assert_array_equal(c, a)
    np.testing.assert_array_equal(d, a)


def test_a_hint_of_a_loop_counts_for_branches_that_are_not_marked():
    f = Function(A=(16,), B=(16,))
    value = Select(build.less(I, 9), imm(1.0, "float32"), imm(2.0, "float32"))
    inside = when(build.less(I, 5), f.store("B", I, f.load("A", I)), f.store("B", I, value))
    hinted = loop(I, 16, inside).replace(annotations={"pragma_loop_partition_hint": 1})
    assert check(partitioned, f.func(loop(I, 16, inside))).body.extent.value == 16
    made = check(partitioned, f.func(hinted))
    assert len(made.body.seq) == 3 and not if_or_select(made)


@pytest.mark.parametrize("unrolled", [False, True])
def test_a_hinted_loop_that_no_condition_splits_is_unrolled_if_asked(unrolled):
    f = Function(A=(16,), B=(16,))
    inside = when(build.less(build.floormod(I, 3), 1), f.store("B", I, f.load("A", I)))
    hinted = loop(I, 16, inside).replace(annotations={"pragma_loop_partition_hint": 1})
    options = {"partition_const_loop": True, "unroll_loop_with_partition_hint_no_interval": unrolled}
    made = check(alone(tir.transform.LoopPartition(), **{"tir.LoopPartition": options}), f.func(hinted))
    assert made.body.kind is (ForKind.UNROLLED if unrolled else ForKind.SERIAL)


@pytest.mark.parametrize("keep", [False, True])
def test_loops_of_one_iteration_stay_if_asked(keep):
    f = Function(A=(50,), B=(50,))
    at = I * 32 + J
    before = f.func(loop(I, 2, loop(J, 32, when(tir.likely(at < 50), f.store("B", at, f.load("A", at))))))
    options = {"partition_const_loop": True, "no_unroll_loop_with_extent_one": keep}
    made = check(alone(tir.transform.LoopPartition(), **{"tir.LoopPartition": options}), before)
    ones = [node for node in post_order(made.body) if isinstance(node, For) and build.as_int(node.extent) == 1]
    assert len(ones) == (2 if keep else 0)


def test_a_hint_splits_a_loop_by_the_condition_of_a_user():
    A = te.placeholder((20,), name="A")
    B = te.compute((20,), lambda i: te.if_then_else(te.all(i >= 2, i < 18), A[i], 0.0), name="B")
    s = te.create_schedule(B.op)
    s[B].pragma(B.op.axis[0], "loop_partition_hint", True)
    with transform.PassContext(disabled_pass=["tir.LoopPartition"]):
        mod = tedsl.lower(s, [A, B])
    made = tir.transform.LoopPartition()(mod)
    assert str(made).count("for (") == 3 and str(mod).count("for (") == 1
    a, out = np.arange(20, dtype="float32"), np.zeros(20, "float32")
    run(made["main"], [a, out])
    np.testing.assert_array_equal(out, np.where((np.arange(20) >= 2) & (np.arange(20) < 18), a, 0))


# --- VectorizeLoop --------------------------------------------------------------------------------------------------------

VECTORS = tir.transform.VectorizeLoop()


def test_a_while_loop_inside_of_a_vectorized_one_is_refused_and_built():
    f = Function(A=(4,), B=(4,))
    body = tir.While(build.less(f.load("A", I), imm(3.0, "float32")), f.store("A", I, f.load("A", I) + 1.0))
    func = f.func(loop(I, 4, loop(J, 1, body), VECTORIZED))
    with pytest.raises(LoweringError, match=r"while loop inside of the vectorized loop i(.|\n)*enable_vectorize=False"):
        alone(VECTORS)(func)
    made = check(alone(tir.transform.VectorizeLoop(enable_vectorize=False)), func)
    assert isinstance(made.body, For) and made.body.kind.name == "SERIAL"
    a = np.array([-2, 0.5, 2, 7], "float32")
    tedsl.build(func)(a, np.zeros(4, "float32"))
    np.testing.assert_array_equal(a, [3, 3.5, 3, 7])


def vectors_of_four(f, first, value, name="A"):
    """A[first(j)] = value(j) of vectors of four, in a vectorized loop over j in 2..5."""
    ib = tir.ir_builder.create()
    memory = {key: tir.ir_builder.BufferVar(ib, f.data(key), DType("float32x4"), None) for key in "AB"}
    with ib.for_range(2, 6, "j", kind="vectorize") as j:
        memory[name][first(j)] = value(j, memory["B"])
    return ib.get()


@pytest.mark.parametrize("first, value, lanes", [
    (lambda j: j, lambda j, b: tir.const(1.0, "float32x4"), 16),
    (lambda j: j + 1, lambda j, b: b[j] * 2.0 + b[j + 2], 16),
    (lambda j: j, lambda j, b: tir.Select(b[j] < 3.0, b[j], b[j + 1].astype("int32x4").astype("float32x4")), 16),
    (lambda j: j * 2, lambda j, b: b[j], 0), (lambda j: j, lambda j, b: b[3] + b[j], 0),
    (lambda j: 7 - j, lambda j, b: b[j], 0),
    (lambda j: j, lambda j, b: tir.Broadcast(j.astype("float32"), 4), 0)])
def test_vectors_of_consecutive_lanes_are_one_vector(first, value, lanes):
    """Where each vector begins behind the one before; else they stay a loop of vectors."""
    f = Function(A=(64,), B=(40,))
    made = check(alone(VECTORS), f.func(vectors_of_four(f, first, value)))
    assert isinstance(made.body, For) == (lanes == 0)
    if lanes:
        assert made.body.value.dtype == f"float32x{lanes}" and isinstance(made.body.index, tir.Ramp)
        assert isinstance(made.body.value, tir.Broadcast) == ("const" in value.__code__.co_names)


def written_by_hand(rank, write):
    """A function over A and B, of 8 and 4 elements or, with rank 2, rows of them; write(ib, a, b, j) in a vectorized loop."""
    shapes = ((8,), (4,)) if rank == 1 else ((2, 8), (2, 4))
    A, B = (tir.decl_buffer(shape, "float32", name=name) for shape, name in zip(shapes, "AB"))
    ib = tir.ir_builder.create()
    with ib.for_range(0, 4, "j", kind="vectorize") as j:
        write(ib, ib.buffer_ptr(A), ib.buffer_ptr(B), j)
    pa, pb = te.var("pa", "handle"), te.var("pb", "handle")
    return PrimFunc([pa, pb], ib.get(), None, {pa: A, pb: B}).with_attr("global_symbol", "main")


@pytest.mark.parametrize("formula, expected", [
    (lambda a, v: tir.if_then_else(v < 5, a[v], 1.0), [3, 4, 1, 1]),
    (lambda a, v: tir.if_then_else(v < 5, a[tir.min(v, 6)], 1.0), [3, 4, 1, 1]),
    (lambda a, v: tir.Select(v < 5, a[tir.min(v, 6)], tir.const(1.0)), [3, 4, 1, 1])])
def test_choices_on_a_let_of_lanes_are_built(formula, expected):
    """A check of memory took the condition of four lanes for that of a scalar choice."""
    def write(ib, a, b, j):
        v = ib.let("v", j + 3)
        b[j] = formula(a, v)

    made = alone(VECTORS)(written_by_hand(1, write))
    a, b = np.arange(8, dtype="float32"), np.zeros(4, "float32")
    tedsl.build(IRModule({"main": made}))(a, b)
    np.testing.assert_array_equal(b, expected)


def test_multi_dimensional_memory_is_flattened_where_loops_become_vectors():
    def write(ib, a, b, j):
        b[1, j] = a[0, j] * 2.0

    before = written_by_hand(2, write)
    made = alone(VECTORS)(before)
    verify(made, flat=True)
    assert not any(isinstance(node, For) for node in post_order(made.body))
    a = np.arange(16, dtype="float32").reshape(2, 8)
    results = [np.zeros((2, 4), "float32") for _ in range(2)]
    for func, result in zip((before, made), results):
        tedsl.build(IRModule({"main": func}))(a, result)
        np.testing.assert_array_equal(result, [[0] * 4, a[0, :4] * 2])


@pytest.mark.parametrize("n", [0, 2, 9])
def test_branches_of_sizes_and_of_lanes(n, golden):
    f = Function(A=(4,), B=(4,))
    inner = when(build.less(I, N), f.store("B", I, 2.0), f.store("B", I, Select(build.less(I, 1), f.load("A", I),
                                                                             imm(7.0, "float32"))))
    before = f.func(loop(I, 4, when(build.less(N, 3), f.store("B", I, f.load("A", I) + 1.0), inner), VECTORIZED), N)
    check(alone(VECTORS), before, scalars=(n,), golden=golden if n == 0 else None)
