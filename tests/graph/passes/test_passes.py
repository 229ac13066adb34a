"""Passes by their texts before and after, and by the values that they keep."""

import numpy as np
import pytest
from hypothesis import given, settings

from tedsl import graph, te
from tedsl.errors import ArgumentError, GraphError
from tedsl.graph import Graph, Spec, ops
from tedsl.graph.network.compile import optimized
from tedsl.graph.passes import (
    drop_dead,
    fold_batch_norm,
    fold_constants,
    infer,
    merge_equal,
    pipeline,
    simplify,
)
from tedsl.graph.plan.ranges import steps_of
from tedsl.target.target import Target
from tests.graph.networks import Weights, resnet18
from tests.graph.random_graphs import graphs

X = Spec((1, 4, 6, 6))


def arrays_for(g, seed=0):
    rng = np.random.default_rng(seed)
    return [rng.standard_normal(tuple(map(int, value.shape))).astype(str(value.dtype)) for value in g.inputs]


def check(golden, step, fn, *specs, rtol=1e-5):
    before = graph.trace(fn, *specs)
    after = step(before)
    golden.sections(before=str(before), after=str(after))
    arrays = arrays_for(before)
    for ours, theirs in zip(graph.evaluate(after, *arrays), graph.evaluate(before, *arrays)):
        np.testing.assert_allclose(ours, theirs, rtol=rtol, atol=1e-5)
    assert step(after) is after
    return after


def weights(*shape):
    return graph.constant(np.random.default_rng(len(shape)).standard_normal(shape).astype("float32"), name="w")


# --- simplify ---------------------------------------------------------------------------------------------------------

def test_simplify_what_changes_nothing(golden):
    check(golden, simplify, lambda x: ops.identity(ops.cast(x * 1.0 + 0.0, "float32")) - ops.nn.relu(ops.nn.relu(x)) / 1.0, X)


def test_simplify_views(golden):
    check(golden, simplify, lambda x: ops.exp(ops.squeeze(ops.expand_dims(ops.nn.flatten(ops.reshape(x, (2, 2, 36))), 0))), X)


def test_simplify_turned_twice(golden):
    check(golden, simplify, lambda x: [ops.transpose(ops.transpose(x, (0, 2, 3, 1)), (0, 3, 1, 2)),
                                       ops.transpose(ops.transpose(x, (0, 2, 3, 1)), (3, 0, 1, 2))], X)


def test_simplify_padding(golden):
    def padded(x):
        return ops.nn.conv2d(ops.nn.pad(x, (0, 0, 1, 2), (0, 0, 1, 0)), weights(3, 4, 3, 3), 2, 1, 1)

    check(golden, simplify, padded, X)


@pytest.mark.parametrize("fn", [
    lambda x: x * 2.0, lambda x: ops.add(x, graph.constant(np.zeros((3, 4, 6, 6), "float32"))), lambda x: 0.0 - x,
    lambda x: ops.nn.conv2d(ops.nn.pad(x, (0, 0, 1, 1), None, 1.0), weights(3, 4, 3, 3), 1, 0, 1),
    lambda x: ops.nn.conv2d(ops.nn.pad(x, (0, 1, 1, 1)), weights(3, 6, 3, 3), 1, 0, 1),
    lambda x: ops.nn.pool2d(ops.nn.pad(x, (0, 0, 1, 1)), (2, 2), (2, 2), (1, 1), (0, 0, 0, 0), "max"),
    lambda x: ops.transpose(x, (0, 1, 3, 2)), lambda x: ops.cast(x, "float64"),
], ids=["times_2", "larger", "negative", "padded_with_1", "channels_padded", "max", "transpose", "cast"])
def test_simplify_leaves_the_rest(fn):
    g = graph.trace(fn, X)
    assert simplify(g) is g


# --- batch norms ------------------------------------------------------------------------------------------------------

