"""Constant weights of convolutions in forms that are prepared once: panels, and those of winograd."""

import numpy as np
import pytest

import tedsl
import topi
from tedsl import graph, te
from tedsl.errors import ShapeError
from tedsl.graph import Spec, ops
from tedsl.graph.network.prepare import split_constants
from tedsl.graph.passes import fuse, pack_weights, use_winograd
from tedsl.graph.passes.winograd import cost
from topi.schedules.packing import panels_in


def weights(*shape):
    return graph.constant(np.random.default_rng(len(shape)).standard_normal(shape).astype("float32") * 0.1, name="w")


def network(x):
    y = ops.nn.relu(ops.nn.conv2d(x, weights(64, 32, 3, 3), 1, 1, 1))
    return ops.nn.conv2d(y, weights(40, 64, 3, 3), 2, 1, 1)


X = Spec((1, 32, 7, 7))


def results(g):
    x = np.random.default_rng(0).standard_normal((1, 32, 7, 7)).astype("float32")
    return graph.evaluate(g, x)[0]


def test_weights_are_packed_once(golden):
    before = fuse(graph.trace(network, X))
    with tedsl.Target("llvm -mtriple=x86_64-linux-gnu -mcpu=znver5"):  # panels are as wide as a processor's tiles
        after = pack_weights(before)
    golden.sections(before=str(before), after=str(after))
    np.testing.assert_array_equal(results(after), results(before))
    split = split_constants(after)
    assert [node.operator for node in split.before.nodes] == ["nn.conv2d_pack_weights"] * 2
    assert [node.operator for node in split.graph.nodes] == ["call", "call"]


def test_packed_weights_are_not_copied():
    def stages(g):
        functions = [list(graph.formula_of(function).outputs) for function in g.functions]
        return [stage.op.name for outs in functions for stage in topi.schedules.schedule(outs).stages]

    before = fuse(graph.trace(network, X))
    assert "w.global" in stages(before) or "p1.global" in stages(before)
    assert not [name for name in stages(pack_weights(before)) if name.startswith(("w.", "p1.", "unpacked"))
                and name.endswith(".global")]


def layers(x):
    y = ops.nn.relu(ops.nn.dense(x, weights(40, 96), graph.constant(np.ones(40, "float32"), name="b")))
    return ops.nn.matmul(y, weights(40, 70))


def test_weights_of_products_are_packed_once():
    before = fuse(graph.trace(layers, Spec((20, 96))))
    after = pack_weights(before)
    assert [node.operator for node in after.nodes if node.function is None] == ["nn.dense_pack_weights"] * 2
    x = np.random.default_rng(0).standard_normal((20, 96)).astype("float32")
    np.testing.assert_allclose(graph.evaluate(after, x)[0], graph.evaluate(before, x)[0], rtol=1e-5, atol=1e-5)
    assert [node.operator for node in split_constants(after).before.nodes] == ["nn.dense_pack_weights"] * 2
    for function in after.functions:
        names = [stage.op.name for stage in topi.schedules.schedule(list(graph.formula_of(function).outputs)).stages]
        assert not [name for name in names if name.endswith(".global")], names


def test_weights_of_one_row_stay():
    g = fuse(graph.trace(layers, Spec((1, 96))))
    assert pack_weights(g) is g


def test_winograd_where_it_takes_less_time(golden):
    before = fuse(graph.trace(lambda x: ops.nn.relu(ops.nn.conv2d(x, weights(32, 32, 3, 3), 1, 1, 1)), Spec((1, 32, 28, 28))))
    after = use_winograd(before)
    golden.sections(before=str(before), after=str(after))
    x = np.random.default_rng(0).standard_normal((1, 32, 28, 28)).astype("float32")
    np.testing.assert_allclose(graph.evaluate(after, x)[0], graph.evaluate(before, x)[0], rtol=1e-4, atol=1e-4)


def test_the_model_of_winograd_orders_what_was_measured():
    """The times of tiles, as parts of that of the direct convolution, were 0.39, 0.35, 0.56 against 0.64, and 1.08."""
    def ratio(size, channels, image):
        return cost(size, (1, image, image), channels, channels) / (image * image * 9 * channels * channels)

    assert ratio(4, 64, 56) < 0.5 and ratio(4, 128, 28) < 0.5
    assert ratio(2, 256, 14) < ratio(4, 256, 14) < 0.75 and ratio(2, 512, 7) > 1


@pytest.mark.parametrize("fn", [
    lambda x: ops.nn.conv2d(x, weights(32, 32, 3, 3), 2, 1, 1), lambda x: ops.nn.conv2d(x, weights(32, 32, 3, 3), 1, 1, 2),
    lambda x: ops.nn.conv2d(x, weights(15, 32, 3, 3), 1, 1, 1), lambda x: ops.nn.conv2d(x, weights(32, 32, 1, 1), 1, 0, 1),
], ids=["stride", "dilation", "few_channels", "window"])
def test_other_convolutions_stay(fn):
    g = graph.trace(fn, Spec((1, 32, 28, 28)))
    assert use_winograd(g) is g


def test_weights_that_come_with_the_call_stay():
    g = fuse(graph.trace(lambda x, w: ops.nn.relu(ops.nn.conv2d(x, w, 1, 1, 1)), Spec((1, 32, 28, 28)), Spec((32, 32, 3, 3))))
    assert pack_weights(g) is g and use_winograd(g) is g


def test_a_batch_of_any_size():
    n = te.var("n")
    g = pack_weights(use_winograd(fuse(graph.trace(network, Spec((n, 32, 28, 28))))))
    assert {node.operator for node in g.nodes} == {"call", "nn.conv2d_pack_weights", "nn.conv2d_winograd_weight_transform"}
    x = np.random.default_rng(0).standard_normal((2, 32, 28, 28)).astype("float32")
    plain = graph.evaluate(graph.trace(network, Spec((2, 32, 28, 28))), x)[0]
    np.testing.assert_allclose(graph.evaluate(g, x)[0], plain, rtol=1e-3, atol=1e-3)


def test_panels_are_those_of_the_schedule():
    x, w = te.placeholder((1, 32, 7, 7)), te.placeholder((40, 32, 3, 3))
    out = topi.nn.conv2d(x, w, 1, 1, 1)
    width = panels_in([out])[w].results
    panels = topi.nn.conv2d_pack_weights(w, 1, width)
    assert [int(extent) for extent in panels.shape] == [-(-40 // width), 32, 3, 3, 1, width]


def test_unpacking_gives_the_weights_back():
    w = te.placeholder((10, 3, 3, 3), name="w")
    g = graph.trace(lambda w: ops.nn.conv2d_unpack_weights(ops.nn.conv2d_pack_weights(w, 1, 4), 10), Spec((10, 3, 3, 3)))
    array = np.random.default_rng(0).standard_normal((10, 3, 3, 3)).astype("float32")
    np.testing.assert_array_equal(graph.evaluate(g, array)[0], array)
    with pytest.raises(ShapeError, match="are no panels of 3 results"):
        topi.nn.conv2d_unpack_weights(topi.nn.conv2d_pack_weights(w, 1, 4), 3)
