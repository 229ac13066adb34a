"""The iterations of a loop in which a guard holds for all iterations of the loops inside."""

import random

import pytest

from tedsl.arith.analyzer import Analyzer
from tedsl.ir import build
from tedsl.ir.expr import GE, GT, LE, LT, Broadcast, IntImm, Load, Ramp, Var, pointer_var
from tedsl.ir.iters import Range
from tedsl.ir.stmt import For, ForKind, no_op
from tedsl.passes.facts import guard_ranges
from tedsl.passes.facts.guard_ranges import holding_interval
from tedsl.tir import Cast

I, J, K, N = Var("i"), Var("j"), Var("k"), Var("n")
HOLDS = {LT: lambda a, b: a < b, LE: lambda a, b: a <= b, GT: lambda a, b: a > b, GE: lambda a, b: a >= b}


def loops(first, sizes):
    return tuple(For(v, build.const(low), build.const(size), ForKind.SERIAL, no_op())
                 for v, low, size in zip((J, K), first, sizes))


def analyzer_for(inner):
    analyzer = Analyzer()
    analyzer.bind(I, Range(0, 40))
    for loop in inner:
        analyzer.bind(loop.loop_var, Range.from_min_extent(loop.min, loop.extent))
    return analyzer


def interval(guard, inner):
    """Low and high as numbers; None: unbounded."""
    found = holding_interval(guard, I, inner, analyzer_for(inner))
    return None if found is None else tuple(None if end is None else build.as_int(end) for end in (found.low, found.high))


def drawn(draw):
    """(kind, factors of i, j, k and the constant on both sides, the first j and k, how many)"""
    factors = [[draw.choice((0, 0, 1, -1, 2, 3, -4, 12)) for _ in range(3)] + [draw.randint(-30, 60)] for _ in range(2)]
    first, sizes = [draw.choice((0, 0, 2, -3)) for _ in range(2)], [draw.randint(1, 5) for _ in range(2)]
    return draw.choice((LT, LE, GT, GE)), factors, first, sizes


def written(factors):
    a, b, c, constant = factors
    return build.add(build.sub(build.mul(I, a), build.mul(J, -b)), build.add(build.mul(K, c), constant))


@pytest.mark.parametrize("seed", range(60))
def test_it_is_what_trying_all_iterations_finds(seed, monkeypatch):
    kind, (left, right), first, sizes = drawn(random.Random(seed))
    guard, inner = kind(written(left), written(right)), loops(first, sizes)
    found = interval(guard, inner)
    monkeypatch.setattr(guard_ranges, "_of_numbers", lambda *_: None)
    assert found == interval(guard, inner), "as by proofs"
    if left[0] == right[0]:
        assert found is None
        return
    value = lambda f, i, j, k: f[0] * i + f[1] * j + f[2] * k + f[3]
    places = [(j, k) for j in range(first[0], first[0] + sizes[0]) for k in range(first[1], first[1] + sizes[1])]
    for i in range(-100, 100):
        holds = all(HOLDS[kind](value(left, i, j, k), value(right, i, j, k)) for j, k in places)
        assert holds == ((found[0] is None or i >= found[0]) and (found[1] is None or i < found[1]))


def test_no_proof_is_needed_for_constants(monkeypatch):
    monkeypatch.setattr(guard_ranges, "split_linear", None)
    assert interval(LT(build.add(build.mul(I, 12), J), build.const(512)), loops((0, 0), (12, 1))) == (None, 42)
    lanes = LT(Ramp(build.mul(I, 16), build.const(1), 16), Broadcast(build.const(100), 16))
    assert interval(lanes, ()) == (None, 6)


@pytest.mark.parametrize("guard", [
    LT(build.mul(I, 3), N), LT(build.floordiv(I, 3), build.const(5)), LT(Cast("int64", I), build.const(5, "int64")),
    LE(I, build.const(2**31 - 1)), LT(Load("int32", pointer_var("p", build.const(0).dtype), I), build.const(5))])
def test_others_are_left_to_proofs(guard):
    assert guard_ranges._of_numbers(guard, I, ()) is None


def test_parts_that_are_used_again_are_not_taken_apart():
    e = I
    for _ in range(60):
        e = build.add(e, e)
    assert guard_ranges._of_numbers(LT(e, build.const(5)), I, ()) is None


def test_loops_of_symbolic_extent_are_left_to_proofs():
    inner = (For(J, build.const(0), N, ForKind.SERIAL, no_op()),)
    guard = LT(build.add(build.mul(I, 4), J), build.const(100))
    assert guard_ranges._of_numbers(guard, I, inner) is None
    assert isinstance(guard_ranges._of_numbers(guard, I, loops((0, 0), (4, 1))).high, IntImm)
