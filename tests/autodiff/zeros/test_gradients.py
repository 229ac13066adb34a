"""The formulas of te.gradient sum no zeros: the loops of each adjoint have as many iterations as it has terms."""

import pytest

from tedsl import te
from tedsl.lang.graph import producers_first
from tedsl.lang.operation import ComputeOp

X = te.placeholder((2, 3, 9, 9), name="X")
W = te.placeholder((4, 3, 3, 3), name="W")
A = te.placeholder((6, 8), name="A")
B = te.placeholder((8, 5), name="B")
K = [te.reduce_axis((0, n), f"k{n}{i}") for i, n in enumerate((3, 3, 3, 8))]
C, R, S, L = K


def window(step, edge):
    """A convolution with that step, its input padded by `edge`, in one formula."""
    size = (9 + 2 * edge - 3) // step + 1

    def element(n, o, y, x):
        at = step * y + R - edge, step * x + S - edge
        inside = te.all(at[0] >= 0, at[0] < 9, at[1] >= 0, at[1] < 9)
        return te.sum((te.if_then_else(inside, X[n, C, at[0], at[1]], 0.0) if edge else X[n, C, at[0], at[1]]) * W[o, C, R, S],
                      axis=[C, R, S])

    return te.compute((2, 4, size, size), element, name="conv")


FORMULAS = {  # an output, and the iterations that the adjoint of each input may have
    "matmul": (lambda: te.compute((6, 5), lambda i, j: te.sum(A[i, L] * B[L, j], axis=L), name="C"),
               {A: 6 * 8 * 5, B: 6 * 8 * 5}),
    "convolution": (lambda: window(1, 0), {X: 2 * 3 * 81 * 4 * 9, W: 4 * 3 * 9 * 2 * 49}),
    "strided, padded": (lambda: window(2, 1), {X: 2 * 3 * 81 * 4 * 4, W: 4 * 3 * 9 * 2 * 25}),
    "reshape": (lambda: te.compute((4, 12), lambda i, j: A[(i * 12 + j) // 8, (i * 12 + j) % 8] * 2.0, name="C"), {A: 48}),
    "transpose": (lambda: te.compute((8, 6), lambda i, j: A[j, i] * 2.0, name="C"), {A: 48}),
    "strided slice": (lambda: te.compute((3, 3), lambda i, j: A[2 * i, 3 * j + 1] * 2.0, name="C"), {A: 48}),
    "pad": (lambda: te.compute((10, 8), lambda i, j: te.if_then_else(te.all(i >= 2, i < 8), A[i - 2, j], 0.0), name="C"),
            {A: 48}),
    "concatenate": (lambda: te.compute((14, 5), lambda i, j: te.if_then_else(i < 6, A[i, j], B[i - 6, j]), name="C"),
                    {A: 48, B: 40}),
    "average of windows": (lambda: te.compute((2, 3, 4, 4), lambda n, c, y, x: te.sum(
        X[n, c, 2 * y + R, 2 * x + S] / 9.0, axis=[R, S]), name="C"), {X: 2 * 3 * 81 * 4}),
    "columns of windows": (lambda: te.compute((27, 49), lambda k, p: X[0, k // 9, p // 7 + k // 3 % 3, p % 7 + k % 3],
                                              name="C"), {X: 2 * 3 * 81 * 9}),
}


def iterations(tensor, forwards):
    total = 0
    for op in producers_first([tensor.op]):
        if isinstance(op, ComputeOp) and op not in forwards:
            count = 1
            for axis in (*op.axis, *op.reduce_axis):
                count *= int(axis.dom.extent)
            total += count
    return total


@pytest.mark.parametrize("name", FORMULAS)
def test_an_adjoint_sums_what_may_differ_from_zero(name):
    make, most = FORMULAS[name]
    output = make()
    head = te.placeholder(output.shape, name="head")
    found = te.gradient(output, list(most), head)
    assert all(iterations(one, set(producers_first([output.op]))) <= limit for one, limit in zip(found, most.values()))
