"""The question whether two accesses may touch one element at different points of some axes."""

import pytest

from tedsl.ir import build
from tedsl.ir.expr import Load, Ramp, Var, pointer_var
from tedsl.ir.stmt import Store
from tedsl.ir.walk.accesses import Access
from tedsl.ir.walk.around import OUTSIDE, Loop
from tedsl.passes.facts.guard_ranges import split_linear
from tedsl.passes.races.may_meet import Axes, may_meet

S, T = pointer_var("S", "float32"), pointer_var("T", "float32")
X, Y, K, N = Var("x"), Var("y"), Var("k"), Var("n")


def loop(var, count):
    return Loop(var, build.as_expr(0), build.as_expr(count))


def write(index, memory=S):
    return Access(Store(memory, build.const(0, "float32"), build.as_expr(index)), OUTSIDE)


def read(index, memory=S):
    return Access(Load("float32", memory, build.as_expr(index)), OUTSIDE)


def threads(*, inside=(), callers=()):
    """Axes y and x of 4 * 8 threads, around loops with their counts."""
    axes = Axes([loop(Y, 4), loop(X, 8)])
    for var, count in inside:
        axes.loop(var, build.as_expr(0), build.as_expr(count))
    axes.callers.update(callers)
    return axes


@pytest.mark.parametrize("a, b, meet", [
    (write(Y * 8 + X), read(Y * 8 + X), False),
    (write(X * 4 + Y), read(X * 4 + Y), False),
    (write(Y * 8 + X), read(Y * 8 + X + 1), True),  # a neighbour's
    (write(Y * 7 + X), write(Y * 7 + X), True),  # x = 7 and the next y
    (write(X), write(X), True),  # all y
    (write(0), read(0), True),
    (read(0), read(0), False),  # nothing is written
    (write(X), read(0, T), False),  # other memory
    (write((Y * 8 + X) * 2 + 1), read((Y * 8 + X) * 2), False),
    (write(Y * 8 + X), read(X * 4 + Y), True),  # numbered in another way
    (write(Y * 8 + X + N), read(Y * 8 + X + N), False),  # a size is the same for all
    (write(build.cast("int32", Load("float32", T, X))), read(X), True),  # memory decides
])
def test_threads(a, b, meet):
    assert may_meet(a, b, distinct=threads()) is meet
    assert may_meet(b, a, distinct=threads()) is meet


def test_iterations_inside_are_at_different_places_unless_they_are_the_same():
    a, b = write(Y * 8 + X + K * 32), read(Y * 8 + X + K * 32)
    near = write(Y * 8 + X + K)
    inside = [(K, 4)]
    assert not may_meet(a, b, distinct=threads(inside=inside))  # each pair of thread and iteration has its own
    assert may_meet(near, near, distinct=threads(inside=inside))
    assert not may_meet(near, near, distinct=threads(inside=inside), same={K})


def test_accesses_of_one_iteration_do_not_count_where_they_are_carried():
    a = write(K)  # all threads, in each iteration another element
    assert may_meet(a, a, distinct=threads(inside=[(K, 4)]), same={K})
    assert not may_meet(a, a, distinct=threads(inside=[(K, 4)]), carried=K)


@pytest.mark.parametrize("factor, count, meet", [(2, 2, False), (2, 3, True), (0, 1, True), (-4, 4, False)])
def test_iterations_of_a_parallel_loop(factor, count, meet):
    iterations = Axes([loop(X, 100)])
    iterations.loop(K, build.as_expr(0), build.as_expr(count))
    a = write(X * factor + K)
    assert may_meet(a, a, distinct=iterations) is meet


def test_lanes_of_a_vector_index_are_part_of_it():
    index = Ramp(X * 4, build.as_expr(1), 4)
    vector = Access(Store(S, build.const(0, "float32x4"), index), OUTSIDE)
    axes = Axes([loop(X, 8)])
    assert not may_meet(vector, vector, distinct=axes)
    assert may_meet(vector, read(X * 4 + 4), distinct=axes)


def test_variables_of_which_nothing_is_known():
    axes = Axes([loop(X, 8)])
    axes.lets.add(N)
    assert may_meet(write(X + N), read(X + N), distinct=axes)


def test_strides_of_the_callers_are_trusted_to_tell_points_apart():
    a = write(X * N)
    assert may_meet(a, a, distinct=Axes([loop(X, 8)]))
    axes = Axes([loop(X, 8)])
    axes.callers.add(S)
    assert not may_meet(a, a, distinct=axes)


def test_one_point_meets_nobody():
    assert not may_meet(write(0), write(0), distinct=Axes([]))


def test_an_index_is_taken_apart_once(monkeypatch):
    """Each access is compared with all others: the barriers of a hundred statements took a minute."""
    taken = []
    monkeypatch.setattr("tedsl.passes.races.may_meet.split_linear", lambda *args: taken.append(args[0]) or split_linear(*args))
    of, axes = [write(X * 2 + number) for number in range(8)], threads()
    for a in of:
        for b in of:
            may_meet(a, b, distinct=axes)
    assert 0 < len(taken) <= len(of) * len(axes.axes)
