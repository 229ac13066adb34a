"""te.create_prim_func: a formula as a function, without a schedule."""

import numpy as np
import pytest

import tedsl
from tedsl import te


def row_sum():
    A = te.placeholder((5, 7), name="A")
    k = te.reduce_axis((0, 7), "k")
    return A, te.compute((5,), lambda i: te.sum(A[i, k], axis=k), name="B")


def test_the_function_builds_and_runs():
    A, B = row_sum()
    a, b = np.random.default_rng(0).random((5, 7), dtype="float32"), np.empty(5, "float32")
    tedsl.build(te.create_prim_func([A, B]))(a, b)
    np.testing.assert_allclose(b, a.sum(axis=1), rtol=1e-6)


def test_something_must_be_computed():
    A, _ = row_sum()
    with pytest.raises(tedsl.TedslError, match=r"none of the tensors is computed"):
        te.create_prim_func([A])


def test_only_tensors_are_taken():
    A, B = row_sum()
    with pytest.raises(TypeError, match=r"takes tensors, not (.|\n)*write te.create_prim_func"):
        te.create_prim_func([A, B.op])
    with pytest.raises(TypeError, match=r"B is an operation, and B.output\(0\) its tensor"):
        te.create_prim_func([A, B.op])
    with pytest.raises(TypeError, match=r"without a schedule; tedsl.lower\(s, \[A, B, C\]\)"):
        te.create_prim_func(te.create_schedule(B.op))


def test_inputs_are_named_too():
    A, B = row_sum()
    with pytest.raises(tedsl.TedslError, match=r"A is read, and is not among the tensors\n.*create_prim_func\(\[A, B\]\)"):
        te.create_prim_func([B])


def test_variables_are_arguments():
    A, x = te.placeholder((5,), name="A"), te.var("x", "float32")
    a, b = np.arange(5, dtype="float32"), np.empty(5, "float32")
    tedsl.build(te.create_prim_func([A, x, te.compute((5,), lambda i: A[i] * x, name="B")]))(a, 3.0, b)
    np.testing.assert_array_equal(b, a * 3)
