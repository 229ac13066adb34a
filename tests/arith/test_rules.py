"""Each rule, over all small integers including negatives: it fires where its side condition holds, and keeps the value.

A row: the expression, the ranges of its variables (a SizeVar counts as known to be at least 0), what it becomes
(None: nothing, since the side condition fails).
"""

import itertools

import pytest
from arith_reference import value

from tedsl.arith.analyzer import Analyzer
from tedsl.arith.bounds import Bounds
from tedsl.arith.rules.choices import fold_call, fold_select
from tedsl.arith.rules.compare import fold_comparison
from tedsl.arith.rules.floordiv import fold_floordiv
from tedsl.arith.rules.floormod import fold_floormod
from tedsl.arith.rules.logic import fold_logical, fold_not
from tedsl.arith.rules.minmax import fold_minmax
from tedsl.arith.rules.sums import fold_add, fold_mul, fold_sub
from tedsl.ir import build
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
    Div,
    FloorDiv,
    FloorMod,
    IntImm,
    Max,
    Min,
    Mul,
    Not,
    Or,
    Select,
    SizeVar,
    Sub,
    Var,
)
from tedsl.ir.iters import Range
from tedsl.ir.walk.visitor import post_order

X, Y, N = Var("x"), Var("y"), SizeVar("n")
ANY = (-9, 9)


def imm(v):
    return IntImm("int32", v)


def div(a, b):
    return FloorDiv(build.as_expr(a), build.as_expr(b))


def mod(a, b):
    return FloorMod(build.as_expr(a), build.as_expr(b))


