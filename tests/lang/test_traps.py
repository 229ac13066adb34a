"""Tensors, expressions, functions and modules where Python or numpy expects values: refused with what to write instead."""

import math

import numpy as np
import pytest

import tedsl
from tedsl import te, tir
from tedsl.errors import ArgumentTypeError

A = te.placeholder((4, 4), name="A")
B = te.compute((4, 4), lambda i, j: A[i, j] + 1, name="B")
I = te.var("i")
E = A[I, I]
MODULE = tedsl.lower(te.create_schedule(B.op), [A, B])


@pytest.mark.parametrize("use, words", [
    (lambda: np.exp(E), r"numpy.exp works on arrays, and A\[i.* is an expression\n  hint: write te.exp"),
    (lambda: np.exp(A), "numpy.exp works on arrays, and A is a tensor of a program\n  hint: write topi.exp"),
    (lambda: np.exp(A[I]), "hint: write te.exp"),
    (lambda: np.tanh(B.op.axis[0]), "hint: write te.tanh"),
    (lambda: np.arcsin(E), "hint: write te.asin"),
    (lambda: np.maximum(E, 0), "hint: write te.max"),
    (lambda: np.maximum(A, 0), "hint: write topi.maximum"),
    (lambda: np.spacing(E), "hint: write it with te's functions"),
    (lambda: np.sum(A), "numpy.add.reduce works on arrays(.|\n)*hint: write te.sum.*topi.sum"),
    (lambda: np.add(E, 1, dtype="float32"), "numpy.add works on arrays"),
    (lambda: E + np.ones(4, "float32"), "numpy.add works on arrays"),
    (lambda: A @ B, "@ is not an operator of tensors(.|\n)*topi.matmul"),
    (lambda: A @ np.ones((4, 4)), "topi.matmul"),
    (lambda: np.ones((4, 4)) @ A, "topi.matmul"),
    (lambda: np.matmul(A, B), "topi.matmul"),
    (lambda: np.dot(A, B), "numpy makes no array of it"),
    (lambda: E @ E, "@ multiplies matrices(.|\n)*te.sum"),
    (lambda: np.asarray(A), "the tensor A has no values(.|\n)*numpy makes no array of it"),
    (lambda: np.array(A[I]), "the tensor A has no values"),
    (lambda: float(A), r"float\(\) works on numbers"),
    (lambda: int(A), r"int\(\) works on numbers"),
    (lambda: complex(A), "the tensor A has no values"),
    (lambda: E in A, "`in` searches through values"),
    (lambda: round(A), "write topi.round"),
    (lambda: len(A[I]), "has no len"),
    (lambda: float(E), "has no value while the program is being written"),
    (lambda: int(E), r"write x.astype\('int32'\)"),
    (lambda: complex(E), "no complex dtypes"),
    (lambda: math.trunc(E), "write te.trunc"),
    (lambda: MODULE(np.zeros(4)), r"an IRModule cannot be called(.|\n)*tedsl.build\(mod\)"),
    (lambda: MODULE["main"](np.zeros(4)), r"a PrimFunc cannot be called(.|\n)*tedsl.build\(func\)"),
])
def test_where_values_are_expected(use, words):
    with pytest.raises(ArgumentTypeError, match=words):
        use()


def test_numpy_s_numbers_and_functions_that_are_operators_stand_beside_expressions():
    """On either side; numpy asks the operand that it does not know."""
    cases = [(np.float32(2) * E, 2 * E), (np.add(E, 1), E + 1), (np.subtract(1, E), 1 - E), (np.float32(2) / E, 2.0 / E),
             (np.less(E, 1), E < 1), (np.float32(1) < E, E > 1), (np.int32(7) // I, 7 // I), (np.power(E, 2.0), E ** 2.0),
             (np.int64(3) % I, te.const(3, "int64") % I)]
    for ours, expected in cases:
        assert tir.analysis.expr_deep_equal(ours, expected), (ours, expected)
    assert (np.float32(2) * A).shape == A.shape and np.add(A, B).dtype == "float32"
    assert (np.float32(1) == E).asobject().dtype == "bool"
    assert int(tir.FloatImm("float32", 2.5)) == 2 and int(tir.IntImm("int32", 3)) == 3
