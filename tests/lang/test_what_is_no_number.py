"""Expressions, tensors and operations where Python or numpy would take a number, a list or an array: refused."""

import copy

import numpy as np
import pytest

from tedsl import te
from tedsl.errors import ArgumentTypeError, OptionError
from tests.refusing import refused

A = te.placeholder((4,), name="A")
B = te.compute((4,), lambda i: A[i] + 1, name="B")
I = B.op.axis[0]
E = A[I]

OPERANDS = {
    "text": (lambda: E + "x", "an operator of A[i] has the operand 'x', a str"),
    "text first": (lambda: "x" + E, "has the operand 'x', a str"),
    "none": (lambda: E * None, "has the operand None, which is no value"),
    "list": (lambda: E + [1], "[1], a list", "declare a te.placeholder"),
    "complex": (lambda: E * 1j, "1j, a complex", "real and the imaginary part in two tensors"),
    "comparison": (lambda: E < "x", "'x', a str"),
    "axis": (lambda: I + "x", "an operator of i has the operand 'x'"),
    "tensor": (lambda: A + "x", "an operator of A has the operand 'x', a str"),
    "tensor compared": (lambda: A < None, "an operator of A has the operand None"),
}
USES = {
    "element": (lambda: E[0], "the expression A[i] is one value: it has no elements", "index a tensor, A[i, j]"),
    "length": (lambda: len(E), "the expression A[i] is one value: it has no len()"),
    "loop": (lambda: list(E), "no elements to read or to iterate"),
    "range": (lambda: te.compute((4,), lambda i: sum(A[j] for j in range(i)), name="C"),
              "compute C: the formula counts with Python up to an expression", "te.reduce_axis((0, n), 'k')"),
    "operation": (lambda: B.op(), "the operation B cannot be called", "B.output(0)"),
    "keyword": (lambda: te.compute((4,), lambda *, i: A[i]), "the function takes i by name", "the star: lambda i: ..."),
    "two": (lambda: te.compute((4, 4), lambda i, *, j: A[i]), "the function takes j by name", "lambda i, j: ..."),
}
ATTRIBUTES = {
    "T": (lambda: A.T, "the tensor A has no T", "did you mean topi.transpose(A)?"),
    "reshape": (lambda: A.reshape((2, 2)), "the tensor A has no reshape", "topi.reshape(A, shape)"),
    "mean": (lambda: A.mean(), "the tensor A has no mean", "topi.sum(A, axis) / n"),
    "near": (lambda: A.shpe, "the tensor A has no shpe", "did you mean shape or "),
    "operation": (lambda: B.op.shpe, "the operation B has no shpe"),
    "of the tensor": (lambda: B.op.ndim, "did you mean B.ndim, of the tensor?"),
}


@pytest.mark.parametrize("call, words", [(call, words) for call, *words in (OPERANDS | USES).values()], ids=OPERANDS | USES)
def test_where_a_number_is_wanted(call, words):
    refused(call, *words, error=ArgumentTypeError)


@pytest.mark.parametrize("get, words", [(get, words) for get, *words in ATTRIBUTES.values()], ids=ATTRIBUTES)
def test_attributes_that_arrays_have(get, words):
    refused(get, *words, error=OptionError)


def test_a_tensor_is_not_changed():
    refused(lambda: setattr(B, "shape", (3,)), "shape of the tensor B cannot be set", error=OptionError)
    refused(lambda: delattr(B, "op"), "op of the tensor B cannot be set", error=OptionError)
    assert B.shape[0] == 4 and B.op.name == "B"


def test_what_tools_ask_of_tensors_and_expressions_still_works():
    assert copy.copy(B) == B and copy.copy(E) is E
    assert not hasattr(B, "__array_interface__") and getattr(B, "reshape", None) is None
    assert np.asarray(E).dtype == object and E in [E] and [E, I].index(I) == 1


def test_another_class_may_stand_beside_an_expression():
    class Other:
        def __radd__(self, other):
            return "mine"

    assert E + Other() == A + Other() == "mine"


def test_a_python_error_of_the_formula_itself_is_kept():
    with pytest.raises(TypeError, match="NoneType"):
        te.compute((4,), lambda i: len(None))
