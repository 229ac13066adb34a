"""What notebooks show of tensors, operations, arrays, timings, stages, journals and explanations."""

import copy
import pickle

import numpy as np
import pytest

import tedsl
from tedsl import te
from tedsl.runtime.timing import TimingResult
from tests.display.structure import checked


def shown(value):
    """The texts of a value's HTML, which must be whole and fetch nothing."""
    return "\n".join(text for _, text in checked(value._repr_html_()).texts)


A = te.placeholder((te.var("n"), 8), name="A")
k = te.reduce_axis((0, 8), "k")
B = te.compute((A.shape[0],), lambda i: te.sum(A[i, k], axis=k), name="B<b>", tag="rows")
C = te.compute((16,), lambda i: i * 2, name="C")
two = te.compute((4,), lambda i: (A[i, 0], A[i, 1] * 2.0), name="two")


def scheduled():
    s = te.create_schedule(C.op)
    _, inner = s[C].split(C.op.axis[0], 4)
    s[C].vectorize(inner)
    return s


@pytest.mark.parametrize("value, facts", [
    (A, ["Tensor A", "(n, 8)", "float32", "PlaceholderOp"]),
    (B, ["Tensor B<b>", "ComputeOp", "i in 0..n", "k in 0..8", "sum", "rows", "test_values.py:22"]),
    (B.op, ["Operation B<b>", "i in 0..n", "A[i, k]"]),
    (two[1], ["Tensor two.v1", "output 1", "A[i, 1]"]),
    (te.scan(te.compute((1, 4), lambda _, i: 0.0), te.compute((3, 4), lambda t, i: two[0][i]), te.placeholder((3, 4))).op,
     ["Operation scan", "ScanOp"]),
    (C.op.axis[0], ["Axis i", "0 to 16, exclusive", "int32", "data par"]),
    (te.thread_axis((0, 32), "threadIdx.x"), ["Axis threadIdx.x", "0 to 32, exclusive", "thread index"]),
    (tedsl.nd.array(np.eye(2)), ["NDArray", "(2, 2)", "float64", "cpu(0)", "[[1. 0.]"]),
    (scheduled().journal, ["Journal of 2 directives", "vectorize", "(i_inner)", "# test_values.py:"]),
    (scheduled()[C], ["Stage C", "for i.inner in 0..4 (vectorized)", "2 directives on it", "split"]),
    (scheduled().explain(), ["schedule(C), explained", "memory: the caller's array"]),
    (TimingResult((0.002, 0.004)), ["Seconds per call", "mean", "3 ms", "repetitions", "2"]),
], ids=lambda value: type(value).__name__)
def test_a_value_shows_what_is_known_of_it(value, facts):
    text = shown(value)
    assert [fact for fact in facts if fact not in text] == []


def test_a_long_array_is_shown_in_part():
    assert len(shown(tedsl.nd.array(np.zeros((1000, 1000))))) < 5000


def test_an_explanation_shows_itself():
    s = scheduled()
    said = s.explain()
    assert repr(said) == str(said) and isinstance(said, str) and said.startswith("schedule of C\n")
    assert copy.copy(said) == pickle.loads(pickle.dumps(said)) == said
    assert pickle.loads(pickle.dumps(said)).heading == "schedule(C), explained"
