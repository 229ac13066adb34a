"""A product of a softmax of a product: one kernel, whatever the sizes; where the rows are needed elsewhere too, several."""

import re

import numpy as np
import pytest

import tedsl
import topi
from tedsl import te
from tedsl.target import Target


def attention(batch, rows, others, depth, mask=False, transposed=False):
    """q, k, v, (mask,) the probabilities and softmax(q k^T / 2 + mask) v."""
    q, k = te.placeholder((batch, rows, depth), name="q"), te.placeholder((batch, others, depth), name="k")
    v = te.placeholder((batch, depth, others) if transposed else (batch, others, depth), name="v")
    inputs = [q, k, v]
    scores = topi.nn.batch_matmul(q, k) * 0.5
    if mask:
        inputs.append(te.placeholder((rows, others), name="mask"))
        scores = scores + inputs[-1]
    p = topi.nn.softmax(scores)
    return inputs, p, topi.nn.batch_matmul(p, v, transpose_b=transposed)


def expected(q, k, v, mask=0.0, transposed=False):
    scores = np.einsum("bid,bjd->bij", *(x.astype("float64") for x in (q, k))) * 0.5 + mask
    p = np.exp(scores - scores.max(-1, keepdims=True))
    p /= p.sum(-1, keepdims=True)
    return p, p @ (v.swapaxes(1, 2) if transposed else v)


def drawn(tensors):
    rng = np.random.default_rng(0)
    return [rng.standard_normal(topi.utils.get_const_tuple(t.shape), dtype="float32") for t in tensors]


@pytest.mark.parametrize("mask", [False, True])
@pytest.mark.parametrize("sizes", [(2, 16, 16, 8), (3, 37, 53, 5), (1, 1, 1, 1), (2, 130, 7, 19), (1, 5, 200, 64)])
def test_any_size(sizes, mask):
    inputs, _, out = attention(*sizes, mask)
    arrays, result = drawn(inputs), np.zeros((sizes[0], sizes[1], sizes[3]), "float32")
    for target in ("llvm", "llvm -mcpu=x86-64-v3"):
        if Target(target).runs_here:
            with Target(target):
                tedsl.build(topi.schedules.schedule(out), [*inputs, out], target=target)(*arrays, result)
            np.testing.assert_allclose(result, expected(*arrays)[1], rtol=1e-4, atol=1e-5)


def test_the_second_operand_may_be_stored_transposed():
    inputs, _, out = attention(2, 40, 24, 16, transposed=True)
    arrays, result = drawn(inputs), np.zeros((2, 40, 16), "float32")
    tedsl.build(topi.schedules.schedule(out), [*inputs, out])(*arrays, result)
    np.testing.assert_allclose(result, expected(*arrays, transposed=True)[1], rtol=1e-4, atol=1e-5)


def test_it_is_one_kernel_without_the_matrix_between():
    inputs, _, out = attention(16, 256, 256, 64)
    text = str(tedsl.lower(topi.schedules.schedule(out), [*inputs, out], simple_mode=True))
    assert text.count('"parallel"') == 1
    assert max(map(int, re.findall(r"allocate\(.*\[(\d+)\]\)", text))) <= 256 * 256


@pytest.mark.parametrize("rows", [100, 196, 256, 384])
@pytest.mark.parametrize("processor", ["znver3", "znver5"])
def test_blocks_and_tiles_divide_the_rows(processor, rows):
    """Else conditions stand around every term: 60 ms instead of 26 with 16 registers."""
    inputs, _, out = attention(2, rows, 256, 64)
    with Target(f"llvm -mtriple=x86_64-linux-gnu -mcpu={processor}"):
        text = str(tedsl.lower(topi.schedules.schedule(out), [*inputs, out], simple_mode=True))
    assert "likely(" not in text


def test_second_operands_lie_by_panels():
    """Of rows that lie apart, as wide as the whole operand, few sets of the nearest cache would be used."""
    inputs, _, out = attention(2, 256, 256, 64)
    with Target("llvm -mcpu=znver3 -model=znver3"):
        text = str(tedsl.lower(topi.schedules.schedule(out), [*inputs, out], simple_mode=True))
    assert f"[{11 * 64 * 24}]" in text and f"[{3 * 256 * 24}]" in text  # panels of 24 columns


def test_probabilities_that_are_asked_for_are_stored():
    inputs, p, out = attention(2, 20, 30, 8)
    arrays, given, result = drawn(inputs), np.zeros((2, 20, 30), "float32"), np.zeros((2, 20, 8), "float32")
    tedsl.build(topi.schedules.schedule([p, out]), [*inputs, p, out])(*arrays, given, result)
    for ours, right in zip((given, result), expected(*arrays)):
        np.testing.assert_allclose(ours, right, rtol=1e-4, atol=1e-5)


def test_scores_that_another_operator_reads_are_stored():
    q, k, v = (te.placeholder((2, 12, 8), name=name) for name in "qkv")
    scores = topi.nn.batch_matmul(q, k)
    out, most = topi.nn.batch_matmul(topi.nn.softmax(scores), v, transpose_b=False), topi.max(scores, 1)
    arrays, result, peak = drawn([q, k, v]), np.zeros((2, 12, 8), "float32"), np.zeros((2, 12), "float32")
    tedsl.build(topi.schedules.schedule([out, most]), [q, k, v, out, most])(*arrays, result, peak)
    np.testing.assert_allclose(peak, np.einsum("bid,bjd->bij", *arrays[:2]).max(1), rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(result, expected(arrays[0] * 2, *arrays[1:])[1], rtol=1e-4, atol=1e-5)


def test_a_softmax_over_another_dimension_stays_apart():
    q, k, v = (te.placeholder((2, 12, 8), name=name) for name in "qkv")
    out = topi.nn.batch_matmul(topi.nn.softmax(topi.nn.batch_matmul(q, k), 1), v, transpose_b=False)
    arrays, result = drawn([q, k, v]), np.zeros((2, 12, 8), "float32")
    tedsl.build(topi.schedules.schedule(out), [q, k, v, out])(*arrays, result)
    e = np.exp(np.einsum("bid,bjd->bij", *arrays[:2]))
    np.testing.assert_allclose(result, (e / e.sum(1, keepdims=True)) @ arrays[2], rtol=1e-4, atol=1e-5)


def test_sizes_of_the_call():
    n = te.var("n")
    q, k, v = (te.placeholder((2, n, 8), name=name) for name in "qkv")
    out = topi.nn.batch_matmul(topi.nn.softmax(topi.nn.batch_matmul(q, k) * 0.5), v, transpose_b=False)
    kernel = tedsl.build(topi.schedules.schedule(out), [q, k, v, out])
    for rows in (1, 7, 40):
        arrays = [np.random.default_rng(0).standard_normal((2, rows, 8), dtype="float32") for _ in range(3)]
        result = np.zeros((2, rows, 8), "float32")
        kernel(*arrays, result)
        np.testing.assert_allclose(result, expected(*arrays)[1], rtol=1e-4, atol=1e-5)
