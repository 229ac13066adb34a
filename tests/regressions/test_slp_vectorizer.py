"""LLVM's SLP vectorizer used a value before its definition, and instruction selection ended the process."""

from tedsl.fuzz.case import Case, Data
from tedsl.fuzz.run import outcome_apart


def test_a_reduction_beside_a_split_loop_compiles():
    case = Case(
        lines=[
            "A = te.placeholder((11,), 'float32', name='A')",
            "T1 = te.compute((22,), lambda i: te.if_then_else(i < 11, A[i], A[i - 11]), name='T1')",
            "T6 = te.compute((22,), lambda i: te.min(te.max(te.floor(T1[i]), (T1[i] - T1[i])), i), name='T6')",
            "k = te.reduce_axis((1, 22), name='k')",
            "T8 = te.compute((), lambda: te.sum(T1[k], axis=k), name='T8')",
        ],
        schedule=["s[T6].split(loop(T6, 0), factor=5)", "s[T1].split(loop(T1, 0), factor=4)"],
        outputs=["T6", "T8"], args=["A", "T6", "T8"], data={"A": Data("float32", (11,), 389)})
    assert outcome_apart(case) is None
