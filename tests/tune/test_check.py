"""Results are compared with those of the interpreter or of the default schedule, within what rounding explains."""

import math

import numpy as np
import pytest

import topi
from tedsl import te, tir
from tedsl.errors import ArgumentError, TedslError
from tedsl.tune.measure import Checker, check
from tedsl.tune.measure.check import steps, tolerance

from .conftest import Doubled


@pytest.fixture(params=["interpreter", "default"])
def expected_by(request, monkeypatch):
    if request.param == "default":
        monkeypatch.setattr(check, "_SMALL", -1)


def test_wrong_results_are_a_failure(measure, expected_by):
    checker = Checker(Doubled().formula(), "llvm")
    right, wrong, right_again = measure(Doubled(), Doubled(factor=3.0), Doubled(8), check=checker)
    assert right.failure is None and right_again.failure is None
    assert wrong.failure.kind == "wrong" and wrong.costs == ()
    assert "37 of 37 elements of B differ; the first, at (0,), is" in wrong.failure.message


def test_one_term_of_a_long_sum_is_noticed(expected_by):
    A, B = te.placeholder((3, 1024), name="A"), te.placeholder((1024, 5), name="B")
    args = [A, B, topi.matmul(A, B)]
    checker = Checker(args, "llvm")
    a, b, _ = checker.inputs
    right = (a.astype("float64") @ b.astype("float64")).astype("float32")
    assert checker.expected().difference([a, b, right]) == ""
    missing = (a[:, :-1] @ b[:-1]).astype("float32")
    assert "elements of" in checker.expected().difference([a, b, missing])
    in_other_order = sum(np.float32(a[:, k:k + 1] * b[k:k + 1]) for k in range(1024))
    assert checker.expected().difference([a, b, in_other_order]) == ""


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64", "int8", "uint8", "int32", "int64", "bool"])
def test_every_dtype(dtype):
    A = te.placeholder((6, 5), dtype, name="A")
    checker = Checker([A, te.compute((5, 6), lambda i, j: A[j, i], name="B")], "llvm")
    a, b = checker.inputs
    assert len(set(a.ravel().tolist())) > 1
    expected = checker.expected()
    assert expected.difference([a, a.T]) == ""
    assert expected.difference([a, b]) or dtype == "bool", "what was not written is noticed"
    wrong = a.T.copy()
    wrong[2, 3] = not wrong[2, 3] if dtype == "bool" else wrong[2, 3] + 3
    assert "1 of 30 elements of B differ; the first, at (2, 3)" in expected.difference([a, wrong])


def test_inputs_are_the_same_for_a_seed():
    formula = Doubled().formula()
    first, second, other = (Checker(formula, "llvm", seed=seed).inputs for seed in (1, 1, 2))
    assert np.array_equal(first[0], second[0]) and not np.array_equal(first[0], other[0])
    assert np.isnan(first[1]).all() and np.isnan(second[1]).all()


def test_results_that_are_often_nan_say_nothing_so_that_inputs_are_positive():
    A = te.placeholder((50,), name="A")
    B = te.compute((50,), lambda i: te.log(A[i] - 0.1), name="B")
    checker = Checker([A, B], "llvm")
    assert checker.inputs[0].min() < 0
    assert np.isfinite(checker.expected().outputs[1]).all() and checker.inputs[0].min() >= 0.5


def test_nan_and_infinite_results_are_equal_where_they_stand():
    expected = check.Expected({0: np.array([np.nan, np.inf, -np.inf, 2.0])}, {0: "B"}, 1e-6, 1e-6)
    assert expected.difference([np.array([np.nan, np.inf, -np.inf, 2.0])]) == ""
    for k, other in ((0, 1.0), (1, 1.0), (1, -np.inf), (2, np.nan), (3, np.nan), (3, np.inf)):
        wrong = np.array([np.nan, np.inf, -np.inf, 2.0])
        wrong[k] = other
        assert f"the first, at ({k},)" in expected.difference([wrong])


def test_empty_results():
    A = te.placeholder((0, 3), name="A")
    checker = Checker([A, te.compute((0, 3), lambda i, j: A[i, j] + 1.0)], "llvm")
    assert checker.expected().difference(checker.inputs) == ""


def test_given_inputs_and_symbolic_shapes(measure, expected_by):
    n = te.var("n")
    A = te.placeholder((n,), name="A")
    args = [n, A, te.compute((n,), lambda i: A[i] * 2.0 + n.astype("float32"), name="B")]
    with pytest.raises(ArgumentError, match="n is a number that nothing says"):
        Checker(args, "llvm")
    with pytest.raises(ArgumentError, match="there are 3 arguments, and 1 inputs"):
        Checker(args, "llvm", inputs=[3])
    a = np.arange(5, dtype="float32")
    checker = Checker(args, "llvm", inputs=[5, a, np.zeros(5, "float32")])
    assert np.allclose(checker.expected().outputs[2], a * 2 + 5)


def test_a_default_schedule_of_the_program(measure, monkeypatch):
    monkeypatch.setattr(check, "_SMALL", -1)
    A, B = Doubled().formula()
    s = te.create_schedule(B.op)
    assert Checker([A, B], "llvm", s).default() is s
    assert measure(Doubled(), check=Checker([A, B], "llvm", s))[0].failure is None


def test_results_that_cannot_be_computed():
    A = te.placeholder((4,), name="A")
    B = te.extern((4,), [A], lambda ins, outs: tir.call_packed("tests.tune.nobody", ins[0], outs[0]))
    with pytest.raises(TedslError, match="the results to compare with cannot be computed: run"):
        Checker([A, B], "llvm").expected()


@pytest.mark.parametrize("args, words", [(4, "args is a list"), ([], "none of the arguments is computed"),
                                         ([te.placeholder((3,))], "none of the arguments is computed")])
def test_arguments_that_cannot_be_checked(args, words):
    with pytest.raises((ArgumentError, TypeError), match=words):
        Checker(args, "llvm")


@pytest.mark.parametrize("options, words", [
    ({"inputs": 3}, "inputs is a list of arrays and numbers"), ({"inputs": [3, 4]}, "the input for A is an array, not 3"),
    ({"inputs": [np.ones(36, "float32"), np.ones(37, "float32")]}, r"the input for A has the shape \(36,\), and A has \(37,\)"),
    ({"inputs": [np.ones(37), np.ones(37, "float32")]}, "the input for A is of float64, and A of float32"),
    ({"seed": "x"}, "seed is an int"), ({"rtol": -1}, "rtol is a number of at least 0"),
    ({"default": 3}, "default is a schedule")])
def test_options_that_are_refused(options, words):
    with pytest.raises((ArgumentError, TypeError), match=words):
        Checker(Doubled().formula(), "llvm", **options)


def test_inputs_of_a_call_are_those_of_the_check(measure):
    checker = Checker(Doubled().formula(), "llvm")
    with pytest.raises(ArgumentError, match="give them to the Checker"):
        measure(Doubled(), check=checker, inputs=[np.ones(37, "float32")] * 2)


def test_steps_and_tolerances(product):
    operations = [product[2].op]
    assert steps(operations) == 7 * 9 * 12
    assert tolerance(operations) == 2.0**-24 * 64 * math.sqrt(12)
    whole = te.compute((4,), lambda i: i, name="whole")
    assert tolerance([whole.op]) == 0
