"""Mistakes that once gave an error of Python or numpy, or none at all."""

import numpy as np
import pytest

import tedsl
from tedsl import te, tir

DATA = te.placeholder((4,), name="DATA")
_k = te.reduce_axis((0, 4), "k")
SUM = te.compute((), lambda: te.sum(DATA[_k], axis=_k), name="SUM")


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


@pytest.mark.parametrize("call", [
    lambda: te.create_schedule(SUM.op).rfactor(SUM, SUM.op.reduce_axis[0], np.zeros(2)),
    lambda: te.thread_axis((0, 4), np.zeros(2)), lambda: te.thread_axis("threadIdx.x", name=3),
    lambda: te.comm_reducer(3, lambda t: te.const(0, t)), lambda: te.comm_reducer(lambda x, y: x, lambda t: 0, name=3),
    lambda: te.create_prim_func(3), lambda: tir.layout(3), lambda: tir.decl_buffer((4,), "float32", offset_factor="x"),
    lambda: tir.decl_buffer((4,), "float32", data=3), lambda: tir.decl_buffer((4,), "float32", strides=3),
    lambda: tir.decl_buffer((4,), "float32", strides=["x"]), lambda: tir.decl_buffer((4,), "float32", elem_offset=1.5),
    lambda: tir.decl_buffer((4,), "float32", scope=3), lambda: te.extern((4,), [DATA], lambda ins: None, dtype="float32"),
])
def test_arguments_of_other_types_do_not_end_in_errors_of_python(call):
    with pytest.raises(tedsl.TedslError):
        call()


@pytest.mark.parametrize("bits", [26, 40])
def test_the_search_for_an_index_outside_keeps_nothing(bits):
    """It made tuples of whole axes: gigabytes, or a MemoryError."""
    far = te.compute((1 << bits,), lambda i: DATA[i], name="far")
    with pytest.raises(tedsl.TedslError, match="far reads DATA"):
        tedsl.lower(te.create_schedule(far.op), [DATA, far])


@pytest.mark.parametrize("make", [
    lambda: tir.Store(3, 4, 5), lambda: tir.BufferStore(3, 4, 5), lambda: tir.LetStmt(3, 4, 5), lambda: tir.Shuffle(3, 4),
    lambda: tir.For(3, 4, 5, 6, 7), lambda: tir.SeqStmt(3), lambda: tir.PrimFunc(3, 4), lambda: tir.BufferLoad(1, 2),
    lambda: tir.Reduce(1, 2, 3, 4, 5), lambda: tir.IntImm("int32", "x"),
])
def test_nodes_say_what_they_take(make):
    with pytest.raises(tedsl.TedslError, match=r"\w+ takes \(\w+: .*, and got \("):
        make()