def norm(x, size, **options):
    made = Weights(3)
    around = {"gamma": 1.5, "beta": 0.5, "mean": 0.2, "var": 2.0}
    return ops.nn.batch_norm(x, *[made.around(at, size, name) for name, at in around.items()], **options)


def test_fold_batch_norm_into_a_convolution(golden):
    check(golden, fold_batch_norm, lambda x: ops.nn.relu(norm(ops.nn.conv2d(x, weights(5, 4, 3, 3), 1, 1, 1), 5)[0]), X)


def test_fold_batch_norm_after_a_bias(golden):
    def layers(x):
        y = ops.nn.bias_add(ops.nn.conv2d(x, weights(5, 4, 3, 3), 1, 1, 1), weights(5))
        return norm(ops.nn.dense(ops.nn.flatten(norm(y, 5, scale=False)[0]), weights(3, 180), weights(3)), 3, center=False)[0]

    check(golden, fold_batch_norm, layers, X)


def test_fold_batch_norm_that_follows_no_weights(golden):
    check(golden, fold_batch_norm, lambda x: [ops.nn.relu(norm(x, 4, epsilon=0.1)[0]), norm(x, 6, axis=3)[0]], X)


def test_sums_that_others_read_keep_their_weights():
    def twice(x):
        y = ops.nn.conv2d(x, weights(5, 4, 3, 3), 1, 1, 1)
        return norm(y, 5)[0] + y

    folded = fold_batch_norm(graph.trace(twice, X))
    assert [node.operator for node in folded.nodes] == ["nn.conv2d", "multiply", "add", "add"]


def test_depthwise_weights():
    def fn(x):
        return norm(ops.nn.depthwise_conv2d_nchw(x, weights(4, 2, 3, 3), 1, 1, 1), 8)[0]

    g = graph.trace(fn, X)
    x = arrays_for(g)
    np.testing.assert_allclose(graph.evaluate(fold_batch_norm(g), *x)[0], graph.evaluate(g, *x)[0], rtol=1e-4, atol=1e-4)
    assert [node.operator for node in fold_batch_norm(g).nodes] == ["nn.depthwise_conv2d_nchw", "nn.bias_add"]


def test_norms_in_training_stay():
    g = graph.trace(lambda x: norm(ops.nn.conv2d(x, weights(5, 4, 3, 3), 1, 1, 1), 5, training=True)[0], X)
    assert fold_batch_norm(g) is g


# --- equal, dead, constant --------------------------------------------------------------------------------------------

def test_merge_equal(golden):
    def fn(x):
        one, other = ops.nn.relu(x), ops.nn.relu(x)
        return [ops.add(ops.exp(one), weights(6)), ops.add(ops.exp(other), weights(6)), ops.sum(one, 1), ops.sum(other, 2)]

    check(golden, merge_equal, fn, X)


def test_drop_dead(golden):
    inner = graph.trace(lambda a, b: [ops.exp(a), ops.tanh(b)], X, X, name="inner")
    check(golden, drop_dead, lambda x, y, unused: graph.call(inner, ops.nn.relu(x), ops.negative(y)).outputs[0] * 2.0, X, X, X)


def test_fold_constants(golden):
    def fn(x):
        scale = ops.exp(graph.constant(np.linspace(0, 1, 6, dtype="float32"))) * 2.0
        return x * ops.reshape(scale, (1, 1, 1, 6)) + ops.full((1, 4, 6, 6), "float32", 3.0)

    check(golden, fold_constants, fn, X)


def test_large_constants_are_left_to_the_first_call():
    g = graph.trace(lambda x: x + ops.broadcast_to(graph.constant(1.0), (1000, 1000)), Spec((1000, 1000)))
    assert fold_constants(g) is g


# --- infer ------------------------------------------------------------------------------------------------------------

