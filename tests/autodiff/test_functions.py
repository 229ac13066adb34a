"""Every function of te has a derivative that central differences confirm, a derivative of zero, or a refusal by name."""

import numpy as np
import pytest

import topi
from tedsl import te
from tedsl.errors import TedslError
from tests.autodiff.differences import check, compiled

SHAPES = [(3,), (2, 5), (1, 3, 2)]
UNARY = {  # the function and where its argument is drawn from
    "exp": (-2, 2), "exp2": (-2, 2), "exp10": (-1, 1), "log": (0.2, 3), "log2": (0.2, 3), "log10": (0.2, 3), "log1p": (-0.5, 3),
    "tanh": (-2, 2), "sigmoid": (-2, 2), "erf": (-2, 2), "sqrt": (0.2, 3), "rsqrt": (0.2, 3), "sin": (-3, 3), "cos": (-3, 3),
    "tan": (-1, 1), "asin": (-0.8, 0.8), "acos": (-0.8, 0.8), "atan": (-2, 2), "sinh": (-2, 2), "cosh": (-2, 2),
    "asinh": (-2, 2), "acosh": (1.2, 3), "atanh": (-0.8, 0.8), "abs": (0.2, 2), "floor": (0.2, 0.8), "ceil": (0.2, 0.8),
    "trunc": (0.2, 0.8), "round": (0.6, 0.9), "nearbyint": (0.6, 0.9),
}
BINARY = {  # the function and where its arguments are drawn from
    "power": (0.3, 2), "fmod": (0.3, 2), "atan2": (0.3, 2), "hypot": (0.3, 2), "copysign": (0.3, 2), "div": (0.3, 2),
    "logaddexp": (-2, 2), "max": (-2, 2), "min": (-2, 2),
}
REFUSED = {"nextafter"}
NOT_OF_FLOATS = {"isnan", "isinf", "isfinite", "popcount", "clz", "lane_mask", "truncdiv", "truncmod", "floordiv", "floormod",
                 "ceildiv", "indexdiv", "indexmod", "reinterpret"}  # no floats come in, or none comes out
OF_VECTORS = {"compress_lanes"}  # of which formulas have none
CHECKED_BELOW = {"ldexp", "if_then_else", "select", "const", "sum", "prod", "all", "any", "comm_reducer", "min_value",
                 "max_value", "infinity"}


def test_no_function_is_forgotten():
    made = {name for name in te.__all__ if getattr(getattr(te, name), "__module__", "") in (
        "tedsl.lang.math", "tedsl.lang.arithmetic", "tedsl.lang.reductions", "tedsl.lang.constants")}
    assert made <= set(UNARY) | set(BINARY) | REFUSED | NOT_OF_FLOATS | OF_VECTORS | CHECKED_BELOW


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("name", UNARY)
def test_functions_of_one_argument(name, shape):
    low, high = UNARY[name]
    a = te.placeholder(shape, "float64", name="A")
    check(te.compute(shape, lambda *i: getattr(te, name)(a(*i)), name="B"), [a], low=low, high=high)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("name", BINARY)
def test_functions_of_two_arguments(name, shape):
    low, high = BINARY[name]
    a, b = (te.placeholder(shape, "float64", name=n) for n in "AB")
    check(te.compute(shape, lambda *i: getattr(te, name)(a(*i), b(*i)), name="C"), [a, b], low=low, high=high)


@pytest.mark.parametrize("name", [name for name in UNARY if UNARY[name][0] <= 0.5 <= UNARY[name][1]])
def test_functions_inside_of_a_formula(name):
    """Their values are not those of the output, so that they are computed again."""
    a = te.placeholder((3,), "float64", name="A")
    check(te.compute((3,), lambda i: getattr(te, name)(a[i] * 1.5) * a[i], name="B"), [a], low=0.45, high=0.52)


def test_ldexp():
    a, n = te.placeholder((5,), "float64", name="A"), te.placeholder((5,), "int32", name="n")
    check(te.compute((5,), lambda i: te.ldexp(a[i] * a[i], n[i]), name="B"), [a, n])


