"""Winograd by bands of tiles, which stay in the second cache: which convolutions, and that bands make up the image."""

import numpy as np
import pytest

import tedsl
import topi
from tedsl import te
from tedsl.target import Target
from topi import nn, testing

pytestmark = pytest.mark.sampled(4)

AVX512 = "llvm -mtriple=x86_64-linux-gnu -mcpu=znver5 -model=znver5"
HERE = ["llvm -num-cores=1", "llvm -num-cores=2", "llvm -mcpu=x86-64-v4", "llvm -mcpu=x86-64-v3"]
rng = np.random.default_rng(7)


def winograd(shape, filters, m=4, pad=1):
    data, weights = te.placeholder(shape, name="data"), te.placeholder((m + 2, m + 2, filters, shape[1]), name="weights")
    return data, weights, nn.conv2d_winograd_nchw(data, weights, 1, pad, 1, pre_computed=True, tile_size=m)


def lowered(ends, made, target):
    return str(tedsl.lower(topi.schedules.schedule(made, Target(target)), [*ends, made], simple_mode=True))


def parallel_loops(text):
    return [line.split(", 0, ")[1].split(")")[0] for line in text.splitlines() if '"parallel"' in line]


@pytest.mark.parametrize("target, shape, filters, m, loops", [
    (f"{AVX512} -num-cores=1", (1, 64, 56, 56), 64, 4, ["72", "7"]),  # two rows of tiles are 0.5 MB
    (f"{AVX512} -num-cores=1", (3, 64, 56, 56), 64, 4, ["72", "21"]),
    (f"{AVX512} -num-cores=2", (1, 64, 56, 56), 64, 4, ["72", "14"]),  # of seven tasks one of two cores would take four
    (f"{AVX512} -num-cores=1", (1, 32, 56, 56), 32, 4, ["36", "2"]),
    (f"{AVX512} -num-cores=2", (4, 48, 28, 28), 48, 4, ["36", "4"]),
    (f"{AVX512} -num-cores=1", (1, 96, 56, 56), 96, 2, ["32", "14"]),
])
def test_bands_of_tiles_stay_in_the_second_cache(target, shape, filters, m, loops):
    """The copy of the weights, and the bands of all images."""
    data, weights, made = winograd(shape, filters, m)
    found = parallel_loops(lowered([data, weights], nn.relu(made), target))
    assert found[1:] == loops[1:] and len(found) == 2, found


@pytest.mark.parametrize("target, shape, filters", [
    (AVX512, (1, 128, 28, 28), 128),  # 2.4 MB of weights, which each band would read from beyond the second cache
    ("llvm -mtriple=x86_64-linux-gnu -mcpu=znver3 -model=znver3", (1, 32, 56, 56), 32),  # no masks
    (f"{AVX512} -num-cores=5", (1, 32, 56, 56), 32),  # fourteen tasks leave cores without work
])
def test_other_convolutions_are_computed_step_by_step(target, shape, filters):
    data, weights, made = winograd(shape, filters)
    assert "data_pad" not in lowered([data, weights], nn.relu(made), target)


def computed(shape, filters, m, pad, target, after):
    """What a program with a winograd convolution in it computes, and the same of a direct convolution in numpy."""
    data, weights, conv = winograd(shape, filters, m, pad)
    x, z = (rng.standard_normal(one).astype("float32") for one in (shape, (filters, shape[1], 3, 3)))
    w = te.placeholder(z.shape, name="w")
    transformed, made = nn.conv2d_winograd_weight_transform(w, m), after(conv)
    out, ready = (np.full([int(extent) for extent in one.shape], np.nan, "float32") for one in (made, transformed))
    with Target(target):
        tedsl.build(topi.schedules.schedule(transformed), [w, transformed])(z, ready)
        tedsl.build(topi.schedules.schedule(made), [data, weights, made])(x, ready, out)
    return out, testing.conv2d_nchw_python(x, z, 1, pad)


