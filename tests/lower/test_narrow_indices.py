"""Arithmetic on narrow and unsigned data wraps in addresses too: B[-A[i]] of uint8 was read at -A[i] clamped to 0."""

import numpy as np
import pytest

import tedsl
from tedsl import te
from tedsl.ir.evaluate import run
from tests.lower.end_to_end import check_both
from tests.lower.programs import whole_numbers

FORMULAS = {
    "add": lambda a, one: a + a, "negate": lambda a, one: -a - one, "multiply": lambda a, one: a * a * (one + one + one),
    "divide": lambda a, one: (a + a) // (one + one + one), "remainder": lambda a, one: (a + a) % (one + one + one),
    "sum of differences": lambda a, one: (a - one) + (a - one - one),
}


@pytest.mark.parametrize("lanes", [1, 8])
@pytest.mark.parametrize("name", FORMULAS)
@pytest.mark.parametrize("of", ["int8", "uint8", "int16", "uint16", "uint32"])
def test_an_index_is_what_numpy_computes(of, name, lanes):
    n, formula = te.size_var("n"), FORMULAS[name]
    A, B = te.placeholder((n,), of, name="A"), te.placeholder((n,), "float32", name="B")
    T = te.compute((n,), lambda i: B[formula(A[i], te.const(1, of)).astype("int32") % n], name="T")
    s = te.create_schedule(T.op)
    if lanes > 1:
        _, inner = s[T].split(T.op.axis[0], lanes)
        s[T].vectorize(inner)
    module = tedsl.lower(s, [A, B, T])
    ends = np.iinfo(of)
    a = np.random.default_rng(0).integers(ends.min, ends.max, 37, dtype=of, endpoint=True)
    a[:4] = ends.min, ends.max, 0, 1
    b = np.arange(37, dtype="float32")
    with np.errstate(over="ignore"):
        expected = b[formula(a, np.array(1, of)).astype("int32").astype("int64") % 37]
    for way in (tedsl.build(module), lambda *args: run(module["main"], args)):
        result = np.full(37, np.nan, "float32")
        way(a, b, result)
        np.testing.assert_array_equal(result, expected)


@pytest.mark.parametrize("deep", [2, 3000])
def test_sums_of_any_depth(deep):
    n = te.size_var("n")
    A, B = te.placeholder((n,), "uint8", name="A"), te.placeholder((n,), "float32", name="B")

    def index(i):
        total = A[i]
        for _ in range(deep):
            total = total + A[i]
        return total.astype("int32") % n

    T = te.compute((n,), lambda i: B[index(i)], name="T")
    s = te.create_schedule(T.op)
    a, b, result = np.arange(9, dtype="uint8") * 27, np.arange(9, dtype="float32"), np.empty(9, "float32")
    tedsl.build(s, [A, B, T])(a, b, result)
    np.testing.assert_array_equal(result, b[(a * np.uint8((deep + 1) % 256)).astype("int64") % 9])


@pytest.mark.parametrize(("of", "count", "formula"), [
    ("uint8", 40, lambda a: a * te.const(70, "uint8")), ("int8", 125, lambda a: te.max(a, te.const(3, "int8"))),
    ("int8", 125, lambda a: a // te.const(3, "int8")), ("uint8", 254, lambda a: a // te.const(3, "uint8")),
    ("int16", 40, lambda a: te.max(a * te.const(3000, "int16"), te.const(0, "int16")) // te.const(128, "int16")),
    ("uint32", 40, lambda a: a * te.const(3_000_000_000, "uint32") // te.const(1 << 25, "uint32"))])
def test_the_region_of_an_index_that_wraps(of, count, formula):
    A = te.placeholder((300,), name="A")
    P = te.compute((300,), lambda i: A[i] + 1, name="P")
    B = te.compute((count,), lambda i: P[formula(i.astype(of)).astype("int32")], name="B")
    s = te.create_schedule(B.op)
    outer, _ = s[B].split(B.op.axis[0], factor=6)
    s[P].compute_at(s[B], outer)
    check_both(s, [A, B], {A: whole_numbers((300,))})
