"""Float operations in machine code against the interpreter: NaN, signed zeros, 16-bit floats, rounding functions."""

import itertools
import math

import numpy as np
import pytest

from tedsl.errors import LoweringError
from tedsl.ir import build
from tedsl.ir.dtype import dtype
from tedsl.ir.evaluate import evaluate
from tedsl.ir.expr import EQ, GE, GT, LE, LT, NE, Add, Call, Div, Max, Min, Mul, Sub, Var
from tedsl.ir.interpreter.arithmetic import fma64
from tedsl.ir.ops import Op
from tests.codegen.kernels import ARM, AVX2, HOST, PLAIN, RUNNABLE, Kernel, elementwise, splat
from tests.codegen.test_conversions import numpy_type, same_floats

pytestmark = [pytest.mark.sampled(2),
              pytest.mark.filterwarnings("ignore:.*encountered in cast")]  # values out of range are meant
VALUES = [0.0, -0.0, 1.0, -1.0, 1.5, -2.5, 0.1, 3.0, 5e-8, -6e-8, 1e-40, 65504.0, -65504.0, 1e30, np.inf, -np.inf, np.nan, 7.0]
FLOATS = ["float16", "bfloat16", "float32", "float64"]
BINARY = {"add": Add, "sub": Sub, "mul": Mul, "div": Div, "min": Min, "max": Max}


def pairs(of):
    with np.errstate(over="ignore"):
        both = np.array(list(itertools.product(VALUES, VALUES))).astype(numpy_type(of))
    both = np.concatenate([both, np.ones((-len(both) % 16, 2), both.dtype)])
    return np.ascontiguousarray(both[:, 0]), np.ascontiguousarray(both[:, 1])


@pytest.mark.parametrize("of", FLOATS)
@pytest.mark.parametrize("name", BINARY)
def test_arithmetic(name, of):
    a, b = pairs(of)
    x, y = Var("x", of), Var("y", of)
    formula = BINARY[name](x, y)
    with np.errstate(all="ignore"):
        values = [evaluate(formula, {x: float(p), y: float(q)}) for p, q in zip(a, b)]
        expected = np.array(values, "float64").astype(numpy_type(of))
    for lanes, target in ((1, HOST), (16, HOST), (8, AVX2), (4, PLAIN)):
        got = np.zeros_like(a)
        assert Kernel(elementwise(BINARY[name], [of, of], of, lanes, len(a)), target)(a, b, got) == 0
        same_floats(got, expected)


@pytest.mark.parametrize("kind", [EQ, NE, LT, LE, GT, GE])
@pytest.mark.parametrize("of", ["float16", "float32", "float64"])
def test_comparisons(kind, of):
    a, b = pairs(of)
    x, y = Var("x", of), Var("y", of)
    expected = np.array([evaluate(kind(x, y), {x: float(p), y: float(q)}) for p, q in zip(a, b)], np.bool_)
    for lanes, target in ((1, HOST), (8, HOST), (4, PLAIN)):
        got = np.zeros(len(a), np.bool_)
        assert Kernel(elementwise(kind, [of, of], "bool", lanes, len(a)), target)(a, b, got) == 0
        np.testing.assert_array_equal(got, expected)


@pytest.mark.parametrize("constant", [0.0, -0.0, 1.0, math.inf, math.nan])
@pytest.mark.parametrize("kind", [Min, Max])
def test_extrema_with_a_constant_keep_nan_and_the_second_zero(kind, constant):
    a, _ = pairs("float32")
    x = Var("x", "float32")
    for first in (True, False):
        def formula(v, lanes=1, first=first):
            c = splat(constant, "float32", lanes)
            return kind(c, v) if first else kind(v, c)
        expected = np.array([evaluate(formula(x), {x: float(v)}) for v in a], "float32")
        for lanes in (1, 16):
            got = np.zeros_like(a)
            make = lambda v, f=formula, n=lanes: f(v, n)
            assert Kernel(elementwise(make, ["float32"], "float32", lanes, len(a)))(a, got) == 0
            same_floats(got, expected)


@pytest.mark.parametrize("target", RUNNABLE, ids=str)
@pytest.mark.parametrize("of", ["float32", "float64"])
@pytest.mark.parametrize("kind", [Min, Max])
def test_extrema_of_several_registers_are_those_of_scalars(kind, of, target):
    a, b = pairs(of)
    x, y = Var("x", of), Var("y", of)
    expected = np.array([evaluate(kind(x, y), {x: float(v), y: float(w)}) for v, w in zip(a, b)], of)
    for lanes in (2, 4, 64):
        size = len(a) + -len(a) % lanes
        wide = [np.resize(v, size) for v in (a, b)]
        got = np.zeros(size, of)
        assert Kernel(elementwise(kind, [of, of], of, lanes, size), target)(*wide, got) == 0
        same_floats(got[:len(a)], expected)


