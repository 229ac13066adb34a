"""Mistakes that programs written for TVM, and hostile ones beside them, brought to light, each by name."""

import re

import numpy as np
import pytest

import tedsl
from tedsl import te, tir
from tedsl.errors import ArgumentTypeError
from tedsl.ir.evaluate import run


def test_a_shape_computed_with_a_true_division_is_taken_if_it_is_whole():
    """The packed matrix of TVM's matmul tutorials has the shape (N / bn, K, bn)."""
    b = te.placeholder((6, 8), name="B")
    packed = te.compute((8 / 4, 6, 4), lambda x, y, z: b[y, x * 4 + z], name="packedB")
    assert [dim.value for dim in packed.shape] == [2, 6, 4]


def test_rfactor_of_a_reduction_whose_condition_reads_the_tensor():
    """What a split overshoots may not be read by the condition either."""
    a = te.placeholder((6, 9), name="A")
    k = te.reduce_axis((0, 9), name="k")
    b = te.compute((6,), lambda i: te.sum(a[i, k], axis=k, where=te.all(k >= i, a[i, k] > 0)), name="B")
    s = te.create_schedule(b.op)
    s.rfactor(b, s[b].split(k, factor=4)[1])
    given, got = np.random.default_rng(0).uniform(-1, 1, (6, 9)).astype("float32"), np.empty(6, "float32")
    tedsl.build(s, [a, b])(given, got)
    np.testing.assert_allclose(got, [np.maximum(row[i:], 0).sum() for i, row in enumerate(given)], rtol=1e-5)


def test_the_size_of_a_temporary_beyond_int32_does_not_wrap():
    """2^16 * 2^16 elements were allocated as none, and written."""
    t = te.compute((2**16, 2**16), lambda i, j: i + j, name="T")
    c = te.compute((4,), lambda i: t[i, i], name="C")
    assert "int32, [4294967296i64]" in str(tedsl.lower(te.create_schedule(c.op), [c], simple_mode=True))


def test_a_fused_loop_beyond_int32_counts_in_64_bits():
    """It had no iterations: its extent wrapped to 0."""
    a = te.placeholder((2,), "uint8", name="A")
    x = te.compute((2**16, 2**16 + 2), lambda i, j: te.if_then_else(te.all(i >= 2**16 - 1, j >= 2**16), a[1], a[0]), name="X")
    s = te.create_schedule(x.op)
    f = s[x].fuse(*x.op.axis)
    assert "for (i.j.fused: int64, 0i64, 4295098368i64)" in str(tedsl.lower(s, [a, x], simple_mode=True))
    outer, inner = s[x].split(f, factor=2**20)
    s[x].vectorize(s[x].split(inner, factor=64)[1])
    masked = "llvm -mtriple=x86_64-linux-gnu -mcpu=skylake-avx512"  # without masks, lanes and remainders have 32 bits
    source = tedsl.build(s, [a, x], target=masked).get_source("ll")
    assert not re.search(r"trunc i64 %\w+ to i32", source.split("define")[1])


def test_the_schedule_primitives_tutorial_lists_an_intermediate_stage_among_the_arguments():
    """An attached stage writes all of it where its reader goes through every element; an inlined one can be lowered."""
    n = te.var("n")
    a = te.placeholder((n,), name="A")
    b = te.compute((n,), lambda i: a[i] + 1, name="B")
    c = te.compute((n,), lambda i: b[i] * 2, name="C")
    s = te.create_schedule(c.op)
    outer, inner = s[c].split(c.op.axis[0], factor=8)
    s[c].parallel(outer)
    s[c].vectorize(inner)
    s[b].compute_at(s[c], outer)
    given = np.arange(21, dtype="float32")
    between, got = np.zeros_like(given), np.zeros_like(given)
    tedsl.build(s, [a, b, c])(given, between, got)
    np.testing.assert_array_equal(between, given + 1)
    np.testing.assert_array_equal(got, (given + 1) * 2)
    s[b].compute_inline()
    assert "B_2[" not in str(tedsl.lower(s, [a, b, c], simple_mode=True))
    with pytest.raises(tedsl.TedslError, match="computed inline: nothing would write it"):
        tedsl.build(s, [a, b, c])


