"""Values made of axes and scalars alone are numbers that never wrap on the way to their store, whatever the schedule.

Simplification took them for such numbers, and machine code computed them in 32 bits: products beyond 2**31 gave other
values in vectors, in split loops, and when they were written into their readers.
"""

import numpy as np
import pytest

import tedsl
from tedsl import te
from tedsl.driver import schedule_to_module
from tedsl.ir.evaluate import run

N = 50003
FORMULAS = {
    "divided": lambda i: (i * 100000) // 3,
    "divided exactly": lambda i: (i * 100000) // 100000,
    "remainder": lambda i: (i * 1103515245 + 12345) % 1000,
    "remainder of a prime": lambda i: (i * 1103515245 + 12345) % 997,
    "largest": lambda i: te.max(i * 100000, 5),
    "smallest": lambda i: te.min(i * -100000, 5) // 7,
    "difference": lambda i: te.max(i * 100000, i * 100000 - 5) - i * 100000,
    "condition": lambda i: te.if_then_else(i * 100000 < 0, 1, i),
    "chosen": lambda i: te.if_then_else(i % 2 < 1, i * 100000, i) // 3,
    "selected": lambda i: te.select(i % 2 < 1, i * 100000, i) % 1000,
    "float64": lambda i: (i * 100000).astype("float64"),
    "float32": lambda i: (i * 100000).astype("float32"),
    "int64": lambda i: (i * 100000).astype("int64") + 1,
    "uint8": lambda i: ((i * 100000) // 256).astype("uint8"),
    "wrapped": lambda i: i * 100000,
}


class Numbers:
    """`te` for numpy arrays of int64."""

    max, min = np.maximum, np.minimum
    if_then_else = select = staticmethod(np.where)


def expected_of(formula, dtype):
    names = dict(formula.__globals__)
    names["te"] = Numbers
    made = type(formula)(formula.__code__, names)(np.arange(N, dtype="int64"))
    return made.astype(dtype)


def vectorized(s, B):
    s[B].vectorize(s[B].split(B.op.axis[0], 8)[1])


def unrolled(s, B):
    outer, inner = s[B].split(B.op.axis[0], 48, tail="partition")
    s[B].unroll(s[B].split(inner, nparts=6)[0])


SCHEDULES = {"plain": lambda s, B: None, "vectorized": vectorized, "unrolled": unrolled,
             "split": lambda s, B: s[B].split(B.op.axis[0], 5), "cached": lambda s, B: s.cache_write(B, "local")}


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("name", FORMULAS)
def test_one_value_under_every_schedule(name, schedule):
    B = te.compute((N,), FORMULAS[name], name="B")
    s = te.create_schedule(B.op)
    SCHEDULES[schedule](s, B)
    expected, result = expected_of(FORMULAS[name], B.dtype), np.zeros(N, B.dtype)
    tedsl.build(s, [B])(result)
    np.testing.assert_array_equal(result, expected)


@pytest.mark.parametrize("name", FORMULAS)
def test_the_interpreter_agrees(name):
    B = te.compute((N,), FORMULAS[name], name="B")
    expected = expected_of(FORMULAS[name], B.dtype)
    for make in (schedule_to_module, tedsl.lower):
        result = np.zeros(N, B.dtype)
        run(make(te.create_schedule(B.op), [B])["main"], [result])
        np.testing.assert_array_equal(result, expected)


@pytest.mark.parametrize("inline", [False, True])
def test_a_stored_value_wraps_in_its_readers_too(inline):
    T = te.compute((N,), lambda i: i * 100000, name="T")
    B = te.compute((N,), lambda i: T[i] // 3, name="B")
    s = te.create_schedule(B.op)
    if inline:
        s[T].compute_inline()
    result = np.zeros(N, "int32")
    tedsl.build(s, [B])(result)
    np.testing.assert_array_equal(result, (np.arange(N) * 100000).astype("int32") // 3)


@pytest.mark.parametrize("x", [3, 40000, 123456])
@pytest.mark.parametrize("lanes", [1, 8])
def test_scalar_arguments(x, lanes):
    v = te.var("x")
    B = te.compute((24,), lambda i: te.if_then_else((v + i) * 1000 > 0, ((v + i) * 100000) // 100000, -1), name="B")
    s = te.create_schedule(B.op)
    s[B].vectorize(s[B].split(B.op.axis[0], lanes)[1])
    result = np.zeros(24, "int32")
    tedsl.build(s, [v, B])(x, result)
    np.testing.assert_array_equal(result, x + np.arange(24))