FLOORDIV = [
    (div(0, X), {X: ANY}, "0"),
    (div(X, 1), {X: ANY}, "x"),
    (div(X, 0), {X: ANY}, "0"),
    (div(-7, 2), {}, "-4"),
    (div(-7, -2), {}, "3"),
    (div(X, -1), {X: ANY}, "(0 - x)"),
    (div(X, -2), {X: ANY}, None),
    (div(X * 4 + Y, 4), {X: ANY, Y: (0, 3)}, "x"),
    (div(X * 4 + Y, 4), {X: ANY, Y: (-4, -1)}, "(x - 1)"),
    (div(X * 4 + Y, 4), {X: ANY, Y: (0, 4)}, "(x + floordiv(y, 4))"),
    (div(X * 4 + 5, 4), {X: ANY}, "(x + 1)"),
    (div(X + 8, 4), {X: ANY}, "(floordiv(x, 4) + 2)"),
    (div(X + 7, 4), {X: ANY}, None),
    (div(X * 4, 8), {X: ANY}, "floordiv(x, 2)"),
    (div(X * 4 + Y, 8), {X: ANY, Y: (0, 3)}, "floordiv(x, 2)"),
    (div(X * 4 + Y, 8), {X: ANY, Y: (-1, 3)}, None),
    (div(X * 4 + 3, 8), {X: ANY}, "floordiv(x, 2)"),
    (div(div(X, 3), 2), {X: ANY}, "floordiv(x, 6)"),
    (div(div(X, -3), 2), {X: ANY}, None),
    (div(Y - X * 4, 4), {X: ANY, Y: (0, 3)}, "(0 - x)"),
    (div(X, X), {X: (1, 9)}, "1"),
    (div(X, X), {X: ANY}, None),
    (div(X, X), {X: (-9, -1)}, "1"),
    (div(X * N, N), {X: ANY, N: (1, 5)}, "x"),
    (div(X * N, N), {X: ANY, N: (0, 5)}, None),
    (div(X, N), {X: (0, 2), N: (3, 5)}, "0"),
    (div(X, N), {X: (0, 3), N: (3, 5)}, None),
    (div(X * N + Y, N), {X: ANY, Y: (0, 2), N: (3, 5)}, "x"),
    (div(X * N + Y, N), {X: ANY, Y: ANY, N: (1, 5)}, "(x + floordiv(y, n))"),
]
FLOORMOD = [
    (mod(0, X), {X: ANY}, "0"),
    (mod(X, 1), {X: ANY}, "0"),
    (mod(X, 0), {X: ANY}, "0"),
    (mod(X, -1), {X: ANY}, "0"),
    (mod(-7, 4), {}, "1"),
    (mod(-7, -4), {}, "-3"),
    (mod(X, -2), {X: ANY}, None),
    (mod(X * 4 + Y, 4), {X: ANY, Y: ANY}, "floormod(y, 4)"),
    (mod(X * 4 + Y, 4), {X: ANY, Y: (0, 3)}, "y"),
    (mod(X, 4), {X: (4, 7)}, "(x - 4)"),
    (mod(X, 4), {X: (4, 8)}, None),
    (mod(X, 4), {X: (-4, -1)}, "(x + 4)"),
    (mod(X * 4 + Y, 8), {X: ANY, Y: (0, 3)}, "((floormod(x, 2)*4) + y)"),
    (mod(X * 4 + Y, 8), {X: ANY, Y: (0, 4)}, None),
    (mod(X * 4 + 3, 8), {X: ANY}, "((floormod(x, 2)*4) + 3)"),
    (mod(mod(X, 8), 4), {X: ANY}, "floormod(x, 4)"),
    (mod(mod(X, 6), 4), {X: ANY}, None),
    (mod(mod(X, 8) + Y, 4), {X: ANY, Y: ANY}, "floormod((y + x), 4)"),
    (mod(div(X, 3), 4), {X: ANY}, "floordiv(floormod(x, 12), 3)"),
    (mod(div(X, -3), 4), {X: ANY}, None),
    (mod(X, X), {X: ANY}, "0"),
    (mod(X * N + Y, N), {X: ANY, Y: ANY, N: (0, 5)}, "floormod(y, n)"),
    (mod(X, N), {X: (0, 2), N: (3, 5)}, "x"),
    (mod(X, N), {X: (0, 3), N: (3, 5)}, None),
    (mod(X, N), {X: (-1, 2), N: (3, 5)}, None),
]
SUMS = [
    (Add(imm(4), X), {X: ANY}, "(x + 4)"),
    (Add(X, X), {X: ANY}, "(x*2)"),
    (Add(Add(X, imm(1)), Y), {X: ANY, Y: ANY}, "((x + y) + 1)"),
    (Add(X, imm(-3)), {X: ANY}, "(x - 3)"),
    (Add(Mul(div(X, 4), imm(4)), mod(X, 4)), {X: ANY}, "x"),
    (Add(X, Y), {X: ANY, Y: ANY}, None),
    (Add(X, Add(Y, N)), {X: ANY, Y: ANY, N: (0, 3)}, "((x + y) + n)"),
    (Add(Sub(X, Y), N), {X: ANY, Y: ANY, N: (0, 3)}, "((x + n) - y)"),
    (Add(Mul(mod(div(X, 4), 3), imm(4)), mod(X, 4)), {X: ANY}, "floormod(x, 12)"),
    (Sub(X, X), {X: ANY}, "0"),
    (Add(Mul(div(X, N), N), mod(X, N)), {X: ANY, N: (1, 4)}, "x"),
    (Add(Mul(div(X, N), N), mod(X, N)), {X: ANY, N: (0, 4)}, None),
    (Sub(X, Mul(div(X, 4), imm(4))), {X: ANY}, "floormod(x, 4)"),
    (Sub(imm(5), X), {X: ANY}, None),
    (Sub(X, imm(-2)), {X: ANY}, "(x + 2)"),
    (Sub(Sub(X, imm(1)), Y), {X: ANY, Y: ANY}, "((x - y) - 1)"),
    (Sub(X, Sub(Y, imm(1))), {X: ANY, Y: ANY}, "((x + 1) - y)"),
    (Mul(imm(3), X), {X: ANY}, "(x*3)"),
    (Mul(Mul(X, imm(2)), imm(3)), {X: ANY}, "(x*6)"),
    (Mul(Add(X, imm(1)), imm(4)), {X: ANY}, "((x*4) + 4)"),
    (Mul(X, imm(0)), {X: ANY}, "0"),
    (Mul(X, imm(1)), {X: ANY}, "x"),
    (Mul(X, Y), {X: ANY, Y: ANY}, None),
]
COMPARE = [
    (LT(X, Y), {X: (0, 3), Y: (4, 6)}, "(bool)1"),
    (LT(X, Y), {X: (4, 6), Y: (0, 4)}, "(bool)0"),
    (LT(X, Y), {X: (0, 4), Y: (4, 6)}, None),
    (LE(X, Y), {X: (0, 4), Y: (4, 6)}, "(bool)1"),
    (GT(X, Y), {X: ANY, Y: ANY}, "(y < x)"),
    (GE(X, Y), {X: ANY, Y: ANY}, "(y <= x)"),
    (LT(X * 4, imm(10)), {X: ANY}, "(x < 3)"),
    (LE(X * 4, imm(10)), {X: ANY}, "(x <= 2)"),
    (LT(imm(-10), X * 4), {X: ANY}, "(-3 < x)"),
    (LT(X + 1, Y + 3), {X: ANY, Y: ANY}, "(x < (y + 2))"),
    (LT(X + Y, X + 3), {X: ANY, Y: ANY}, "(y < 3)"),
    (LT(X, X + 1), {X: ANY}, "(bool)1"),
    (LE(imm(3), X * 2), {X: ANY}, "(2 <= x)"),
    (EQ(X + 1, imm(3)), {X: ANY}, "(x == 2)"),
    (EQ(X * 2, imm(3)), {X: ANY}, "(bool)0"),
    (NE(X * 2, imm(3)), {X: ANY}, "(bool)1"),
    (EQ(X, Y), {X: (0, 3), Y: (4, 6)}, "(bool)0"),
    (NE(X, Y), {X: (0, 3), Y: (4, 6)}, "(bool)1"),
    (EQ(X, X), {X: ANY}, "(bool)1"),
    (EQ(X * 3, Y * 3 + 6), {X: ANY, Y: ANY}, "(x == (y + 2))"),
    (EQ(X, Y), {X: ANY, Y: ANY}, None),
    (LT(imm(5), imm(3)), {}, "(bool)0"),
    (LT(imm(0) - X, imm(4)), {X: ANY}, None),
]
SUMS += [
    (Min(X, Y) + Max(Y, X), {X: ANY, Y: ANY}, "(x + y)"),
    (Max(X, Y) + Min(X, Y), {X: ANY, Y: ANY}, "(x + y)"),
    (Min(X, Y) + Max(Y, N), {X: ANY, Y: ANY, N: (0, 4)}, None),
]
MINMAX = [
    (Min(X, Y), {X: (0, 3), Y: (3, 6)}, "x"),
    (Max(X, Y), {X: (0, 3), Y: (3, 6)}, "y"),
    (Min(X, Y), {X: (0, 4), Y: (3, 6)}, None),
    (Min(X, X + 1), {X: ANY}, "x"),
    (Max(X, X + 1), {X: ANY}, "(x + 1)"),
    (Min(imm(3), X), {X: ANY}, "min(x, 3)"),
    (Min(Min(X, imm(7)), imm(5)), {X: ANY}, "min(x, 5)"),
    (Max(Max(X, imm(3)), imm(5)), {X: ANY}, "max(x, 5)"),
    (Min(Min(X, imm(5)), imm(7)), {X: ANY}, "min(x, 5)"),
    (Max(Min(X, imm(5)), imm(7)), {X: ANY}, "7"),
    (Max(Min(X, imm(5)), imm(3)), {X: ANY}, None),
    (Min(X, X), {X: ANY}, "x"),
]
P, Q = X < 3, Y < 3
LOGIC = [
    (And(P, X < 5), {X: ANY}, "(x < 3)"),
    (Or(P, X < 5), {X: ANY}, "(x < 5)"),
    (And(P, LE(imm(5), X)), {X: ANY}, "(bool)0"),
    (Or(X < 5, LE(imm(3), X)), {X: ANY}, "(bool)1"),
    (And(P, P), {X: ANY}, "(x < 3)"),
    (And(P, Not(P)), {X: ANY}, "(bool)0"),
    (Or(P, LE(imm(3), X)), {X: ANY}, "(bool)1"),
    (And(P, Q), {X: ANY, Y: ANY}, None),
    (Not(P), {X: ANY}, "(3 <= x)"),
    (Not(EQ(X, Y)), {X: ANY, Y: ANY}, "(x != y)"),
    (Not(Not(P)), {X: ANY}, "(x < 3)"),
    (Not(And(P, Q)), {X: ANY, Y: ANY}, "((3 <= x) || (3 <= y))"),
    (Select(Not(P), X, Y), {X: ANY, Y: ANY}, "select((x < 3), y, x)"),
    (Select(P, X, X), {X: ANY}, "x"),
    (build.if_then_else(P, X, X), {X: ANY}, "x"),
    (build.likely(build.likely(P)), {X: ANY}, "tir.likely((x < 3))"),
]
RULES = {
    FloorDiv: fold_floordiv, FloorMod: fold_floormod, Add: fold_add, Sub: fold_sub, Mul: fold_mul, Min: fold_minmax,
    Max: fold_minmax, And: fold_logical, Or: fold_logical, Not: fold_not, Select: fold_select, Call: fold_call,
}
ROWS = FLOORDIV + FLOORMOD + SUMS + COMPARE + MINMAX + LOGIC