def test_a_later_condition_of_all_and_any_reads_only_where_the_earlier_ones_let_it():
    """te.all(i >= 1, A[i - 1] > 0) read A[-1], and was refused for it."""
    a = te.placeholder((10,), name="A")
    both = te.compute((10,), lambda i: te.if_then_else(te.all(i >= 1, a[i - 1] > 0), a[i], 0.0), name="B")
    either = te.compute((10,), lambda i: te.if_then_else(te.any(i < 1, a[i - 1] != a[i]), 1.0, 0.0), name="C")
    s = te.create_schedule([both.op, either.op])
    s[both].vectorize(both.op.axis[0])
    assert "@tir.if_then_else((i < 1), True, (" in str(tedsl.lower(s, [a, both, either], simple_mode=True))
    given = np.array([1, 1, -1, 3, 3, -2, 5, 5, 5, 0], "float32")
    got, changes = np.empty(10, "float32"), np.empty(10, "float32")
    tedsl.build(s, [a, both, either])(given, got, changes)
    np.testing.assert_array_equal(got[1:], np.where(given[:-1] > 0, given[1:], 0))
    np.testing.assert_array_equal(changes, np.r_[True, given[:-1] != given[1:]])


def test_the_order_of_conditions_matters():
    a = te.placeholder((10,), name="A")
    b = te.compute((10,), lambda i: te.if_then_else(te.all(a[i - 1] > 0, i >= 1), a[i], 0.0), name="B")
    with pytest.raises(tedsl.TedslError, match=r"B reads A\[i - 1\] outside of A"):
        tedsl.lower(te.create_schedule(b.op), [a, b])


def test_a_function_whose_parameters_are_buffers():
    """tir.PrimFunc([A, B], body) was refused; TVM makes the handles and the buffer_map."""
    n = tir.Var("n", "int32")
    a, b = tir.decl_buffer((n,), "float32", name="A"), tir.decl_buffer((n,), "float32", name="B")
    ib = tir.ir_builder.create()
    given, made = ib.buffer_ptr(a), ib.buffer_ptr(b)
    with ib.for_range(0, n, "i") as i:
        made[i] = given[i] + 1.0
    func = tir.PrimFunc([a, n, b], ib.get()).with_attr("global_symbol", "main")
    assert [p.dtype for p in func.params] == ["handle", "int32", "handle"] and func.params[1] is n
    assert list(func.buffer_map.values()) == [a, b] and func.buffers == (a, b)
    with_map = tir.PrimFunc(func.params, func.body, None, {func.params[0]: a, func.params[2]: b}, func.attrs)
    assert tedsl.ir.structural_equal(func, with_map)
    for run_it in (tedsl.build(func), lambda *args: run(func, list(args))):
        x, y = np.arange(5, dtype="float32"), np.zeros(5, "float32")
        run_it(x, 5, y)
        np.testing.assert_array_equal(y, x + 1)


def test_an_assertion_with_a_plain_string():
    """It ended in AttributeError: 'str' object has no attribute 'child_nodes'."""
    n, h = te.var("n"), te.var("h", "handle")
    a = tir.decl_buffer((n,), "int32", name="A")
    ib = tir.ir_builder.create()
    ib.emit(tir.AssertStmt(n > 3, "too short", tir.Evaluate(0)))
    ib.buffer_ptr(a)[0] = 1
    func = tir.PrimFunc([h], ib.get(), None, {h: a})
    for run_it in (tedsl.build(func), lambda x: run(func, [x])):
        x = np.zeros(4, "int32")
        run_it(x)
        assert x.tolist() == [1, 0, 0, 0]
        with pytest.raises(tedsl.TedslError, match="too short"):
            run_it(np.zeros(3, "int32"))
    with pytest.raises(tedsl.TedslError, match=r"AssertStmt takes \(.*\), and got \(GT, IntImm, Evaluate\): the mess"):
        tir.AssertStmt(n > 3, 7, tir.Evaluate(0))


