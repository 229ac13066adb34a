"""Tensors whose elements are vectors, as of float32x4: their lanes are neighbours in memory, the last dimension of an array."""

import numpy as np
import pytest

import tedsl
from tedsl import nd, te, tir
from tedsl.errors import ArgumentError, LoweringError

A = te.placeholder((te.var("n"), 3), "float32x4", name="A")


def test_a_stage_in_between_keeps_every_lane():
    """The stores of two neighbours overlapped."""
    x = te.placeholder((8,), name="x")
    v = te.compute((8,), lambda i: tir.Broadcast(x[i], 4) * tir.Cast("float32x4", tir.Ramp(i * 0, 1, 4)))
    y = te.compute((8,), lambda i: tir.Shuffle([v[i]], [2]))
    out = np.zeros(8, "float32")
    tedsl.build(te.create_schedule(y.op), [x, y])(np.arange(8, dtype="float32"), out)
    np.testing.assert_array_equal(out, 2 * np.arange(8))


@pytest.mark.parametrize("checked", [False, True])
def test_arguments(checked):
    B = te.compute(A.shape, lambda i, j: A[i, j] * A[i, j])
    C = te.compute(A.shape, lambda i, j: B[i, j] + tir.const(1, A.dtype))
    s = te.create_schedule(C.op)
    s[B].compute_at(s[C], C.op.axis[0])
    with tedsl.PassContext(config={"tir.instrument_bound_checkers": checked}):
        f = tedsl.build(s, [A, C])
    rows, out = np.random.default_rng(0).random((10, 3, 4), "float32"), nd.empty((5, 3), C.dtype)
    for a in (rows[:5], rows[::2]):
        f(a, out)
        np.testing.assert_allclose(out.numpy(), a * a + 1, rtol=1e-6)
    with pytest.raises(ArgumentError, match=r"has 2 dimensions(.|\n)*it needs 3"):
        f(np.zeros((5, 3), "float32"), out)


def test_loops_over_them():
    a = te.placeholder((8,), "float32x4", name="a")
    b = te.compute((8,), lambda i: a[i] + a[i])
    s = te.create_schedule(b.op)
    outer, inner = s[b].split(b.op.axis[0], 2)
    s[b].vectorize(inner)
    assert "[ramp((i.outer*8), 1, 8)]" in str(tedsl.lower(s, [a, b]))
    given, out = np.random.default_rng(0).random((8, 4), "float32"), np.zeros((8, 4), "float32")
    tedsl.build(s, [a, b])(given, out)
    np.testing.assert_array_equal(out, 2 * given)
    k = te.reduce_axis((0, 8))
    total = te.compute((1,), lambda i: te.sum(a[k], axis=k))
    tedsl.build(te.create_schedule(total.op), [a, total])(given, out[:1])
    np.testing.assert_allclose(out[0], given.sum(0), rtol=1e-6)


def test_several_that_are_not_neighbours():
    a = te.placeholder((8, 2), "float32x4", name="a")
    b = te.compute((8, 2), lambda i, j: a[i, j] + a[i, j])
    s = te.create_schedule(b.op)
    s[b].reorder(*reversed(b.op.axis))
    s[b].vectorize(b.op.axis[0])
    given, out = np.random.default_rng(0).random((8, 2, 4), "float32"), np.zeros((8, 2, 4), "float32")
    tedsl.build(s, [a, b])(given, out)
    np.testing.assert_array_equal(out, 2 * given)

    buffer, pointer = tir.decl_buffer((8,), "float32x4", name="a"), te.var("p", "handle")
    column = [tir.Ramp(0, 2, 2)]
    body = tir.BufferStore(buffer, tir.BufferLoad(buffer, column), column)
    with pytest.raises(LoweringError, match="elements that are vectors, and is accessed at some that are not neighbours"):
        tedsl.build(tir.PrimFunc([pointer], body, buffer_map={pointer: buffer}))
