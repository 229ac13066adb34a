"""Programs that the tests of C share: each gives a schedule and its arguments."""

import tedsl
from tedsl import te


def added(n=100):
    """C = A + B over n floats, split by 16 and vectorized by 4."""
    a, b = te.placeholder((n,), name="A"), te.placeholder((n,), name="B")
    c = te.compute((n,), lambda i: a[i] + b[i], name="C")
    s = te.create_schedule(c.op)
    outer, inner = s[c].split(c.op.axis[0], factor=16)
    s[c].vectorize(s[c].split(inner, factor=4)[1])
    return s, [a, b, c]


def product():
    """A tiled matrix product with symbolic rows, in parallel."""
    n = te.var("n")
    a, b = te.placeholder((n, 24), name="A"), te.placeholder((24, 32), name="B")
    k = te.reduce_axis((0, 24), name="k")
    c = te.compute((n, 32), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="C")
    d = te.compute((n, 32), lambda i, j: te.max(c[i, j], 0.0) + 1.0, name="D")
    s = te.create_schedule(d.op)
    outer, inner = s[d].split(d.op.axis[0], factor=4)
    s[c].compute_at(s[d], outer)
    s[c].reorder(k, *c.op.axis)
    s[c].vectorize(c.op.axis[1])
    s[d].vectorize(d.op.axis[1])
    s[d].parallel(outer)
    return s, [a, b, d]


def text(program, target="c", fmt=""):
    """The source of a module, without the line that names the version."""
    s, args = program
    return str(tedsl.build(s, args, target, name="kernel").get_source(fmt)).split("\n", 1)[1]
