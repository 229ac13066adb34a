"""Mistakes that once gave an error of Python or numpy, or none at all."""

import numpy as np
import pytest

import tedsl
from tedsl import te


def added():
    A = te.placeholder((4,), name="A")
    B = te.compute((4,), lambda i: A[i] + 1.0, name="B")
    return te.create_schedule(B.op), [A, B]


def test_a_feature_that_llvm_does_not_know_is_refused_with_what_is_near():
    with pytest.raises(tedsl.TedslError, match=r"x86-64 has no feature 'avx512vnn'\n  hint: did you mean avx512vnni"):
        tedsl.target.Target("llvm -mtriple=x86_64-linux-gnu -mattr=+avx512vnn")


def test_an_option_without_its_value_is_named():
    with pytest.raises(tedsl.TedslError, match="'-mcpu' in target 'llvm -mcpu' has no value"):
        tedsl.target.Target("llvm -mcpu")


def test_a_wrong_target_host_is_refused():
    with pytest.raises(tedsl.TedslError, match="no target kind 'banana'"):
        tedsl.build(*added(), "llvm", target_host="banana")


def test_arguments_are_counted_from_1_in_lower_as_in_calls():
    s, (A, _) = added()
    with pytest.raises(tedsl.TedslError, match="argument 2 of the function is 3"):
        tedsl.lower(s, [A, 3])


@pytest.mark.parametrize("made", [lambda: tedsl.nd.array([[1, 2], [3]]), lambda: tedsl.nd.from_dlpack(3)])
def test_arrays_that_cannot_be_made(made):
    with pytest.raises(tedsl.TedslError, match="hint"):
        made()


def test_python_functions_of_expressions():
    A = te.placeholder((4,), "int32", name="A")
    B = te.compute((4,), lambda i: abs(+A[i]) + divmod(A[i], 3)[1], name="B")
    a, b = np.array([-5, 0, 7, -2**31], "int32"), np.zeros(4, "int32")
    tedsl.build(te.create_schedule(B.op), [A, B])(a, b)
    np.testing.assert_array_equal(b, np.abs(a) + a % 3)
    with pytest.raises(tedsl.TedslError, match=r"write te\.round"):
        te.compute((4,), lambda i: round(A[i]))


def test_reverse_compute_at_is_refused_by_its_own_name():
    """The message spoke of a compute_at that nobody had written."""
    A = te.placeholder((4,), name="A")
    B = te.compute((4,), lambda i: A[i] + 1.0, name="B")
    C = te.compute((4,), lambda i: B[i] * 2.0, name="C")
    D = te.compute((4,), lambda i: B[i] + C[i], name="D")
    s = te.create_schedule(D.op)
    with pytest.raises(tedsl.TedslError, match=r"^reverse_compute_at\(B, i\) of C on stage B: D uses B too"):
        s[C].reverse_compute_at(s[B], B.op.axis[0])
