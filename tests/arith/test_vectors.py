"""Vectors of ramps and broadcasts: the simplified lanes are the lanes."""

import random

import pytest
from arith_reference import OPS, value

from tedsl.arith.analyzer import Analyzer
from tedsl.ir import build
from tedsl.ir.expr import (
    LE,
    LT,
    Add,
    BinaryOp,
    Broadcast,
    Cast,
    Div,
    FloorDiv,
    IntImm,
    Load,
    Max,
    Min,
    Mod,
    Not,
    Ramp,
    Select,
    Var,
)
from tedsl.ir.iters import Range

X, Y = Var("x"), Var("y")
LANES = 4


def lane(e, k, env):
    if isinstance(e, Ramp):
        return value(e.base, env) + k * value(e.stride, env)
    if isinstance(e, Broadcast):
        return value(e.value, env)
    assert isinstance(e, BinaryOp)
    return OPS[type(e)](lane(e.a, k, env), lane(e.b, k, env))


def vector(rng, depth):
    if depth == 0 or rng.randrange(5) == 0:
        base = rng.choice([X, Y, X * 8 + 4, X * 4, Y * 16, build.as_expr(3), X + Y])
        if rng.randrange(2):
            return Ramp(build.as_expr(base), IntImm("int32", rng.choice([1, 2, 4, 8, -1])), LANES)
        return Broadcast(build.as_expr(base), LANES)
    if rng.randrange(2):
        return rng.choice([build.floordiv, build.floormod, build.mul])(
            vector(rng, depth - 1), Broadcast(IntImm("int32", rng.choice([1, 2, 4, 8])), LANES))
    return rng.choice([build.add, build.sub, build.minimum])(vector(rng, depth - 1), vector(rng, depth - 1))


@pytest.mark.parametrize("part", range(4))
def test_random_vectors_keep_their_lanes(part):
    for seed in range(part * 200, part * 200 + 200):
        rng = random.Random(seed)
        e = vector(rng, 3)
        if rng.randrange(2):
            e = rng.choice([build.less, build.less_equal, build.greater])(e, vector(rng, 2))
        known = Analyzer()
        known.bind(Y, Range(0, 4))
        simple = known.simplify(e)
        for _ in range(8):
            env = {X: rng.randint(-9, 9), Y: rng.randint(0, 3)}
            assert [lane(simple, k, env) for k in range(LANES)] == [lane(e, k, env) for k in range(LANES)], f"{e!r} {simple!r}"


def test_printed_forms():
    known = Analyzer()
    ramp, four = Ramp(X * 4, IntImm("int32", 1), 4), Broadcast(IntImm("int32", 4), 4)
    for e, expected in [
        (ramp + four, "ramp(((x*4) + 4), 1, 4)"), (ramp * four, "ramp((x*16), 4, 4)"), (ramp // four, "x4(x)"),
        (ramp % four, "ramp(0, 1, 4)"), (ramp - ramp, "x4(0)"), (four + four, "x4(8)"),
    ]:
        assert repr(known.simplify(e)) == expected


def lanes_of(e, env):
    return [lane(e, k, env) for k in range(LANES)]


def test_choices_casts_and_negations_of_equal_lanes_are_scalars():
    known, p = Analyzer(), Var("p", "bool")
    x4, y4, p4 = (Broadcast(v, LANES) for v in (X, Y, p))
    ramp, data = Ramp(X, IntImm("int32", 2), LANES), Ramp(Var("a", "int8"), IntImm("int8", 1), LANES)
    for e, expected in [
        (Select(p4, x4, y4), "x4(select(p, x, y))"), (Select(p4, x4, ramp), None), (Not(p4), "x4(!p)"),
        (Cast("float32x4", x4), "x4(float32(x))"), (Cast("int64x4", ramp), "ramp(int64(x), (int64)2, 4)"),
        (Cast("int64x4", data), None), (Cast("float32x4", ramp), None),
    ]:
        assert repr(known.simplify(e)) == (expected or repr(e))


@pytest.mark.parametrize("kind", [Min, Max])
def test_the_operand_of_a_minimum_that_is_chosen_in_every_lane(kind):
    def ramp(base, stride):
        return Ramp(build.as_expr(base), IntImm("int32", stride), LANES)

    for a, b, decided in [
        (ramp(X, 1), ramp(X + 1, 1), True), (ramp(X, 1), ramp(X, 1), True), (ramp(X, 1), Broadcast(X, LANES), True),
        (ramp(X, 1), Broadcast(X + 3, LANES), True), (ramp(X, 1), Broadcast(X + 2, LANES), False),
        (ramp(X, -1), ramp(X + 1, 1), True), (ramp(X, 2), ramp(X + 1, 1), False), (ramp(X, 1), ramp(Y, 1), False),
    ]:
        e = kind(a, b)
        simple = Analyzer().simplify(e)
        assert (type(simple) is not kind) == decided, repr(simple)
        for x in range(-4, 5):
            assert lanes_of(simple, {X: x, Y: 1}) == lanes_of(e, {X: x, Y: 1})


def test_truncated_division_of_ramps_that_are_not_negative():
    known = Analyzer()
    known.bind(Y, Range(0, 4))
    by = Broadcast(IntImm("int32", 8), LANES)
    for base, stride, expected in [(Y * 8, 1, "x4(y)"), (Y * 8, 8, "ramp(y, 1, 4)"), (X * 8, 8, None), (Y * 8, -8, None)]:
        e = Div(Ramp(base, IntImm("int32", stride), LANES), by)
        simple = known.simplify(e)
        assert repr(simple) == (expected or repr(e))
        for y in range(4):
            assert lanes_of(simple, {X: y - 2, Y: y}) == lanes_of(e, {X: y - 2, Y: y})
    remainder = known.simplify(Mod(Ramp(Y * 8, IntImm("int32", 1), LANES), by))
    assert repr(remainder) == "ramp(0, 1, 4)"


def test_a_mask_that_is_on_in_all_lanes_is_dropped():
    memory, known = Var("A", "handle"), Analyzer()
    known.bind(X, Range(0, 4))
    ramp = Ramp(X * LANES, IntImm("int32", 1), LANES)
    for limit, shown in [(16, ""), (15, " if (ramp((x*4), 1, 4) < x4(15))")]:
        load = Load("float32x4", memory, ramp, LT(ramp, Broadcast(IntImm("int32", limit), LANES)))
        assert repr(known.simplify(load)).replace("(float32x4*)", "") == "A[ramp((x*4), 1, 4)]" + shown


def test_masks_of_the_first_groups_are_those_of_the_first_lanes():
    known = Analyzer()
    known.bind(Y, Range(0, 100))
    data = Load("int32", Var("A", "handle"), IntImm("int32", 0), None)
    by, ramp = Broadcast(IntImm("int32", 2), LANES), Ramp(IntImm("int32", 0), IntImm("int32", 1), LANES)
    groups = FloorDiv(ramp, by)
    for e, expected in [
        (LT(Add(Broadcast(Y * 8, LANES), groups), Broadcast(IntImm("int32", 100), LANES)), "(ramp((y*16), 1, 4) < x4(200))"),
        (LE(groups, Broadcast(Y, LANES)), "(ramp(0, 1, 4) < x4(((y*2) + 2)))"),
        (LT(Add(Broadcast(data, LANES), groups), Broadcast(Y, LANES)), None),  # twice the number might wrap
    ]:
        simple = known.simplify(e)
        assert repr(simple) == (expected or repr(e))
        for y in range(100 if expected else 0):
            assert lanes_of(simple, {X: y - 2, Y: y}) == lanes_of(e, {X: y - 2, Y: y})
