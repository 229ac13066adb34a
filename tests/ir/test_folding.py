"""Folding never changes a value: exhaustively, on 8-bit integers and on the awkward floats."""

import itertools
import math

import pytest

from tedsl.ir import build
from tedsl.ir.dtype import dtype
from tedsl.ir.evaluate import evaluate
from tedsl.ir.expr import (
    EQ,
    GE,
    GT,
    LE,
    LT,
    NE,
    Add,
    And,
    Call,
    Cast,
    Div,
    FloatImm,
    FloorDiv,
    FloorMod,
    IntImm,
    Max,
    Min,
    Mod,
    Mul,
    Or,
    Sub,
    Var,
)
from tedsl.ir.ops import Op

INTEGER = [Add, Sub, Mul, Div, Mod, FloorDiv, FloorMod, Min, Max, EQ, NE, LT, LE, GT, GE]
FLOAT = [Add, Sub, Mul, Div, Min, Max, EQ, NE, LT, LE, GT, GE]
INTERESTING = [-128, -127, -65, -64, -17, -16, -3, -2, -1, 0, 1, 2, 3, 7, 16, 17, 63, 64, 65, 126, 127]
FLOATS = [0.0, -0.0, 1.0, -1.0, 0.5, 3.0, -7.25, 1e-45, 3e38, -3e38, math.inf, -math.inf, math.nan]


def same(a, b):
    return type(a) is type(b) and ((a == b and math.copysign(1, a) == math.copysign(1, b)) or (a != a and b != b))


@pytest.mark.parametrize("kind", INTEGER, ids=lambda k: k.__name__)
@pytest.mark.parametrize("of", ["int8", "uint8"])
def test_integer_constants(kind, of):
    x, y = Var("x", of), Var("y", of)
    unfolded = kind(x, y)
    values = [v for v in INTERESTING if dtype(of).min_value <= v <= dtype(of).max_value]
    for a, b in itertools.product(values, repeat=2):
        folded = build.binary(kind, IntImm(dtype(of), a), IntImm(dtype(of), b))
        assert evaluate(folded) == evaluate(unfolded, {x: a, y: b}), (a, b)


@pytest.mark.parametrize("kind", INTEGER, ids=lambda k: k.__name__)
def test_neutral_and_absorbing_integers(kind):
    x = Var("x", "int8")
    for c in (-1, 0, 1, 2):
        imm = IntImm(dtype("int8"), c)
        for folded, plain in ((build.binary(kind, x, imm), kind(x, imm)), (build.binary(kind, imm, x), kind(imm, x))):
            assert all(evaluate(folded, {x: v}) == evaluate(plain, {x: v}) for v in INTERESTING), (kind, c)


@pytest.mark.parametrize("kind", FLOAT, ids=lambda k: k.__name__)
@pytest.mark.parametrize("of", ["float16", "bfloat16", "float32", "float64"])
def test_float_constants_and_neutral_ones(kind, of):
    x, y = Var("x", of), Var("y", of)
    unfolded = kind(x, y)
    for a, b in itertools.product(FLOATS, repeat=2):
        left, right = FloatImm(dtype(of), a), FloatImm(dtype(of), b)
        expected = evaluate(unfolded, {x: left.value, y: right.value})
        assert same(evaluate(build.binary(kind, left, right)), expected), (a, b)
        if b in (0.0, 1.0):
            assert same(evaluate(build.binary(kind, x, right), {x: left.value}), expected), (a, b)
            assert same(evaluate(build.binary(kind, right, x), {x: left.value}), evaluate(unfolded, {x: b, y: left.value}))


@pytest.mark.parametrize("kind", [And, Or])
def test_logic(kind):
    x = Var("x", "bool")
    for c, v in itertools.product((False, True), repeat=2):
        imm = build.const(c)
        assert evaluate(build.binary(kind, x, imm), {x: v}) == evaluate(kind(x, imm), {x: v})
        assert evaluate(build.binary(kind, imm, x), {x: v}) == evaluate(kind(imm, x), {x: v})


@pytest.mark.parametrize("name", ["shift_left", "shift_right", "bitwise_and", "bitwise_or", "bitwise_xor"])
def test_bits(name):
    x, y = Var("x", "int8"), Var("y", "int8")
    plain = Call("int8", Op.get(f"tir.{name}"), (x, y))
    for a, b in itertools.product(INTERESTING, [-1, 0, 1, 6, 7, 8, 127]):
        folded = getattr(build, name)(IntImm(dtype("int8"), a), IntImm(dtype("int8"), b))
        assert evaluate(folded) == evaluate(plain, {x: a, y: b}), (a, b)


@pytest.mark.parametrize("source, values", [("int64", [0, 1, -1, 127, 128, 300, -129, 2**53 + 1, -2**63, 2**63 - 1]),
                                            ("float32", FLOATS), ("bool", [0, 1])])
def test_casts_of_constants(source, values):
    x = Var("x", source)
    targets = ["int8", "uint8", "int32", "uint64", "float16", "bfloat16", "float32", "bool"]
    for target, value in itertools.product(targets, values):
        imm = build.const(value, source)
        folded = build.cast(target, imm)
        expected = evaluate(Cast(dtype(target), x), {x: imm.value}) if target != source else evaluate(imm)
        assert same(evaluate(folded), expected), (target, value)
