"""Expressions are simplified where they stand; what is decided goes."""

from tedsl.ir import build
from tedsl.ir.expr import SizeVar, StringImm, Var
from tedsl.ir.stmt import AssertStmt, LetStmt, seq
from tedsl.passes.simplify import simplify, simplify_changed
from tests.passes.programs import Function, body_text, check, imm, loop, when

I, J = Var("i"), Var("j")


def test_a_guard_that_the_loops_imply_goes():
    f = Function(A=(32,))
    x = build.add(build.mul(I, 8), J)
    before = f.func(loop(I, 4, loop(J, 8, when(build.likely(build.less(x, 32)), f.store("A", x, 1)))))
    assert body_text(check(simplify, before)) == (
        "for (i: int32, 0, 4) {\n  for (j: int32, 0, 8) {\n    A_1[((i*8) + j)] = 1f32\n  }\n}")


def test_indices_are_simplified_with_the_ranges_of_the_loops(golden):
    f = Function(A=(4,))
    x = build.floordiv(build.add(build.mul(I, 8), J), 8)
    before = f.func(loop(I, 4, loop(J, 8, f.store("A", x, 1))))
    check(simplify, before, golden=golden)


def test_a_guard_that_is_needed_stays():
    f = Function(A=(30,))
    x = build.add(build.mul(I, 8), J)
    before = f.func(loop(I, 4, loop(J, 8, when(build.likely(build.less(x, 30)), f.store("A", x, 1)))))
    assert simplify(before) is before


def test_one_part_of_a_conjunction_goes(golden):
    f = Function(A=(30,))
    both = build.logical_and(build.likely(build.less(I, 30)), build.likely(build.greater_equal(I, 0)))
    before = f.func(loop(I, 32, when(both, f.store("A", I, 1))))
    check(simplify, before, golden=golden)


def test_a_refuted_condition_takes_its_branch_along():
    f = Function(A=(8,))
    before = f.func(loop(I, 8, when(build.greater(I, 9), f.store("A", I, 1), f.store("A", I, 2))))
    assert body_text(check(simplify, before)) == "for (i: int32, 0, 8) {\n  A_1[i] = 2f32\n}"


def test_what_a_condition_says_is_known_inside(golden):
    f = Function(A=(8,))
    inner = when(build.less(I, 6), f.store("A", I, 1), f.store("A", I, 2))
    before = f.func(loop(I, 8, when(build.less(I, 4), inner, f.store("A", I, 3))))
    check(simplify, before, golden=golden)


def test_a_let_of_an_index_is_written_out(golden):
    f = Function(A=(32,))
    v = Var("v")
    before = f.func(loop(I, 4, loop(J, 8, LetStmt(v, build.add(build.mul(I, 8), J), f.store("A", v, 1)))))
    check(simplify, before, golden=golden)


def test_a_let_that_reads_memory_stays():
    f = Function(A=(32,), B=(32,))
    v = Var("v", "float32")
    before = f.func(LetStmt(v, f.load("A", imm(0)), seq(f.store("A", imm(0), 2), f.store("B", imm(0), v))))
    assert simplify(before) is before


def test_a_loop_without_iterations_goes():
    f = Function(A=(8,))
    before = f.func(seq(loop(I, 0, f.store("A", I, 1)), f.store("A", imm(1), 2)))
    assert body_text(check(simplify, before)) == "A_1[1] = 2f32"


def test_an_assertion_that_holds_goes_and_another_teaches(golden):
    n = SizeVar("n")
    f = Function(A=(8,))
    body = loop(I, 8, when(build.less(I, n), f.store("A", I, 1)))
    before = f.func(AssertStmt(build.greater_equal(n, 8), StringImm("n is too small"), body), n)
    after = check(simplify, before, scalars=(9,))
    sure = f.func(AssertStmt(build.greater_equal(n, 0), StringImm("never"), loop(I, 8, f.store("A", I, 1))), n)
    golden.sections(before=body_text(before), after=body_text(after), certain=body_text(sure), gone=body_text(simplify(sure)))


def test_floats_are_not_reordered():
    f = Function(A=(8,), B=(8,))
    a, b = f.load("A", I), f.load("B", I)
    value = build.add(build.sub(build.add(a, b), a), imm(0.5, "float32"))
    before = f.func(loop(I, 8, f.store("B", I, value)))
    assert simplify(before) is before


def test_after_a_change_what_stands_where_it_stood_is_left():
    f = Function(A=(32,))
    x = build.add(build.mul(I, 1), J)
    kept, store = loop(I, 4, f.store("A", build.add(I, build.mul(I, 3)), 1)), f.store("A", build.floormod(J, 8), 1)
    before = f.func(seq(kept, loop(J, 16, store), loop(J, 16, when(build.less(J, 12), f.store("A", x, 1)))))
    shorter = seq(kept, loop(J, 8, store), loop(J, 16, f.store("A", build.add(J, J), 1)))
    first, second, third = simplify_changed(f.func(shorter), before).body.seq
    assert first is kept and third.body.index.a is J  # the last is new in a loop that is not
    assert second.body.index is J  # the loop is another one now
