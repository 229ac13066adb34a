"""Random expressions over several dtypes, scalar and vector: compiled for each instruction set, against the interpreter."""

import numpy as np
import pytest

from tedsl.fuzz.draw import Draw
from tedsl.fuzz.expressions import DTYPES, draw_expressions
from tedsl.ir import expr
from tedsl.ir.evaluate import run
from tedsl.ir.walk.visitor import post_order
from tests.codegen.kernels import RUNNABLE, Kernel

PROGRAMS = {lanes: range(1000 * lanes, 1000 * lanes + 12) for lanes in (1, 4, 16)}


@pytest.mark.parametrize("lanes, seed", [(lanes, seed) for lanes, seeds in PROGRAMS.items() for seed in seeds])
def test_random_expressions(lanes, seed):
    drawn = draw_expressions(Draw(seed), lanes)
    expected = drawn.results()
    with np.errstate(all="ignore"):
        run(drawn.func, [*drawn.inputs, *expected, drawn.n])
    for target in RUNNABLE:
        results = drawn.results()
        assert Kernel(drawn.func, target, vectorize=seed % 2 == 0)(*drawn.inputs, *results, drawn.n) == 0
        for k, (result, wanted) in enumerate(zip(results, expected)):
            np.testing.assert_array_equal(result, wanted, err_msg=f"output {k}, {target}\n{drawn.values[k]}")


def test_all_nodes_and_dtypes_are_drawn():
    """In the programs of the test above."""
    nodes, dtypes = set(), set()
    for lanes, seeds in PROGRAMS.items():
        for seed in seeds:
            drawn = draw_expressions(Draw(seed), lanes)
            dtypes |= {(lanes, of) for of in drawn.outputs}
            for e in (e for value in drawn.values for e in post_order(value)):
                nodes.add((lanes, type(e)))
                if isinstance(e, expr.Call):
                    nodes.add((lanes, e.op.name))
    either = {expr.Add, expr.Sub, expr.Mul, expr.Div, expr.Mod, expr.FloorDiv, expr.FloorMod, expr.Min, expr.Max, expr.EQ,
              expr.NE, expr.LT, expr.LE, expr.GT, expr.GE, expr.And, expr.Or, expr.Not, expr.Select, expr.Cast, expr.Load,
              "tir.if_then_else", "tir.shift_left", "tir.shift_right", "tir.bitwise_and", "tir.bitwise_xor"}
    wanted = {(lanes, node) for lanes in PROGRAMS for node in either}
    wanted |= {(1, expr.Let), (4, expr.Ramp), (16, expr.Ramp), (4, expr.Broadcast), (16, expr.Broadcast)}
    assert wanted <= nodes, wanted - nodes
    assert dtypes == {(lanes, of) for lanes in PROGRAMS for of in DTYPES}, "outputs"
