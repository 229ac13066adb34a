"""LLVM's NewGVN asserts that it visits no value a hundred times; a function that fails in many places made it do so."""

import numpy as np

import tedsl
from tedsl import te
from tedsl.fuzz.case import Case, Data
from tedsl.fuzz.run import outcome_apart


def test_hundreds_of_parallel_loops_one_after_the_other():
    case = Case(
        lines=["A = te.placeholder((240, 4), 'float32', name='A')",
               "T1 = te.compute((240, 4), lambda i, j: A[i, j] - te.if_then_else(j > 9, A[i, j], A[i, j] * 2.0), name='T1')"],
        schedule=["s[T1].split(loop(T1, 1), factor=2)", "s[T1].unroll(loop(T1, 0))", "s[T1].parallel(loop(T1, 2))"],
        outputs=["T1"], args=["A", "T1"], data={"A": Data("float32", (240, 4), 389)})
    assert outcome_apart(case) is None


def test_few_exits_keep_value_numbering():
    A = te.placeholder((64,), name="A")
    B = te.compute((64,), lambda i: A[i] * 2.0, name="B")
    s = te.create_schedule(B.op)
    s[B].parallel(B.op.axis[0])
    a, b = np.ones(64, "float32"), np.zeros(64, "float32")
    tedsl.build(s, [A, B])(a, b)
    np.testing.assert_array_equal(b, 2)
