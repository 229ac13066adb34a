"""The search for an iteration at which an index leaves its range."""

import pytest

from tedsl.ir import build
from tedsl.ir.expr import Var
from tedsl.ir.walk.around import Loop
from tedsl.ir.walk.counterexample import TRIED, find_outside, free_symbols, relevant

I, J, N = Var("i"), Var("j"), Var("n")


def loop(var, count, low=0):
    return Loop(var, build.as_expr(low), build.as_expr(count))


def search(index, extent, *scopes, low=0):
    return find_outside(build.as_expr(index), build.as_expr(low), build.as_expr(extent), scopes)


def test_iteration_is_shown_with_the_index_there():
    assert search(I + 1, 8, loop(I, 8)).beside(I + 1) == "; it is 8 at i = 7"
    assert search(I - 3, 8, loop(I, 8)).beside(I - 3) == "; it is -3 at i = 0"
    assert search(I, 8, loop(I, 8)).beside(I) == ""


def test_a_constant_index_is_not_said_twice():
    assert search(9, 8).at == () and search(9, 8).beside(build.as_expr(9)) == ""


def test_index_in_range_is_proved_by_looking_at_all_iterations():
    result = search((I * 7) % 10, 10, loop(I, 50))
    assert result.at is None and result.complete


def test_conditions_keep_iterations_away_wherever_they_stand():
    assert search(I + J, 8, loop(I, 8), build.equal(I % 2, 0), loop(J, 8), I + J < 8).at is None
    assert search(I + J, 8, loop(I, 8), build.equal(I % 2, 0), loop(J, 8), I + J < 9).at == (("i", 2), ("j", 6))


def test_range_of_a_loop_may_depend_on_another():
    assert search(J, 5, loop(I, 6), loop(J, I)).at is None
    assert search(J, 4, loop(I, 6), loop(J, I)).at == (("i", 5), ("j", 4))
    assert search(J, 4, loop(J, 0)).complete


def test_symbols_are_tried():
    assert search(I, N - 1, loop(I, N)).at == (("i", 0), ("n", 1))
    assert search(I, N, loop(I, N)).at is None
    assert free_symbols([loop(I, N)], I + J) == [J, N]


@pytest.mark.parametrize("count, complete", [(TRIED, True), (TRIED + 1, False)])
def test_domains_of_so_many_iterations_are_decided(count, complete):
    assert search(I % 64, 64, loop(I, count)).complete is complete
    assert search(J % 64, 64, loop(I, 4), loop(J, count // 4 if complete else count)).complete is complete


def test_corners_of_large_domains_are_tried_first():
    assert search(I + J, 2 * 10 ** 6 - 2, loop(I, 10 ** 6), loop(J, 10 ** 6)).at == (("i", 10 ** 6 - 1), ("j", 10 ** 6 - 1))


def test_ten_thousand_conditions():
    assert search(I, 8, loop(I, 9), *[I < 9] * 10_000).at == (("i", 8),)


def test_loops_that_do_not_matter_are_left_out():
    scopes = [loop(I, 8), loop(N, 4), loop(J, I)]
    assert relevant(scopes, J) == [scopes[0], scopes[2]]
