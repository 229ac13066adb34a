"""No-ops, unsafe selects, invariant conditions, assertions, aliasing, narrow indices."""

import numpy as np

from tedsl.ir import build
from tedsl.ir.evaluate import run
from tedsl.ir.expr import Call, SizeVar, StringImm, Var
from tedsl.ir.ops import Op
from tedsl.ir.stmt import AssertStmt, AttrStmt, Evaluate, For, LetStmt, SeqStmt, no_op
from tedsl.passes.allow_aliasing import allow_aliasing
from tedsl.passes.loops.hoist_conditions import hoist_conditions
from tedsl.passes.narrow_dtypes import narrow_dtypes
from tedsl.passes.remove_asserts import remove_asserts
from tedsl.passes.remove_no_ops import remove_no_ops
from tedsl.passes.rewrite_unsafe_selects import rewrite_unsafe_selects
from tests.passes.programs import VECTORIZED, Function, allocate, body_text, check, imm, loop, when

I, J = Var("i"), Var("j")


def test_empty_nests_and_unused_memory_go():
    f = Function(A=(8,), B=(8,))
    T, v = Var("T", f.data("A").type_annotation), Var("v")
    nothing = loop(I, 8, when(build.less(I, 3), LetStmt(v, I, AttrStmt(StringImm("s"), "k", imm(1), no_op()))))
    before = f.func(SeqStmt((nothing, allocate(T, 8, f.store("A", imm(0), 1)), no_op())))
    assert body_text(check(remove_no_ops, before)) == "A_1[0] = 1f32"


def test_an_empty_side_turns_the_condition(golden):
    f = Function(A=(8,), B=(8,))
    before = f.func(loop(I, 8, when(build.less(I, 3), no_op(), f.store("A", I, 1))))
    check(remove_no_ops, before, golden=golden)


def test_calls_with_effects_stay(golden):
    f = Function(A=(8,), B=(8,))
    call = Call("int32", Op.get("tir.call_extern"), (StringImm("next"),))
    before = f.func(SeqStmt((loop(I, call, no_op()), Evaluate(call))))
    golden.sections(before=body_text(before), after=body_text(remove_no_ops(before)))


def test_clean_code_is_the_same_object():
    f = Function(A=(8,), B=(8,))
    before = f.func(loop(I, 8, when(build.less(I, 3), f.store("A", I, f.load("B", I)))))
    assert remove_no_ops(before) is before
    assert hoist_conditions(before) is before
    assert rewrite_unsafe_selects(before) is before
    assert narrow_dtypes(before) is before
    assert remove_asserts(before) is before


def test_a_select_that_guards_a_load_becomes_lazy(golden):
    f = Function(A=(8,), B=(8,))
    value = build.select(build.greater_equal(I, 1), f.load("A", build.sub(I, 1)), imm(0.0, "float32"))
    before = f.func(loop(I, 8, f.store("B", I, value)))
    after = rewrite_unsafe_selects(before)
    golden.sections(before=body_text(before), after=body_text(after))
    a, b = np.arange(8, dtype="float32"), np.zeros(8, "float32")
    run(after, [a, b])
    np.testing.assert_array_equal(b, [0, *a[:-1]])


def test_selects_that_are_safe_stay():
    f = Function(A=(8,), B=(8,))
    a = f.load("A", I)
    in_range = build.select(build.less(I, 3), f.load("B", I), imm(0.0, "float32"))
    relu = build.select(build.greater(a, imm(0.0, "float32")), a, imm(0.0, "float32"))
    n = SizeVar("n")
    g = Function(A=(n,), B=(n,))
    b = g.load("A", I)
    symbolic = build.select(build.greater(b, imm(0.0, "float32")), b, imm(0.0, "float32"))
    for before in (f.func(loop(I, 8, f.store("B", I, in_range))), f.func(loop(I, 8, f.store("B", I, relu))),
                   g.func(loop(I, n, g.store("B", I, symbolic)))):
        assert rewrite_unsafe_selects(before) is before


def test_an_invariant_condition_climbs_out_of_its_loops():
    f = Function(A=(64,), B=(64,))
    x = build.add(build.mul(I, 8), J)
    before = f.func(loop(I, 8, loop(J, 8, when(build.less(I, 5), f.store("B", x, f.load("A", x))))))
    assert body_text(check(hoist_conditions, before)).splitlines()[1].strip() == "if (i < 5) {"


def test_parts_climb_alone_and_both_sides_climb_together(golden):
    n = SizeVar("n")
    f = Function(A=(8,), B=(8,))
    both = build.logical_and(build.less(I, n), build.greater(n, 3))
    before = f.func(loop(I, 8, when(both, f.store("B", I, f.load("A", I)))), n)
    for value in (2, 5):
        after = check(hoist_conditions, before, scalars=(value,))
    sides = f.func(loop(I, 8, when(build.greater(n, 3), f.store("B", I, 1), f.store("B", I, 2))), n)
    for value in (2, 5):
        together = check(hoist_conditions, sides, scalars=(value,))
    golden.sections(before=body_text(before), after=body_text(after), sides=body_text(sides), together=body_text(together))


def test_a_condition_on_memory_stays():
    f = Function(A=(8,), B=(8,))
    before = f.func(loop(I, 8, when(build.greater(f.load("A", imm(0)), imm(0.0, "float32")), f.store("A", I, -1))))
    assert hoist_conditions(before) is before


def test_assertions_can_be_removed(golden):
    n = SizeVar("n")
    f = Function(A=(8,), B=(8,))
    before = f.func(AssertStmt(build.greater(n, 3), StringImm("small"), loop(I, 8, f.store("B", I, 1))), n)
    check(remove_asserts, before, scalars=(4,), golden=golden)


def test_aliasing_can_be_allowed():
    f = Function(A=(8,), B=(8,))
    before = f.func(loop(I, 8, f.store("B", I, 1)))
    after = allow_aliasing(before)
    assert "tir.noalias" not in after.attrs and "tir.noalias" in before.attrs and allow_aliasing(after) is after


def test_wide_indices_that_fit_become_narrow(golden):
    f = Function(A=(64,), B=(64,))
    i = Var("i", "int64")
    x = build.add(build.mul(i, 4), 3)
    value = build.cast("float32", build.mul(i, i))
    before = f.func(loop(i, imm(16, "int64"), f.store("B", x, build.add(f.load("A", x), value))))
    check(narrow_dtypes, before, golden=golden)


def test_wide_indices_that_may_not_fit_stay_wide():
    n = Var("n", "int64")
    f = Function(A=(8,), B=(8,))
    i = Var("i", "int64")
    before = f.func(loop(i, n, when(build.less(i, 8), f.store("B", i, f.load("A", i)))), n)
    assert narrow_dtypes(before) is before
    big = f.func(loop(i, imm(1 << 33, "int64"), when(build.less(i, 0), f.store("B", i, 1))))
    assert narrow_dtypes(big) is big


def test_the_kind_of_a_loop_is_kept():
    f = Function(A=(64,), B=(64,))
    i = Var("i", "int64")
    after = narrow_dtypes(f.func(loop(i, imm(16, "int64"), f.store("B", i, f.load("A", i)), VECTORIZED)))
    assert isinstance(after.body, For) and after.body.kind == VECTORIZED