ROUNDING = ["floor", "ceil", "trunc", "nearbyint", "round"]


@pytest.mark.parametrize("target", RUNNABLE, ids=str)
@pytest.mark.parametrize("of", FLOATS)
@pytest.mark.parametrize("name", [*ROUNDING, "fabs", "sqrt"])
def test_functions_of_one_instruction(name, of, target):
    some = [0.0, 0.3, 0.5, 0.49999997, 0.49999999999999994, 0.7, 1.0, 1.5, 2.5, 3.5, 1e6 + 0.5, 8388607.5, 8388609.0,
            4503599627370495.5, 4503599627370497.0, 1e-40, 1e-310, 1e30, np.inf, np.nan]
    values = np.array([*some, *(-v for v in some)]).astype(numpy_type(of))
    a = np.concatenate([values, np.zeros(-len(values) % 16, values.dtype)])
    make = lambda v: Call(v.dtype, Op.get(f"tir.{name}"), (v,))
    x = Var("x", of)
    expected = np.array([evaluate(make(x), {x: float(v)}) for v in a], "float64").astype(numpy_type(of))
    for lanes in (1, 16):
        got = np.zeros_like(a)
        assert Kernel(elementwise(make, [of], of, lanes, len(a)), target)(a, got) == 0
        same_floats(got, expected)


@pytest.mark.parametrize("name", ["isnan", "isinf", "isfinite"])
@pytest.mark.parametrize("of", ["float16", "float32", "float64"])
def test_classification(name, of):
    a, _ = pairs(of)
    make = lambda v: Call(dtype("bool").with_lanes(v.dtype.lanes), Op.get(f"tir.{name}"), (v,))
    for lanes in (1, 8):
        got = np.zeros(len(a), np.bool_)
        assert Kernel(elementwise(make, [of], "bool", lanes, len(a)), PLAIN)(a, got) == 0
        np.testing.assert_array_equal(got, getattr(np, name)(a))


@pytest.mark.parametrize("name", ["copysign", "nextafter"])
@pytest.mark.parametrize("of", ["float32", "float64"])
def test_functions_of_two_floats(name, of):
    a, b = pairs(of)
    make = lambda v, w: Call(v.dtype, Op.get(f"tir.{name}"), (v, w))
    for lanes in (1, 4):
        got = np.zeros_like(a)
        assert Kernel(elementwise(make, [of, of], of, lanes, len(a)), PLAIN)(a, b, got) == 0
        same_floats(got, getattr(np, name)(a, b))


@pytest.mark.parametrize("of", ["float32", "float64"])
def test_ldexp_rounds_once(of):
    rng = np.random.default_rng(0)
    a = np.concatenate([(1 + rng.random(400)) * 2.0 ** rng.integers(-60, 60, 400), [0.0, -0.0, np.inf, np.nan] * 4]).astype(of)
    n = np.concatenate([rng.integers(-1200, 1200, 400), [5, -5, 3000, -3000] * 4]).astype("int32")
    n[:200] //= 6
    make = lambda v, w: Call(v.dtype, Op.get("tir.ldexp"), (v, w))
    with np.errstate(over="ignore"):
        expected = np.ldexp(a, n)
    for lanes in (1, 8):
        got = np.zeros_like(a)
        assert Kernel(elementwise(make, [of, "int32"], of, lanes, len(a)))(a, n, got) == 0
        same_floats(got, expected)


def fma_reference(a, b, c):
    from fractions import Fraction

    exact = Fraction(float(a)) * Fraction(float(b)) + Fraction(float(c))
    below, _ = float(exact), exact
    f = np.float32(below)
    best = min((np.nextafter(f, np.float32(-np.inf)), f, np.nextafter(f, np.float32(np.inf))),
               key=lambda v: (abs(Fraction(float(v)) - exact), np.float32(v).view(np.uint32) & 1))
    return best


@pytest.mark.parametrize("target", RUNNABLE, ids=str)
def test_fma_rounds_once_also_without_the_instruction(target):
    rng = np.random.default_rng(3)
    a, b = ((rng.integers(2**23, 2**24, 512) * 2.0**-23).astype("float32") for _ in range(2))
    c = (-(a.astype("float64") * b) * (1 + rng.integers(-3, 4, 512) * 2.0**-24)).astype("float32")
    c[::3] = (rng.random(171) * 2.0 ** rng.integers(-60, 10, 171)).astype("float32")
    make = lambda x, y, z: Call(x.dtype, Op.get("tir.fma"), (x, y, z))
    expected = np.array([fma_reference(*t) for t in zip(a, b, c)], "float32")
    for lanes in (1, 8):
        got = np.zeros_like(a)
        assert Kernel(elementwise(make, ["float32"] * 3, "float32", lanes, 512), target)(a, b, c, got) == 0
        np.testing.assert_array_equal(got, expected)