@pytest.mark.parametrize("name", sorted(REFUSED))
def test_functions_without_a_derivative_are_named(name):
    a = te.placeholder((3,), "float64", name="A")
    b = te.compute((3,), lambda i: getattr(te, name)(a[i], 1.0), name="B")
    with pytest.raises(TedslError, match=f"no rule for tir.{name}"):
        te.gradient(b, [a])


def at(function, *values):
    """The derivatives of a function of scalars at a point."""
    inputs = [te.placeholder((1,), "float64", name=f"x{n}") for n in range(len(values))]
    output = te.compute((1,), lambda i: function(*(x[i] for x in inputs)), name="y")
    head = te.placeholder((1,), "float64", name="head")
    arrays = [np.array([value], "float64") for value in (*values, 1.0)]
    return [float(array[0]) for array in compiled([*inputs, head], te.gradient(output, inputs, head))(*arrays)]


def test_where_functions_have_a_kink():
    assert at(lambda x: te.max(x, 0.0), 0.0) == [0.0]
    assert at(te.max, 1.0, 1.0) == at(te.min, 1.0, 1.0) == [0.0, 1.0]
    assert at(te.abs, 0.0) == [0.0]
    assert at(te.abs, -3.0) == [-1.0]
    assert at(te.hypot, 0.0, 0.0) == at(te.atan2, 0.0, 0.0) == [0.0, 0.0]
    assert at(te.copysign, 0.0, 1.0) == [0.0, 0.0]
    assert at(te.sqrt, 0.0) == [0.0]


def test_norms_at_zero_and_clip_at_its_ends():
    a = te.placeholder((3,), "float64", name="A")
    k = te.reduce_axis((0, 3), name="k")
    squares = te.compute((), lambda: te.sum(a[k] * a[k], axis=k), name="squares")
    norm = te.compute((), lambda: te.sqrt(squares()), name="norm")
    derivative = compiled([a], te.gradient(norm, [a]))
    assert derivative(np.zeros(3))[0].tolist() == [0, 0, 0]
    np.testing.assert_allclose(derivative(np.array([0.0, 3.0, 4.0]))[0], [0, 0.6, 0.8])
    ones = te.compute((3,), lambda i: te.const(1.0, "float64"), name="ones")
    clipped = compiled([a], te.gradient(topi.clip(a, 0.0, 6.0), [a], ones))
    assert clipped(np.array([0.0, 6.0, 3.0]))[0].tolist() == [1, 1, 1]
    assert clipped(np.array([-0.1, 6.1, 3.0]))[0].tolist() == [0, 0, 1]
    relu = compiled([a], te.gradient(topi.nn.relu(a), [a], ones))
    assert relu(np.array([-1.0, 0.0, 1.0]))[0].tolist() == [0, 0, 1]


def test_pow_at_zero_is_as_in_torch():
    assert at(te.power, 0.0, 0.0) == [0.0, 0.0]
    assert at(te.power, 0.0, 1.0) == [1.0, 0.0]
    assert at(te.power, 0.0, 2.0) == [0.0, 0.0]
    assert at(te.power, 0.0, 0.5) == [np.inf, 0.0]
    assert at(te.power, -2.0, 3.0)[0] == 12.0
    assert np.isnan(at(te.power, -2.0, 3.0)[1])


def test_the_side_that_is_not_chosen_adds_nothing_even_where_it_is_infinite():
    assert at(lambda x: te.select(x > 0, te.sqrt(x), 0.0), 0.0) == [0.0]
    assert at(lambda x: te.if_then_else(x > 0, te.log(x), x), 0.0) == [1.0]


def test_rounding_and_fmod():
    assert at(te.floor, 1.5) == at(te.round, 1.5) == [0.0]
    assert at(te.fmod, 7.5, -2.0) == [1.0, 3.0]
    assert at(lambda x: te.floormod(x, te.const(2.0, "float64")), -3.5) == [1.0]
    assert at(lambda x: te.floordiv(x, te.const(2.0, "float64")), -3.5) == [0.0]


def test_the_derivative_of_relu_reads_its_result_and_not_what_that_was_computed_from():
    x = te.placeholder((5,), "float64", name="x")
    y = topi.nn.relu(x)
    head = te.placeholder((5,), "float64", name="head")
    (found,) = te.gradient(y, [x], head)
    assert set(found.op.input_tensors) == {y, head}
