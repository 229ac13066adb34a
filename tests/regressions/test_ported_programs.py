"""Mistakes that programs written for TVM, and hostile ones beside them, brought to light, each by name."""

import re

import numpy as np
import pytest

import tedsl
from tedsl import te


def test_a_shape_computed_with_a_true_division_is_taken_if_it_is_whole():
    """The packed matrix of TVM's matmul tutorials has the shape (N / bn, K, bn)."""
    b = te.placeholder((6, 8), name="B")
    packed = te.compute((8 / 4, 6, 4), lambda x, y, z: b[y, x * 4 + z], name="packedB")
    assert [dim.value for dim in packed.shape] == [2, 6, 4]


def test_rfactor_of_a_reduction_whose_condition_reads_the_tensor():
    """What a split overshoots may not be read by the condition either."""
    a = te.placeholder((6, 9), name="A")
    k = te.reduce_axis((0, 9), name="k")
    b = te.compute((6,), lambda i: te.sum(a[i, k], axis=k, where=te.all(k >= i, a[i, k] > 0)), name="B")
    s = te.create_schedule(b.op)
    s.rfactor(b, s[b].split(k, factor=4)[1])
    given, got = np.random.default_rng(0).uniform(-1, 1, (6, 9)).astype("float32"), np.empty(6, "float32")
    tedsl.build(s, [a, b])(given, got)
    np.testing.assert_allclose(got, [np.maximum(row[i:], 0).sum() for i, row in enumerate(given)], rtol=1e-5)


def test_the_size_of_a_temporary_beyond_int32_does_not_wrap():
    """2^16 * 2^16 elements were allocated as none, and written."""
    t = te.compute((2**16, 2**16), lambda i, j: i + j, name="T")
    c = te.compute((4,), lambda i: t[i, i], name="C")
    assert "int32, [4294967296i64]" in str(tedsl.lower(te.create_schedule(c.op), [c], simple_mode=True))


def test_a_fused_loop_beyond_int32_counts_in_64_bits():
    """It had no iterations: its extent wrapped to 0."""
    a = te.placeholder((2,), "uint8", name="A")
    x = te.compute((2**16, 2**16 + 2), lambda i, j: te.if_then_else(te.all(i >= 2**16 - 1, j >= 2**16), a[1], a[0]), name="X")
    s = te.create_schedule(x.op)
    f = s[x].fuse(*x.op.axis)
    assert "for (i.j.fused: int64, 0i64, 4295098368i64)" in str(tedsl.lower(s, [a, x], simple_mode=True))
    outer, inner = s[x].split(f, factor=2**20)
    s[x].vectorize(s[x].split(inner, factor=64)[1])
    source = tedsl.build(s, [a, x]).get_source("ll")
    assert not re.search(r"trunc i64 %\w+ to i32", source.split("define")[1])


def test_the_schedule_primitives_tutorial_lists_an_intermediate_stage_among_the_arguments():
    """An attached stage writes all of it where its reader goes through every element; an inlined one can be lowered."""
    n = te.var("n")
    a = te.placeholder((n,), name="A")
    b = te.compute((n,), lambda i: a[i] + 1, name="B")
    c = te.compute((n,), lambda i: b[i] * 2, name="C")
    s = te.create_schedule(c.op)
    outer, inner = s[c].split(c.op.axis[0], factor=8)
    s[c].parallel(outer)
    s[c].vectorize(inner)
    s[b].compute_at(s[c], outer)
    given = np.arange(21, dtype="float32")
    between, got = np.zeros_like(given), np.zeros_like(given)
    tedsl.build(s, [a, b, c])(given, between, got)
    np.testing.assert_array_equal(between, given + 1)
    np.testing.assert_array_equal(got, (given + 1) * 2)
    s[b].compute_inline()
    assert "B_2[" not in str(tedsl.lower(s, [a, b, c], simple_mode=True))
    with pytest.raises(tedsl.TedslError, match="computed inline: nothing would write it"):
        tedsl.build(s, [a, b, c])


def test_a_later_condition_of_all_and_any_reads_only_where_the_earlier_ones_let_it():
    """te.all(i >= 1, A[i - 1] > 0) read A[-1], and was refused for it."""
    a = te.placeholder((10,), name="A")
    both = te.compute((10,), lambda i: te.if_then_else(te.all(i >= 1, a[i - 1] > 0), a[i], 0.0), name="B")
    either = te.compute((10,), lambda i: te.if_then_else(te.any(i < 1, a[i - 1] != a[i]), 1.0, 0.0), name="C")
    s = te.create_schedule([both.op, either.op])
    s[both].vectorize(both.op.axis[0])
    assert "@tir.if_then_else((i < 1), True, (" in str(tedsl.lower(s, [a, both, either], simple_mode=True))
    given = np.array([1, 1, -1, 3, 3, -2, 5, 5, 5, 0], "float32")
    got, changes = np.empty(10, "float32"), np.empty(10, "float32")
    tedsl.build(s, [a, both, either])(given, got, changes)
    np.testing.assert_array_equal(got[1:], np.where(given[:-1] > 0, given[1:], 0))
    np.testing.assert_array_equal(changes, np.r_[True, given[:-1] != given[1:]])


def test_the_order_of_conditions_matters():
    a = te.placeholder((10,), name="A")
    b = te.compute((10,), lambda i: te.if_then_else(te.all(a[i - 1] > 0, i >= 1), a[i], 0.0), name="B")
    with pytest.raises(tedsl.TedslError, match=r"B reads A\[\(i - 1\)\] outside of A"):
        tedsl.lower(te.create_schedule(b.op), [a, b])
