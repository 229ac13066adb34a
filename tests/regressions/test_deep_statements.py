"""A chain of stages is as many allocations, each inside the last: passes once ran into Python's recursion limit at 200."""

import sys

import numpy as np

import tedsl
from tedsl import te
from tedsl.driver import schedule_to_module
from tedsl.ir.evaluate import run


def test_a_chain_of_stages_deeper_than_the_recursion_limit_allows():
    limit = sys.getrecursionlimit()
    A = last = te.placeholder((5,), name="A")
    for k in range(450):
        last = te.compute((5,), lambda i, source=last: source[i] * 0.5 + 1.0, name=f"T{k}")
    s = te.create_schedule(last.op)
    a, by_loops, by_machine = np.ones(5, "float32"), np.zeros(5, "float32"), np.zeros(5, "float32")
    lowered = tedsl.lower(s, [A, last])
    assert str(lowered).count("allocate") >= 2
    run(schedule_to_module(s, [A, last])["main"], [a, by_loops])
    tedsl.build(s, [A, last])(a, by_machine)
    np.testing.assert_array_equal(by_machine, 2)
    np.testing.assert_array_equal(by_loops, by_machine)
    assert sys.getrecursionlimit() == limit
