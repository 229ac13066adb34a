"""Layouts of image operators: texts before and after, values, and regions that stay."""

import numpy as np
import pytest

from tedsl import graph, te
from tedsl.graph import Spec, ops
from tedsl.graph.passes import layouts

TO_NCHW, TO_NHWC = (0, 3, 1, 2), (0, 2, 3, 1)


def weights(*shape):
    return graph.constant(np.random.default_rng(len(shape)).standard_normal(shape).astype("float32") * 0.1, name="w")


def check(fn, *specs, changes=True):
    before = graph.trace(fn, *specs)
    after = layouts(before)
    assert (after is not before) == changes
    rng = np.random.default_rng(0)
    given = [rng.standard_normal([extent if isinstance(extent, int) else 2 for extent in spec.shape]).astype("float32")
             for spec in specs]
    for ours, theirs in zip(graph.evaluate(after, *given), graph.evaluate(before, *given)):
        np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-4)
    assert layouts(after) is after
    return before, after


def block(x):
    """As exporters of models with images in NHWC write it."""
    y = ops.nn.bias_add(ops.nn.conv2d(ops.transpose(x, TO_NCHW), weights(6, 4, 3, 3), 2, 1, 1), weights(6))
    y = ops.nn.relu(y + weights(6, 1, 1)) * 0.5
    y = ops.nn.pool2d(y, (2, 2), (1, 1), (1, 1), (0, 0, 1, 1), "max")
    y = ops.concatenate([y, ops.exp(y)], axis=1)
    return ops.transpose(y, TO_NHWC)


def test_transpositions_around_a_region_disappear(golden):
    before, after = check(block, Spec((1, 9, 7, 4)))
    golden.sections(before=str(before), after=str(after))
    assert "transpose" not in {node.operator for node in after.nodes}


def test_convolutions_that_go_by_winograd_are_turned(golden):
    def fn(x):
        y = ops.nn.relu(ops.nn.conv2d(x, weights(3, 3, 64, 64), 1, 1, 1, layout="NHWC"))
        return ops.nn.bias_add(ops.nn.conv2d(y, weights(3, 3, 64, 64), 1, 1, 1, layout="NHWC"), weights(64), axis=-1)

    before, after = check(fn, Spec((1, 28, 28, 64)))
    golden.sections(before=str(before), after=str(after))


def inverted_residual(x):
    """A block of MobileNetV2: pointwise, depthwise and pointwise again."""
    y = ops.clip(ops.nn.conv2d(x, weights(144, 8, 1, 1), 1, 0, 1), 0.0, 6.0)
    y = ops.clip(ops.nn.bias_add(ops.nn.depthwise_conv2d_nchw(y, weights(144, 1, 3, 3), 2, 1, 1), weights(144)), 0.0, 6.0)
    return ops.nn.conv2d(y, weights(8, 144, 1, 1), 1, 0, 1)


def test_depthwise_convolutions_have_channels_last(golden):
    before, after = check(inverted_residual, Spec((1, 8, 40, 40)))
    golden.sections(before=str(before), after=str(after))


def test_several_results_of_a_channel():
    def fn(x):
        return ops.transpose(ops.nn.depthwise_conv2d_nchw(ops.transpose(x, TO_NCHW), weights(8, 3, 3, 3), 1, 1, 1), TO_NHWC)

    _, after = check(fn, Spec((1, 9, 7, 8)))
    assert [node.operator for node in after.nodes] == ["nn.depthwise_conv2d_nhwc"]


def test_depthwise_convolutions_that_transpositions_cost_more_than_they_gain_stay():
    check(lambda x: ops.nn.depthwise_conv2d_nchw(x, weights(8, 1, 3, 3), 1, 1, 1), Spec((1, 8, 9, 7)), changes=False)


def test_convolutions_of_bytes_have_channels_last():
    """With their borders, and element-wise nodes of numbers and channels; no transposition of an image is free for it."""
    w = [graph.constant(np.random.default_rng(at).integers(-9, 9, shape).astype("int8"), name="w")
         for at, shape in enumerate([(16, 4, 3, 3), (8, 16, 1, 1)])]

    def fn(x):
        y = ops.nn.pad(ops.cast(x, "int8"), (0, 0, 1, 2), (0, 1, 1, 0), 3)
        y = ops.divide(ops.cast(ops.nn.conv2d(y, w[0], 1, 0, 1, "NCHW", "int32"), "float32"), graph.constant(np.float32(7)))
        return ops.nn.conv2d(ops.cast(ops.nn.relu(y), "int8"), w[1], 1, 0, 1, "NCHW", "int32")

    _, after = check(fn, Spec((1, 3, 19, 18)))
    convs = [node for node in after.nodes if node.operator == "nn.conv2d"]
    assert [node.arguments["layout"] for node in convs] == ["NHWC"] * 2
    assert [node.operator for node in after.nodes].count("transpose") == 2


def test_a_batch_of_any_size():
    check(block, Spec((te.var("n"), 9, 7, 4)))


def test_values_that_others_read_are_transposed_for_them():
    def fn(x):
        y = ops.nn.conv2d(ops.transpose(x, TO_NCHW), weights(64, 32, 1, 1), 1, 0, 1)
        z = ops.nn.conv2d(ops.nn.relu(y), weights(64, 64, 1, 1), 1, 0, 1)
        return [ops.transpose(z, TO_NHWC), ops.transpose(y, TO_NHWC), ops.nn.global_pool(z, "avg"), ops.sum(y, 1)]

    _, after = check(fn, Spec((1, 8, 8, 32)))
    assert [node.arguments["axes"] for node in after.nodes if node.operator == "transpose"] == [TO_NCHW] * 2


@pytest.mark.parametrize("fn, shape", [
    (lambda x: ops.nn.relu(ops.nn.conv2d(x, weights(64, 32, 1, 1), 1, 0, 1)), (1, 32, 8, 8)),
    (lambda x: ops.nn.relu(ops.nn.conv2d(x, weights(1, 1, 32, 64), 1, 0, 1, layout="NHWC")), (1, 8, 8, 32)),
    (lambda x: ops.transpose(ops.nn.conv2d(ops.transpose(x, TO_NCHW), weights(64, 64, 3, 3), 1, 1, 1), TO_NHWC),
     (1, 56, 56, 64)),
    (lambda x: ops.transpose(ops.nn.relu(ops.transpose(x, TO_NCHW)), TO_NHWC), (1, 8, 8, 4)),
    (lambda x: ops.nn.conv2d(ops.nn.conv2d(x, weights(8, 8, 1, 1), 1, 0, 1), weights(1, 1, 8, 8), 1, 0, 1, layout="NHWC"),
     (1, 8, 8, 8)),
    (lambda x: ops.transpose(ops.nn.relu(ops.nn.conv2d(x, weights(8, 4, 1, 1), 1, 0, 1)), (0, 1, 3, 2)), (1, 4, 8, 8)),
], ids=["nchw", "nhwc", "winograd", "no_convolution", "both_layouts", "other_transposition"])
def test_regions_that_would_not_take_less_time_stay(fn, shape):
    check(fn, Spec(shape), changes=False)


def test_weights_that_come_with_the_call_stay():
    g = graph.trace(lambda x, w: ops.transpose(ops.nn.conv2d(ops.transpose(x, TO_NCHW), w, 1, 0, 1), TO_NHWC),
                    Spec((1, 8, 8, 4)), Spec((6, 4, 1, 1)))
    assert layouts(g) is g
