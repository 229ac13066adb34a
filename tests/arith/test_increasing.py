"""Values that are proved to increase from iteration to iteration do; checked against all iterations of small loops."""

import itertools

import numpy as np
import pytest

from tedsl import te, tir
from tedsl.arith.analyzer import Analyzer
from tedsl.arith.increasing import increases
from tedsl.ir import build
from tedsl.ir.evaluate import evaluate
from tedsl.ir.iters import Range


def nest(*extents):
    analyzer = Analyzer()
    loops = [(te.var(f"k{at}"), build.as_expr(extent)) for at, extent in enumerate(extents)]
    for var, extent in loops:
        analyzer.bind(var, Range.from_min_extent(build.as_expr(0), extent))
    return analyzer, loops


@pytest.mark.parametrize("factors", list(itertools.product((-1, 0, 1, 2, 3, 6), repeat=2)), ids=str)
@pytest.mark.parametrize("extents", [(2, 3), (1, 4), (3, 1), (4, 0)], ids=str)
def test_two_loops(factors, extents):
    analyzer, loops = nest(*extents)
    (i, _), (j, _) = loops
    value = i * factors[0] + j * factors[1] + 5
    found = [evaluate(value, {i: a, j: b}) for a in range(extents[0]) for b in range(extents[1])]
    grows = bool(np.all(np.diff(found) > 0))
    assert not increases(value, loops, analyzer) or grows
    if min(extents) > 1:
        assert increases(value, loops, analyzer) == grows


def test_a_symbolic_extent_may_be_that_of_the_outermost_loop():
    n = te.var("n")
    analyzer, loops = nest(n, 4)
    assert increases(loops[0][0] * 4 + loops[1][0], loops, analyzer) is False  # 4 n may wrap around
    analyzer, loops = nest(te.min(n, 1000), 4)
    assert increases(loops[0][0] * 4 + loops[1][0], loops, analyzer)
    analyzer, loops = nest(4, n)
    assert not increases(loops[0][0] * 1000 + loops[1][0], loops, analyzer)


def test_values_that_are_not_linear():
    analyzer, loops = nest(4, 4)
    (i, _), (j, _) = loops
    for value in (i * j, tir.floormod(i, 2) * 4 + j, tir.min(i * 4 + j, 7), i * 4 + j // 2, (i * 4 + j).astype("int8") * 100):
        assert not increases(value, loops, analyzer)
