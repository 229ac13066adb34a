"""detect_clip_bound: the values of variables under a conjunction, as TVM's tests ask for it, and by trying all values."""

import itertools

from arith_reference import value

from tedsl import te, tir
from tedsl.arith import detect_clip_bound
from tedsl.testing import assert_prim_expr_equal

A, B, C = te.var("a"), te.var("b"), te.var("c")


def test_ends_of_one_and_of_two():
    low, high = detect_clip_bound(tir.all(A * 1 < B * 6, A - 1 > 0), [A])
    assert_prim_expr_equal(high, B * 6 - 1)
    assert low.value == 2
    found = detect_clip_bound(tir.all(A + 10 * C <= 20, B - 1 > 0), [A, B])
    assert_prim_expr_equal(found[1], 20 - 10 * C)
    assert found[2].value == 2 and found[0] is None and found[3] is None
    assert detect_clip_bound(A * 2 < 7, [A])[1].value == 3


def test_what_is_no_end_gives_nothing():
    wrong = (tir.all(A < B * 6, A > 1), A * 2 < C, A * A < 7, tir.any(A < 3, B < 4), C < 3, A < A * C, te.const(True))
    for condition in wrong:
        assert detect_clip_bound(condition, [A, B]) == []


def test_the_ends_hold_exactly_what_the_condition_holds():
    condition = tir.all(3 - A < C, A <= 2 * C, A < 5, A >= C - 4, B.equal(C - 1))
    low, high, least, most = detect_clip_bound(condition, [A, B])
    for a, b, c in itertools.product(range(-6, 8), range(-5, 5), range(-4, 6)):
        env = {A: a, B: b, C: c}
        inside = value(low, env) <= a <= value(high, env) and value(least, env) <= b <= value(most, env)
        assert inside == bool(value(condition, env))
