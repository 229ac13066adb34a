"""Fusion: groups by the kinds of operators, as graphs that nodes call; one kernel each."""

import numpy as np
import pytest
from hypothesis import given, settings

import topi
from tedsl import graph, te
from tedsl.graph import Spec, ops
from tedsl.graph.passes import Kind, fuse, groups_of, kind_of
from tedsl.graph.plan.ranges import steps_of
from tests.graph.networks import resnet18
from tests.graph.random_graphs import graphs

X = Spec((1, 4, 8, 8))


def operators(g):
    return [[node.operator.rpartition(".")[2] for node in group] for group in groups_of(g)]


def weights(*shape):
    return graph.constant(np.random.default_rng(len(shape)).standard_normal(shape).astype("float32"), name="w")


@pytest.mark.parametrize("kind, fn", [
    (Kind.ELEMENTWISE, ops.nn.relu), (Kind.ELEMENTWISE, lambda x: ops.add(x, x)), (Kind.ELEMENTWISE, lambda x: x * 2.0),
    (Kind.BROADCAST, lambda x: ops.add(x, weights(4, 1, 1))), (Kind.BROADCAST, lambda x: ops.nn.bias_add(x, weights(4))),
    (Kind.ELEMENTWISE, lambda x: ops.divide(x, graph.constant(np.float32(3)))),
    (Kind.INJECTIVE, lambda x: ops.transpose(x, (0, 2, 3, 1))), (Kind.INJECTIVE, lambda x: ops.concatenate([x, x], 1)),
    (Kind.INJECTIVE, lambda x: ops.nn.pad(x, (0, 0, 1, 1))), (Kind.INJECTIVE, lambda x: ops.split(x, 2, 1)),
    (Kind.REDUCTION, lambda x: ops.sum(x, axis=1)), (Kind.REDUCTION, ops.nn.softmax), (Kind.REDUCTION, ops.argmax),
    (Kind.REDUCTION, lambda x: ops.nn.layer_norm(x, weights(8), weights(8), -1)),
    (Kind.FUSABLE, lambda x: ops.nn.conv2d(x, weights(4, 4, 3, 3), 1, 1, 1)),
    (Kind.FUSABLE, lambda x: ops.nn.dense(ops.reshape(x, (4, 64)), weights(3, 64))),
    (Kind.FUSABLE, lambda x: ops.nn.pool2d(x, (2, 2), (2, 2), (1, 1), (0, 0, 0, 0), "max")),
    (Kind.OPAQUE, lambda x: ops.cumsum(x, 1)), (Kind.OPAQUE, lambda x: ops.sort(x, 1)),
])
def test_kinds_of_operators(kind, fn):
    assert kind_of(graph.trace(fn, X).nodes[-1]) is kind


def block(x, shift):
    y = ops.nn.conv2d(ops.nn.relu(x), weights(4, 4, 3, 3), 1, 1, 1)
    return ops.nn.relu(ops.nn.bias_add(y, shift) + x)


def test_a_block_before_and_after(golden):
    g = graph.trace(block, X, Spec((4,)))
    golden.sections(before=str(g), after=str(fuse(g)))


def attention(q, k, v, mask):
    scores = ops.nn.batch_matmul(q, k, transpose_b=True) * 0.25 + mask
    return ops.nn.batch_matmul(ops.nn.softmax(scores), v, transpose_b=False)


