"""Tests of passes as pairs of programs, and functions by which programs see values pass through calls."""

import numpy as np
import pytest
from tedsl.script import tir as T

import tedsl
from tedsl import te, tir
from tedsl.testing import CompareBeforeAfter


class EmptyBranch(CompareBeforeAfter):
    transform = tir.transform.RemoveNoOp()

    def before(A: T.Buffer(16, "int32")):
        for i in T.serial(16):
            if i < 8:
                A[i] = 42
            else:
                T.evaluate(0)

    def expected(A: T.Buffer(16, "int32")):
        for i in T.serial(16):
            if i < 8:
                A[i] = 42


class Kept(EmptyBranch):
    expected = EmptyBranch.before


class OfMethods(CompareBeforeAfter):
    def transform(self):
        return tir.transform.Simplify()

    def before(self):
        x = te.var("x")
        return tir.PrimFunc([x], tir.Evaluate(tir.call_extern("int32", "f", x + 1 - x)))

    def expected(self):
        x = te.var("x")
        return tir.PrimFunc([x], tir.Evaluate(tir.call_extern("int32", "f", 1)))


class Refused(CompareBeforeAfter):
    transform = tir.transform.StorageRewrite()
    before = EmptyBranch.before
    expected = tedsl.TVMError


@pytest.mark.parametrize("case", [EmptyBranch, OfMethods])
def test_what_a_pass_makes_is_compared(case):
    case().test_compare()


def test_another_program_fails_the_test():
    with pytest.raises(AssertionError):
        Kept().test_compare()


def test_a_pass_that_raises_nothing_fails_the_test_of_an_error():
    class NothingRaised(EmptyBranch):
        expected = ZeroDivisionError

    with pytest.raises(AssertionError, match="did not raise"):
        NothingRaised().test_compare()


def test_values_pass_through():
    assert tedsl.testing.echo(np.int64(2**63 - 1)) == 2**63 - 1
    assert tedsl.testing.device_test(tedsl.opencl(10), 4, 10) == tedsl.opencl(10)
    with pytest.raises(AssertionError, match="device 1"):
        tedsl.testing.device_test(tedsl.cpu(0), 1, 1)
    assert tedsl.testing.nop(1, 2) is None
    assert tedsl.testing.identity_after("x", 0) == "x"
