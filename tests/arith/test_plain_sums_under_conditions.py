"""Indices that add up multiples of variables are left at once, unless a condition leaves a single value to what is in them."""

import random

import pytest

from tedsl import tir
from tedsl.arith.analyzer import Analyzer
from tedsl.arith.bounds import Bounds
from tedsl.arith.simplify import INTEGER_RULES
from tedsl.ir import build
from tedsl.ir.expr import Add

NAMES = "ijkl"


def analyzer(names, extents):
    made = Analyzer()
    for name, extent in zip(names, extents):
        made.bind(name, (0, extent - 1))
    return made


def condition(rng, names):
    """A comparison of a variable, or of a sum of several, with a constant."""
    picked = rng.sample(names, rng.randint(1, 2))
    total = sum((name * rng.choice((1, 1, 1, 2, -1)) for name in picked[1:]), picked[0] * rng.choice((1, 1, 2)))
    return rng.choice((build.less, build.greater_equal, build.equal, build.less_equal))(total, rng.randint(-1, 8))


def plain(rng, names):
    """A sum of multiples of variables and a constant."""
    picked = rng.sample(names, rng.randint(1, 3))
    terms = [name * rng.choice((1, 2, 3, 16)) for name in picked]
    total = terms[0]
    for at, term in enumerate(terms[1:]):
        total = build.add(build.add(total, rng.choice((0, 1, 5))) if at else total, term)
    return build.add(total, rng.choice((0, 0, 1, 7)))


@pytest.mark.parametrize("seed", range(40))
def test_conditions_change_nothing_else_than_by_the_rules(seed, monkeypatch):
    rng = random.Random(seed)
    names = [tir.Var(name, "int32") for name in NAMES]
    extents = [rng.choice((1, 2, 8, 8, 8)) for _ in names]
    conditions = [condition(rng, names) for _ in range(rng.randint(1, 2))]
    sums = [plain(rng, names) for _ in range(12)]

    def simplified():
        made = analyzer(names, extents)
        with made.constraint_scope(build.logical_and(conditions[0], conditions[-1])):
            return [str(made.simplify(one)) for one in sums]

    at_once = simplified()
    monkeypatch.setattr(Bounds, "pins", lambda self: True)  # none is left at once
    assert at_once == simplified()


def test_other_conditions_do_not_have_rules_tried(monkeypatch):
    i, j = tir.Var("i", "int32"), tir.Var("j", "int32")
    made = analyzer((i, j), (8, 8))
    with made.constraint_scope(build.less(i + j, 5)):
        monkeypatch.setitem(INTEGER_RULES, Add, lambda e, known: pytest.fail(f"a rule looks at {e}"))
        assert str(made.simplify(i * 4 + j + 3)) == "(((i: int32*4) + j: int32) + 3)"


def test_a_condition_that_leaves_a_single_value():
    i, j = tir.Var("i", "int32"), tir.Var("j", "int32")
    made = analyzer((i, j), (8, 8))
    with made.constraint_scope(build.equal(i, 3)):
        assert str(made.simplify(i * 4 + j)) == "(j: int32 + 12)"
    with made.constraint_scope(build.less(i, 1)):
        assert str(made.simplify(i * 4 + j)) == "j: int32"
    with made.constraint_scope(build.equal(i + j, 5)):
        assert str(made.simplify(i * 2 + j * 2)) == "10"
    with made.constraint_scope(build.less(i + j, 5)):
        assert str(made.simplify(i * 4 + j)) == "((i: int32*4) + j: int32)"
