"""What lowering may cost: little, and in proportion to the number of stages. Limits are generous: the machine may be busy."""

import subprocess
import sys
import time

import pytest

from tedsl import te
from tedsl.lower.lower import lower_schedule
from tedsl.schedule.handles import create_schedule
from tests.lower.programs import check, whole_numbers


def best_of(count, make):
    """The least seconds of the processor that one of `count` calls takes: others who use the machine do not count."""
    found = []
    for _ in range(count):
        start = time.process_time()
        make()
        found.append(time.process_time() - start)
    return min(found)


def chain(length, shape=(8, 8)):
    source = t = te.placeholder(shape, name="A")
    for number in range(length):
        t = te.compute(shape, lambda *i, t=t: t(*i) + 1.0, name=f"T{number}")
    return source, t, create_schedule(t.op)


@pytest.mark.parametrize("size", [1024, te.var("n")], ids=["constant", "symbolic"])
def test_vector_add(size):
    A, B = te.placeholder((size,), name="A"), te.placeholder((size,), name="B")
    C = te.compute((size,), lambda i: A[i] + B[i], name="C")
    s = create_schedule(C.op)
    outer, inner = s[C].split(C.op.axis[0], factor=32)
    s[C].parallel(outer)
    s[C].vectorize(inner)
    assert best_of(10, lambda: lower_schedule(s, [A, B, C])) < 0.002


@pytest.mark.parametrize("place", ["root", "one loop", "each in the next", "inline"])
def test_two_hundred_stages(place):
    length = 60 if place == "each in the next" else 200  # nests a few hundred deep are more than anybody writes
    A, out, s = chain(length)
    stages = s.stages[1:-1]
    for at, stage in enumerate(stages):
        if place == "one loop":
            stage.compute_at(s[out], out.op.axis[0])
        elif place == "each in the next":
            host = s.stages[at + 2]
            stage.compute_at(host, host.op.axis[0])
        elif place == "inline":
            stage.compute_inline()
    assert best_of(2, lambda: lower_schedule(s, [A, out])) < 1.0
    check(s, [A, out], {A: whole_numbers((8, 8))})


def test_an_inlined_element_that_is_used_twice_is_one_shared_formula():
    A = t = te.placeholder((4,), name="A")
    for number in range(60):  # 2**60 parts if it were copied
        t = te.compute((4,), lambda i, t=t: t[i] * 2.0 - t[i], name=f"T{number}")
    s = create_schedule(t.op)
    for stage in s.stages[1:-1]:
        stage.compute_inline()
    check(s, [A, t], {A: whole_numbers((4,))})


def test_a_formula_ten_thousand_deep():
    A = te.placeholder((4,), name="A")

    def deep(i):
        value = A[i]
        for _ in range(10_000):
            value = value + 1.0
        return value

    B = te.compute((4,), deep, name="B")
    C = te.compute((4,), lambda i: B[i] * 2.0, name="C")
    s = create_schedule(C.op)
    s[B].compute_inline()
    lower_schedule(s, [A, C])


def test_constant_shapes_never_load_sympy():
    code = "from tests.lower.test_cost import *; test_vector_add(1000); import sys; print('sympy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip() == "False"
