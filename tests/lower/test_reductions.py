"""Reductions under every loop order: the init happens once, before the first update, for every element."""

import itertools

import numpy as np
import pytest

from tedsl import te
from tedsl.lower.lower import lower_schedule
from tedsl.schedule.handles import create_schedule
from tests.lower.programs import check, execute, whole_numbers

A = te.placeholder((7, 9), name="A")
VALUES = {A: whole_numbers((7, 9))}
ARGMAX = te.comm_reducer(
    lambda x, y: (te.if_then_else(x[1] >= y[1], x[0], y[0]), te.if_then_else(x[1] >= y[1], x[1], y[1])),
    lambda i, v: (te.const(-1, i), te.min_value(v)), name="argmax")


def matmul(n, m, depth):
    left, right = te.placeholder((n, depth), name="A"), te.placeholder((depth, m), name="B")
    k = te.reduce_axis((0, depth), name="k")
    out = te.compute((n, m), lambda i, j: te.sum(left[i, k] * right[k, j], axis=k), name="C")
    return left, right, out, {left: whole_numbers((n, depth), seed=1), right: whole_numbers((depth, m), seed=2)}


@pytest.mark.parametrize("order", list(itertools.permutations(range(4))))
def test_every_order_of_the_loops_of_a_blocked_matmul(order):
    left, right, out, values = matmul(5, 4, 6)
    s = create_schedule(out.op)
    i, j = s[out].op.axis
    io, ii = s[out].split(i, factor=2)
    loops = [io, ii, j, s[out].op.reduce_axis[0]]
    s[out].reorder(*[loops[at] for at in order])
    check(s, [left, right, out], values)


