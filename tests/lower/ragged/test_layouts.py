"""Conditions, start values and ranges that are read from tensors, in the padding of a layout."""

import numpy as np
import pytest

from tedsl import te
from tests.lower.ragged.results import results

FORMS = ["where", "init", "ragged", "begin", "all", "pairs"]


def padded(form, n):
    """T[i], whose condition, start value or range is read from B[i]; what it is for given arrays."""
    A, B = te.placeholder((n, 9), "int32", name="A"), te.placeholder((n,), "int32", name="B")
    pair = te.comm_reducer(lambda x, y: (x[0] + y[0], te.max(x[1], y[1])),
                           lambda t, u: (te.const(0, t), te.const(-99, u)), name="pair")

    def element(i):
        low, high = te.max(te.min(B[i] - 2, 9), 0), te.max(te.min(B[i], 9), 0)
        k = te.reduce_axis((low if form == "begin" else 0, high if form in ("ragged", "all", "begin") else 9), name="k")
        where = {"where": B[i] > -3, "all": B[i] > 1, "pairs": B[i] > k}.get(form)
        if form == "pairs":
            return pair((A[i, k], A[i, k] * B[i]), axis=k, where=where, init=(B[i], B[i] - 1))
        return te.sum(A[i, k], axis=k, where=where, init=B[i] if form in ("init", "all") else None)
    made = te.compute((n,), element, name="T")
    made = made[0] if form == "pairs" else made
    return A, B, made


def padded_value(form, a, b):
    values = []
    for row, x in zip(a, (int(one) for one in b)):
        high, low = max(min(x, 9), 0), max(min(x - 2, 9), 0)
        values.append({"where": row.sum() if x > -3 else 0, "init": x + row.sum(), "ragged": row[:high].sum(),
                       "begin": row[low:high].sum(), "all": x + (row[:high].sum() if x > 1 else 0),
                       "pairs": x + row[:max(x, 0)].sum()}[form])
    return np.array(values)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("symbolic", [False, True])
@pytest.mark.parametrize("directive", ["cache_write", "transform_layout", "both"])
def test_conditions_starts_and_ranges_in_the_padding_of_a_layout(form, symbolic, directive):
    """Only what is reduced was kept inside of the layout: the rest was refused as reads outside of B."""
    A, B, T = padded(form, te.var("n") if symbolic else 7)
    U = te.compute(T.shape, lambda i: T[i] + 1, name="U")
    s = te.create_schedule(U.op)
    if directive != "transform_layout":
        s[T].split(T.op.axis[0], 5)
        s.cache_write([T.op.output(v) for v in range(T.op.num_outputs)], "local")
    if directive != "cache_write":
        s[T].transform_layout(lambda i: [i // 3, i % 3])
    a, b = np.arange(63, dtype="int32").reshape(7, 9), np.array([-5, 1, 2, -3, 9, 7, 0], "int32")
    for got in results(s, [A, B, U], (a, b), (7,)):
        np.testing.assert_array_equal(got, padded_value(form, a, b) + 1)


def test_a_condition_that_reads_nothing_stays_a_conjunction():
    A = te.placeholder((7, 9), "int32", name="A")
    k = te.reduce_axis((0, 9), name="k")
    T = te.compute((7,), lambda i: te.sum(A[i, k], axis=k, where=k.var > i), name="T")
    s = te.create_schedule(T.op)
    s[T].transform_layout(lambda i: [i // 3, i % 3])
    assert "if_then_else" not in str(s[T].op.body)
