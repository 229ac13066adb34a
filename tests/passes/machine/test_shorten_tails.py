"""Loops that end where their guards can hold no more."""

import re

import numpy as np
import pytest

import tedsl
from tedsl import te
from tedsl.passes.loops import partition_loops
from tests.lower.end_to_end import check_calls
from tests.lower.programs import whole_numbers


def large_split(vector=False, parallel=False, factor=1 << 20):
    n = te.var("n")
    A = te.placeholder((n,), name="A")
    B = te.compute((n,), lambda i: A[i] + 1.0, name="B")
    s = te.create_schedule(B.op)
    outer, inner = s[B].split(B.op.axis[0], factor=factor)
    if vector:
        s[B].vectorize(s[B].split(inner, 8)[1])
    if parallel:
        s[B].parallel(outer)
    return n, A, B, s


@pytest.mark.parametrize("vector", [False, True])
@pytest.mark.parametrize("parallel", [False, True])
def test_a_factor_far_above_the_extent_costs_nothing(vector, parallel):
    _, A, B, s = large_split(vector, parallel)
    kernel = tedsl.build(s, [A, B])
    for size in (0, 1, 7, 8, 9, 100, 1000):
        data, result = whole_numbers((size,)), np.full(size + 1, 77, "float32")
        kernel(data, result[:size])
        np.testing.assert_array_equal(result[:size], data + 1)
        assert result[size] == 77
    text = kernel.get_source("tir")
    tail = text if parallel else text.split("i.outer_1", 1)[1]
    assert ", 1048576) {" not in tail and ", 131072) {" not in tail
    assert not parallel or ("else" not in text and text.count(" for (") == 2)  # its long loop is written once


@pytest.mark.parametrize("vector", [False, True])
@pytest.mark.parametrize("parallel", [False, True])
@pytest.mark.parametrize("factor", [3, 16, 24])
def test_results_at_every_size(monkeypatch, vector, parallel, factor):
    monkeypatch.setattr(partition_loops, "LONG", 2)
    n, A, B, s = large_split(vector, parallel, factor)
    check_calls(s, [A, B], [({A: whole_numbers((size,))}, {n: size}) for size in (*range(20), 31, 32, 33, 47, 48, 49, 72)])


def test_two_dimensions_and_a_reduction(monkeypatch):
    monkeypatch.setattr(partition_loops, "LONG", 2)
    n, m = te.var("n"), te.var("m")
    A = te.placeholder((n, m), name="A")
    k = te.reduce_axis((0, m), "k")
    B = te.compute((n, n), lambda i, j: te.sum(A[i, k] * A[j, k], axis=k), name="B")
    s = te.create_schedule(B.op)
    yo, xo, yi, xi = s[B].tile(*B.op.axis, 8, 8)
    ko, ki = s[B].split(k, 4)
    s[B].reorder(yo, xo, ko, ki, yi, xi)
    s[B].vectorize(xi)
    calls = [({A: whole_numbers((p, q))}, {n: p, m: q}) for p, q in ((0, 1), (1, 1), (3, 4), (8, 5), (9, 8), (17, 3))]
    check_calls(s, [A, B], calls)


def test_short_loops_keep_their_constant_extents():
    _, A, B, s = large_split(factor=64)
    assert tedsl.build(s, [A, B]).get_source("tir").count("0, 64) {") == 2


@pytest.mark.parametrize("size, steps", [(100_000, [256, 26, 1]), (65_552, [256, 1])])
def test_masks_that_end_at_a_constant_end_their_loop(size, steps):
    """The last chunk of 16384 elements had all of its 256 steps, most of them with no lane on."""
    A = te.placeholder((size,), name="A")
    B = te.compute((size,), lambda i: A[i] + 1.0, name="B")
    s = te.create_schedule(B.op)
    outer, inner = s[B].split(B.op.axis[0], factor=16384)
    s[B].vectorize(s[B].split(inner, 64)[1])
    s[B].parallel(outer)
    kernel = tedsl.build(s, [A, B])
    data, result = whole_numbers((size,)), np.full(size + 64, 77, "float32")
    kernel(data, result[:size])
    np.testing.assert_array_equal(result[:size], data + 1)
    assert (result[size:] == 77).all()
    assert re.findall(r"i.inner.outer\w*: int32, 0, (\d+)\)", kernel.get_source("tir")) == [str(count) for count in steps]