@pytest.mark.parametrize("n, m, depth", [(16, 16, 16), (17, 13, 11), (1, 1, 1), (8, 1, 5), (3, 20, 1)])
def test_the_last_step_of_the_matmul_tutorial(n, m, depth):
    left, right, _, values = matmul(n, m, depth)
    block = 4
    packed = te.compute(((m + block - 1) // block, depth, block),
                        lambda x, y, z: te.if_then_else(x * block + z < m, right[y, x * block + z], 0.0), name="P")
    k = te.reduce_axis((0, depth), name="k")
    out = te.compute((n, m), lambda i, j: te.sum(left[i, k] * packed[j // block, k, j % block], axis=k), name="C")
    s = create_schedule(out.op)
    cached = s.cache_write(out, "global")
    xo, yo, xi, yi = s[out].tile(*s[out].op.axis, block, block)
    s[cached].compute_at(s[out], yo)
    xc, yc = s[cached].op.axis
    ko, ki = s[cached].split(s[cached].op.reduce_axis[0], factor=4)
    s[cached].reorder(ko, xc, ki, yc)
    s[cached].unroll(ki)
    s[cached].vectorize(yc)
    s[out].vectorize(yi)
    s[out].unroll(xi)
    s[out].parallel(xo)
    s[packed].parallel(s[packed].op.axis[0])
    check(s, [left, right, out], values)


@pytest.mark.parametrize("schedule", range(4))
def test_a_reduction_over_several_axes(schedule):
    i, j = te.reduce_axis((0, 7), name="i"), te.reduce_axis((0, 9), name="j")
    out = te.compute((3,), lambda x: te.sum(A[i, j] + x, axis=[i, j]), name="B")
    s = create_schedule(out.op)
    x, (i, j) = s[out].op.axis[0], s[out].op.reduce_axis
    if schedule == 1:
        s[out].reorder(j, x, i)
    elif schedule == 2:
        s[out].split(s[out].fuse(i, j), factor=8)
    elif schedule == 3:
        outer, inner = s[out].split(j, factor=4)
        s[out].reorder(outer, i, x, inner)
    check(s, [A, out], VALUES)


@pytest.mark.parametrize("reducer", [te.sum, te.max, te.min, te.prod])
def test_the_reducers(reducer):
    k = te.reduce_axis((0, 9), name="k")
    out = te.compute((7,), lambda i: reducer(A[i, k], axis=k), name="B")
    s = create_schedule(out.op)
    s[out].split(s[out].op.reduce_axis[0], factor=4)
    check(s, [A, out], VALUES)


@pytest.mark.parametrize("factor, axis", [(1, 0), (2, 0), (4, 0), (4, 1), (16, 0)])
def test_rfactor(factor, axis):
    k = te.reduce_axis((0, 9), name="k")
    out = te.compute((7,), lambda i: te.sum(A[i, k], axis=k), name="B")
    s = create_schedule(out.op)
    _, inner = s[out].split(s[out].op.reduce_axis[0], factor=factor)
    partial = s.rfactor(out, inner, axis)
    s[partial].compute_at(s[out], s[out].op.axis[0])
    check(s, [A, out], VALUES)


def test_rfactor_of_a_tuple_reduction():
    k = te.reduce_axis((0, 9), name="k")
    index, value = te.compute((7,), lambda i: ARGMAX((k.var, A[i, k]), axis=k), name="B")
    s = create_schedule(index.op)
    outer, _ = s[index].split(s[index].op.reduce_axis[0], factor=4)
    s.rfactor(index, outer)
    found = execute(s, [A, index, value], VALUES)
    np.testing.assert_array_equal(found[value], VALUES[A].max(1))
    np.testing.assert_array_equal(VALUES[A][np.arange(7), found[index]], VALUES[A].max(1))


def test_argmax():
    k = te.reduce_axis((0, 9), name="k")
    index, value = te.compute((7,), lambda i: ARGMAX((k.var, A[i, k]), axis=k), name="B")
    found = check(create_schedule(index.op), [A, index, value], VALUES)
    np.testing.assert_array_equal(found[index], VALUES[A].argmax(1))


def test_start_values_of_the_user():
    start = te.placeholder((7,), name="S")
    k = te.reduce_axis((0, 9), name="k")
    out = te.compute((7,), lambda i: te.sum(A[i, k], axis=k, init=start[i]), name="B")
    s = create_schedule(out.op)
    outer, inner = s[out].split(s[out].op.axis[0], factor=3)
    s[out].reorder(s[out].op.reduce_axis[0], outer, inner)
    check(s, [A, start, out], {**VALUES, start: whole_numbers((7,), seed=3)})


def test_a_reduction_whose_range_does_not_start_at_zero():
    k = te.reduce_axis((2, 8), name="k")
    out = te.compute((7,), lambda i: te.sum(A[i, k], axis=k, where=k.var % 3 > 0), name="B")
    s = create_schedule(out.op)
    s[out].split(s[out].op.reduce_axis[0], factor=4)
    check(s, [A, out], VALUES)


@pytest.mark.parametrize("rows, columns", [(0, 9), (7, 0), (0, 0), (1, 1)])
def test_reductions_of_few_or_no_elements(rows, columns):
    n, m = te.var("n"), te.var("m")
    source = te.placeholder((n, m), name="A")
    k = te.reduce_axis((0, m), name="k")
    out = te.compute((n,), lambda i: te.sum(source[i, k], axis=k), name="B")
    s = create_schedule(out.op)
    i, k = s[out].op.axis[0], s[out].op.reduce_axis[0]
    outer, inner = s[out].split(i, factor=4)
    s[out].reorder(outer, k, inner)
    check(s, [source, out], {source: whole_numbers((rows, columns))}, {n: rows, m: columns})


def test_rows_of_a_sparse_matrix():
    n, stored, m = te.var("n"), te.var("stored"), te.var("m")
    data, column = te.placeholder((stored,), name="data"), te.placeholder((stored,), "int32", name="column")
    start, x = te.placeholder((n + 1,), "int32", name="start"), te.placeholder((m,), name="x")

    def row(i):
        k = te.reduce_axis((0, start[i + 1] - start[i]), name="k")
        return te.sum(data[start[i] + k] * x[column[start[i] + k]], axis=k)

    y = te.compute((n,), row, name="y")
    s = create_schedule(y.op)
    s[y].split(s[y].op.reduce_axis[0], factor=2)
    values = {data: np.array([1, 2, 3, 4, 5], "float32"), column: np.array([1, 0, 2, 3, 0], "int32"),
              start: np.array([0, 1, 1, 4, 5], "int32"), x: np.array([1, 2, 3, 4], "float32")}
    np.testing.assert_array_equal(execute(s, [data, column, start, x, y], values, {n: 4})[y], [2, 0, 2 + 9 + 16, 5])


def test_the_loop_of_a_row_cannot_stand_outside_of_the_rows():
    from tedsl.errors import TedslError

    n = te.var("n")
    data, start = te.placeholder((10,), name="data"), te.placeholder((n + 1,), "int32", name="start")

    def row(i):
        k = te.reduce_axis((0, start[i + 1] - start[i]), name="k")
        return te.sum(data[start[i] + k], axis=k)

    y = te.compute((n,), row, name="y")
    s = create_schedule(y.op)
    with pytest.raises(TedslError):
        s[y].reorder(s[y].op.reduce_axis[0], s[y].op.axis[0])
        lower_schedule(s, [data, start, y])
