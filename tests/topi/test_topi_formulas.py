"""What the operators of topi declare: shapes, dtypes, records, tags, and their values by the reference interpreter."""

import numpy as np
import pytest

import topi
from tedsl import te
from tests.lang.formulas import values
from topi.kinds import InjectiveOp, ReduceOp

X = np.array([[1, -2, 3.5], [0.5, 4, -6]], "float32")
BINARY = {"add": np.add, "subtract": np.subtract, "multiply": np.multiply, "divide": np.divide, "maximum": np.maximum,
          "minimum": np.minimum, "floor_mod": np.mod, "floor_divide": np.floor_divide, "greater": np.greater, "less": np.less,
          "equal": np.equal, "not_equal": np.not_equal, "greater_equal": np.greater_equal, "less_equal": np.less_equal}
UNARY = {"exp": np.exp, "tanh": np.tanh, "sqrt": np.sqrt, "floor": np.floor, "ceil": np.ceil, "abs": np.abs,
         "negative": np.negative, "sign": np.sign, "identity": np.array, "isnan": np.isnan, "cos": np.cos}


def tensor(shape=(2, 3), dtype="float32", name="x"):
    return te.placeholder(shape, dtype, name=name)


@pytest.mark.parametrize("name", BINARY)
def test_binary_operators_broadcast(name):
    a, b = tensor(), tensor((3,), name="b")
    c = getattr(topi, name)(a, b)
    assert (c.name, c.op.tag, c.op.info) == (f"T_{name}", "broadcast", te.ElementwiseOp(name, broadcasts=True))
    y = np.array([2, -0.5, 3.5], "float32")
    expected = BINARY[name](X, y)
    np.testing.assert_allclose(values(c, {a: X, b: y}), expected, rtol=1e-6, atol=1e-6)
    assert c.dtype == str(expected.dtype)
    assert getattr(topi, f"broadcast_{name}", getattr(topi, name)) is getattr(topi, name)


def test_operators_of_python_are_those_of_topi():
    a, b = tensor(), tensor(name="b")
    assert repr((a + b).op) == repr(topi.add(a, b).op)


def test_two_values_make_an_expression():
    i = te.var("i")
    assert repr(topi.add(i, 1)) == "(i + 1)" and repr(topi.maximum(i, 0)) == "max(i, 0)"


def test_divide_of_integers_rounds_towards_zero():
    a = tensor((3,), "int32")
    assert values(topi.divide(a, 2), {a: np.array([-7, 7, 1], "int32")}).tolist() == [-3, 3, 0]
    assert topi.divide(a, 2).name == "T_divide" and topi.divide(a, 2.0).dtype == "float32"


@pytest.mark.parametrize("name", UNARY)
def test_unary_operators(name):
    a = tensor()
    data = abs(X) if name == "sqrt" else X
    b = getattr(topi, name)(a)
    assert (b.name, b.op.tag, b.op.info) == (f"T_{name}", "elemwise", te.ElementwiseOp(name)) and b.shape == a.shape
    np.testing.assert_allclose(values(b, {a: data}), UNARY[name](data), rtol=1e-6)


def test_clip_cast_full_and_sums():
    a, b = tensor(), tensor(name="b")
    assert values(topi.clip(a, -1, 2.5), {a: X}).tolist() == np.clip(X, -1, 2.5).tolist()
    assert topi.cast(a, "int8").dtype == "int8" and topi.full_like(a, 3).dtype == "float32"
    assert values(topi.full((2,), "int8", 3), {}).tolist() == [3, 3]
    assert values(topi.elemwise_sum([a, b, a]), {a: X, b: X}).tolist() == (3 * X).tolist()


def test_relu_keeps_the_dtype():
    a = tensor()
    assert values(topi.nn.relu(a), {a: X}).tolist() == np.maximum(X, 0).tolist()
    assert topi.nn.relu(tensor((2,), "float16")).dtype == "float16" and topi.nn.relu(tensor((2,), "int8")).dtype == "int8"
    np.testing.assert_allclose(values(topi.nn.leaky_relu(a, 0.1), {a: X}), np.where(X > 0, X, X * np.float32(0.1)))


@pytest.mark.parametrize("name", ["sum", "prod", "max", "min"])
@pytest.mark.parametrize("axis", [None, 0, 1, -1, (0, 2), (-1, 0), (0, 1, 2)])
@pytest.mark.parametrize("keepdims", [False, True])
def test_reductions(name, axis, keepdims):
    data = np.arange(1, 13, dtype="float32").reshape(2, 3, 2) / 4
    a = tensor((2, 3, 2))
    b = getattr(topi, name)(a, axis, keepdims)
    expected = getattr(np, name)(data, axis=axis, keepdims=keepdims)
    result = values(b, {a: data})
    assert result.shape == expected.shape and (b.name, b.op.tag) == ("x_red", "comm_reduce")
    np.testing.assert_allclose(result, expected, rtol=1e-6)
    axes = (0, 1, 2) if axis is None else tuple(sorted(d % 3 for d in np.atleast_1d(axis).tolist()))
    assert b.op.info == ReduceOp(name, a, axes, keepdims)


def test_reductions_of_bool_and_of_symbolic_shapes():
    n = te.var("n")
    a = tensor((n, 4), "bool")
    assert topi.all(a, axis=0).shape[0].value == 4 and topi.any(a, 1).shape == (n,) and topi.any(a).dtype == "bool"


@pytest.mark.parametrize("axis, words", [(3, "axis 3 of a tensor of rank 2"), ((0, -2), "twice")])
def test_wrong_axes(axis, words):
    with pytest.raises(ValueError, match=words):
        topi.sum(tensor(), axis)


def test_pad():
    a = tensor()
    b = topi.nn.pad(a, (1, 0), (2, 1), pad_value=7)
    assert b.name == "PadInput" and b.op.tag == "injective,pad" and b.op.info == InjectiveOp("pad")
    assert values(b, {a: X}).tolist() == np.pad(X, ((1, 2), (0, 1)), constant_values=7).tolist()
    assert values(topi.nn.pad(a, (1, 1)), {a: X}).tolist() == np.pad(X, 1).tolist()
    assert repr(topi.nn.pad(a, (0, 0)).op.body[0]) == "x[i0, i1]"
    n = te.var("n")
    assert repr(topi.nn.pad(tensor((n,)), (1,)).shape) == "[((n + 1) + 1)]"
    with pytest.raises(ValueError, match="2 dimensions and pad_before has 1"):
        topi.nn.pad(a, (1,))
    with pytest.raises(ValueError, match="a width is a whole number from 0 on"):
        topi.nn.pad(a, (1, -1))


def test_broadcast_to():
    a = tensor((1, 3))
    b = topi.broadcast_to(a, (4, 2, 3))
    assert values(b, {a: X[:1]}).tolist() == np.broadcast_to(X[:1], (4, 2, 3)).tolist()
    with pytest.raises(ValueError, match="dimension 1 of x is 3 and cannot become 1"):
        topi.broadcast_to(a, (1, 1))


def test_every_name_is_there_and_documented():
    for name in topi.__all__:
        assert getattr(topi, name).__doc__, name