CASES = {
    "a product takes what follows by element, not what moves elements":
        (lambda x: ops.transpose(ops.tanh(ops.nn.conv2d(x, weights(4, 4, 1, 1), 1, 0, 1)), (0, 2, 3, 1)),
         [["conv2d", "tanh"], ["transpose"]]),
    "of two products that are added one takes the sum":
        (lambda x: ops.nn.conv2d(x, weights(4, 4, 1, 1), 1, 0, 1) + ops.nn.conv2d(x, weights(4, 4, 3, 3), 1, 1, 1),
         [["conv2d"], ["conv2d", "add"]]),
    "element-wise operators go into a reduction, and follow it":
        (lambda x: ops.sqrt(ops.sum(ops.nn.relu(x) * 2.0, axis=1)), [["relu", "multiply", "sum", "sqrt"]]),
    "a sum of rows is not followed by what broadcasts it": (lambda x: x - ops.sum(x, axis=1, keepdims=True),
                                                            [["sum"], ["subtract"]]),
    "paths that part and meet": (lambda x: (lambda y: ops.tanh(y) + ops.exp(y) * y)(ops.nn.relu(x)),
                                 [["relu", "tanh", "exp", "multiply", "add"]]),
    "a value that the caller gets ends a group": (lambda x: (lambda y: [y, ops.exp(y)])(ops.nn.relu(x)), [["relu"], ["exp"]]),
    "moves of elements": (lambda x: ops.nn.pad(ops.transpose(x, (0, 2, 3, 1)), (0, 1, 1, 0)) * 2.0,
                          [["transpose", "pad", "multiply"]]),
    "what is joined": (lambda x: ops.concatenate([ops.nn.relu(x), ops.tanh(x)], 1), [["relu", "tanh", "concatenate"]]),
    "products that are joined stay":
        (lambda x: ops.concatenate([ops.nn.relu(ops.nn.conv2d(x, weights(4, 4, 1, 1), 1, 0, 1)), x], 1),
         [["conv2d", "relu"], ["concatenate"]]),
    "views at the ends stand alone": (lambda x: ops.nn.flatten(ops.tanh(ops.reshape(x, (4, 64)))),
                                      [["reshape"], ["tanh"], ["flatten"]]),
    "views between are taken": (lambda x: ops.exp(ops.reshape(ops.tanh(x), (4, 64))), [["tanh", "reshape", "exp"]]),
    "statements stand alone": (lambda x: ops.nn.relu(ops.cumsum(ops.nn.relu(x), 1)), [["relu"], ["cumsum"], ["relu"]]),
}


@pytest.mark.parametrize("name", CASES)
def test_groups(name):
    fn, expected = CASES[name]
    g = graph.trace(fn, X)
    assert operators(g) == expected
    x = np.random.default_rng(0).standard_normal((1, 4, 8, 8)).astype("float32")
    for ours, theirs in zip(graph.evaluate(fuse(g), x), graph.evaluate(g, x)):
        np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-6)


def test_attention_is_one_kernel():
    specs = [Spec((2, 8, 16)), Spec((2, 8, 16)), Spec((2, 8, 16)), Spec((2, 1, 8))]
    g = graph.trace(attention, *specs)
    assert operators(g) == [["batch_matmul", "multiply", "add", "softmax", "batch_matmul"]]
    arrays = [np.random.default_rng(at).standard_normal(tuple(map(int, spec.shape))).astype("float32")
              for at, spec in enumerate(specs)]
    np.testing.assert_allclose(graph.evaluate(fuse(g), *arrays)[0], graph.evaluate(g, *arrays)[0], rtol=1e-5, atol=1e-6)


def test_a_group_has_a_largest_number_of_nodes():
    def chain(x):
        for _ in range(10):
            x = ops.tanh(x)
        return x

    sizes = [len(group) for group in groups_of(graph.trace(chain, X), most=4)]
    assert sum(sizes) == 10 and max(sizes) <= 4 and len(sizes) <= 4


@pytest.mark.parametrize("batch", [1, te.var("n")], ids=["one", "symbolic"])
def test_resnet_18_has_23_groups_that_compute(batch):
    fused = fuse(resnet18(size=64, batch=batch, width=8))
    assert len(steps_of(fused)) == 23
    assert len(fused.functions) <= 15  # equal groups call one graph


def test_nothing_to_fuse_is_the_same_graph():
    g = graph.trace(ops.nn.relu, X)
    assert fuse(g) is g


def test_a_fused_graph_is_read_back():
    g = fuse(graph.trace(block, X, Spec((4,))))
    w = {value.name: value.data for value in g.constants}
    assert str(graph.Graph.parse(str(g), w)) == str(g)


