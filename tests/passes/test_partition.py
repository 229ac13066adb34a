"""Loops are split where their guards cease to hold."""

import pytest

from tedsl.ir import build
from tedsl.ir.expr import SizeVar, Var
from tedsl.ir.stmt import IfThenElse
from tedsl.ir.walk.visitor import post_order
from tedsl.passes.loops.partition_loops import partition_loops
from tedsl.passes.loops.vectorize_loops import vectorize_loops
from tests.passes.programs import PARALLEL, VECTORIZED, Function, body_text, check, imm, loop, seq, when

I, J, K = Var("i"), Var("j"), Var("k")
X = build.add(build.mul(I, 8), J)


def guarded(f, n, index=X):
    return when(build.likely(build.less(index, n)), f.store("B", index, f.load("A", index)))


def test_the_main_part_and_the_rest_have_no_guards(golden):
    f = Function(A=(50,), B=(50,))
    before = f.func(loop(I, 7, loop(J, 8, guarded(f, 50))))
    made = check(partition_loops, before, constant_loops=True, golden=golden)
    assert not any(isinstance(node, IfThenElse) for node in post_order(made.body))


@pytest.mark.parametrize("first, end", [(-2, 2), (-3, 7), (3, 9)])
def test_loops_that_do_not_begin_at_zero(first, end):
    f = Function(A=(16,), B=(16,))
    condition = build.likely(build.greater_equal(J * 4 + 5, 4))
    sides = when(condition, f.store("B", J + 3, f.load("A", J + 4)), f.store("B", J + 3, 2))
    made = check(partition_loops, f.func(loop(J, end - first, sides, low=first)), constant_loops=True)
    assert not any(isinstance(node, IfThenElse) for node in post_order(made.body))


def test_what_holds_in_a_loop_alone_does_not_make_a_condition_linear():
    """Of j from 3 to 4 the condition has two values, which says nothing of the value at 0."""
    f = Function(A=(16,), B=(16,))
    guard = build.likely(build.less(build.floormod(-1 - J, 4), 3))
    before = f.func(loop(J, 2, when(guard, f.store("B", J, f.load("A", J)), f.store("B", J, 2)), low=3))
    check(partition_loops, before, constant_loops=True)


def test_loops_of_constant_extent_are_left_alone_unless_asked():
    f = Function(A=(50,), B=(50,))
    before = f.func(loop(I, 7, loop(J, 8, guarded(f, 50))))
    assert partition_loops(before) is before


def test_loops_of_one_iteration_can_be_kept(golden):
    f = Function(A=(50,), B=(50,))
    before = f.func(loop(I, 7, loop(J, 8, guarded(f, 50))))
    check(partition_loops, before, constant_loops=True, keep_single=True, golden=golden)


def test_symbolic_loops(golden):
    n = SizeVar("n")
    f = Function(A=(n,), B=(n,))
    before = f.func(loop(I, build.floordiv(build.add(n, 7), 8), loop(J, 8, guarded(f, n))))
    for size in (1, 7, 8, 9, 64):
        check(partition_loops, before, shapes={"A": (size,), "B": (size,)}, golden=golden)


def test_lower_and_upper_ends(golden):
    f = Function(A=(64,), B=(64,))
    x = build.sub(X, 3)
    inside = build.logical_and(build.likely(build.greater_equal(x, 0)), build.likely(build.less(x, 50)))
    before = f.func(loop(I, 7, loop(J, 8, when(inside, f.store("B", x, f.load("A", x))))))
    check(partition_loops, before, constant_loops=True, golden=golden)


def test_guards_of_two_loops_leave_one_clean_nest(golden):
    f = Function(A=(20 * 20,), B=(20 * 20,))
    a, b, c, d = Var("yo"), Var("xo"), Var("yi"), Var("xi")
    y, x = build.add(build.mul(a, 8), c), build.add(build.mul(b, 8), d)
    index = build.add(build.mul(y, 20), x)
    body = when(build.likely(build.less(y, 20)), when(build.likely(build.less(x, 20)), f.store("B", index, f.load("A", index))))
    before = f.func(loop(a, 3, loop(b, 3, loop(c, 8, loop(d, 8, body)))))
    check(partition_loops, before, constant_loops=True, golden=golden)


def test_loops_in_the_rest_of_a_parallel_loop_are_split_as_well():
    f = Function(A=(50, 37), B=(50, 37))
    outer, inner = Var("jo"), Var("ji")
    row, column = X, build.add(build.mul(outer, 16), inner)
    inside = build.logical_and(build.likely(build.less(row, 50)), build.likely(build.less(column, 37)))
    index = build.add(build.mul(row, 37), column)
    body = when(inside, f.store("B", index, f.load("A", index)))
    before = f.func(loop(outer, 3, loop(I, 7, loop(J, 8, loop(inner, 16, body))), PARALLEL))
    text = body_text(check(lambda func: partition_loops(func, constant_loops=True, masks=True), before))
    whole, rest = text.split(" else ")
    for part in (whole, rest):
        assert "(i: int32, 0, 6)" in part or "(i_1: int32, 0, 6)" in part or "(i_2: int32, 0, 6)" in part
        assert part.count("< 50") == 1  # of the last rows alone


def test_a_parallel_loop_branches_inside(golden):
    f = Function(A=(50,), B=(50,))
    before = f.func(loop(I, 7, loop(J, 8, guarded(f, 50)), PARALLEL))
    check(partition_loops, before, constant_loops=True, golden=golden)


