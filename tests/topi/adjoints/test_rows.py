"""Adjoints of softmax and layer_norm against central differences and closed forms."""

import numpy as np
import pytest

from tedsl import te
from tests.topi.adjoints.differences import check_record, differences, distinct, values
from topi import nn

SHAPES = [((5,), (0,)), ((3, 7), (1,)), ((3, 7), (0,)), ((2, 3, 5), (2,)), ((2, 3, 5), (1,)), ((2, 3, 5), (1, 2)),
          ((1, 1), (1,))]


@pytest.mark.parametrize("operator", [nn.softmax, nn.fast_softmax, nn.log_softmax])
@pytest.mark.parametrize("shape, axes", [pair for pair in SHAPES if len(pair[1]) == 1])
def test_softmax(shape, axes, operator):
    x = te.placeholder(shape, "float64", name="x")
    check_record(operator(x, axes[0]), {x: distinct(shape, low=-3, high=3)})


@pytest.mark.parametrize("has_beta", [True, False])
@pytest.mark.parametrize("shape, axes", SHAPES[:-1])
def test_layer_norm(shape, axes, has_beta):
    x = te.placeholder(shape, "float64", name="x")
    own = [shape[d] for d in axes]
    more = [te.placeholder(own, "float64", name=name) for name in ("gamma", "beta")[:1 + has_beta]]
    feeds = {x: distinct(shape), **{tensor: distinct(own, seed=n) for n, tensor in enumerate(more, 1)}}
    check_record(nn.layer_norm(x, *more, *([] if has_beta else [None]), axes), feeds, tolerance=1e-6)


def test_softmax_reads_its_result_instead_of_computing_it_again():
    x = te.placeholder((4, 5), "float64", name="x")
    y = nn.softmax(x)
    head, result = distinct((4, 5)), np.exp(distinct((4, 5), seed=3))
    saved = te.placeholder((4, 5), "float64", name="saved")
    adjoint = y.op.info.adjoint(y.op, te.placeholder((4, 5), "float64", name="head"), [x])[x]
    assert {tensor.op for tensor in adjoint.op.input_tensors} >= {y.op}
    by_hand = (head - np.sum(head * result, -1, keepdims=True)) * result
    head_tensor = te.placeholder((4, 5), "float64", name="head")
    total = te.compute((4, 5), lambda i, j: saved(i, j) * head_tensor(i, j))
    made, = values([total], {saved: result, head_tensor: head})
    np.testing.assert_allclose((head - made.sum(-1, keepdims=True)) * result, by_hand)


@pytest.mark.parametrize("uses", [(True, True), (True, False), (False, False)])
@pytest.mark.parametrize("shape, axis", [((3, 4, 2, 5), 1), ((3, 2, 5, 4), -1), ((7, 3), 1)])
def test_batch_norm_in_training(shape, axis, uses):
    x, count = te.placeholder(shape, "float64", name="x"), shape[axis]
    vectors = [te.placeholder((count,), "float64", name=name) for name in ("gamma", "beta", "mean", "variance")]
    out, mean, variance = nn.batch_norm(x, *vectors, axis, None, *reversed(uses), training=True, momentum=0.25)
    feeds = {x: distinct(shape), **{tensor: distinct((count,), seed=n) for n, tensor in enumerate(vectors)}}
    used = [tensor for tensor, is_used in zip(vectors, uses) if is_used]
    check_record(out, {tensor: feeds[tensor] for tensor in (x, *used)}, tolerance=1e-6)
    made, of_mean, of_variance = values([out, mean, variance], feeds)
    axes = tuple(d for d in range(len(shape)) if d != axis % len(shape))
    by_channel = [-1 if d not in axes else 1 for d in range(len(shape))]
    expected = (feeds[x] - feeds[x].mean(axes, keepdims=True)) / np.sqrt(feeds[x].var(axes, keepdims=True) + 1e-5)
    if uses[0]:
        expected = expected * feeds[vectors[0]].reshape(by_channel)
    if uses[1]:
        expected = expected + feeds[vectors[1]].reshape(by_channel)
    np.testing.assert_allclose(made, expected, atol=1e-12)
    np.testing.assert_allclose(of_mean, 0.75 * feeds[vectors[2]] + 0.25 * feeds[x].mean(axes), atol=1e-12)
    np.testing.assert_allclose(of_variance, 0.75 * feeds[vectors[3]] + 0.25 * feeds[x].var(axes), atol=1e-12)


