"""Reductions: their values, several axes, where, init, tuples."""

import numpy as np
import pytest

from tedsl import te, tir
from tedsl.ir.evaluate import evaluate
from tedsl.ir.expr import Reduce
from tests.lang.formulas import values

DATA = np.array([[3, -1, 4], [1, -5, 9]], "float32")


def over_last(reducer, data=DATA, **named):
    A = te.placeholder(data.shape, str(data.dtype), name="A")
    k = te.reduce_axis((0, data.shape[1]), name="k")
    return values(te.compute((data.shape[0],), lambda i: reducer(A[i, k], axis=k, **named), name="B"), {A: data})


@pytest.mark.parametrize("name", ["sum", "prod", "max", "min"])
@pytest.mark.parametrize("dtype", ["float32", "float64", "int8", "int32", "uint16", "int64"])
def test_the_named_reductions(name, dtype):
    data = abs(DATA).astype(dtype) if dtype.startswith("u") else DATA.astype(dtype)
    result = over_last(getattr(te, name), data)
    assert result.tolist() == getattr(np, name)(data, axis=1, dtype=dtype).tolist() if name in ("sum", "prod") \
        else getattr(np, name)(data, axis=1).tolist()
    assert result.dtype == dtype


def test_all_and_any():
    data = np.array([[True, False], [True, True], [False, False]])
    assert over_last(te.all, data).tolist() == [False, True, False]
    assert over_last(te.any, data).tolist() == [True, True, False]


def test_axis_by_position_and_as_a_list():
    A = te.placeholder((2, 3), name="A")
    i, k = te.reduce_axis((0, 2), name="i"), te.reduce_axis((0, 3), name="k")
    for axis in ([i, k], (i, k)):
        assert values(te.compute((), lambda axis=axis: te.sum(A[i, k], axis)), {A: DATA}) == 11
    cond = te.compute((2,), lambda y: te.sum(A[y, k], k, A[y, k] > 0.0, 10.0))
    assert values(cond, {A: DATA}).tolist() == [17, 20]
    assert values(te.compute((2,), lambda y: te.any(A[y, k] > 5.0, k)), {A: DATA}).tolist() == [False, True]


def test_where_and_init():
    assert over_last(te.sum, init=100).tolist() == [106, 105]
    A = te.placeholder((2, 3), name="A")
    S = te.placeholder((2,), name="S")
    k = te.reduce_axis((0, 3), name="k")
    B = te.compute((2,), lambda i: te.max(A[i, k], axis=k, where=tir.Not(A[i, k].equal(9.0)), init=S[i]))
    assert values(B, {A: DATA, S: np.array([7, -9], "float32")}).tolist() == [7, 1]


def test_the_maximum_of_infinities_and_of_nan():
    data = np.array([[-np.inf, -np.inf], [1, np.nan]], "float32")
    low, nan = over_last(te.max, data)
    assert low == -np.inf and np.isnan(nan)
    assert over_last(te.min, -data)[0] == np.inf


def test_an_empty_axis_gives_the_identity():
    data = np.zeros((2, 0), "float32")
    assert over_last(te.sum, data).tolist() == [0, 0] and over_last(te.prod, data).tolist() == [1, 1]


def test_scalar_forms_have_no_loop():
    A = te.placeholder((4,), name="A")
    data = np.array([-1, 0, 2, 5], "float32")
    assert values(te.compute((4,), lambda i: te.max(A[i], 0.0)), {A: data}).tolist() == [0, 0, 2, 5]
    assert values(te.compute((4,), lambda i: te.min(te.max(A[i], 0.0), 2.0)), {A: data}).tolist() == [0, 0, 2, 2]
    assert te.max(3, 4, 5).value == 5 and te.min(1, 2.5).value == 1.0


def argmax(**named):
    def fcombine(x, y):
        lhs = tir.Select((x[1] >= y[1]), x[0], y[0])
        rhs = tir.Select((x[1] >= y[1]), x[1], y[1])
        return lhs, rhs

    def fidentity(t0, t1):
        return te.const(-1, t0), te.min_value(t1)

    return te.comm_reducer(fcombine, fidentity, name="argmax")


def test_argmax_of_tuples():
    m, n = te.var("m"), te.var("n")
    idx = te.placeholder((m, n), name="idx", dtype="int32")
    val = te.placeholder((m, n), name="val", dtype="int32")
    k = te.reduce_axis((0, n), "k")
    T0, T1 = te.compute((m,), lambda i: argmax()((idx[i, k], val[i, k]), axis=k), name="T")
    assert (T0.name, T1.name, T0.op.reduce_axis) == ("T.v0", "T.v1", (k,))
    bodies = T0.op.body
    assert [b.value_index for b in bodies] == [0, 1] and bodies[0].combiner is bodies[1].combiner
    assert [v.name for v in bodies[0].combiner.lhs] == ["x_0", "x_1"]
    data = DATA.astype("int32")
    given = {idx: np.array([[0, 1, 2]] * 2, "int32"), val: data}
    assert values(T0, given, {m: 2, n: 3}).tolist() == [2, 2] and values(T1, given, {m: 2, n: 3}).tolist() == [4, 9]


def test_argmax_over_the_axis_itself():
    A = te.placeholder((2, 3), name="A")
    k = te.reduce_axis((0, 3), "k")
    where, largest = te.compute((2,), lambda i: argmax()((k, A[i, k]), axis=k))
    assert where.dtype == "int32" and values(where, {A: DATA}).tolist() == [2, 2]
    assert values(largest, {A: DATA}).tolist() == [4, 9]


def test_a_reducer_of_your_own():
    xor = te.comm_reducer(lambda x, y: x ^ y, lambda t: te.const(0, t), name="xor")
    A = te.placeholder((4,), "int32", name="A")
    k = te.reduce_axis((0, 4), "k")
    X = te.compute((), lambda: xor(A[k], axis=k))
    assert isinstance(X.op.body[0], Reduce) and xor.__name__ == "xor" and [v.name for v in X.op.body[0].combiner.rhs] == ["y"]
    assert values(X, {A: np.array([1, 2, 4, 3], "int32")}) == 4
    first, second = argmax()((te.const(0), te.const(1.0)), (te.const(1), te.const(2.0)))
    assert (evaluate(first, {}), evaluate(second, {})) == (1, 2.0)


def test_a_wider_accumulator_by_cast():
    A = te.placeholder((3,), "int8", name="A")
    k = te.reduce_axis((0, 3), "k")
    B = te.compute((), lambda: te.sum(A[k].astype("int32"), axis=k))
    assert B.dtype == "int32" and values(B, {A: np.array([100, 100, 100], "int8")}) == 300
