"""Graphs of operators: what is inlined, what becomes one loop nest, and that random ones are right under every schedule."""

import random

import numpy as np
import pytest

import topi
from tedsl import te
from tests.topi.run import run

rng = np.random.default_rng(0)


def placed(s):
    """Each stage and where it is computed."""
    lines = [line.strip() for line in str(s).splitlines() if line.startswith("  ") and not line.startswith("   ")]
    return dict(line.split(": ", 1) for line in lines if "placeholder" not in line)


def matrix(name="x", shape=(6, 40)):
    return te.placeholder(shape, name=name), rng.standard_normal(shape, "float32")


def test_statistics_by_hand_are_computed_for_each_row():
    x, data = matrix()
    mean = topi.sum(x, 1, keepdims=True) / 40.0
    centred = x - mean
    variance = topi.sum(centred * centred, 1, keepdims=True) / 40.0
    y = centred / topi.sqrt(variance + 1e-5)
    s = topi.schedules.schedule(y)
    assert [stage.op.name for stage in s.stages if stage.attach_type == 1 and stage.op.input_tensors] == ["T_divide"]
    expected = (data - data.mean(1, keepdims=True)) / np.sqrt(data.var(1, keepdims=True) + 1e-5)
    np.testing.assert_allclose(run(y, {x: data}), expected, rtol=1e-4, atol=1e-5)


def test_what_is_read_again_is_kept_for_a_row():
    x, data = matrix()
    y = topi.nn.softmax(topi.exp(x))
    assert placed(topi.schedules.schedule(y))["T_exp"] == "computed at T_softmax_norm, loop i0.outer"  # for some rows
    e = np.exp(np.exp(data) - np.exp(data).max(1, keepdims=True))
    np.testing.assert_allclose(run(y, {x: data}), e / e.sum(1, keepdims=True), rtol=1e-5)


def test_a_value_that_others_read_too_stays_at_the_root():
    x, data = matrix()
    e = topi.exp(x)
    y, z = topi.nn.softmax(e), topi.sum(e, 0)
    assert placed(topi.schedules.schedule([y, z]))["T_exp"] == "computed at the root"
    result = run((y, z), {x: data})
    np.testing.assert_allclose(result[1], np.exp(data).sum(0), rtol=1e-5)


def test_results_that_are_read_are_stored():
    x, data = matrix()
    a = topi.nn.relu(x)
    b = topi.sum(a, 1)
    c = b * 2.0
    s = topi.schedules.schedule([a, b, c])
    assert all(where == "output" for name, where in placed(s).items() if ".rf" not in name)
    for made, expected in zip(run((a, b, c), {x: data}), (np.maximum(data, 0), np.maximum(data, 0).sum(1), None)):
        if expected is not None:
            np.testing.assert_allclose(made, expected, rtol=1e-5)


def test_several_reductions_of_one_tensor():
    x, data = matrix()
    y = topi.sum(x, 1) * topi.max(x, 1) - topi.min(x, 1)
    assert sum("root" in where for where in placed(topi.schedules.schedule(y)).values()) <= 2
    np.testing.assert_allclose(run(y, {x: data}), data.sum(1) * data.max(1) - data.min(1), rtol=1e-4, atol=1e-4)


def test_only_one_product_ends_in_a_sum_of_two():
    x, data = matrix(shape=(20, 24))
    w, weight = matrix("w", (24, 24))
    h = topi.nn.relu(topi.nn.dense(x, w))
    y = h + topi.nn.dense(h, w)
    expected = np.maximum(data @ weight.T, 0)
    np.testing.assert_allclose(run(y, {x: data, w: weight}), expected + expected @ weight.T, rtol=1e-3, atol=1e-3)


def test_a_cheap_formula_is_inlined_and_one_that_a_product_reads_often_is_not():
    x, _ = matrix(shape=(20, 24))
    w, _ = matrix("w", (24, 24))
    assert placed(topi.schedules.schedule(topi.nn.dense(topi.nn.relu(x), w)))["T_relu"] == "computed at the root"
    assert placed(topi.schedules.schedule(topi.sum(topi.exp(x), 1)))["T_exp"] == "computed inline"
    assert placed(topi.schedules.schedule(x + topi.exp(te.placeholder((24,), name="b"))))["T_exp"] == "computed at the root"