@pytest.mark.parametrize("shape, axes, dtype", [
    ((70, 67), (1,), "float64"), ((3, 7, 130), (2,), "float64"), ((5, 2, 9), (1, 2), "float64"), ((9, 1), (1,), "float64"),
    ((1, 200), (1,), "float32"), ((6,), (0,), "float64")])
def test_all_adjoints_of_layer_norm_come_from_one_walk_over_the_rows(shape, axes, dtype):
    x = te.placeholder(shape, dtype, name="x")
    own = [shape[d] for d in axes]
    more = [te.placeholder(own, dtype, name=name) for name in ("gamma", "beta")]
    head = te.placeholder(shape, dtype, name="head")
    y = nn.layer_norm(x, *more, axes)
    found = te.gradient(y, [x, *more], head)
    assert found[0].op.tag == "normalization_adjoints" and isinstance(found[0].op, te.ExternOp)
    alone = [te.gradient(y, [one], head)[0] for one in (x, *more)]  # by formulas
    assert not any(isinstance(one.op, te.ExternOp) for one in alone)
    feeds = {tensor: distinct([n.value for n in tensor.shape], dtype, seed) for seed, tensor in enumerate((x, *more, head))}
    for made, expected in zip(values(found, feeds), values(alone, feeds)):
        np.testing.assert_allclose(made, expected, rtol=1e-3 if dtype == "float32" else 1e-9, atol=1e-6)


@pytest.mark.parametrize("rows", [65, 64])  # the last chunk of rows is shorter, or not
def test_the_adjoints_of_one_walk_are_differentiated_by_their_formulas(rows):
    x, gamma, beta, head = tensors = [te.placeholder(shape, "float64", name=name) for name, shape in
                                      zip("xgbh", ((rows, 3), (3,), (3,), (rows, 3)))]
    found = te.gradient(nn.layer_norm(x, gamma, beta, -1), [x, gamma, beta], head)
    feeds = {tensor: distinct([n.value for n in tensor.shape], seed=seed) for seed, tensor in enumerate(tensors)}
    for tensor in found:
        weights = te.placeholder(tensor.shape, "float64", name="weights")
        given = distinct([n.value for n in tensor.shape], seed=9)
        for wanted in (x, gamma, head):
            made, = values(te.gradient(tensor, [wanted], weights), {**feeds, weights: given})
            np.testing.assert_allclose(made, differences(tensor, feeds, wanted, given), rtol=1e-5, atol=1e-5)


def test_tangents_and_jacobians_of_adjoints_of_one_walk():
    x, gamma, head, along = [te.placeholder(shape, "float64", name=name) for name, shape in
                             zip(("x", "gamma", "head", "along"), ((4, 3), (3,), (4, 3), (4, 3)))]
    of_x, of_gamma = te.gradient(nn.layer_norm(x, gamma, None, -1), [x, gamma], head)
    feeds = {tensor: distinct([n.value for n in tensor.shape], seed=seed)
             for seed, tensor in enumerate((x, gamma, head, along))}
    for tensor in (of_x, of_gamma):
        tangent, jacobian = values([te.jvp(tensor, [x], [along]), te.gradient(tensor, [x])[0]], feeds)
        np.testing.assert_allclose(tangent, np.tensordot(jacobian, feeds[along], 2), rtol=1e-9, atol=1e-12)
        assert np.abs(tangent).max() > 1e-3
