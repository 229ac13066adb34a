"""LLVM's NewGVN ended the process on these programs, by two of its assertions; the emitter does its work now."""

import pytest

from tedsl.fuzz.case import Case, Data
from tedsl.fuzz.run import outcome_apart

MANY_EXITS = Case(
    lines=["A = te.placeholder((240, 4), 'float32', name='A')",
           "T1 = te.compute((240, 4), lambda i, j: A[i, j] - te.if_then_else(j > 9, A[i, j], A[i, j] * 2.0), name='T1')"],
    schedule=["s[T1].split(loop(T1, 1), factor=2)", "s[T1].unroll(loop(T1, 0))", "s[T1].parallel(loop(T1, 2))"],
    outputs=["T1"], args=["A", "T1"], data={"A": Data("float32", (240, 4), 389)})
ARGMAX = Case(
    lines=["A = te.placeholder((5, 16, 3), 'int32', name='A')",
           "v1 = te.var('v1', 'int32')",
           "T2 = te.compute((5, 16, 3), lambda i, j, l: (A[i, j, l] + ((A[i, j, l] - 2) * (A[i, j, l] + A[i, j, "
           "l])) * ((v1 + A[i, j, l]) + (A[i, j, l] + j * A[i, j, l]))), name='T2')",
           "k3 = te.reduce_axis((0, 5), name='k3')",
           "k4 = te.reduce_axis((0, 16), name='k4')",
           "k5 = te.reduce_axis((0, 3), name='k5')",
           "T6 = te.compute((), lambda: te.max(A[k3, k4, k5], axis=[k3, k4, k5]), name='T6')",
           "k7 = te.reduce_axis((0, 3), name='k7')",
           "argmax = te.comm_reducer(lambda x, y: (te.if_then_else(te.any(x[1] > y[1], te.all(x[1].equal(y[1]), "
           "x[0] < y[0])), x[0], y[0]), te.if_then_else(x[1] > y[1], x[1], y[1])), lambda i, v: (te.const(2**30, "
           "i), te.min_value(v)), name='argmax')",
           "T8, T9 = te.compute((5, 16), lambda i, j: argmax((k7.var, T2[i, j, k7]), axis=k7), name='T8')",
           "T10 = te.compute((5, 16), lambda i, j: ((T8[i, j] % T8[i, j]) - (T8[i, j] & T8[i, j])), name='T10')",
           "B = te.placeholder((16, 11), 'int32', name='B')",
           "k11 = te.reduce_axis((0, 16), name='k11')",
           "T12 = te.compute((5, 11), lambda i, j: te.max(T10[i, k11] * B[k11, j], axis=k11), name='T12')"],
    schedule=["c19 = s.cache_write(T10, 'global')",
           "s[T12].reorder(loop(T12, 1), loop(T12, 2))",
           "s[T12].vectorize(loop(T12, 1))",
           "s[T10].split(loop(T10, 0), nparts=2)",
           "s[T10].vectorize(loop(T10, 1))",
           "s[c19].reorder(loop(c19, 1))",
           "s[c19].split(loop(c19, 0), factor=2)",
           "s[c19].compute_at(s[T10], loop(T10, 0))",
           "s[c19].vectorize(loop(c19, 2))",
           "s[T8].reorder(loop(T8, 1), loop(T8, 2))",
           "s[T8].parallel(loop(T8, 0))",
           "s[T2].compute_at(s[T8], loop(T8, 2))",
           "s[T6].unroll(loop(T6, 0))"],
    outputs=["T6", "T12"], args=["A", "v1", "B", "T6", "T12"], sizes={"v1": -1},
    data={"A": Data("int32", (5, 16, 3), 878), "B": Data("int32", (16, 11), 157)})


@pytest.mark.parametrize("case", [MANY_EXITS, ARGMAX], ids=["many exits", "argmax"])
def test_programs_that_ended_the_process(case):
    assert outcome_apart(case) is None