def hard_doubles():
    """Triples for fma: of all sizes, products that nearly cancel the addend, results below and beyond the normal numbers."""
    rng = np.random.default_rng(5)
    mantissas = [rng.integers(2**52, 2**53, 6000).astype("float64") * rng.choice([-1.0, 1.0], 6000) for _ in range(3)]
    a, b, c = (np.ldexp(m, rng.integers(low, high, 6000)) for m, (low, high) in
               zip(mantissas, [(-600, 500), (-600, 500), (-1126, 971)]))
    c[:2000] = -(a[:2000] * b[:2000]) * (1 + rng.integers(-3, 4, 2000) * 2.0**-52)
    b[2000:3000] = np.ldexp(mantissas[1][2000:3000], -1074 - 60 - np.frexp(a[2000:3000])[1] + rng.integers(-60, 60, 1000))
    c[2000:3000] = np.ldexp(mantissas[2][2000:3000], rng.integers(-1180, -1120, 1000))
    special = np.array([0.0, -0.0, 1.0, -1.0, 5e-324, -5e-324, 2.2250738585072014e-308, 1.7976931348623157e308, np.inf, -np.inf,
                        np.nan, 3.0, 2.0**-537, 2.0**-538])
    x, y, z = (part.reshape(-1) for part in np.meshgrid(special, special, special))
    pad = -(len(x) + 6000) % 8
    return [np.concatenate([p, q, np.ones(pad)]) for p, q in ((a, x), (b, y), (c, z))]


@pytest.mark.filterwarnings("ignore:.*encountered")
@pytest.mark.parametrize("target", RUNNABLE, ids=str)
def test_fma_of_doubles_rounds_once_also_without_the_instruction(target):
    a, b, c = hard_doubles()
    make = lambda x, y, z: Call(x.dtype, Op.get("tir.fma"), (x, y, z))
    expected = np.array([fma64(*t) for t in zip(a, b, c)])
    for lanes in (1, 4):
        got = np.zeros_like(a)
        assert Kernel(elementwise(make, ["float64"] * 3, "float64", lanes, len(a)), target)(a, b, c, got) == 0
        same_floats(got, expected)


def test_fma_of_doubles_is_an_instruction_where_there_is_one():
    make = lambda x, y, z: Call(x.dtype, Op.get("tir.fma"), (x, y, z))
    assert "fmla" in Kernel(elementwise(make, ["float64"] * 3, "float64", 2, 8), ARM).assembly()


@pytest.mark.parametrize("of", ["float16", "bfloat16"])
def test_nextafter_of_16_bit_floats(of):
    a, b = pairs(of)
    x, y = Var("x", of), Var("y", of)
    step = Call(dtype(of), Op.get("tir.nextafter"), (x, y))
    with np.errstate(all="ignore"):
        values = [evaluate(step, {x: float(p), y: float(q)}) for p, q in zip(a, b)]
        expected = np.array(values, "float64").astype(numpy_type(of))
    make = lambda v, w: Call(v.dtype, Op.get("tir.nextafter"), (v, w))
    for lanes, target in ((1, HOST), (8, HOST), (4, PLAIN)):
        got = np.zeros_like(a)
        assert Kernel(elementwise(make, [of, of], of, lanes, len(a)), target)(a, b, got) == 0
        same_floats(got, expected)


def test_math_of_16_bit_floats_goes_through_float32():
    a = np.linspace(-3, 3, 64).astype("float16")
    got = np.zeros_like(a)
    assert Kernel(elementwise(lambda v: build.call("tir.exp", v), ["float16"], "float16", 8, 64), PLAIN)(a, got) == 0
    np.testing.assert_array_equal(got, np.exp(a.astype("float32")).astype("float16"))


def test_an_unknown_external_function_is_refused():
    from tedsl.ir.expr import StringImm

    make = lambda v: Call(v.dtype, Op.get("tir.call_pure_extern"), (StringImm("frobnicate"), v))
    with pytest.raises(LoweringError, match="no C function 'frobnicate'"):
        Kernel(elementwise(make, ["float32"], "float32", 1, 8))
    named = lambda v: Call(v.dtype, Op.get("tir.call_pure_extern"), (StringImm("sqrtf"), v))
    got, a = np.zeros(8, "float32"), np.arange(8, dtype="float32")
    assert Kernel(elementwise(named, ["float32"], "float32", 4, 8))(a, got) == 0
    np.testing.assert_array_equal(got, np.sqrt(a))
