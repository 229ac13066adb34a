"""Functions of values: dtypes, folding, and what they compute by the reference interpreter."""

import math

import numpy as np
import pytest

import tedsl
from tedsl import te, tir
from tedsl.ir.expr import Call, FloatImm, IntImm
from tests.lang.formulas import values

FLOATS = ["float16", "bfloat16", "float32", "float64"]
UNARY = ["exp", "exp2", "exp10", "log", "log2", "log10", "log1p", "tanh", "sigmoid", "erf", "sqrt", "rsqrt",
         "sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "asinh", "acosh", "atanh",
         "floor", "ceil", "trunc", "round", "nearbyint", "abs"]


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", UNARY)
def test_a_function_keeps_the_dtype(name, dtype):
    x = te.placeholder((2,), dtype, name="x")[0]
    result = getattr(te, name)(x)
    assert result.dtype == dtype and isinstance(result, Call)
    assert result.op.name == ("tir.fabs" if name == "abs" else f"tir.{name}")
    assert getattr(tir, name) is getattr(te, name)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", ["power", "fmod", "atan2", "hypot", "copysign", "nextafter"])
def test_a_function_of_two(name, dtype):
    x = te.placeholder((2,), dtype, name="x")[0]
    function = getattr(te, name)
    assert function(x, x).dtype == function(x, 0.5).dtype == function(0.5, x).dtype == function(x, 7).dtype == dtype


@pytest.mark.parametrize("name", ["exp", "log", "tanh", "sqrt", "sin", "erf", "atan"])
def test_functions_compute(name):
    A = te.placeholder((4,), "float64", name="A")
    data = np.array([0.25, 0.5, 0.75, 1.0])
    expected = np.vectorize(getattr(math, name))(data)
    np.testing.assert_allclose(values(te.compute((4,), lambda i: getattr(te, name)(A[i])), {A: data}), expected, rtol=1e-12)


@pytest.mark.parametrize("value", [-2.5, -1.5, -0.5, -0.25, 0.5, 1.5, 2.5, 2.4999, 1e30, -0.0])
def test_rounding_folds_exactly(value):
    f = te.const(value, "float64")
    expected = {"floor": math.floor(value), "ceil": math.ceil(value), "trunc": math.trunc(value), "nearbyint": round(value),
                "round": math.copysign(math.floor(abs(value) + 0.5) if abs(value) < 1e15 else abs(value), value)}
    for name, want in expected.items():
        folded = getattr(te, name)(f)
        assert isinstance(folded, FloatImm) and folded.value == want
        assert math.copysign(1, folded.value) == math.copysign(1, value)
    assert te.floor(te.infinity("float32")).value == math.inf


def test_nothing_inexact_folds():
    assert isinstance(te.exp(1.0), Call) and isinstance(te.sqrt(2.0), Call) and te.exp(1).dtype == "float32"


def test_integers_are_whole_and_finite_already():
    x = te.placeholder((2,), "int32", name="x")[0]
    assert te.floor(x) is x and te.round(x) is x
    assert te.isnan(x).value == 0 and te.isinf(x).value == 0 and te.isfinite(x).value == 1


def test_abs():
    assert te.abs(-3).value == 3 and te.abs(-2.5).value == 2.5 and te.abs(te.const(-128, "int8")).value == -128
    U, S = te.placeholder((3,), "uint8", name="U"), te.placeholder((3,), "int8", name="S")
    assert te.abs(U[0]).same_as(U[0]) is False and repr(te.abs(U[0])) == "U[0]"
    data = np.array([-5, 7, -128], "int8")
    assert values(te.compute((3,), lambda i: te.abs(S[i])), {S: data}).tolist() == [5, 7, -128]
    assert values(abs(S), {S: data}).tolist() == [5, 7, -128]


def test_questions_about_floats():
    assert te.isnan(te.const(math.nan, "float16")).value == 1 and te.isfinite(1.0).value == 1 and te.isinf(1.0).value == 0
    x = te.placeholder((2,), name="x")[0]
    assert te.isnan(x).dtype == te.isinf(x).dtype == te.isfinite(x).dtype == "bool"


