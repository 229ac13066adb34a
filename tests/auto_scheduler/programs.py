"""Small programs of every kind that sketches meet: odd sizes, sizes of 1, fused ends, several outputs, gradients."""

import topi
from tedsl import te
from tedsl.lang.graph import producers_first


def matmul(n, m, terms, dtype="float32"):
    A, B = te.placeholder((n, terms), dtype, "A"), te.placeholder((terms, m), dtype, "B")
    k = te.reduce_axis((0, terms), name="k")
    return [A, B, te.compute((n, m), lambda i, j: te.sum(A[i, k] * B[k, j], axis=k), name="C")]


def fused_end():
    A, B, C = matmul(37, 45, 29)
    bias = te.placeholder((45,), name="bias")
    D = te.compute(C.shape, lambda i, j: C[i, j] + bias[j], name="D")
    return [A, B, bias, te.compute(C.shape, lambda i, j: te.if_then_else(D[i, j] > 0, D[i, j], 0.0), name="E")]


def of_one(function, *shape, dtype="float32"):
    A = te.placeholder(shape, dtype, "A")
    return [A, function(A)]


def convolution():
    A, W = te.placeholder((1, 3, 9, 11), name="A"), te.placeholder((5, 3, 3, 3), name="W")
    return [A, W, topi.nn.relu(topi.nn.conv2d(A, W, 1, 1, 1))]


def gradients():
    A, B, C = matmul(13, 9, 17)
    return [A, B, *te.gradient(topi.sum(topi.tanh(C)), [A, B])]


def two_products():
    A, B, C = matmul(12, 16, 8)
    W = te.placeholder((16, 7), name="W")
    return [A, B, W, topi.matmul(topi.nn.relu(C), W)]


def random_dag(draw):
    """A program of two to five operations, each over results of earlier ones."""
    results = [te.placeholder((draw.choice((1, 5, 17)), draw.choice((1, 5, 17, 32))), name=f"P{n}") for n in range(2)]
    for number in range(draw.randint(2, 5)):
        A = draw.choice(results[-2:])
        B = draw.choice(results)
        n, m = A.shape
        k = te.reduce_axis((0, m), name=f"k{number}")
        kind = draw.randrange(6)
        if kind == 0:
            made = te.compute((n, m), lambda i, j, A=A: A[i, j] * 0.5 + 1.0, name=f"scaled{number}")
        elif kind == 1:
            made = topi.exp(topi.tanh(A))
        elif kind == 2:
            made = te.compute((n, 1), lambda i, j, A=A, k=k: te.sum(A[i, k], axis=k), name=f"rows{number}")
        elif kind == 3:
            made = te.compute((m, n), lambda i, j, A=A: A[j, i], name=f"turned{number}")
        elif kind == 4 and int(B.shape[0]) == int(m):
            made = te.compute((n, B.shape[1]), lambda i, j, A=A, B=B, k=k: te.sum(A[i, k] * B[k, j], axis=k),
                              name=f"product{number}")
        else:
            made = te.compute((n, m), lambda i, j, A=A, m=m: A[i, j] * A[i, m - 1 - j], name=f"mirrored{number}")
        results.append(made)
    out = results[-1]
    return [op.output(0) for op in producers_first([out.op]) if isinstance(op, te.PlaceholderOp)] + [out]


def batch():
    A, B = te.placeholder((3, 17, 9), name="A"), te.placeholder((3, 9, 33), name="B")
    k = te.reduce_axis((0, 9), name="k")
    return [A, B, te.compute((3, 17, 33), lambda b, i, j: te.sum(A[b, i, k] * B[b, k, j], axis=k), name="C")]


def recurrence():
    X, state = te.placeholder((7, 20), name="X"), te.placeholder((7, 20), name="state")
    init = te.compute((1, 20), lambda _, i: X[0, i], name="init")
    update = te.compute((7, 20), lambda t, i: state[t - 1, i] + X[t, i], name="update")
    sums = te.scan(init, update, state, inputs=[X])
    return [X, te.compute((7, 20), lambda i, j: sums[i, j] * 2.0, name="out")]


PROGRAMS = {
    "matmul": lambda: matmul(64, 48, 80), "matmul of int8": lambda: matmul(7, 33, 20, "int8"),
    "matmul of one": lambda: matmul(1, 1, 1), "matmul of a row": lambda: matmul(1, 50, 40), "fused end": fused_end,
    "softmax": lambda: of_one(topi.nn.softmax, 33, 70), "sum": lambda: of_one(topi.sum, 1000),
    "rows": lambda: of_one(lambda A: topi.sum(A, axis=1), 33, 70),
    "columns": lambda: of_one(lambda A: topi.sum(A, axis=0), 33, 70),
    "argmax": lambda: of_one(lambda A: topi.argmax(A, axis=1), 33, 70), "transposed": lambda: of_one(topi.transpose, 33, 70),
    "exp": lambda: of_one(topi.exp, 3, 1, 19, dtype="float64"), "one element": lambda: of_one(topi.exp, 1),
    "batch": batch, "recurrence": recurrence, "sum of both axes": lambda: of_one(topi.sum, 5, 40),
    "no terms": lambda: matmul(4, 3, 0), "no elements": lambda: of_one(topi.exp, 0, 5),
    "float16": lambda: matmul(16, 33, 9, "float16"),
    "bool": lambda: of_one(lambda A: topi.all(A, axis=1), 5, 40, dtype="bool"), "rank 0": lambda: of_one(topi.exp),
    "convolution": convolution, "gradients": gradients, "two products": two_products,
}
