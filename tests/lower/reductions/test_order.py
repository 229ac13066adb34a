"""Comparisons of places in a reducer: decided where the loops visit the places in order, kept where they do not."""

import itertools

import numpy as np
import pytest

from tedsl import te
from tests.lower.end_to_end import check_both, loops
from tests.lower.programs import whole_numbers

VALUES = whole_numbers((7, 24)) % 3  # many equal elements
A = te.placeholder((7, 24), name="A")


def first_largest(start=-1, wins=lambda x, y: te.any(x[1] > y[1], te.all(x[1].equal(y[1]), x[0] < y[0]))):
    reducer = te.comm_reducer(lambda x, y: (te.select(wins(x, y), x[0], y[0]), te.select(wins(x, y), x[1], y[1])),
                              lambda i, v: (te.const(start, i), te.min_value(v)), name="argmax")
    k = te.reduce_axis((0, 24), name="k")
    place, value = te.compute((7,), lambda i: reducer((k.var, A[i, k]), axis=k), name="B")
    return te.create_schedule(place.op), place, value


def compared(s, place, value):
    """The number of comparisons of places in the loops."""
    text = loops(s, [A, place, value])
    return sum(line.count("B.v0[") - 1 for line in text.splitlines() if "let B.v0.new" in line), text


@pytest.mark.parametrize("axes", [0, 1])
def test_one_loop_after_the_other_needs_no_comparison(axes):
    s, place, value = first_largest()
    if axes:
        s[place].split(s[place].op.reduce_axis[0], factor=6)
    count, text = compared(s, place, value)
    assert count == 0, text
    check_both(s, [A, place, value], {A: VALUES})


def test_loops_out_of_order_keep_it():
    s, place, value = first_largest()
    outer, inner = s[place].split(s[place].op.reduce_axis[0], factor=6)
    s[place].reorder(inner, outer)
    assert compared(s, place, value)[0] > 0
    check_both(s, [A, place, value], {A: VALUES})


def test_a_start_value_among_the_places_keeps_it():
    s, place, value = first_largest(start=2**31 - 1)
    assert compared(s, place, value)[0] > 0
    check_both(s, [A, place, value], {A: VALUES})


@pytest.mark.parametrize("factor", [4, 5])
def test_partial_results_are_in_order_and_their_combination_is_not(factor):
    s, place, value = first_largest()
    _, inner = s[place].split(s[place].op.reduce_axis[0], factor=factor)
    partial = s.rfactor(place, inner)[0]
    place, value = (s[place].op.output(at) for at in range(2))
    s[partial].reorder(*s[partial].op.axis[1:], *s[partial].op.reduce_axis, s[partial].op.axis[0])
    s[partial].vectorize(s[partial].op.axis[0])
    text = loops(s, [A, place, value])
    updates = [line for line in text.splitlines() if "let " in line and ".v0.new" in line]
    assert len(updates) == 2
    assert updates[0].count("rf.v0[") == 1, text
    assert updates[1].count("repl.v0[") == 2, text
    check_both(s, [A, place, value], {A: VALUES})


@pytest.mark.parametrize("order", list(itertools.permutations(range(4))), ids=str)
def test_every_order_of_loops(order):
    s, place, value = first_largest()
    i, k = s[place].op.axis[0], s[place].op.reduce_axis[0]
    parts = [*s[place].split(i, factor=3), *s[place].split(k, factor=7)]
    s[place].reorder(*[parts[at] for at in order])
    check_both(s, [A, place, value], {A: VALUES})


@pytest.mark.parametrize("operator", ["<", "<=", ">", ">=", "==", "!="])
def test_each_comparison_with_either_side_first(operator):
    def compare(a, b):
        return {"<": a < b, "<=": a <= b, ">": a > b, ">=": a >= b, "==": a.equal(b), "!=": te.any(a < b, a > b)}[operator]

    for turned in (False, True):
        def wins(x, y, turned=turned):
            return te.any(x[1] > y[1], te.all(x[1].equal(y[1]), compare(y[0], x[0]) if turned else compare(x[0], y[0])))
        s, place, value = first_largest(wins=wins)
        assert compared(s, place, value)[0] == 0
        check_both(s, [A, place, value], {A: VALUES})


def test_places_that_are_summed_are_not_in_order():
    reducer = te.comm_reducer(lambda x, y: (x[0] + y[0], te.select(x[0] < y[0], x[1], y[1])),
                              lambda i, v: (te.const(-1, i), te.min_value(v)), name="odd")
    k = te.reduce_axis((0, 24), name="k")
    place, value = te.compute((7,), lambda i: reducer((k.var, A[i, k]), axis=k), name="B")
    s = te.create_schedule(place.op)
    assert "B.v0[i] < k" in loops(s, [A, place, value])
    check_both(s, [A, place, value], {A: VALUES})


def test_places_read_from_memory_keep_it():
    order = te.placeholder((24,), "int32", name="P")
    reducer = te.comm_reducer(lambda x, y: (te.select(x[0] > y[0], x[0], y[0]), te.max(x[1], y[1])),
                              lambda i, v: (te.const(-1, i), te.min_value(v)), name="latest")
    k = te.reduce_axis((0, 24), name="k")
    place, value = te.compute((7,), lambda i: reducer((order[k], A[i, k]), axis=k), name="B")
    s = te.create_schedule(place.op)
    check_both(s, [A, order, place, value], {A: VALUES, order: np.random.default_rng(0).permutation(24).astype("int32")})
