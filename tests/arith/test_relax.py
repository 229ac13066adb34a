"""Regions: exact for affine indices, covering for everything else, checked against all values."""

import itertools
import random

import pytest
from arith_reference import value
from test_arith_random import expression

from tedsl.arith.analyzer import Analyzer
from tedsl.arith.interval import relax
from tedsl.ir import build
from tedsl.ir.buffer import decl_buffer
from tedsl.ir.expr import BufferLoad, SizeVar, Var
from tedsl.ir.text import repr_text
from tedsl.ir.walk.visitor import variables

I, J, DY, I0, T = Var("i"), Var("j"), Var("dy"), Var("i0"), SizeVar("t")


def shown(ends):
    return tuple(None if end is None else repr_text(end) for end in ends)


def test_a_halo_is_part_of_the_region():
    assert shown(relax(I + DY, {I: (I0, I0 + T - 1), DY: (0, 2)}, Analyzer())) == ("i0", "((i0 + t) + 1)")


def test_a_split_axis_gives_back_its_tile():
    assert shown(relax(I0 * 16 + J, {J: (0, 15)}, Analyzer())) == ("(i0*16)", "((i0*16) + 15)")
    assert shown(relax((I0 * 16 + J) // 16, {J: (0, 15)}, Analyzer())) == ("i0", "i0")
    assert shown(relax((I0 * 16 + J) % 16, {J: (0, 15)}, Analyzer())) == ("0", "15")
    assert shown(relax((I0 * 16 + J) % 4, {J: (0, 15)}, Analyzer())) == ("0", "3")


def test_the_same_variable_twice_is_exact():
    assert shown(relax(I * 3 - I, {I: (0, 4)}, Analyzer())) == ("0", "8")
    assert shown(relax(J - I * 2, {I: (0, 4), J: (I0, I0 + 1)}, Analyzer())) == ("(i0 - 8)", "(i0 + 1)")


def test_what_memory_decides_is_unknown_unless_its_dtype_bounds_it():
    table = decl_buffer((8,), "int32", "T")
    assert relax(BufferLoad(table, (I,)), {I: (0, 7)}, Analyzer()) == (None, None)
    small = BufferLoad(decl_buffer((8,), "uint8", "S"), (I,))
    assert shown(relax(build.cast("int32", small) + 1, {I: (0, 7)}, Analyzer())) == ("1", "256")
    clamped = build.maximum(build.minimum(BufferLoad(table, (I,)), 9), 0)
    assert shown(relax(clamped, {I: (0, 7)}, Analyzer())) == ("0", "9")


def test_a_variable_without_a_range_is_a_symbol():
    assert shown(relax(J + 1, {I: (0, 7)}, Analyzer())) == ("(j + 1)", "(j + 1)")
    assert shown(relax(I * T, {I: (0, 7)}, Analyzer())) == ("0", "(t*7)")
    assert shown(relax(I, {I: (0, None)}, Analyzer())) == ("0", None)


@pytest.mark.parametrize("part", range(4))
def test_random_regions_cover_all_values(part):
    """i in [x, x + 3], j in [0, 2] inside random expressions of them and symbols."""
    symbols = [Var("x"), SizeVar("n")]
    for seed in range(part * 150, part * 150 + 150):
        rng = random.Random(seed)
        e = expression(rng, 3)
        names = {v.name: v for v in variables(e)}
        moving = [v for name, v in names.items() if name in ("i", "j")]
        still = [v for v in names.values() if v not in moving]
        base = still[0] if still else symbols[0]
        ranges = {v: (base, base + 3) if v.name == "i" else (0, 2) for v in moving}
        low, high = relax(e, ranges, Analyzer())
        for _ in range(6):
            env = {v: rng.randint(0, 9) if isinstance(v, SizeVar) else rng.randint(-9, 9) for v in [*still, base]}
            at = [range(env[base], env[base] + 4) if v.name == "i" else range(3) for v in moving]
            values = [value(e, env | dict(zip(moving, point))) for point in itertools.product(*at)]
            assert low is None or value(low, env) <= min(values), f"{seed}: {e!r} {ranges} {low!r}"
            assert high is None or max(values) <= value(high, env), f"{seed}: {e!r} {ranges} {high!r}"


@pytest.mark.parametrize("part", range(2))
def test_random_affine_regions_are_exact(part):
    for seed in range(part * 100, part * 100 + 100):
        rng = random.Random(seed)
        c = [rng.randint(-5, 5) for _ in range(4)]
        e = I * c[0] + J * c[1] + I0 * c[2] + c[3]
        ranges = {I: (I0 - 1, I0 + 2), J: (0, 3)}
        low, high = relax(build.as_expr(e), ranges, Analyzer())
        for at in range(-4, 5):
            values = [value(build.as_expr(e), {I: i, J: j, I0: at}) for i in range(at - 1, at + 3) for j in range(4)]
            assert (value(low, {I0: at}), value(high, {I0: at})) == (min(values), max(values))


def test_conditions_are_used_in_a_choice():
    assert shown(relax(build.select(I < 3, I, J), {I: (0, 9), J: (2, 4)}, Analyzer())) == ("0", "9")


def test_a_variable_with_one_value_is_that_value_everywhere():
    at = (T, T)
    assert shown(relax(I // 2, {I: at}, Analyzer())) == ("floordiv(t, 2)", "floordiv(t, 2)")
    assert shown(relax(I % 3 + J, {I: at, J: (0, 4)}, Analyzer())) == ("floormod(t, 3)", "(floormod(t, 3) + 4)")
    assert shown(relax(build.minimum(I // 2, 5), {I: (7, 7)}, Analyzer())) == ("3", "3")
    assert shown(relax((I // 2) * 4 + J, {I: at, J: (0, 3)}, Analyzer())) == ("(floordiv(t, 2)*4)", "((floordiv(t, 2)*4) + 3)")
