"""The oracle itself, against numpy, ml_dtypes, exact fractions and hand-written expectations."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

from tedsl.errors import ArgumentError, InternalError
from tedsl.ir import build
from tedsl.ir.buffer import decl_buffer
from tedsl.ir.dtype import dtype, wrap_integer
from tedsl.ir.evaluate import evaluate
from tedsl.ir.expr import (
    LT,
    Add,
    Broadcast,
    BufferLoad,
    Call,
    Cast,
    Div,
    FloorDiv,
    FloorMod,
    Let,
    Load,
    Max,
    Min,
    Mod,
    Mul,
    Not,
    Ramp,
    Select,
    Shuffle,
    StringImm,
    Sub,
    Var,
    pointer_var,
)

INTS = ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"]
FLOATS = ["float16", "float32", "float64"]
AWKWARD = [0.0, -0.0, 1.0, -2.5, 1e-40, 3e38, math.inf, -math.inf, math.nan]


def corner(of):
    d = dtype(of)
    return [v for v in (d.min_value, d.min_value + 1, -3, -1, 0, 1, 2, 7, d.max_value - 1, d.max_value) if d.min_value <= v]


def vector(values, of):
    """An expression of a vector with those lanes."""
    pairs = tuple(Broadcast(build.const(v, of), 2) for v in values)
    return Shuffle(pairs, tuple(build.const(2 * i) for i in range(len(values))))


@pytest.mark.parametrize("of", INTS)
@pytest.mark.parametrize("kind, reference", [
    (Add, np.add), (Sub, np.subtract), (Mul, np.multiply), (FloorDiv, np.floor_divide), (FloorMod, np.remainder),
    (Mod, np.fmod), (Min, np.minimum), (Max, np.maximum), (LT, np.less)], ids=lambda v: v.__name__)
def test_integers_are_numpys(kind, reference, of):
    pairs = list(itertools.product(corner(of), repeat=2))
    a, b = (np.array(side, of) for side in zip(*pairs))
    with np.errstate(all="ignore"):
        expected = reference(a, b).tolist()
    x, y = Var("x", of), Var("y", of)
    if kind is LT:
        assert [evaluate(kind(x, y), {x: p, y: q}) for p, q in pairs] == expected
    else:
        assert [evaluate(kind(x, y), {x: p, y: q}) for p, q in pairs] == expected
        wide = kind(Var("v", f"{of}x{len(a)}"), Var("w", f"{of}x{len(a)}"))
        assert evaluate(wide, {wide.a: a, wide.b: b}).tolist() == expected


def test_division_towards_zero():
    x, y = Var("x"), Var("y")
    values = {(7, 2): 3, (-7, 2): -3, (7, -2): -3, (-7, -2): 3, (5, 0): 0, (-2**31, -1): -2**31}
    assert {k: evaluate(Div(x, y), {x: k[0], y: k[1]}) for k in values} == values


@pytest.mark.parametrize("of", FLOATS)
@pytest.mark.parametrize("kind, reference", [(Add, np.add), (Sub, np.subtract), (Mul, np.multiply), (Div, np.divide)],
                         ids=lambda v: v.__name__)
def test_floats_are_numpys(kind, reference, of):
    x, y = Var("x", of), Var("y", of)
    with np.errstate(all="ignore"):
        for p, q in itertools.product(AWKWARD, repeat=2):
            a, b = np.dtype(of).type(p), np.dtype(of).type(q)
            np.testing.assert_equal(np.array(evaluate(kind(x, y), {x: p, y: q}), of), reference(a, b))


def test_bfloat16_is_that_of_ml_dtypes():
    bfloat16 = pytest.importorskip("ml_dtypes").bfloat16
    x, y = Var("x", "bfloat16"), Var("y", "bfloat16")
    values = np.arange(0, 1 << 16, 97, dtype=np.uint16).view(bfloat16)
    with np.errstate(all="ignore"):
        for kind, sign in ((Add, "add"), (Mul, "multiply"), (Div, "divide")):
            for p, q in zip(values, values[::-1]):
                expected = float(getattr(np, sign)(p, q))
                np.testing.assert_equal(evaluate(kind(x, y), {x: float(p), y: float(q)}), expected)


@pytest.mark.parametrize("of", ["float16", "bfloat16", "float32", "float64"])
def test_minimum_and_maximum_keep_nan_and_take_the_second_of_equals(of):
    x, y = Var("x", of), Var("y", of)
    for kind in (Min, Max):
        assert math.isnan(evaluate(kind(x, y), {x: math.nan, y: 1.0}))
        assert math.isnan(evaluate(kind(x, y), {x: 1.0, y: math.nan}))
        assert math.copysign(1, evaluate(kind(x, y), {x: 0.0, y: -0.0})) == -1
        assert math.copysign(1, evaluate(kind(x, y), {x: -0.0, y: 0.0})) == 1
        lanes = kind(Broadcast(x, 2), Broadcast(y, 2))
        assert np.isnan(evaluate(lanes, {x: 1.0, y: math.nan})).all()
    assert evaluate(Min(x, y), {x: 1.0, y: 2.0}) == 1.0 and evaluate(Max(x, y), {x: 1.0, y: 2.0}) == 2.0


def exact_fma(a, b, c, kind):
    exact = Fraction(float(a)) * Fraction(float(b)) + Fraction(float(c))
    near = kind(float(exact))
    choices = [np.nextafter(near, kind(-np.inf)), near, np.nextafter(near, kind(np.inf))]
    return min(choices, key=lambda v: (abs(Fraction(float(v)) - exact), int(v.view(f"u{v.itemsize}")) & 1))


@pytest.mark.parametrize("of, kind", [("float32", np.float32), ("float64", np.float64)])
def test_fma_rounds_once(of, kind):
    a, b, c = (Var(n, of) for n in "abc")
    fma = build.call("tir.fma", a, b, c)
    rng = np.random.default_rng(0)
    for _ in range(300):
        p, q = (kind(v) for v in rng.standard_normal(2))
        r = kind(-float(p) * float(q) * (1 + rng.integers(-2, 3) * 2.0 ** -rng.integers(10, 60)))
        assert evaluate(fma, {a: p, b: q, c: r}) == float(exact_fma(p, q, r, kind))
    assert evaluate(fma, {a: math.inf, b: 1.0, c: 1.0}) == math.inf
    assert math.isnan(evaluate(fma, {a: math.inf, b: 0.0, c: 1.0}))
    assert math.copysign(1, evaluate(fma, {a: -1.0, b: 0.0, c: -0.0})) == -1


def cast_reference(v, source, target):
    """What a cast of `v` gives, by the words of `expr.py`. Integers beyond 2**53 have a test of their own."""
    if target.is_bool:
        return v != 0
    if target.is_float:
        return evaluate(build.const(float(v), target))
    if source.is_float:
        return 0 if v != v else max(target.min_value, min(target.max_value, math.trunc(v) if math.isfinite(v) else v))
    return wrap_integer(v, target)


@pytest.mark.parametrize("source", [*INTS, "bool", *FLOATS, "bfloat16"])
@pytest.mark.parametrize("target", [*INTS, "bool", *FLOATS, "bfloat16"])
def test_casts(source, target):
    of, to = dtype(source), dtype(target)
    floats = [0.0, -0.0, 1.5, -1.5, 300.7, -129.0, 7e4, 1e10, -1e20, math.inf, -math.inf, math.nan]
    values = [evaluate(build.const(v, of)) for v in floats] if of.is_float else [0, 1] if of.is_bool else \
        [v for v in corner(source) if not to.is_float or abs(v) <= 2**53]
    x = Var("x", source)
    for v in values:
        got = evaluate(Cast(to, x), {x: v})
        np.testing.assert_equal(got, cast_reference(v, of, to))
        lanes = evaluate(Cast(to.with_lanes(2), Broadcast(x, 2)), {x: v})
        np.testing.assert_equal(lanes.tolist(), [got, got])


def test_large_integers_are_rounded_once():
    x = Var("x", "int64")
    value = 2**53 + 2**29 + 1  # as a double it is a tie of float32s; the last bit decides
    assert evaluate(Cast(dtype("float32"), x), {x: value}) == float(np.int64(value).astype(np.float32)) == 2.0**53 + 2.0**30


def test_shifts_and_bits():
    x, y = Var("x", "int8"), Var("y", "int8")
    left, right = build.shift_left(x, y), build.shift_right(x, y)
    assert [evaluate(left, {x: 3, y: n}) for n in (0, 1, 6, 7, 8, -1)] == [3, 6, -64, -128, 0, 0]
    assert [evaluate(right, {x: -3, y: n}) for n in (0, 1, 7, 8, -1)] == [-3, -2, -1, -1, -1]
    assert evaluate(build.bitwise_not(x), {x: 5}) == -6
    assert evaluate(build.call("tir.popcount", x, dtype_="int32"), {x: -1}) == 8
    assert evaluate(build.call("tir.clz", x, dtype_="int32"), {x: 1}) == 7


def test_reinterpret():
    x, bits = Var("x", "float32"), Var("bits", "uint16")
    assert evaluate(build.call("tir.reinterpret", x, dtype_="int32"), {x: 1.0}) == 0x3F800000
    assert evaluate(build.call("tir.reinterpret", bits, dtype_="bfloat16"), {bits: 0x3F80}) == 1.0


@pytest.mark.parametrize("name, reference", [("exp", math.exp), ("log", math.log), ("tanh", math.tanh), ("erf", math.erf),
                                             ("sqrt", math.sqrt), ("floor", math.floor), ("atan", math.atan)])
def test_functions(name, reference):
    x = Var("x", "float64")
    assert evaluate(build.call(f"tir.{name}", x), {x: 0.7}) == pytest.approx(reference(0.7), rel=1e-15)
    assert evaluate(build.call(f"tir.{name}", Broadcast(x, 2)), {x: 0.7}).tolist() == [pytest.approx(reference(0.7))] * 2


@pytest.mark.parametrize("name, values", [("round", {0.5: 1, -0.5: -1, 2.5: 3, 0.49999999999999994: 0}),
                                          ("nearbyint", {0.5: 0, 1.5: 2, 2.5: 2}), ("trunc", {-1.7: -1})])
def test_roundings(name, values):
    x = Var("x", "float64")
    assert {v: evaluate(build.call(f"tir.{name}", x), {x: v}) for v in values} == values


# --- modes ----------------------------------------------------------------------------------------------------------

def test_data_wraps_and_conditions_on_indices_do_not():
    x = Var("x")
    assert evaluate(Add(x, build.const(1)), {x: 2**31 - 1}) == -2**31
    assert evaluate(build.less(Add(x, build.const(1)), 0), {x: 2**31 - 1}) is False
    A = decl_buffer((1,), "int32", "A")
    loaded = build.less(Add(BufferLoad(A, (build.const(0),)), build.const(1)), 0)  # data: it wraps
    assert evaluate(loaded, {A: np.array([2**31 - 1], "int32")}) is True


def test_an_address_does_not_overflow():
    P, x = pointer_var("P", dtype("float32")), Var("x")
    address = build.sub(build.mul(x, 100_000), build.const(2**31 - 1))
    value = {P: np.arange(4, dtype="float32"), x: 21475}
    assert evaluate(Load("float32", P, build.floordiv(address, 100_000)), value) == 0.0


def test_let():
    x, y = Var("x"), Var("y")
    assert evaluate(Let(x, build.add(y, 1), build.mul(x, x)), {y: 4}) == 25


def test_the_side_that_is_not_chosen_is_not_read():
    P, x = pointer_var("P", dtype("int32")), Var("x")
    guarded = build.if_then_else(build.less(x, 2), Load("int32", P, x), build.const(-1))
    data = np.array([5, 6], "int32")
    assert [evaluate(guarded, {P: data, x: i}) for i in (0, 1, 2, 99)] == [5, 6, -1, -1]
    with pytest.raises(InternalError, match=r"index 2 of P is outside 0 <= index < 2"):
        evaluate(Select(build.less(x, 2), Load("int32", P, x), build.const(-1)), {P: data, x: 2})


def test_lanes_that_are_off_are_not_read():
    P = pointer_var("P", dtype("int32"))
    lanes = Ramp(build.const(0), build.const(1), 4)
    guarded = Call("int32x4", "tir.if_then_else", (LT(lanes, Broadcast(build.const(2), 4)), Load("int32x4", P, lanes),
                                                   Broadcast(build.const(-1), 4)))
    assert evaluate(guarded, {P: np.array([5, 6], "int32")}).tolist() == [5, 6, -1, -1]
    masked = Load("int32x4", P, lanes, LT(lanes, Broadcast(build.const(2), 4)))
    assert evaluate(masked, {P: np.array([5, 6], "int32")}).tolist() == [5, 6, 0, 0]
    off = Load("int32x4", P, lanes, Broadcast(build.const(False), 4))
    assert evaluate(off, {P: np.zeros(0, "int32")}).tolist() == [0, 0, 0, 0]
    scalar = Load("int32", P, build.const(9), build.const(False))
    assert evaluate(scalar, {P: np.zeros(0, "int32")}) == 0
    with pytest.raises(InternalError, match=r"index \[0, 1, 2, 3\] of P"):
        evaluate(Load("int32x4", P, lanes), {P: np.array([5, 6], "int32")})


def test_vectors():
    x = Var("x")
    assert evaluate(Ramp(x, build.const(3), 4), {x: 1}).tolist() == [1, 4, 7, 10]
    assert evaluate(Ramp(x, build.const(2**30), 4), {x: 0}).tolist() == [0, 2**30, -2**31, -2**30]
    assert evaluate(vector([4, 5, 6], "int8")).tolist() == [4, 5, 6]
    assert evaluate(Not(LT(Ramp(x, build.const(1), 2), Broadcast(build.const(1), 2))), {x: 0}).tolist() == [False, True]


@pytest.mark.parametrize("of, data", [("bool", np.array([0, 2], "uint8")), ("bfloat16", np.array([0x3F80, 0xC000], "uint16")),
                                      ("float16", np.array([1, -2], "float16"))])
def test_memory_forms(of, data):
    P = pointer_var("P", dtype(of))
    expected = [False, True] if of == "bool" else [1.0, -2.0]
    assert [evaluate(Load(of, P, build.const(i)), {P: data}) for i in (0, 1)] == expected
    assert evaluate(Load(f"{of}x2", P, Ramp(build.const(0), build.const(1), 2)), {P: data}).tolist() == expected


def test_unbound_variables_and_unknown_functions_are_named():
    with pytest.raises(InternalError, match=r"x is used but nothing binds it; bound are: y"):
        evaluate(build.add(Var("x"), 1), {Var("y"): 1})
    with pytest.raises((InternalError, ArgumentError), match="external"):
        evaluate(Call("int32", "tir.call_extern", (StringImm("f"),)), {})


# --- depth ----------------------------------------------------------------------------------------------------------

def test_ten_thousand_levels():
    x = Var("x")
    deep, expected = x, 5
    for _ in range(10_000):
        deep, expected = build.add(build.mul(deep, 3), 1), expected * 3 + 1
    assert evaluate(deep, {x: 5}) == (expected + 2**31) % 2**32 - 2**31


def test_a_chain_of_lazy_choices():
    P, x = pointer_var("P", dtype("int32")), Var("x")
    chain = build.const(-1)
    for i in reversed(range(3000)):
        chain = build.if_then_else(build.equal(x, i), Load("int32", P, build.const(i)), chain)
    data = np.arange(3000, dtype="int32") * 7
    assert [evaluate(chain, {P: data, x: i}) for i in (0, 2999, 3000)] == [0, 2999 * 7, -1]


def test_shared_nodes_are_computed_once():
    x = Var("x", "float64")
    big = x
    for _ in range(200):
        big = Add(big, big)
    assert evaluate(big, {x: 1.0}) == 2.0**200