def stages_stored_apart(fn, *specs):
    """The stages of the only kernel of a graph that are neither inlined nor computed in the loops of another."""
    (group,) = groups_of(graph.trace(fn, *specs))
    s = topi.schedules.schedule(list(graph.formula_of(fuse(graph.trace(fn, *specs))).outputs))
    return [stage.op.name for stage in s.stages if stage.attach_type == 1 and not isinstance(stage.op, te.PlaceholderOp)]


def residual(x, gamma, beta, mean, var):
    y = ops.nn.batch_norm(ops.nn.conv2d(x, weights(4, 4, 1, 1), 1, 0, 1), gamma, beta, mean, var)[0]
    return ops.nn.relu(y + x)


@pytest.mark.parametrize("fn, specs", [
    (residual, [X] + [Spec((4,))] * 4),
    (lambda x: ops.divide(ops.nn.conv2d(x, weights(4, 4, 1, 1), 1, 0, 1), graph.constant(np.float32(3))), [X]),
    (lambda x: ops.nn.softmax(x * 2.0 + 1.0), [Spec((64, 64))]),
    (lambda x: ops.nn.layer_norm(ops.tanh(x) + x, weights(64), weights(64), -1), [Spec((64, 64))]),
    (attention, [Spec((2, 8, 16)), Spec((2, 8, 16)), Spec((2, 8, 16)), Spec((2, 1, 8))]),
], ids=["residual", "number", "softmax", "layer_norm", "attention"])
def test_a_group_is_one_nest_of_loops(fn, specs):
    assert len(stages_stored_apart(fn, *specs)) == 1


@settings(max_examples=40, deadline=None)
@given(graphs())
def test_groups_part_a_graph_and_keep_its_values(g):
    groups = groups_of(g)
    assert sorted(id(node) for group in groups for node in group) == sorted(map(id, g.nodes))
    for group in groups:
        for node in group[:-1]:
            assert all(value not in g.outputs and set(g.users(value)) <= set(group) for value in node.outputs)
    fused = fuse(g)
    assert len(fused.nodes) == len(groups)
    arrays = [np.random.default_rng(at).standard_normal(tuple(map(int, value.shape))).astype("float32")
              for at, value in enumerate(g.inputs)]
    for ours, theirs in zip(graph.evaluate(fused, *arrays), graph.evaluate(g, *arrays)):
        np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-5)


def quantised(x):
    return ops.cast(ops.clip(ops.nearbyint(x * 9.0), 0.0, 255.0), "uint8")


def real(q):
    return ops.cast(q, "float32") * 0.1


@pytest.mark.parametrize("fn, dtypes", [
    (lambda x: ops.nn.relu(ops.nn.conv2d(x, weights(4, 4, 1, 1), 1, 0, 1) +
                           real(quantised(ops.nn.conv2d(x, weights(4, 4, 3, 3), 1, 1, 1)))), ["uint8", "float32"]),
    (lambda x: ops.nn.depthwise_conv2d_nchw(ops.cast(quantised(ops.nn.conv2d(x, weights(4, 4, 1, 1), 1, 0, 1)), "float32"),
                                            weights(4, 1, 3, 3), 1, 1, 1), ["uint8", "float32"]),
    (lambda x: ops.nn.conv2d(real(quantised(ops.nn.conv2d(x, weights(4, 4, 1, 1), 1, 0, 1))), weights(4, 4, 3, 3), 1, 1, 1),
     ["float32", "float32"]),
    (lambda x: real(quantised(ops.nn.conv2d(x, weights(4, 4, 1, 1), 1, 0, 1))), ["float32"]),
], ids=["sum", "depthwise", "window", "result"])
def test_groups_end_where_results_have_few_bits(fn, dtypes):
    """What widens them is computed by the reader, if that reads each once, or a few times; a graph keeps its results."""
    before = graph.trace(fn, X)
    groups = groups_of(before)
    assert sorted([str(group[-1].outputs[0].dtype) for group in groups], reverse=True) == sorted(dtypes, reverse=True)
    x = np.random.default_rng(0).standard_normal((1, 4, 8, 8)).astype("float32")
    np.testing.assert_allclose(graph.evaluate(fuse(before), x)[0], graph.evaluate(before, x)[0], rtol=1e-5, atol=1e-5)
