"""Reductions: what ranges of axes and conditions decide, and values of tuples that are not used; results stay the same."""

import itertools

import numpy as np
import pytest

import tedsl
from tedsl import te, tir
from tedsl.arith import Analyzer
from tedsl.ir.evaluate import evaluate


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


X = te.var("x")
SOURCES = {  # of the axes k and j, and of x
    "a quotient that is 0": lambda k, j: k // 4, "a remainder": lambda k, j: (k + 4 * j) % 4,
    "a choice": lambda k, j: te.if_then_else(k + j < 9, k + j, X), "values of both": lambda k, j: te.max(k, j - 3) * X,
}
RANGES = [((0, 4), (0, 3)), ((0, 4), (2, 3)), ((1, 2), (-2, -1)), ((0, 0), (0, 3)), ((-3, 4), (5, 5))]
REDUCERS = {"sum": te.sum, "max": te.max}


@pytest.mark.parametrize("reducer", REDUCERS)
@pytest.mark.parametrize("source", SOURCES)
def test_reductions_keep_their_values(source, reducer):
    """Over empty axes, axes of one value and others, with conditions and with start values."""
    for (of_k, of_j), where, init in itertools.product(RANGES, ["none", "always", "sometimes", "never"], [None, 7]):
        k, j = te.reduce_axis(of_k, "k"), te.reduce_axis(of_j, "j")
        conditions = {"none": None, "always": k > -9, "sometimes": k.var + j.var < X, "never": j.var > 9}
        whole = REDUCERS[reducer](SOURCES[source](k.var, j.var), [k, j], where=conditions[where], init=init)
        known = Analyzer()
        simple = known.simplify(whole)
        for x in (-1, 0, 2):
            assert evaluate(simple, {X: x}) == evaluate(whole, {X: x}), (of_k, of_j, where, init)
        if where == "never" or 0 in (of_k[1] - of_k[0], of_j[1] - of_j[0]):
            assert not isinstance(simple, tir.Reduce)
        elif isinstance(simple, tir.Reduce):
            assert len(simple.axis) == sum(end - begin > 1 for begin, end in (of_k, of_j))
            assert where != "always" or simple.condition.value == 1


@pytest.mark.parametrize("n", [0, 1, 3])
def test_the_start_value_is_not_simplified_inside_of_the_loop(n):
    """Inside of a loop over n elements n is positive; where the start value is needed it may be 0."""
    size = te.var("n")
    k = te.reduce_axis((0, size), "k")
    whole = te.sum(te.if_then_else(size > 0, k.var, 9), k, init=te.if_then_else(size > 0, 10, 20))
    simple = Analyzer().simplify(whole)
    assert evaluate(simple, {size: n}) == (20 if n == 0 else 10 + sum(range(n)))


def test_a_reduction_over_no_axis_is_its_value():
    k = te.reduce_axis((0, 10), "k")
    data = te.placeholder((10,), name="data")
    known = Analyzer()
    assert tedsl.ir.structural_equal(known.canonical_simplify(te.sum(data[3], [])), data[3])
    known.canonical_simplify(te.sum(data[k], k))  # k is an axis from here on
    start = known.canonical_simplify(te.sum(data[3], [], where=k > 12, init=1.0))
    assert tedsl.ir.structural_equal(start, tir.const(1.0, "float32"))
    result = te.compute((10,), lambda i: te.sum(data[i], [], where=i > 4, init=2.0), name="result")
    f = tedsl.build(te.create_schedule(result.op), [data, result])
    numbers, out = np.arange(10, dtype="float32"), np.zeros(10, "float32")
    f(numbers, out)
    np.testing.assert_array_equal(out, np.where(numbers > 4, numbers + 2, 2))


@pytest.mark.parametrize("low, high, combined", [(-10, -4, te.sum), (4, 10, None)])
def test_a_combiner_is_simplified(low, high, combined):
    which = te.var("which")
    either = te.comm_reducer(lambda x, y: tir.Select(which < 0, x + y, x * y),
                             lambda t: tir.Select(which < 0, te.const(0, t), te.const(1, t)))
    k = te.reduce_axis((0, 10), "k")
    data = te.placeholder((10,), name="data", dtype="int32")
    known = Analyzer()
    known.update(which, tedsl.arith.ConstIntBound(low, high), True)
    expected = (combined or te.comm_reducer(lambda x, y: x * y, lambda t: te.const(1, t)))(data[k], k)
    assert tedsl.ir.structural_equal(known.canonical_simplify(either(data[k], k)), expected)


def test_values_that_are_combined_wrap():
    k = te.reduce_axis((0, 2), "k")
    data = te.placeholder((2,), name="data", dtype="int32")
    odd = te.comm_reducer(lambda x, y: tir.Select(x + 1 > x, y, x - 1), lambda t: te.const(0, t))(data[k], k)
    assert isinstance(Analyzer().simplify(odd).combiner.result[0], tir.Select)


def test_values_with_effects_are_kept():
    k = te.reduce_axis((0, 4), "k")
    data = te.placeholder((4,), name="data", dtype="int32")
    both = te.comm_reducer(lambda x, y: (x[0] + y[0], x[1] * y[1]), lambda t, u: (te.const(0, t), te.const(1, u)))
    told = tir.call_extern("int32", "tell", data[k])
    assert len(Analyzer().simplify(both((data[k], told), k)[0]).source) == 2
    assert len(Analyzer().simplify(both((told, data[k]), k)[0]).source) == 1


def test_a_variable_of_two_reductions_has_the_range_of_each():
    k = te.var("k")
    few, many = (tir.IterVar((0, count), k, 2) for count in (3, 8))
    combiner = te.sum(te.reduce_axis((0, 1)), te.reduce_axis((0, 1))).combiner
    known = Analyzer()
    for axis, expected in [(few, 3), (many, 5), (few, 3)]:
        whole = tir.Reduce(combiner, [tir.Select(k < 5, 1, 0)], [axis], True, 0)
        assert evaluate(known.simplify(whole), {}) == expected