@pytest.mark.parametrize("phase", [0, 1, 2, 3])
def test_a_pass_made_by_prim_func_pass_is_added_to_lower(phase):
    """It was refused: "vectorize takes a module, not a function", with a hint for other places."""
    @tir.transform.prim_func_pass(opt_level=0)
    def twos(func, mod, ctx):
        assert list(mod.items()) == [(func.name, func)] and isinstance(ctx, tedsl.transform.PassContext)
        return func.with_body(tir.stmt_functor.ir_transform(func.body, None, lambda c: tir.FloatImm(c.dtype, 2.0),
                                                            ["tir.FloatImm"]))

    @tedsl.transform.module_pass(opt_level=0, name="threes")
    def threes(mod, ctx):
        return tir.transform.Apply(lambda f: f.with_attr("note", 3))(mod)

    a = te.placeholder((8,), name="A")
    b = te.compute((8,), lambda i: a[i] + 1.0, name="B")
    s = te.create_schedule(b.op)
    for steps in ([(phase, twos), (phase, threes)], [(phase, tedsl.transform.Sequential([twos, threes]))]):
        with tedsl.transform.PassContext(config={"tir.add_lower_pass": steps}):
            lowered, built = tedsl.lower(s, [a, b], simple_mode=True), tedsl.build(s, [a, b])
        assert lowered["main"].attrs["note"] == 3 and "2f32" in str(lowered)
        x, y = np.arange(8, dtype="float32"), np.zeros(8, "float32")
        built(x, y)
        np.testing.assert_array_equal(y, x + 2)


def test_a_pass_on_modules_that_lowering_cannot_use():
    a = te.placeholder((8,), name="A")
    b = te.compute((8,), lambda i: a[i] + 1.0, name="B")
    s = te.create_schedule(b.op)
    for answer, match in ((lambda mod, ctx: None, "the pass mine returned None"),
                          (lambda mod, ctx: tedsl.IRModule(), "given the module of main, and returned one of nothing")):
        mine = tedsl.transform.module_pass(answer, opt_level=0, name="mine")
        with tedsl.transform.PassContext(config={"tir.add_lower_pass": [(1, mine)]}), \
                pytest.raises(ArgumentTypeError, match=match):
            tedsl.lower(s, [a, b])


def test_the_kind_of_a_loop_by_its_older_name():
    """for_type is what TVM 0.7 calls it: it was a TypeError from contextlib."""
    ib = tir.ir_builder.create()
    out = ib.buffer_ptr(tir.decl_buffer((8,), "int32", name="A"))
    with ib.for_range(0, 8, "i", for_type="parallel") as i:
        out[i] = i
    assert '"parallel"' in str(ib.get())
    with pytest.raises(tedsl.TedslError, match="there is no kind 'paralel'"), ib.for_range(0, 8, for_type="paralel"):
        pass


def test_a_reducer_of_tuples_given_one_value():
    """It was a bare TypeError: 'Var' object is not subscriptable."""
    a = te.placeholder((4, 4), name="A")
    k = te.reduce_axis((0, 4), "k")
    argmax = te.comm_reducer(lambda x, y: (tir.Select(x[1] >= y[1], x[0], y[0]), tir.Select(x[1] >= y[1], x[1], y[1])),
                             lambda t0, t1: (te.const(-1, t0), te.min_value(t1)), name="argmax")
    with pytest.raises(ArgumentTypeError, match=r"^argmax takes a tuple of 2 values, .*, and one value is reduced\n  hint"):
        te.compute((4,), lambda i: argmax(a[i, k], axis=k))
    with pytest.raises(ArgumentTypeError, match="argmax takes a tuple of 2 values"):
        te.compute((4,), lambda i: argmax(a[i, 0], a[i, 1]))
    absmax = te.comm_reducer(lambda x, y: te.max(x, te.abs(y)), lambda t: te.const(0, t), name="absmax")
    with pytest.raises(ArgumentTypeError, match=r"absmax takes one value, .*, and a tuple of 2 is reduced"):
        te.compute((4,), lambda i: absmax((a[i, k], a[k, i]), axis=k))
    faulty = te.comm_reducer(lambda x, y: len(x), lambda t: te.const(0, t), name="faulty")
    with pytest.raises(TypeError, match=r"has no len\(\)"):  # a mistake of the combiner itself stays what it is
        te.compute((4,), lambda i: faulty(a[i, k], axis=k))
