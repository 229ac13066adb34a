"""Random expressions over random values: simplification, ranges and canonical sums keep the value."""

import itertools

from arith_reference import value
from hypothesis import given, settings
from hypothesis import strategies as st

from tedsl.arith.analyzer import Analyzer
from tedsl.ir import build
from tedsl.ir.expr import Call, IntImm, SizeVar, Var

LOOPS = {Var("i"): (0, 3), Var("j"): (0, 5), Var("k"): (-3, 2), Var("l"): (0, 15)}
FREE = [Var("x"), Var("y")]
SIZES = [SizeVar("n"), SizeVar("m")]
VARS = [*LOOPS, *FREE, *SIZES]
CONSTANTS = [0, 1, 2, 3, 4, 5, 6, 8, 12, 16, 31, 32, -1, -2, -3, -4, -7]


ARITHMETIC = [build.add, build.add, build.sub, build.sub, build.mul, build.floordiv, build.floormod, build.minimum,
              build.maximum]
BY_CONSTANT = [build.mul, build.mul, build.floordiv, build.floormod, build.floordiv, build.floormod, build.truncdiv,
               build.truncmod, build.add, build.minimum, build.maximum]
COMPARISONS = [build.less, build.less_equal, build.greater, build.greater_equal, build.equal, build.not_equal]


def expression(rng, depth):
    """A random integer expression; numbers are taken from a Random that hypothesis drives."""
    kind = rng.randrange(10)
    if depth == 0 or kind == 0:
        return rng.choice(VARS) if rng.randrange(4) else IntImm("int32", rng.choice(CONSTANTS))
    if kind <= 4:
        return rng.choice(BY_CONSTANT)(expression(rng, depth - 1), IntImm("int32", rng.choice(CONSTANTS)))
    if kind <= 8:
        return rng.choice(ARITHMETIC)(expression(rng, depth - 1), expression(rng, depth - 1))
    choose = build.select if rng.randrange(2) else build.if_then_else
    return choose(condition(rng, depth - 1), expression(rng, depth - 1), expression(rng, depth - 1))


def condition(rng, depth):
    kind = rng.randrange(8)
    if kind == 0 and depth:
        return build.logical_not(condition(rng, depth - 1))
    if kind == 1 and depth:
        return build.likely(condition(rng, depth - 1))
    if kind <= 3 and depth:
        join = rng.choice([build.logical_and, build.logical_or])
        return join(condition(rng, depth - 1), condition(rng, depth - 1))
    return rng.choice(COMPARISONS)(expression(rng, max(depth - 1, 0)), expression(rng, max(depth - 1, 0)))


def sum_of_products(rng, variables, depth):
    """A sum of products of the variables, with the constants and the repeated factors that indices of sizes have."""
    total = IntImm("int32", rng.choice(CONSTANTS))
    for _ in range(rng.randint(1, 4)):
        product = IntImm("int32", rng.choice(CONSTANTS))
        for _ in range(rng.randrange(4)):
            nested = depth and rng.randrange(3) == 0
            product = product * (sum_of_products(rng, variables, depth - 1) if nested else rng.choice(variables))
        total = rng.choice([build.add, build.sub])(total, product)
    return total


RANDOM = st.randoms(use_true_random=True)


def environments(rng, count=16):
    for _ in range(count):
        env = {v: rng.randint(*ends) for v, ends in LOOPS.items()}
        env |= {v: rng.randint(-20, 20) for v in FREE}
        yield env | {v: rng.choice([0, 1, 2, 3, 5, 8]) for v in SIZES}


def analyzer():
    made = Analyzer()
    for v, ends in LOOPS.items():
        made.bind(v, ends)
    return made


@settings(max_examples=400, deadline=None, derandomize=True)
@given(RANDOM)
def test_simplify_keeps_the_value_and_bounds_hold(rng):
    e = expression(rng, 4)
    known = analyzer()
    simple = known.simplify(e)
    low, high = known.bounds(e)
    for env in environments(rng):
        expected = value(e, env)
        assert value(simple, env) == expected
        assert (low is None or low <= expected) and (high is None or expected <= high)
    assert known.simplify(simple) is simple, "a second time changes nothing"


@settings(max_examples=400, deadline=None, derandomize=True)
@given(RANDOM)
def test_sums_of_products_keep_their_value(rng):
    variables = rng.sample(VARS, 3)
    a, b = sum_of_products(rng, variables, 2), sum_of_products(rng, variables, 1)
    e = rng.choice([lambda: a, lambda: a, lambda: rng.choice(ARITHMETIC[-2:])(a, b), lambda: rng.choice(COMPARISONS)(a, b)])()
    simple = analyzer().simplify(e)
    for env in environments(rng):
        assert value(simple, env) == value(e, env)


@settings(max_examples=400, deadline=None, derandomize=True)
@given(RANDOM)
def test_under_a_condition_the_value_is_kept_where_the_condition_holds(rng):
    given_here, e = condition(rng, 3), expression(rng, 3)
    known = analyzer()
    with known.constraint_scope(given_here):
        simple = known.simplify(e)
        low, high = known.bounds(e)
        again = known.simplify(given_here)
    for env in environments(rng):
        assert value(known.simplify(given_here), env) == value(given_here, env)
        if value(given_here, env):
            expected = value(e, env)
            assert value(again, env)
            assert value(simple, env) == expected
            assert (low is None or low <= expected) and (high is None or expected <= high)


@settings(max_examples=200, deadline=None, derandomize=True)
@given(RANDOM)
def test_equal_canonical_sums_are_equal_values(rng):
    a, b = expression(rng, 2), expression(rng, 2)
    known = analyzer().known
    if known.sum(a).key == known.sum(b).key:
        for env in environments(rng):
            assert value(a, env) == value(b, env)


@settings(max_examples=200, deadline=None, derandomize=True)
@given(RANDOM)
def test_symbolic_loops_keep_the_value(rng):
    """x in [0, n // factor), y in [0, x]: every proof over symbols holds for all numbers."""
    e, factor = condition(rng, 3), rng.randint(1, 5)
    n, x, y = SIZES[0], *FREE
    known = analyzer()
    known.bind(x, (0, build.sub(build.floordiv(n, factor), 1)))
    known.bind(y, (0, x))
    simple = known.simplify(e)
    for env in environments(rng, 4):
        for size in range(0, 12):
            xs = list(range(size // factor))
            for xv, yv in itertools.islice(itertools.product(xs, xs), 0, 20, 3):
                if yv <= xv:
                    env = env | {n: size, x: xv, y: yv}
                    assert value(simple, env) == value(e, env)


def test_if_then_else_is_opaque_to_the_side_not_taken():
    x = FREE[0]
    e = build.if_then_else(build.less(x, 3), build.add(x, 0), x)
    assert not isinstance(Analyzer().simplify(e), Call)
