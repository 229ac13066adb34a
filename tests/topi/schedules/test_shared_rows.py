"""Statistics of rows, what is computed with them, and sums of columns go through the rows once, block by block."""

import numpy as np
import pytest

import tedsl
import topi
from tedsl import te
from tedsl.target import Target

MODEL = Target("llvm -mtriple=x86_64-linux-gnu -mcpu=skylake-avx512")  # a second cache of 1 MiB


def gradients(shape, wanted=(0, 1, 2), axis=-1, dtype="float32"):
    x, head = te.placeholder(shape, dtype, name="x"), te.placeholder(shape, dtype, name="head")
    gamma, beta = (te.placeholder(shape[axis:], dtype, name=name) for name in ("gamma", "beta"))
    axes = list(range(len(shape)))[axis:]
    inputs = [x, gamma, beta]
    with Target("cuda"):  # as formulas: for processors all three together are statements
        found = te.gradient(topi.nn.layer_norm(x, gamma, beta, axes), [inputs[n] for n in wanted], head)
    return [*inputs, head], found


def text_of(shape, target=MODEL, **options):
    inputs, found = gradients(shape, **options)
    s = topi.schedules.schedule(found, target)
    return str(tedsl.lower(s, [*inputs, *found], simple_mode=True)), s


def test_one_loop_over_chunks_of_large_inputs():
    text, s = text_of((4096, 1024))
    assert text.count('"parallel"') == 1 and str(s.journal).count("compute_with") == 3


@pytest.mark.parametrize("shape, options", [
    ((64, 1024), {}), ((4099, 1024), {}), ((4096, 1024), {"wanted": (0,)}), ((te.var("n"), 1024), {})],
    ids=["small", "prime", "one result", "symbolic"])
def test_others_are_scheduled_one_by_one(shape, options):
    assert "compute_with" not in str(text_of(shape, **options)[1].journal)


@pytest.mark.parametrize("shape, axis", [((1536, 1024), -1), ((6, 256, 1024), -1), ((64, 16, 2048), -2), ((40, 40000), -1)])
def test_values(shape, axis):
    inputs, found = gradients(shape, axis=axis)
    s = topi.schedules.schedule(found)
    rng = np.random.default_rng(0)
    arrays = [rng.standard_normal([int(n) for n in tensor.shape]).astype("float32") for tensor in inputs]
    outs = [np.empty([int(n) for n in tensor.shape], "float32") for tensor in found]
    tedsl.build(s, [*inputs, *found])(*arrays, *outs)
    x, gamma, _, head = (array.astype("float64") for array in arrays)
    axes = tuple(range(len(shape)))[axis:]
    scale = 1 / np.sqrt(x.var(axes, keepdims=True) + 1e-5)
    normal, g = (x - x.mean(axes, keepdims=True)) * scale, head * gamma
    rows = tuple(range(len(shape)))[:axis]
    expected = [scale * (g - g.mean(axes, keepdims=True) - normal * (g * normal).mean(axes, keepdims=True)),
                (head * normal).sum(rows), head.sum(rows)]
    for made, want in zip(outs, expected):
        np.testing.assert_allclose(made, want, rtol=2e-4, atol=2e-4 * np.abs(want).max())


def test_statements_are_no_rows_of_theirs():
    x = te.placeholder((4096, 1024), name="x")
    running, total = topi.cumsum(x, 1), topi.sum(topi.subtract(x, topi.expand_dims(topi.sum(x, 1), 1)), 0)
    s = topi.schedules.schedule([running, total], MODEL)
    assert str(tedsl.lower(s, [x, running, total])).count('"parallel"') > 1


def test_a_sum_between_them_keeps_them_apart():
    """The sum of columns is needed to compute the rows of the result: no loop can do both."""
    x = te.placeholder((4096, 1024), name="x")
    mean = topi.sum(x, 1)
    total = topi.sum(topi.subtract(x, topi.expand_dims(mean, 1)), 0)
    y = topi.multiply(topi.subtract(x, topi.expand_dims(topi.max(x, 1), 1)), total)
    s = topi.schedules.schedule([y, total], MODEL)
    assert "compute_with" not in str(s.journal)
    tedsl.lower(s, [x, y, total])


def test_a_sum_of_a_sum_of_columns():
    """What reads the sum of columns before rows are computed with it stands outside of the loops too."""
    x = te.placeholder((4096, 1024), name="x")
    total = topi.sum(topi.subtract(x, topi.expand_dims(topi.sum(x, 1), 1)), 0)
    scaled = te.compute((1024,), lambda j: total[j] * 2.0, name="scaled")
    y = topi.multiply(topi.subtract(x, topi.expand_dims(topi.max(x, 1), 1)), scaled)
    s = topi.schedules.schedule([y, scaled, total], MODEL)
    tedsl.lower(s, [x, y, scaled, total])
