"""Hybrid scripts for the tests, and how both ways of running one are compared."""
# ruff: noqa: F821 - the names of hybrid script are known inside of the functions only
# mypy: ignore-errors

import numpy as np

import tedsl
from tedsl import te

THREE = 3
WEIGHTS = (1.0, 2.0, [3.0, 4.0])


def both_ways(script, *arrays, constants=(), rtol=1e-6):
    """`script` compiled and as Python, on the arrays; the compiled result."""
    tensors = [te.placeholder(a.shape, str(a.dtype), name=f"in{k}") for k, a in enumerate(arrays)]
    made = script(*tensors, *constants)
    outs = made if isinstance(made, list) else [made]
    wanted = script(*arrays, *constants)
    wanted = wanted if isinstance(wanted, tuple) else (wanted,)
    s = te.create_schedule([t.op for t in outs])
    results = [np.zeros([int(d) for d in t.shape], str(t.dtype)) for t in outs]
    tedsl.build(s, [*tensors, *outs])(*arrays, *results)
    for got, want in zip(results, wanted):
        np.testing.assert_allclose(got, want, rtol=rtol)
        assert got.dtype == want.dtype
    return results


@te.hybrid.script
def outer_product(a, b):
    """Every product of an element of a and one of b."""
    c = output_tensor((a.shape[0], b.shape[0]), a.dtype)
    for i in range(a.shape[0]):
        for j in range(b.shape[0]):
            assert i < a.shape[0], "index i out of range"
            c[i, j] = a[i] * b[j]
    return c


@te.hybrid.script
def marked_product(a, b):
    c = output_tensor((a.shape[0], b.shape[0]), a.dtype)
    for i in parallel(a.shape[0]):
        for j in vectorize(6):
            c[i, j] = a[i] * b[j]
    return c


@te.hybrid.script
def product(a, b):
    c = output_tensor((a.shape[0], b.shape[0]), a.dtype)
    for i in range(a.shape[0]):
        for j in range(b.shape[0]):
            c[i, j] = a[i] * b[j]
    return c


@te.hybrid.script
def matmul(a, b):
    c = output_tensor((a.shape[0], b.shape[1]), "float32")
    for i in range(a.shape[0]):
        for j in range(b.shape[1]):
            c[i, j] = 0.0
    for i in range(a.shape[0]):
        for j in range(b.shape[1]):
            for k in range(a.shape[1]):
                c[i, j] += a[i, k] * b[k, j]
    return c


@te.hybrid.script
def running_sum(a):
    b = output_tensor(a.shape, a.dtype)
    for i in range(a.shape[0]):
        if i == 0:
            b[i] = a[i]
        else:
            b[i] = b[i - 1] + a[i]
    return b


@te.hybrid.script
def extremes(a):
    low = output_tensor((1,), a.dtype)
    high = output_tensor((1,), a.dtype)
    least = a[0]
    most = a[0]
    for i in range(1, a.shape[0]):
        least = min(least, a[i])
        most = max(most, a[i])
    low[0] = least
    high[0] = most
    return low, high


@te.hybrid.script
def captured(a):
    b = output_tensor(a.shape, "float32")
    for i in serial(a.shape[0]):
        total = a[i] * THREE
        for k in const_range(2):
            total += WEIGHTS[2][k] + WEIGHTS[k]
        b[i] = total
    return b


@te.hybrid.script
def everything(a, n, flag):
    b = output_tensor((a.shape[0], n), "float32")
    t = allocate((len(a.shape), a.shape[0]), "float32", "local")
    for i in unroll(a.shape[0]):
        t[0, i] = a[i] if 0 < i <= 3 else -a[i]
    for i in parallel(a.shape[0]):
        for j in vectorize(n):
            x = t[0, i] * float32(j)
            if flag:
                b[i, j] = sqrt(abs(x)) + exp(x / 100.0)
            else:
                b[i, j] = 0.0
        even = i % 2 == 0 and not i > 4
        if even or i // 3 == 1:
            b[i, 0] = float32(int32(a[i] * 2.0)) ** 2 + ceil_div(i, 2)
        elif likely(i < 100):
            b[i, 0] += max(min(a[i], 0.5), 0.25)
    return b


@te.hybrid.script
def threads(a):
    b = output_tensor(a.shape, a.dtype)
    for i in bind("blockIdx.x", 4):
        for j in bind("threadIdx.x", 8):
            b[i * 8 + j] = a[i * 8 + j] + 1.0
    return b


@te.hybrid.script
def running_sums(a):
    b = output_tensor(a.shape, a.dtype)
    for i in range(a.shape[0]):
        b[i, 0] = a[i, 0]
        for j in range(1, a.shape[1]):
            b[i, j] = b[i, j - 1] + a[i, j]
    return b


@te.hybrid.script
def smoothed(a, b):
    for i in range(1, 8):
        a[i] = a[i] + a[i - 1]
        b[i] += a[i]
    return a


@te.hybrid.script
def doubled_twice(a):
    c = output_tensor((8,), "float32")
    for i in range(8):
        a[i] *= 2.0
        c[i] = a[i] * 2.0
    return c


@te.hybrid.script
def products(n, a, b):
    c = output_tensor((n, n), a.dtype)
    for i in range(n):
        for j in range(n):
            c[i, j] = a[i] * b[j]
    return c


@te.hybrid.script
def products_of_a_script(a, b):
    """A script that works on what another one returns, and returns what a second call of it does."""
    c = products(4, a, b)
    e = products(4, b, b)
    d = output_tensor(c.shape, c.dtype)
    for i in range(4):
        for j in range(4):
            d[i, j] = c[i, j] + i * j
    return d, e


def two_of_one():
    """A script that takes two arrays of a script that returns one."""
    @te.hybrid.script
    def caller(a):
        c, d = products(4, a, a)
        return c, d

    return caller


def shifted_by_closure():
    """A script that uses a constant and a function of the function around it."""
    amount = 3.0

    def twice(x):
        return x * 2.0

    @te.hybrid.script
    def shifted(a):
        b = output_tensor((4,), "float32")
        for i in range(4):
            b[i] = twice(a[i] + amount)
        return b

    return shifted


@te.hybrid.script
def within_bounds(n, a, b):
    c = output_tensor((n, b.shape[0]), a.dtype)
    for i in range(n):
        for j in range(b.shape[0]):
            assert i < n and j <= 5, "an index out of range"
            c[i, j] = a[i] * b[j]
    return c


@te.hybrid.script
def of_positive_values(a, b):
    c = output_tensor((10, 6), a.dtype)
    for i in range(10):
        for j in range(6):
            assert a[i] >= 0.0, "a negative value"
            c[i, j] = a[i] * b[j]
    return c