def test_the_last_iteration_of_a_parallel_loop_has_main_parts_too():
    x = build.add(build.mul(I, 24), build.add(build.mul(K, 8), J))
    inside = build.logical_and(build.likely(build.less(build.add(build.mul(K, 8), J), 24)), build.likely(build.less(x, 69)))
    f = Function(A=(72,), B=(72,))
    before = f.func(loop(I, 3, loop(K, 3, loop(J, 8, when(inside, f.store("B", x, f.load("A", x))))), PARALLEL))
    after = body_text(check(partition_loops, before, constant_loops=True, masks=True))
    rest = after.split("else")[1]
    assert "for (k_1: int32, 0, 2)" in rest and "likely" not in rest.split("partition_tail")[0], after


def test_masks_are_guards_if_asked(golden):
    f = Function(A=(50,), B=(50,))
    before = vectorize_loops(f.func(loop(I, 7, loop(J, 8, guarded(f, 50), VECTORIZED))))
    assert partition_loops(before, constant_loops=True) is before
    check(partition_loops, before, constant_loops=True, masks=True, golden=golden)


def test_a_guard_that_never_holds_for_a_whole_iteration_stays():
    f = Function(A=(64,), B=(64,))
    before = f.func(loop(I, 7, loop(J, 8, guarded(f, 5, build.add(J, I)))))
    check(partition_loops, before, constant_loops=True)


def test_conditions_of_users_are_no_guards():
    f = Function(A=(50,), B=(50,))
    before = f.func(loop(I, 7, loop(J, 8, when(build.less(X, 50), f.store("B", X, f.load("A", X))))))
    assert partition_loops(before, constant_loops=True) is before


def test_code_growth_is_bounded():
    f = Function(A=(50,), B=(50,))
    many = seq(*(guarded(f, 50) for _ in range(4001)))
    before = f.func(loop(I, 7, loop(J, 8, many)))
    assert partition_loops(before, constant_loops=True).body.body.kind == before.body.body.kind
    assert body_text(partition_loops(f.func(loop(I, 7, loop(J, 1, many))), constant_loops=True)).count("for (i") == 1


def test_unrolled_rows_are_guarded_one_by_one(golden):
    f = Function(A=(50,), B=(50,))
    rows = seq(*(guarded(f, 50, build.add(build.mul(I, 4), r)) for r in range(4)))
    check(partition_loops, f.func(loop(I, 13, rows)), constant_loops=True, golden=golden)


def test_the_border_of_a_padded_image_is_taken_off(golden):
    f = Function(A=(64,), B=(100,))
    inside = build.logical_and(build.logical_and(build.greater_equal(I, 1), build.less(I, 9)),
                               build.logical_and(build.greater_equal(J, 1), build.less(J, 9)))
    source = build.add(build.mul(build.sub(I, 1), 8), build.sub(J, 1))
    value = build.if_then_else(inside, f.load("A", source), imm(0.0, "float32"))
    before = f.func(loop(I, 10, loop(J, 10, f.store("B", build.add(build.mul(I, 10), J), value))))
    assert partition_loops(before, constant_loops=True) is before
    check(partition_loops, before, constant_loops=True, masks=True, golden=golden)


def test_a_condition_of_a_user_that_holds_for_few_stays():
    f = Function(A=(64,), B=(100,))
    value = build.if_then_else(build.less(I, 10), f.load("A", I), imm(0.0, "float32"))
    before = f.func(loop(I, 64, f.store("B", I, value)))
    assert partition_loops(before, constant_loops=True, masks=True) is before


@pytest.mark.parametrize("others, split", [(1, True), (3, False)])
def test_what_is_beside_a_condition_of_a_user_is_not_copied_for_it(others, split):
    """A copy with a border in a parallel loop: where the larger part of the body is beside it, its own loop alone is split."""
    f = Function(A=(80,), B=(80,))
    at = build.add(build.mul(I, 8), J)
    inside = build.logical_and(build.greater_equal(at, 1), build.less(at, 79))
    copy = loop(J, 8, f.store("B", at, build.if_then_else(inside, f.load("A", at), imm(0.0, "float32"))))
    rest = [loop(Var(f"k{n}"), 8, f.store("A", build.mul(I, 8), imm(float(n), "float32"))) for n in range(others)]
    before = f.func(loop(I, 10, seq(copy, *rest), PARALLEL))
    text = body_text(check(lambda func: partition_loops(func, constant_loops=True, masks=True), before))
    assert (" else " in text) is split, text


@pytest.mark.parametrize("size", [0, 1, 5, 20])
def test_a_loop_that_ends_before_its_main_part(size):
    n = SizeVar("n")
    f = Function(A=(n,), B=(n,))
    inside = build.likely(build.greater_equal(I, 3))
    before = f.func(loop(I, n, when(inside, f.store("B", I, f.load("A", build.sub(I, 3))))))
    check(partition_loops, before, shapes={"A": (size,), "B": (size,)})


def test_tails_are_not_split_again():
    n = SizeVar("n")
    f = Function(A=(n,), B=(n,))
    once = partition_loops(f.func(loop(I, build.floordiv(build.add(n, 7), 8), loop(J, 8, guarded(f, n)))))
    assert partition_loops(once, constant_loops=True) is once
