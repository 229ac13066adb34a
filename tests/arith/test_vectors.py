"""Vectors of ramps and broadcasts: the simplified lanes are the lanes."""

import random

import pytest
from arith_reference import OPS, value

from tedsl.arith.analyzer import Analyzer
from tedsl.ir import build
from tedsl.ir.expr import BinaryOp, Broadcast, IntImm, Ramp, Var
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
