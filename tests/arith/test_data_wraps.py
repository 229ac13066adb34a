"""Data arithmetic wraps: the rules of ideal integers apply only where the range is proved to fit."""

import itertools
import random

import numpy as np
import pytest
from arith_reference import value

from tedsl.arith.analyzer import Analyzer
from tedsl.ir import build
from tedsl.ir.buffer import decl_buffer
from tedsl.ir.expr import Add, BufferLoad, Cast, IntImm, Let, Mul, Select, Sub, Var
from tedsl.ir.walk.visitor import post_order

NARROW = {"uint8": (0, 255), "int8": (-128, 127), "uint16": (0, 65535)}
CONSTANTS = [0, 1, 2, 3, 4, 7, 8, 16, 100, 127]
OPERATIONS = [build.add, build.add, build.sub, build.sub, build.mul, build.floordiv, build.floormod, build.minimum,
              build.maximum, build.truncdiv, build.truncmod]
COMPARISONS = [build.less, build.less_equal, build.greater, build.equal, build.not_equal]


def leaves_of(dtype):
    index = Var("i")
    table = decl_buffer((4,), dtype, "T")
    return [Var("a", dtype), Var("b", dtype), BufferLoad(table, (index,)), BufferLoad(table, (IntImm("int32", 0),))]


def data(rng, depth, leaves):
    dtype = leaves[0].dtype
    if depth == 0 or rng.randrange(8) == 0:
        return rng.choice(leaves) if rng.randrange(3) else IntImm(dtype, rng.choice(CONSTANTS))
    if rng.randrange(10) == 0:
        return build.select(truth(rng, depth - 1, leaves), data(rng, depth - 1, leaves), data(rng, depth - 1, leaves))
    right = IntImm(dtype, rng.choice(CONSTANTS)) if rng.randrange(2) else data(rng, depth - 1, leaves)
    return rng.choice(OPERATIONS)(data(rng, depth - 1, leaves), right)


def truth(rng, depth, leaves):
    return rng.choice(COMPARISONS)(data(rng, max(depth - 1, 0), leaves), data(rng, max(depth - 1, 0), leaves))


def widened(rng, leaves):
    """Narrow loads in int32 arithmetic: exact where they provably fit."""
    wide = [build.cast("int32", leaf) for leaf in leaves]
    return build.cast("int8", data(rng, 3, wide)) if rng.randrange(3) == 0 else data(rng, 3, wide)


@pytest.mark.parametrize("dtype", sorted(NARROW))
@pytest.mark.parametrize("make", [lambda r, leaves: data(r, 3, leaves), lambda r, leaves: truth(r, 3, leaves), widened],
                         ids=["values", "conditions", "widened"])
def test_random_data_expressions_keep_their_value(dtype, make):
    leaves = leaves_of(dtype)
    low, high = NARROW[dtype]
    for seed in range(250):
        rng = random.Random(seed)
        e = make(rng, leaves)
        known = Analyzer()
        simple = known.simplify(e)
        bounds = known.bounds(e) if e.dtype.is_integer else (None, None)
        for _ in range(12):
            env = {leaf: rng.choice([low, high, rng.randint(low, high), 0 if low <= 0 else low]) for leaf in leaves}
            env["wrap"] = True
            env |= {node: env[known.known.value(node)] for node in post_order(simple)
                    if isinstance(node, BufferLoad) and node not in env}
            expected = value(e, env)
            assert value(simple, env) == expected, f"{seed}: {e!r} -> {simple!r}"
            assert bounds[0] is None or bounds[0] <= expected <= bounds[1]


def test_a_loaded_int32_may_wrap():
    table = decl_buffer((4,), "int32", "T")
    x = BufferLoad(table, (Var("i"),))
    known = Analyzer()
    assert not known.can_prove(x < x + 1)
    assert known.simplify((x + 1) // 1 > x) is not build.true()
    assert known.can_prove(build.equal(x - x, 0))


def test_a_loaded_uint8_in_int32_is_exact():
    x = Cast("int32", BufferLoad(decl_buffer((4,), "uint8", "T"), (Var("i"),)))
    known = Analyzer()
    assert known.can_prove(x < x + 1)
    assert known.bounds(x * 2 + 1) == (1, 511)


def test_a_condition_on_memory_teaches_nothing():
    x = BufferLoad(decl_buffer((4,), "int32", "T"), (Var("i"),))
    known = Analyzer()
    with known.constraint_scope(build.less(x, 3)):
        assert not known.can_prove(x < 3)


def test_a_variable_that_stands_for_data_is_data():
    x, y = BufferLoad(decl_buffer((4,), "int32", "T"), (Var("i"),)), Var("y")
    known = Analyzer()
    known.bind(y, x)
    assert not known.can_prove(y < y + 1)


def test_the_variable_of_a_let_is_data_if_its_value_is():
    table, y = decl_buffer((4,), "int32", "T"), Var("y")
    loaded, small = BufferLoad(table, (Var("i"),)), Cast("int32", BufferLoad(decl_buffer((4,), "uint8", "S"), (Var("i"),)))
    body = build.select(y < y + 1, y, 7)
    assert isinstance(Analyzer().simplify(Let(y, loaded, body)).body, Select)
    assert isinstance(Analyzer().simplify(Let(Var("z"), small, build.as_expr(3))), Let)
    assert Analyzer().simplify(Let(y, small, body)).body is y


def test_a_condition_on_a_variable_that_was_loaded_holds():
    known, y = Analyzer(), Var("y")
    known.bind(y, BufferLoad(decl_buffer((4,), "int32", "T"), (Var("i"),)))
    with known.constraint_scope(build.logical_and(y >= 0, y < 4)):
        assert known.bounds(y) == (0, 3)
        assert known.can_prove(y < 4)


@pytest.mark.parametrize("narrow", ["uint8", "int8", "uint16", "int16"])
@pytest.mark.parametrize("wide", ["int32", "int64", "uint32"])
def test_constants_that_wrap_keep_their_value_in_a_wider_type(narrow, wide):
    """int32(uint16(0) - 3) is 65533: random programs found -3."""
    least, most = np.iinfo(narrow).min, np.iinfo(narrow).max
    some = [least, least + 1, 0, 1, 3, most - 1, most]
    for a, b in itertools.product(some, some):
        for kind, of in ((Add, np.add), (Sub, np.subtract), (Mul, np.multiply)):
            expr = Cast(wide, kind(IntImm(narrow, a), IntImm(narrow, b)))
            expected = int(of(np.array([a], narrow), np.array([b], narrow)).astype(wide)[0])
            analyzer = Analyzer()
            assert value(analyzer.simplify(expr), {}) == expected
            bound = analyzer.const_int_bound(expr)
            assert bound.min_value <= expected <= bound.max_value