def test_infer_other_shapes(golden):
    n = te.var("n")
    g = graph.trace(lambda x, w: ops.nn.flatten(ops.nn.conv2d(x, w, 2, 1, 1)), Spec((n, 3, 9, 9)), Spec((5, 3, 3, 3)))
    golden.sections(before=str(g), after=str(infer(g, x=(2, 3, 17, 9))), dtype=str(infer(g, x=Spec((n, 3, 9, 9), "float64"),
                                                                                          w=Spec((5, 3, 3, 3), "float64"))))
    assert infer(g) is g
    with pytest.raises(GraphError, match="conv2d"):
        infer(g, x=(2, 4, 9, 9))
    with pytest.raises(ArgumentError, match="no input image"):
        infer(g, image=(1,))


# --- all --------------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("level", [1, 2])
def test_resnet_18_keeps_its_values(level):
    g = resnet18(size=64, width=32)
    after = optimized(g, Target("llvm"), level)
    assert len([node for node in steps_of(after) if node.operator == "call" or not node.operator.endswith(
        ("pack_weights", "weight_transform"))]) == 23
    x = arrays_for(g)
    expected = graph.evaluate(g, *x)[0]
    np.testing.assert_allclose(graph.evaluate(after, *x)[0], expected, rtol=0, atol=1e-4 * np.abs(expected).max())


@settings(max_examples=30, deadline=None)
@given(graphs())
def test_a_pipeline_keeps_values(g):
    after = g
    for step in pipeline(2):
        after = step(after)
    assert [value.spec for value in after.inputs] == [value.spec for value in g.inputs]
    constants = {name: value.data for name, value in _named(after).items()}
    assert str(Graph.parse(str(after), constants)) == str(after)
    for ours, theirs in zip(graph.evaluate(after, *arrays_for(g)), graph.evaluate(g, *arrays_for(g))):
        np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-5)


def _named(g):
    from tedsl.graph.text.printer import names_of_constants

    return names_of_constants(g)


STATISTICS = [graph.constant(np.linspace(0.5, 1.5, 4, dtype="float32") + at, name=name)
              for at, name in enumerate(("gamma", "beta", "mean", "var"))]


def test_a_batch_norm_is_not_folded_into_weights_that_cannot_hold_the_product():
    weights = graph.constant(np.random.default_rng(0).integers(-100, 100, (4, 3, 3, 3)).astype("int8"), name="w")
    g = graph.trace(lambda x: ops.nn.batch_norm(ops.nn.conv2d(x, weights, 1, 1, 1, out_dtype="float32"), *STATISTICS)[0],
                    Spec((1, 3, 5, 5), "int8"))
    x = np.random.default_rng(1).integers(-100, 100, (1, 3, 5, 5)).astype("int8")
    np.testing.assert_allclose(graph.compile(g)(x), graph.evaluate(g, x)[0], rtol=1e-5)


def test_a_bias_that_is_added_twice_is_folded_twice():
    w, b = [graph.constant(np.random.default_rng(at).random(shape, "float32"), name=name)
            for at, (name, shape) in enumerate((("w", (4, 3)), ("b", (4,))))]
    g = graph.trace(lambda x: ops.nn.batch_norm(ops.nn.bias_add(ops.nn.dense(x, w, b), b), *STATISTICS)[0], Spec((5, 3)))
    x = np.random.default_rng(2).random((5, 3), "float32")
    np.testing.assert_allclose(graph.compile(g)(x), graph.evaluate(g, x)[0], rtol=1e-5)


@pytest.mark.parametrize("level", [0, 1, 2])
def test_numbers_that_are_computed_of_constants_are_parts_of_kernels(level):
    z = graph.constant(np.int8(3), name="z")
    g = graph.trace(lambda x: x + ops.cast(z, "float32"), Spec((9,)))
    x = np.arange(9, dtype="float32")
    np.testing.assert_array_equal(graph.compile(g, opt_level=level)(x), x + 3)


@pytest.mark.parametrize("level", [-1, "2", 1.5, True])
def test_levels_are_numbers(level):
    with pytest.raises(ArgumentError, match="opt_level is"):
        graph.compile(graph.trace(lambda x: x + 1, Spec((2,))), opt_level=level)