@pytest.mark.parametrize("shape, filters, m, pad", [
    ((1, 64, 14, 14), 64, 4, 1), ((3, 33, 17, 30), 17, 4, 1), ((1, 16, 5, 5), 16, 2, 1), ((2, 16, 3, 40), 70, 4, 1),
    ((1, 5, 40, 3), 7, 4, 0), ((5, 1, 9, 9), 1, 4, 1), ((1, 48, 28, 28), 33, 2, 2), ((1, 16, 7, 50), 16, 4, (1, 2, 0, 3)),
    ((4, 16, 1, 1), 16, 4, 1), ((2, 31, 35, 33), 15, 3, 1), ((4, 64, 17, 14), 64, 4, 1), ((3, 128, 13, 14), 140, 2, 1)])
@pytest.mark.parametrize("target", HERE)
def test_values(shape, filters, m, pad, target):
    out, expected = computed(shape, filters, m, pad, target, nn.relu)
    np.testing.assert_allclose(out, np.maximum(expected, 0), rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("after, same", [
    (lambda y: topi.transpose(y, (0, 2, 3, 1)), lambda y: y.transpose(0, 2, 3, 1)),
    (lambda y: topi.transpose(y, (0, 1, 3, 2)), lambda y: y.transpose(0, 1, 3, 2)),
    (lambda y: topi.flip(y, 2), lambda y: y[:, :, ::-1]),
    (lambda y: topi.strided_slice(y, [0, 0, 1, 1], [2, 24, 13, 13]), lambda y: y[:, :, 1:, 1:]),
    (lambda y: nn.pad(y, [0, 0, 1, 1]), lambda y: np.pad(y, ((0, 0), (0, 0), (1, 1), (1, 1)))),
    (lambda y: topi.sum(y, (2, 3)), lambda y: y.sum((2, 3))),
    (lambda y: nn.relu(y) + topi.flip(y, 3), lambda y: np.maximum(y, 0) + y[..., ::-1]),
    (lambda y: y, lambda y: y)], ids=["nhwc", "turned", "flip", "slice", "pad", "sum", "twice", "nothing"])
def test_what_is_read_elsewhere_or_twice(after, same):
    """Bands hold the rows of their own results: others may need all of them."""
    out, expected = computed((2, 20, 13, 13), 24, 4, 1, "llvm -num-cores=2", after)
    np.testing.assert_allclose(out, same(expected), rtol=1e-3, atol=1e-2)


def test_one_after_the_other_in_a_schedule():
    """The second reads what the first has stored, or has left to it."""
    others, filters = te.placeholder((6, 6, 17, 24), name="others"), rng.standard_normal((17, 24, 3, 3)).astype("float32")
    w = te.placeholder(filters.shape, name="w")
    transformed = nn.conv2d_winograd_weight_transform(w, 4)
    ready = np.empty([int(extent) for extent in transformed.shape], "float32")
    tedsl.build(topi.schedules.schedule(transformed), [w, transformed])(filters, ready)
    data, weights, first = winograd((2, 20, 13, 13), 24)
    second = nn.conv2d_winograd_nchw(nn.relu(first), others, 1, 1, 1, pre_computed=True, tile_size=4)
    x, z = (rng.standard_normal([int(extent) for extent in one.shape]).astype("float32") for one in (data, weights))
    mid, out, both = (np.empty([int(extent) for extent in one.shape], "float32") for one in (first, second, second))
    tedsl.build(topi.schedules.schedule(first), [data, weights, first])(x, z, mid)
    a = te.placeholder(first.shape, name="a")
    alone = nn.conv2d_winograd_nchw(nn.relu(a), others, 1, 1, 1, pre_computed=True, tile_size=4)
    tedsl.build(topi.schedules.schedule(alone), [a, others, alone])(mid, ready, out)
    tedsl.build(topi.schedules.schedule(second), [data, weights, others, second])(x, z, ready, both)
    np.testing.assert_allclose(both, out, rtol=1e-3, atol=1e-3 * np.abs(out).max())
