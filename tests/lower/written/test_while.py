"""`while` loops written by hand: interpreter and machine code agree, whatever the passes do around them."""

import numpy as np
import pytest

import tedsl
from tedsl import te, tir
from tests.lower.written.programs import both, function

n = te.var("n")
A = tir.decl_buffer((n,), "int32", "A")
B = tir.decl_buffer((n,), "int32", "B")
F = tir.decl_buffer((n,), "float32", "F")


def written(write, *buffers, scalars=()):
    ib = tir.ir_builder.create()
    write(ib, *map(ib.buffer_ptr, buffers))
    return function(ib.get(), *buffers, scalars=scalars)


def ints(*values):
    return np.array(values, "int32")


@pytest.mark.parametrize("kind", ["serial", "parallel", "vectorize", "unroll"])
def test_steps_of_collatz(kind):
    """A while loop per element, in every kind of loop."""
    X, Y = tir.decl_buffer((8,), "int32", "X"), tir.decl_buffer((8,), "int32", "Y")

    def write(ib, x, y):
        with ib.for_range(0, 8, "i", kind=kind) as i:
            v = ib.allocate("int32", 1, "v", "local")
            v[0] = x[i]
            y[i] = 0
            with ib.while_loop(v[0] > 1):
                with ib.if_scope(v[0] % 2 == 0):
                    v[0] = v[0] // 2
                with ib.else_scope():
                    v[0] = v[0] * 3 + 1
                y[i] = y[i] + 1
    assert both(written(write, X, Y), ints(1, 2, 3, 6, 7, 9, 27, 97), ints(*[9] * 8))[1].tolist() == \
        [0, 1, 7, 8, 16, 19, 111, 118]


def test_binary_search():
    def write(ib, a, b):
        with ib.for_range(0, n, "i") as i:
            low, high = ib.allocate("int32", 1, "low"), ib.allocate("int32", 1, "high")
            low[0] = 0
            high[0] = n
            with ib.while_loop(low[0] < high[0]):
                middle = ib.let("middle", (low[0] + high[0]) // 2)
                with ib.if_scope(a[middle] < b[i]):
                    low[0] = middle + 1
                with ib.else_scope():
                    high[0] = middle
            b[i] = low[0]
    a, b = ints(1, 3, 5, 7, 9), ints(0, 3, 4, 9, 10)
    assert both(written(write, A, B), a, b)[1].tolist() == np.searchsorted(a, b).tolist()


def test_the_condition_sees_what_the_body_writes():
    """Sums are not kept in registers while the condition reads them in memory."""
    def write(ib, a, f):
        with ib.while_loop(f[0] < 100.0), ib.for_range(0, n, "k") as k:
            f[0] = f[0] + f[k] + 1.0
    f = np.array([1, 2, 3], "float32")
    both(written(write, A, F), ints(0, 0, 0), f)


def test_loops_in_while_in_loops():
    def write(ib, a, b):
        with ib.for_range(0, n, "i") as i:
            count = ib.allocate("int32", 1, "count")
            count[0] = 0
            with ib.while_loop(count[0] < a[i]):
                t = ib.allocate("int32", 4, "t")
                with ib.for_range(0, 4, "k", kind="vectorize") as k:
                    t[k] = count[0] * k
                with ib.for_range(0, 4, "k", kind="unroll") as k:
                    b[i] = b[i] + t[k]
                inner = ib.allocate("int32", 1, "inner")
                inner[0] = 0
                with ib.while_loop(inner[0] < 2):
                    b[i] = b[i] + 1
                    inner[0] = inner[0] + 1
                count[0] = count[0] + 1
    out = both(written(write, A, B), ints(0, 1, 5), ints(0, 0, 0))[1]
    assert out.tolist() == [0, 2, sum(6 * c + 2 for c in range(5))]


def test_memory_of_two_stages_that_a_while_uses_in_turn():
    """Both buffers live through the loop, although each is written before it is read in an iteration."""
    def write(ib, a, b):
        t, u, k = ib.allocate("int32", n, "t"), ib.allocate("int32", n, "u"), ib.allocate("int32", 1, "k")
        with ib.for_range(0, n, "i") as i:
            t[i] = a[i]
        k[0] = 0
        with ib.while_loop(k[0] < 3):
            with ib.for_range(0, n, "i") as i:
                u[i] = t[i] * 2
            with ib.for_range(0, n, "i") as i:
                t[i] = u[i] + 1
            k[0] = k[0] + 1
        with ib.for_range(0, n, "i") as i:
            b[i] = t[i]
    assert both(written(write, A, B), ints(1, 2), ints(0, 0))[1].tolist() == [15, 23]


def test_it_is_printed():
    def write(ib, a, b):
        with ib.while_loop(a[0] < 10):
            a[0] = a[0] + b[0]
    X, Y = (tir.decl_buffer((1,), "int32", name) for name in "XY")
    assert "  while (((int32*)X_1[0] < 10)) {\n    X_1[0] = ((int32*)X_1[0] + (int32*)Y_1[0])\n  }\n" in \
        str(tedsl.lower(written(write, X, Y)))


def test_a_condition_that_is_no_condition():
    ib = tir.ir_builder.create()
    with pytest.raises(tedsl.TedslError, match="bool"):
        with ib.while_loop(n + 1):
            pass
        tedsl.build(function(ib.get(), A))
