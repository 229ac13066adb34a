"""Samples of images: places that are computed from data are computed once for some channels."""

import numpy as np
import pytest

import tedsl
import topi
from tedsl import te
from tedsl.target import Target
from topi import image

pytestmark = pytest.mark.sampled(3)

rng = np.random.default_rng(0)
AVX512 = "llvm -mtriple=x86_64-linux-gnu -mcpu=znver5 -model=znver5 -num-cores=2"


def loops_of(out, target=AVX512):
    """The loops of the last stage, from the outermost one: name, iterations and what is said of them."""
    text = str(topi.schedules.schedule(out, Target(target)))
    return [line.strip().removeprefix("for ") for line in text.splitlines() if line.strip().startswith("for ")]


def placeholders(*shapes):
    return [te.placeholder(shape, name=name) for shape, name in zip(shapes, "ag")]


def test_channels_share_places():
    """In rows that are one loop where the grid has them one after the other; parts of images keep the cores busy."""
    assert loops_of(image.grid_sample(*placeholders((3, 16, 6, 5), (3, 2, 7, 5)))) == [
        "ax0.ax1.outer.fused in 0..6", "ax2.ax3.fused.outer in 0..3", "ax1.inner in 0..8 (unrolled)",
        "ax2.ax3.fused.inner in 0..16 (vectorized)"]
    assert loops_of(image.grid_sample(*placeholders((1, 16, 6, 5), (1, 2, 70, 80))))[:2] == [
        "ax0.ax1.outer.fused.ax2.ax3.fused.outer.fused in 0..8 (parallel)", "ax2.ax3.fused.inner.outer in 0..88"]


@pytest.mark.parametrize("method, channels, count", [
    ("bilinear", 64, 8), ("bilinear", 13, 8), ("bilinear", 3, 3), ("bilinear", 12, 6), ("bicubic", 64, 2), ("nearest", 5, 5)])
def test_as_many_channels_share_places_as_are_worth_their_code(method, channels, count):
    loops = loops_of(image.grid_sample(*placeholders((2, channels, 9, 9), (2, 2, 40, 50)), method))
    assert [loop for loop in loops if "unrolled" in loop] == [f"ax1.inner in 0..{count} (unrolled)"]


@pytest.mark.parametrize("out", [
    image.grid_sample(*placeholders((2, 1, 9, 9), (2, 2, 40, 50))),  # one channel
    image.grid_sample(*placeholders((2, te.size_var("c"), 9, 9), (2, 2, 40, 50))),
    topi.take(te.placeholder((30, 100), name="a"), te.placeholder((50,), "int32", name="i"), axis=1),  # cheap places
    image.resize2d(te.placeholder((1, 8, 9, 9), name="a"), (0.0,) * 4, (20, 30)),  # not computed from data
])
def test_others_are_computed_row_by_row(out):
    assert not any(".inner" in loop and "unrolled" in loop for loop in loops_of(out))


@pytest.mark.parametrize("method", ["nearest", "bilinear", "bicubic"])
@pytest.mark.parametrize("shape, places", [
    ((2, 13, 5, 4), (3, 6)), ((1, 8, 9, 7), (1, 40)), ((1, 16, 6, 5), (70, 83)), ((3, 2, 1, 1), (33, 1)),
    ((2, 7, 3, 3), (0, 5))])
@pytest.mark.parametrize("target", ["llvm -num-cores=3", "llvm -mcpu=x86-64-v3", "llvm -mcpu=x86-64"])
def test_samples_have_the_values_of_plain_loops(method, shape, places, target):
    a, g = placeholders(shape, (shape[0], 2, *places))
    x, at = rng.random(shape, dtype="float32"), rng.uniform(-1.6, 1.6, (shape[0], 2, *places)).astype("float32")
    out = topi.nn.relu(image.grid_sample(a, g, method) - 0.2)
    got, expected = (np.empty((*shape[:2], *places), "float32") for _ in range(2))
    tedsl.build(topi.schedules.schedule(out, Target(target)), [a, g, out], target)(x, at, got)
    tedsl.build(te.create_schedule(out.op), [a, g, out])(x, at, expected)
    np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-6)