def test_divisions():
    a, b = te.const(-7), te.const(2)
    assert [f(a, b).value for f in (te.div, te.truncdiv, te.floordiv, te.indexdiv)] == [-3, -3, -4, -4]
    assert [f(a, b).value for f in (te.truncmod, te.floormod, te.indexmod)] == [-1, 1, 1]
    assert te.div(7.0, 2.0).value == 3.5 and te.floordiv(te.const(7), 2).value == 3
    I = te.placeholder((4,), "int32", name="I")
    data = np.array([-7, 7, -1, 0], "int32")
    assert values(te.compute((4,), lambda i: I[i] // 2), {I: data}).tolist() == (data // 2).tolist()
    assert values(te.compute((4,), lambda i: I[i] % 3), {I: data}).tolist() == (data % 3).tolist()
    assert values(te.compute((4,), lambda i: te.truncmod(I[i], 3)), {I: data}).tolist() == np.fmod(data, 3).tolist()


def test_bits():
    x = te.placeholder((2,), "int32", name="x")
    assert te.popcount(x[0]).dtype == te.clz(x[0]).dtype == "int32"
    assert te.reinterpret(x[0], "float32").dtype == te.reinterpret("float32", x[0]).dtype == "float32"
    data = np.array([0, 255], "int32")
    assert values(te.compute((2,), lambda i: te.popcount(x[i])), {x: data}).tolist() == [0, 8]
    assert values(te.compute((2,), lambda i: (x[i] << 2) ^ 1), {x: data}).tolist() == [1, 1021]


@pytest.mark.parametrize("of", ["int8", "uint8", "int16", "uint32", "int64", "uint64"])
def test_popcount_keeps_the_dtype_and_clz_is_int32(of):
    """te.popcount of a uint32 was an int32: programs of TVM passed a uint32 array for it, and were refused at the call."""
    data = np.array([0, 1, 7, np.iinfo(of).max], of)
    x = te.placeholder((4,), of, name="x")
    bits, zeros = te.compute((4,), lambda i: te.popcount(x[i])), te.compute((4,), lambda i: te.clz(x[i]))
    assert bits.dtype == of and zeros.dtype == "int32"
    assert values(bits, {x: data}).tolist() == [bin(int(v)).count("1") for v in data]
    assert values(zeros, {x: data}).tolist() == [8 * data.itemsize - int(v).bit_length() for v in data]
    for lanes in (False, True):
        s = te.create_schedule(bits.op)
        if lanes:
            s[bits].vectorize(bits.op.axis[0])
        out = np.zeros(4, of)
        tedsl.build(s, [x, bits])(data, out)
        assert out.tolist() == [bin(int(v)).count("1") for v in data]
    if np.dtype(of).itemsize == 8:
        assert (te.popcount(x[0]) << 40).dtype == of


def test_ldexp():
    x = te.placeholder((2,), name="x")[0]
    assert te.ldexp(x, 3).dtype == "float32" and te.ldexp(x, te.var("e", "int64")).dtype == "float32"


def test_extremes():
    for dtype, np_type in (("float16", np.float16), ("float32", np.float32), ("float64", np.float64)):
        assert te.max_value(dtype).value == float(np.finfo(np_type).max)
        assert te.min_value(dtype).value == float(np.finfo(np_type).min)
    for dtype in ("int8", "uint8", "int64", "uint64"):
        assert te.max_value(dtype).value == np.iinfo(dtype).max and te.min_value(dtype).value == np.iinfo(dtype).min
    assert te.max_value("bfloat16").value == 3.3895313892515355e38 and te.infinity("float32").value == math.inf


def test_if_then_else_and_select_differ():
    A = te.placeholder((4,), name="A")
    lazy = te.compute((4,), lambda i: te.if_then_else(i > 0, A[i - 1], 0.0))
    assert isinstance(lazy.op.body[0], Call)
    data = np.arange(1, 5, dtype="float32")
    assert values(lazy, {A: data}).tolist() == [0, 1, 2, 3]
    both = te.compute((4,), lambda i: tir.Select(i > 0, A[i], 0.0))
    assert isinstance(both.op.body[0], tir.Select) and values(both, {A: data}).tolist() == [0, 2, 3, 4]
    assert te.if_then_else(True, 1, 2).value == 1


def test_nodes_take_what_users_write():
    A = te.placeholder((4,), "float16", name="A")
    k = te.reduce_axis((0, 4), name="k")
    i = te.var("i")
    chosen = tir.Select(A[i] == A[0], A[i], 0.0)
    assert isinstance(chosen.condition, tir.EQ) and chosen.false_value.dtype == "float16"
    assert isinstance(tir.Not(A[i] == 0.0).a, tir.EQ) and tir.LT(k, i).a is k.var and tir.Add(k, 1).b.value == 1
    assert isinstance(tir.And(A[i] == 0.0, A[i] != 1.0).b, tir.NE) and isinstance(tir.Cast("int8", A[i] == 0.0).value, tir.EQ)


def test_conditions():
    i = te.var("i")
    assert isinstance(te.all(i > 1, i < 5), tir.And) and isinstance(te.any(i > 1, i < 5, i == 7), tir.Or)
    assert te.all(i > 1).same_as(te.all(i > 1)) is False and isinstance(te.all(i == 1), tir.EQ)
    assert te.any(True, i > 1).value == 1


def test_casts():
    x = te.placeholder((2,), name="x")[0]
    assert x.astype("float32") is x and x.astype("int8").dtype == "int8" and te.const(3).astype("float16").value == 3.0
    assert te.const(1.5, "float64").dtype == "float64" and te.const(np.float64(2.0)).dtype == "float64"
    assert te.const(np.int8(2)).dtype == "int8" and isinstance(te.const(True), IntImm)


def test_calls_by_name():
    x = te.placeholder((2,), name="x")[0]
    assert tir.call_intrin("float32", "tir.exp", x).op.name == "tir.exp"
    assert tir.call_pure_extern("float32", "sinf", x).args[0] == "sinf"
    assert len(tir.call_llvm_pure_intrin("float32", "llvm.sqrt", te.const(1, "uint32"), x).args) == 2
    with pytest.raises(TypeError, match="takes 1 argument, not 2"):
        tir.call_intrin("float32", "tir.exp", x, x)
    with pytest.raises(AttributeError, match=r"no operator 'tir\.nothing'"):
        tir.call_intrin("float32", "tir.nothing", x)


def test_python_functions_of_expressions():
    A = te.placeholder((4,), "int32", name="A")
    B = te.compute((4,), lambda i: abs(+A[i]) + divmod(A[i], 3)[1], name="B")
    a, b = np.array([-5, 0, 7, -2**31], "int32"), np.zeros(4, "int32")
    tedsl.build(te.create_schedule(B.op), [A, B])(a, b)
    np.testing.assert_array_equal(b, np.abs(a) + a % 3)
    with pytest.raises(tedsl.TedslError, match=r"write te\.round"):
        te.compute((4,), lambda i: round(A[i]))