@pytest.mark.parametrize("e, ranges, expected", ROWS, ids=lambda p: "" if isinstance(p, dict) else repr(p))
def test_rule(e, ranges, expected):
    folded = RULES.get(type(e), fold_comparison)(e, Bounds({v: r for v, r in ranges.items() if r != ANY}))
    assert (None if folded is None else repr(folded)) == expected
    if folded is not None:
        for point in itertools.product(*(range(low, high + 1) for low, high in ranges.values())):
            env = dict(zip(ranges, point))
            assert value(folded, env) == value(e, env)


@pytest.mark.parametrize(("a", "b", "c", "whole"), [(6, 4, 3, True), (6, 4, 2, True), (6, 4, 6, True), (6, 4, 12, True),
                                                    (5, 6, 2, True), (6, 4, 5, False)])
def test_parts_of_one_index_that_are_written_unlike_merge(a, b, c, whole):
    """A tensor of rows of `b` in planes of a*b, read through a fused loop that was split by c: one index again."""
    outer, inner = Var("outer"), Var("inner")
    known = Analyzer()
    known.bind(outer, Range(0, 40))
    known.bind(inner, Range(0, c))
    flat = outer * c + inner
    parts = [known.simplify(part) for part in (flat // (a * b), flat % (a * b) // b, flat % b)]
    again = known.simplify(parts[0] * (a * b) + parts[1] * b + parts[2])
    for o, i in itertools.product(range(40), range(c)):
        assert value(again, {outer: o, inner: i}) == o * c + i
    if whole:
        assert not any(isinstance(node, (FloorDiv, FloorMod)) for node in post_order(again))


def test_parts_of_other_indices_do_not_merge():
    x, y = Var("x"), Var("y")
    known = Analyzer()
    known.bind(x, Range(0, 50))
    known.bind(y, Range(0, 50))
    for other in (x + 1, x + y, x * 3, 2 * x + y):
        e = x % 24 // 4 * 4 + other % 4
        simple = known.simplify(e)
        for i, j in itertools.product(range(50), range(0, 50, 7)):
            assert value(simple, {x: i, y: j}) == value(e, {x: i, y: j})


@pytest.mark.parametrize("dtype, c, d, whole", [
    ("int32", 2, 3, 6), ("int32", 7, 1, None), ("int8", 11, 12, None), ("int8", 11, 11, 121), ("uint8", 16, 15, 240),
    ("int32", -2, 3, None), ("int32", 2, -3, None), ("int32", 2, 0, None)])
def test_division_twice_towards_zero_is_one(dtype, c, d, whole):
    x = Var("x", dtype)
    e = Div(Div(x, IntImm(dtype, c)), IntImm(dtype, d))
    simple = Analyzer().simplify(e)
    if whole is not None:
        assert isinstance(simple, Div) and simple.a is x and simple.b.value == whole
    for i in range(*((0, 256) if dtype == "uint8" else (-128, 128))):
        assert value(simple, {x: i}) == value(e, {x: i})


@pytest.mark.parametrize("wide", ["int64", "int32"])
def test_the_greater_of_a_multiple_of_a_narrower_index_and_a_constant(wide):
    n = Var("n")
    for kind, c, d in itertools.product((Min, Max), (4, -4, 3), (0, 8, -12)):
        e = kind(Mul(build.cast(wide, n), IntImm(wide, c)), IntImm(wide, d))
        simple = Analyzer().simplify(e)
        assert simple.dtype == wide
        for i in range(-9, 10):
            assert value(simple, {n: i}) == value(e, {n: i})


@pytest.mark.parametrize("dtype", ["int8", "uint8"])
def test_the_lesser_and_the_greater_of_two_values_that_wrap(dtype):
    x, y = Var("x", dtype), Var("y", dtype)
    e = Add(Min(x, y), Max(y, x))
    simple = Analyzer().simplify(e)
    assert not any(isinstance(node, (Min, Max)) for node in post_order(simple))
    ends = range(0, 256, 15) if dtype == "uint8" else (*range(-128, 128, 17), 127)
    for i, j in itertools.product(ends, ends):
        assert value(simple, {x: i, y: j}) == value(e, {x: i, y: j})
