"""Gradients of convolutions by data, scheduled: weights are turned by rows, and once for all phases of a stride."""

import re

import numpy as np
import pytest

import tedsl
import topi
from tedsl import te
from topi.kinds import ExchangeOp

AVX512 = "llvm -mtriple=x86_64-linux-gnu -mcpu=skylake-avx512"
LAYOUTS = {"NCHW": (topi.nn.conv2d_nchw, (0, 1, 2, 3), (0, 1, 2, 3)), "NHWC": (topi.nn.conv2d_nhwc, (0, 2, 3, 1), (2, 3, 1, 0))}


def gradient(layout, channels, filters, size, kernel, stride):
    """The placeholders of data, kernel and head of a convolution with padding, and its gradient by data."""
    operator, order, weights_order = LAYOUTS[layout]
    data, weights = (2, channels, size, size), (filters, channels, kernel, kernel)
    x = te.placeholder([data[d] for d in order], name="x")
    w = te.placeholder([weights[d] for d in weights_order], name="w")
    y = operator(x, w, stride, kernel // 2, 1)
    head = te.placeholder(y.shape, name="head")
    return [x, w, head], te.gradient(y, [x], head)[0]


def run(arguments, result, schedule):
    draw = np.random.default_rng(3)
    arrays = [draw.standard_normal([int(n) for n in one.shape]).astype("float32") for one in arguments]
    out = np.empty([int(n) for n in result.shape], "float32")
    tedsl.build(schedule, [*arguments, result])(*arrays, out)
    return out


@pytest.mark.parametrize("layout", list(LAYOUTS))
@pytest.mark.parametrize("channels, filters, size, kernel, stride", [
    (32, 48, 7, 3, 1), (37, 19, 6, 3, 1), (64, 40, 9, 5, 2), (48, 33, 8, 3, 2), (40, 16, 7, 3, 3), (3, 16, 12, 7, 2),
    (16, 20, 8, 1, 2)])
def test_scheduled_gradients_are_those_of_plain_loops(layout, channels, filters, size, kernel, stride):
    arguments, found = gradient(layout, channels, filters, size, kernel, stride)
    plain = run(arguments, found, te.create_schedule(found.op))
    np.testing.assert_allclose(run(arguments, found, topi.schedules.schedule(found)), plain, rtol=2e-4, atol=2e-4)


@pytest.mark.parametrize("stride", [1, 2])
def test_weights_are_not_gathered(stride):
    with tedsl.target.Target(AVX512):
        arguments, found = gradient("NCHW", 64, 64, 14, 3, stride)
        module = tedsl.build(topi.schedules.schedule(found), [*arguments, found], target=AVX512)
    assert "gather" not in module.get_source("asm")


@pytest.mark.parametrize("channels, filters, size, kernel, stride", [
    (16, 128, 12, 3, 1),  # 8 vectors of channels, of which tiles of 3 would leave 2
    (16, 64, 20, 7, 2),  # 7 rows, of which tiles of 2 leave 1
])
def test_terms_of_gradients_by_kernel_are_free_of_conditions(channels, filters, size, kernel, stride):
    with tedsl.target.Target(AVX512):
        x = te.placeholder((2, channels, size, size), name="x")
        w = te.placeholder((filters, channels, kernel, kernel), name="w")
        y = topi.nn.conv2d_nchw(x, w, stride, kernel // 2, 1)
        head = te.placeholder(y.shape, name="head")
        found = te.gradient(y, [w], head)[0]
        module = tedsl.build(topi.schedules.schedule(found), [x, w, head, found], target=AVX512)
    _, *bodies = re.split(r"for \(rx: ", module.get_source("tir"))
    assert bodies and not any(" if " in body.partition("}")[0] or "if @" in body.partition("}")[0] for body in bodies)


def test_all_phases_read_one_copy_of_the_weights():
    _, found = gradient("NCHW", 16, 16, 8, 3, 2)
    stages = te.create_schedule(found.op).stages
    assert sum(type(getattr(stage.op, "info", None)) is ExchangeOp for stage in stages) == 1