def test_chains_of_stencils_do_not_grow_without_end():
    x, data = matrix(shape=(64,))
    y = x
    for step in range(12):
        y = te.compute((y.shape[0] - 2,), lambda i, y=y: y[i] + y[i + 1] * 0.5 + y[i + 2], name=f"blur{step}")
    expected = data
    for _ in range(12):
        expected = expected[:-2] + expected[1:-1] * np.float32(0.5) + expected[2:]
    np.testing.assert_allclose(run(y, {x: data}), expected, rtol=1e-4)


def test_rows_that_lie_across_memory():
    x, data = matrix(shape=(10, 33, 20))
    e = np.exp(data - data.max(1, keepdims=True))
    soft = e / e.sum(1, keepdims=True)
    np.testing.assert_allclose(run(topi.nn.softmax(topi.transpose(x, (2, 0, 1)), 2), {x: data}), soft.transpose(2, 0, 1),
                               rtol=1e-4)
    np.testing.assert_allclose(run(topi.transpose(topi.nn.softmax(x, 1), (1, 2, 0)), {x: data}), soft.transpose(1, 2, 0),
                               rtol=1e-4)
    np.testing.assert_allclose(run(topi.sum(topi.transpose(x, (2, 0, 1)), 2), {x: data}), data.transpose(2, 0, 1).sum(2),
                               rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("shape", [(), (0, 5), (5, 0), (1,), (3, 1, 2)], ids=str)
@pytest.mark.parametrize("schedule", ["x86", "generic", "cuda"])
def test_small_and_empty_shapes(shape, schedule):
    data = rng.random(shape, "float32")
    x = te.placeholder(shape, name="x")
    np.testing.assert_allclose(run(topi.exp(x) + 1.0, {x: np.asarray(data)}, schedule), np.exp(data) + 1, rtol=1e-6)


def random_graph(seed):
    """Operators over (m, n) and what they leave: the placeholders, their arrays, and one to three results."""
    draw = random.Random(seed)
    m, n = draw.choice([(4, 20), (7, 33), (1, 40), (16, 16)])
    given = [te.placeholder((m, n), name="x"), te.placeholder((n,), name="v"), te.placeholder((n, n), name="w")]
    pool = [given[0]]
    for _ in range(draw.randint(3, 8)):
        x = draw.choice(pool[-3:])
        made = draw.choice([
            lambda x=x: topi.tanh(x), lambda x=x: topi.nn.relu(x), lambda x=x: topi.add(x, given[1]),
            lambda x=x: topi.multiply(x, draw.choice(pool)), lambda x=x: topi.nn.softmax(x, draw.choice([0, 1])),
            lambda x=x: topi.subtract(x, topi.max(x, draw.choice([0, 1]), keepdims=True)),
            lambda x=x: topi.multiply(x, topi.sigmoid(topi.sum(x, draw.choice([0, 1, None]), keepdims=True))),
            lambda x=x: topi.nn.dense(topi.tanh(x), given[2]), lambda x=x: topi.transpose(topi.transpose(topi.negative(x))),
            lambda x=x: topi.minimum(topi.maximum(x, -3.0), draw.choice(pool))])()
        pool.append(made)
    outs = [pool[-1], *draw.sample(pool[1:-1], draw.randint(0, min(1, len(pool) - 2)))]
    outs += [topi.sum(outs[0], draw.choice([0, 1, None]))] if draw.random() < 0.5 else []
    numbers = np.random.default_rng(seed)
    return given, [numbers.standard_normal(topi.utils.get_const_tuple(t.shape), "float32") for t in given], outs


@pytest.mark.parametrize("seed", range(12))
def test_random_graphs(seed):
    given, arrays, outs = random_graph(seed)
    arrays = dict(zip(given, arrays))
    expected = run(outs, arrays, "plain")
    for schedule in ("generic", "x86", "cuda"):
        for made, wanted in zip(run(outs, arrays, schedule), expected):
            np.testing.assert_allclose(made, wanted, rtol=2e-3, atol=2e-4, err_msg=schedule)
