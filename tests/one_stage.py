"""Programs of one stage, for tests of what stands around a function: calls, targets, options, names."""

import numpy as np

from tedsl import te


def doubled(n=16):
    a = te.placeholder((n,), name="A")
    c = te.compute((n,), lambda i: a[i] * 2, name="C")
    return te.create_schedule(c.op), a, c


def runs(kernel):
    out = np.zeros(16, "float32")
    kernel(np.ones(16, "float32"), out)
    return bool((out == 2).all())


def added():
    A = te.placeholder((4,), name="A")
    B = te.compute((4,), lambda i: A[i] + 1.0, name="B")
    return te.create_schedule(B.op), [A, B]
