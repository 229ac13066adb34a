"""Operators on whole tensors: values, broadcasting, names, tags and records."""

import operator

import numpy as np
import pytest

from tedsl import te
from tests.lang.formulas import values

X = np.array([[1, -2, 3.5], [0.5, 4, -6]], "float32")
Y = np.array([2, -0.5, 3], "float32")
FLOAT = {"add": operator.add, "subtract": operator.sub, "multiply": operator.mul, "divide": operator.truediv,
         "floor_divide": operator.floordiv, "floor_mod": operator.mod, "less": operator.lt, "less_equal": operator.le,
         "greater": operator.gt, "greater_equal": operator.ge}
INTEGER = {"add": operator.add, "multiply": operator.mul, "floor_divide": operator.floordiv, "floor_mod": operator.mod,
           "left_shift": operator.lshift, "right_shift": operator.rshift, "bitwise_and": operator.and_,
           "bitwise_or": operator.or_, "bitwise_xor": operator.xor, "greater": operator.gt}


def tensors():
    return te.placeholder((2, 3), name="A"), te.placeholder((3,), name="B")


@pytest.mark.parametrize("name", FLOAT)
def test_two_tensors(name):
    A, B = tensors()
    C = FLOAT[name](A, B)
    assert (C.name, C.op.tag, C.op.info) == (f"T_{name}", "broadcast", te.ElementwiseOp(name, broadcasts=True))
    expected = FLOAT[name](X, Y)
    np.testing.assert_allclose(values(C, {A: X, B: Y}), expected, rtol=1e-6, atol=1e-6)
    assert C.dtype == str(expected.dtype)


@pytest.mark.parametrize("name", FLOAT)
def test_a_tensor_and_a_number(name):
    A, _ = tensors()
    C, D = FLOAT[name](A, 2.0), FLOAT[name](2.0, A)
    assert (C.op.tag, C.op.info.broadcasts) == ("elemwise", False)
    np.testing.assert_allclose(values(C, {A: X}), FLOAT[name](X, np.float32(2)), rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(values(D, {A: X}), FLOAT[name](np.float32(2), X), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("name", INTEGER)
def test_integers(name):
    A, B = te.placeholder((4,), "int32", name="A"), te.placeholder((4,), "int32", name="B")
    x, y = np.array([5, -7, 12, 1], "int32"), np.array([1, 2, 3, 4], "int32")
    assert values(INTEGER[name](A, B), {A: x, B: y}).tolist() == INTEGER[name](x, y).tolist()
    assert values(INTEGER[name](A, 3), {A: x}).tolist() == INTEGER[name](x, 3).tolist()


def test_signs_powers_casts():
    A, B = tensors()
    assert values(-A, {A: X}).tolist() == (-X).tolist() and (-A).name == "T_negative"
    np.testing.assert_allclose(values(A ** 2, {A: X}), X ** 2)
    np.testing.assert_allclose(values(2.0 ** B, {B: Y}), 2.0 ** Y, rtol=1e-6)
    assert values(A.astype("int32"), {A: X}).tolist() == X.astype("int32").tolist() and A.astype("int8").name == "T_cast"
    I = te.placeholder((2,), "uint8", name="I")
    assert values(~I, {I: np.array([0, 254], "uint8")}).tolist() == [255, 1]


@pytest.mark.parametrize("dtype, calls", [("float32", False), ("float64", False), ("float16", True), ("bfloat16", True)])
def test_cubes_are_products_where_that_rounds_no_coarser_than_the_function(dtype, calls):
    A = te.placeholder((2,), dtype, name="A")
    assert ("pow(" in str((A ** 3).op.body)) == calls
    x = np.array([-1.7, 3e9], "float64")
    if dtype in ("float32", "float64"):
        x = x.astype(dtype)
        np.testing.assert_allclose(values(A ** 3, {A: x}), x.astype("float64") ** 3, rtol=2 * np.finfo(dtype).eps)


def test_variables_and_numpy_numbers():
    A, _ = tensors()
    a = te.var("a", "float32")
    for C in (A * a, a * A):
        assert values(C, {A: X}, {a: 3.0}).tolist() == (X * 3).tolist()
    for C in (np.float32(2) * A, A * np.float32(2), A * te.const(2.0)):
        assert C.dtype == "float32" and values(C, {A: X}).tolist() == (X * 2).tolist()
    assert (A + np.float64(2)).dtype == "float32"  # numpy's float64 is a Python float


@pytest.mark.parametrize("left, right", [((2, 3), (2, 3)), ((2, 3), (3,)), ((3,), (2, 3)), ((2, 1), (1, 3)),
                                         ((4, 1, 3), (2, 1)),
                                         ((), (2, 2)), ((1,), (1,)), ((2, 3), ()), ((1, 1), (5, 1, 2)), ((0, 3), (3,))])
def test_shapes_broadcast_as_in_numpy(left, right):
    A, B = te.placeholder(left, name="A"), te.placeholder(right, name="B")
    x = np.arange(1, 1 + np.prod(left, dtype=int), dtype="float32").reshape(left)
    y = np.arange(10, 10 + np.prod(right, dtype=int), dtype="float32").reshape(right)
    result = values(A - B, {A: x, B: y})
    assert result.shape == (x - y).shape and result.tolist() == (x - y).tolist()


def test_symbolic_shapes():
    n, m = te.var("n"), te.var("m")
    A, B, C = te.placeholder((n, m)), te.placeholder((m,)), te.placeholder((n, 1))
    assert (A + B).shape == (n, m) and (A * C).shape == (n, m)
    D, E = te.placeholder((n + 1,)), te.placeholder((1 + n,))
    assert (D + E).ndim == 1


def test_scalars_of_rank_0():
    A, S = te.placeholder((2, 3), name="A"), te.placeholder((), name="S")
    assert values(A * S, {A: X, S: np.float32(2).reshape(())}).tolist() == (X * 2).tolist()


def test_a_tensor_is_true_but_a_comparison_asks_back():
    A, B = tensors()
    assert bool(A) and bool(A + B)
    with pytest.raises(ValueError, match="no truth value"):
        bool(A < B)


def test_a_formula_reads_what_an_operator_made():
    A, B = tensors()
    C = te.compute((2,), lambda i: te.if_then_else((A > 1.0)[i, 0], 1, 0) if False else (A + B)[i, 0] * 2.0)
    assert values(C, {A: X, B: Y}).tolist() == ((X + Y)[:, 0] * 2).tolist()
