"""Sums of multiples of variables, as most indices are, take no rules: they are what the rules would make of them."""

import random

import pytest

from tedsl.arith.analyzer import Analyzer
from tedsl.ir import build
from tedsl.ir.expr import Add, Broadcast, IntImm, Let, Load, Max, Min, Mul, Ramp, SizeVar, Sub, Var
from tedsl.ir.iters import Range
from tedsl.ir.script import shown
from tedsl.ir.walk.index_arithmetic import difference

X, Y, Z, N = Var("x"), Var("y"), Var("z"), SizeVar("n")
POINTER = Var("A", "handle")


def number(value):
    return IntImm("int32", value)


def least(a, b):
    return Min(Mul(a, number(12)), number(b))


def sum_of_terms(rng, terms):
    """A sum of `terms`, in any order and grouping."""
    if len(terms) == 1:
        return terms[0]
    at = len(terms) - 1 if rng.randrange(3) else rng.randrange(1, len(terms))
    return (Sub if rng.randrange(12) == 0 else Add)(sum_of_terms(rng, terms[:at]), sum_of_terms(rng, terms[at:]))


def drawn(rng):
    atoms = [X, Y, Z, N, least(X, 500), least(Y, 30), Max(least(X, 500), Y), number(rng.choice([-3, 0, 1, 7, 512]))]
    terms = [rng.choice(atoms) for _ in range(rng.randrange(1, 6))]
    terms = [Mul(term, number(rng.choice([-1, 0, 1, 2, 64]))) if rng.randrange(2) else term for term in terms]
    e = sum_of_terms(rng, terms)
    if rng.randrange(4) == 0:
        e = Let(Z, Load("int32", POINTER, X), e) if rng.randrange(2) else Add(e, Load("int32", POINTER, e))
    if rng.randrange(4) == 0:
        e = Load("float32x4", POINTER, Ramp(e, number(1), 4)) if rng.randrange(2) else Broadcast(e, 4)
    return e


def simplified(expressions):
    analyzer = Analyzer()
    for var, extent in ((X, 50), (Y, 7), (Z, 1)):
        analyzer.bind(var, Range.from_min_extent(number(0), number(extent)))
    plain = [shown(analyzer.simplify(e)) for e in expressions]
    with analyzer.constraint_scope(build.less(X, number(4))):
        return plain + [shown(analyzer.simplify(e)) for e in expressions]


@pytest.mark.parametrize("seed", range(20))
def test_sums_are_simplified_as_by_the_rules(seed, monkeypatch):
    rng = random.Random(seed)
    expressions = [drawn(rng) for _ in range(60)]
    found = simplified(expressions)
    monkeypatch.setattr("tedsl.arith.simplify._plain_sum", lambda *_: None)
    assert found == simplified(expressions)


@pytest.mark.parametrize("e, simple", [
    (Add(Add(Mul(X, number(64)), Y), number(3)), "x*64 + y + 3"),
    (Add(Add(Mul(X, number(64)), number(3)), Y), "x*64 + y + 3")])
def test_plain_sums_are_not_looked_into(e, simple):
    analyzer = Analyzer()
    assert shown(analyzer.simplify(e)) == simple and not analyzer.known.has_met(X)


@pytest.mark.parametrize("e, simple", [
    (Add(Mul(X, number(2)), Mul(X, number(3))), "x*5"), (Add(X, X), "x*2"), (Add(Add(X, number(1)), X), "x*2 + 1"),
    (Add(Mul(least(X, 500), number(2)), Mul(least(X, 500), number(3))), "min(x*12, 500)*5"),
    (Add(Add(X, number(1)), number(2)), "x + 3"), (Add(number(1), X), "x + 1"), (Mul(X, number(1)), "x")])
def test_other_sums_are(e, simple):
    assert shown(Analyzer().simplify(e)) == simple


def test_a_difference_is_without_what_both_begin_with():
    start = Mul(X, number(8))
    deep = X
    for _ in range(10):
        deep = Add(deep, Y)
    for e, begin, left in ((Add(Mul(X, number(8)), Y), start, "y"), (Mul(X, number(8)), start, "0"),
                           (Add(start, Y), Y, "x*8 + y - y"), (Add(Mul(X, number(4)), Y), start, "x*4 + y - x*8"),
                           (Add(Load("int32", POINTER, X), Y), Load("int32", POINTER, X), "A[x] + y - A[x]")):
        assert shown(difference(e, begin)) == left
    assert shown(difference(deep, deep)) == "0" and isinstance(difference(Add(deep, Z), deep), Var)
