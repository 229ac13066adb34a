"""Reductions of tuples, of which one value is wanted: what it does not depend on is left out, and the result is the same."""

import numpy as np
import pytest

import tedsl
from tedsl import te, tir
from tedsl.arith import Analyzer


def argmax(x, y):
    first = x[1] >= y[1]
    return tir.Select(first, x[0], y[0]), tir.Select(first, x[1], y[1])


def start(index, value):
    return te.const(-1, index), te.min_value(value)


def three(x, y):
    """The second value depends on itself, the first on the third and the third on nothing else."""
    return x[0] + y[0] * x[2] * y[2], x[1] + y[1], x[2] + y[2]


@pytest.mark.parametrize("wanted, left", [(0, 2), (1, 1)])
def test_values_that_are_not_used_are_left_out(wanted, left):
    k = te.reduce_axis((0, 5), "k")
    data = te.placeholder((5,), name="data", dtype="float32")
    whole = te.comm_reducer(argmax, start, name="argmax")((k.var, data[k]), axis=k)[wanted]
    simple = Analyzer().canonical_simplify(whole)
    assert len(simple.source) == len(simple.combiner.result) == len(simple.combiner.lhs) == left
    result = te.compute((1,), lambda i: simple, name="result") if left == 1 else None
    if result is not None:
        f = tedsl.build(te.create_schedule(result.op), [data, result])
        numbers, out = np.float32([3, -1, 7, 2, 5]), np.zeros(1, "float32")
        f(numbers, out)
        assert out[0] == 7


def test_only_what_a_value_depends_on_through_others_is_kept():
    k = te.reduce_axis((0, 4), "k")
    data = te.placeholder((4,), name="data", dtype="int32")
    reducer = te.comm_reducer(three, lambda *of: tuple(te.const(0, one) for one in of), name="three")
    values = reducer((data[k], data[k] * 2, data[k] * 3), axis=k)
    kept = [len(Analyzer().simplify(value).source) for value in values]
    assert kept == [2, 1, 1]
    first = Analyzer().simplify(values[0])
    assert first.value_index == 0 and Analyzer().simplify(first) is first


def test_a_reduction_whose_condition_never_holds_is_its_start_value():
    k = te.reduce_axis((0, 4), "k")
    data = te.placeholder((4,), name="data", dtype="int32")
    nothing = te.sum(data[k], axis=k, where=k.var > 9)
    known = Analyzer()
    known.bind(k, tedsl.ir.Range(0, 4))
    assert known.simplify(nothing).value == 0
    assert known.simplify(te.sum(data[k], axis=k, where=k.var > 9, init=5)).value == 5
    assert known.simplify(te.sum(data[k], axis=k)).axis[0] is k
