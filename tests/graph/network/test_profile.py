"""Profiles of networks: what each step costs."""

import numpy as np
import pytest

from tedsl import graph
from tedsl.errors import ArgumentError
from tedsl.graph import Spec, ops
from tedsl.graph.network import compile
from tedsl.graph.network.costs import moved, operations
from tedsl.graph.network.limits import Limits
from tedsl.graph.network.reasons import reason
from tedsl.target import Target


def network_of(fn, *shapes):
    return compile(graph.trace(fn, *[Spec(shape) for shape in shapes]), opt_level=0)


@pytest.mark.parametrize("fn, shapes, count, size", [
    (lambda a, b: ops.matmul(a, b), ((8, 16), (16, 4)), 2 * 8 * 16 * 4, 4 * (8 * 16 + 16 * 4 + 8 * 4)),
    (lambda x, w: ops.nn.conv2d(x, w, 1, 0, 1), ((1, 3, 8, 8), (5, 3, 3, 3)), 2 * 5 * 36 * 27, 4 * (192 + 135 + 180)),
    (lambda a, b: a + b, ((64,), (64,)), 64, 4 * 192),
    (lambda a: ops.transpose(a), ((4, 6),), 0, 4 * 48),
])
def test_operations_and_bytes(fn, shapes, count, size):
    (use,) = network_of(fn, *shapes).instance(()).uses
    assert operations(use.source) == count and moved(use) == size


def test_the_limit_is_that_of_arithmetic_or_of_memory():
    limits = Limits(1e9, ((1000, 1e9), (2000, 1e8)))
    assert limits.seconds(1e9, 10) == 1.0
    assert limits.seconds(1, 1000) == 1e-6
    assert limits.seconds(1, 4000) == 4e-5


def test_a_profile_has_a_line_for_each_step():
    network = network_of(lambda x, w: ops.nn.softmax(ops.nn.dense(x, w)), (4, 64), (32, 64))
    made = network.profile(repeat=2)
    assert [step.kernel for step in made.steps] == ["dense", "softmax"]
    assert made.steps[0].operations == 2 * 4 * 64 * 32 and made.whole > 0
    lines = str(made).splitlines()
    assert lines[0].split()[:3] == ["step", "kernel", "result"] and len(lines) >= 4 and "of the limit" in lines[-1]
    assert "<table>" in made._repr_html_()


def test_a_network_without_steps_has_a_profile():
    assert "100 % of the limit" in str(network_of(lambda x: ops.reshape(x, (6,)), (2, 3)).profile())


def test_a_benchmark_has_a_time_for_each_call():
    network = network_of(lambda x: ops.tanh(x), (64,))
    assert len(network.benchmark(np.zeros(64, "float32"), repeat=7).results) == 7
    with pytest.raises(ArgumentError, match="repeat is at least 1"):
        network.benchmark(repeat=0)


@pytest.mark.parametrize("fn, shapes, words", [
    (lambda x: ops.nn.pool2d(x, (3, 3), (2, 2), (1, 1), (1, 1, 1, 1), "max"), ((1, 4, 14, 14),),
     ("no multiply-adds", "rows of 7 fill 44 % of vectors of 16 lanes", "one of 2 elements")),
    (lambda x, w: ops.nn.depthwise_conv2d_nchw(x, w, 1, 1, 1), ((1, 4, 16, 16), (4, 1, 3, 3)), ("sums have 9 terms",)),
    (lambda x: ops.exp(x), ((64,),), ("exp: counted as one operation",)),
    (lambda a, b: ops.matmul(a, b), ((64, 64), (64, 64)), ("its schedule leaves this much",))])
def test_a_reason_is_made_of_facts_of_the_step(fn, shapes, words):
    (use,) = network_of(fn, *shapes).instance(()).uses
    found = reason(use, 1e-3, 1 << 30, Limits(1e9, ((1000, 1e9),)), Target("llvm -mcpu=x86-64-v4"))
    assert all(word in found for word in words), found


def test_steps_below_half_of_the_limit_have_a_reason():
    made = network_of(lambda x, w: ops.nn.softmax(ops.nn.dense(x, w)), (4, 64), (32, 64)).profile(repeat=2)
    assert all(bool(step.reason) == (step.share < 0.5) for step in made.steps)
