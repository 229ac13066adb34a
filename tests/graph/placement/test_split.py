"""Parts of networks, and what they have to do."""

import numpy as np
import pytest
from hypothesis import given, settings

from tedsl import graph
from tedsl.errors import ArgumentError, ArgumentTypeError
from tedsl.graph import Spec, ops, placement
from tests.graph.placement.models import network
from tests.graph.random_graphs import graphs

PRODUCTS = ("nn.conv2d", "nn.depthwise_conv2d_nchw", "nn.dense")


def products(nodes):
    """Convolutions and fully connected layers, which the paper counts, without biases."""
    return placement.costs_of([node for node in nodes if node.operator in PRODUCTS])


@pytest.mark.parametrize("name, share", [("vgg16", 99.20), ("resnet18", 99.97), ("googlenet", 99.93), ("vgg11", 98.38),
                                         ("alexnet", 91.79)])
def test_the_share_of_convolutions_in_multiply_adds(name, share):
    nodes = network(name).nodes
    convolutions = products([node for node in nodes if node.operator != "nn.dense"]).multiply_adds
    assert 100 * convolutions / products(nodes).multiply_adds == pytest.approx(share, abs=0.006)


def test_the_parts_of_vgg16():
    """C_1 to C_5 and the fully connected layers: shares of parameters and of multiply-adds."""
    parts = placement.split(network("vgg16"))
    costs = [products(part.nodes) for part in parts]
    parameters, adds = sum(one.parameters for one in costs), sum(one.multiply_adds for one in costs)
    assert [round(100 * one.parameters / parameters, 2) for one in costs] == [0.03, 0.16, 1.07, 4.26, 5.12, 89.37]
    assert [round(100 * one.multiply_adds / adds, 2) for one in costs] == [12.52, 17.93, 29.89, 29.89, 8.97, 0.80]
    assert [part.nodes[-1].operator for part in parts] == ["nn.pool2d"] * 5 + ["nn.bias_add"]


def test_the_parts_of_alexnet():
    made = network("alexnet")
    places = {node: at for at, node in enumerate(made.nodes)}
    ends = [(places[part.nodes[0]], places[part.nodes[-1]]) for part in placement.split(made)]
    assert ends == [(0, 3), (4, 7), (8, 17), (18, 31)]


@pytest.mark.parametrize("name, parts, without", [  # with and without cuts at residual joins
    ("resnet18", 20, 3), ("resnet34", 36, 3), ("resnet50", 37, 4), ("resnet101", 71, 4), ("resnet152", 105, 4),
    ("vgg11", 6, 6), ("squeezenet", 28, 28), ("mobilenet_v2", 21, 1), ("googlenet", 47, 47), ("inception_v3", 67, 67)])
def test_branches_are_parts(name, parts, without):
    made = network(name)
    assert (len(placement.split(made)), len(placement.split(made, residual=False))) == (parts, without)


def together(parts, arrays):
    """The results of parts one after the other."""
    known = dict(zip(parts.graph.inputs, arrays))
    for part in parts:
        known |= zip(part.outputs, graph.evaluate(part.graph, *[known[value] for value in part.inputs]))
    return [value.data if value.is_constant else known[value] for value in parts.graph.outputs]


@settings(max_examples=12, deadline=None, derandomize=True, database=None)
@given(made=graphs(most=9))
def test_parts_of_random_graphs_make_the_whole(made):
    if not made.nodes:
        return
    parts = placement.split(made, at=("max_pool", "concatenate", made.nodes[0].operator))
    assert [node for part in parts for node in part.nodes] != [] and all(source < target for source, target, _ in parts.edges)
    assert sorted(map(id, (node for part in parts for node in part.nodes))) == sorted(map(id, made.nodes))
    arrays = [np.random.default_rng(at).standard_normal(value.shape).astype("float32") for at, value in enumerate(made.inputs)]
    for one, other in zip(together(parts, arrays), graph.evaluate(made, *arrays)):
        np.testing.assert_array_equal(one, other)


def test_branches_between_two_cuts():
    def block(x):
        x = ops.nn.relu(x)
        return ops.tanh(ops.concatenate([ops.exp(x), ops.nn.relu(ops.negative(x))], 1))

    parts = placement.split(graph.trace(block, Spec((2, 3))))
    assert [[node.operator for node in part.nodes] for part in parts] == \
        [["nn.relu"], ["exp"], ["negative", "nn.relu"], ["concatenate", "tanh"]]
    assert [(source, target) for source, target, _ in parts.edges] == [(0, 1), (0, 2), (1, 3), (2, 3)]
    assert "nn.relu ... nn.relu" in str(parts) and "part3" in repr(parts)


def test_costs():
    made = graph.trace(lambda x, w: ops.nn.relu(ops.nn.dense(x, w)), Spec((5, 7)), Spec((3, 7)))
    dense, relu = map(placement.costs_of, made.nodes)
    assert (dense.flops, dense.multiply_adds, dense.bytes) == (2 * 5 * 7 * 3, 5 * 7 * 3, 4 * (35 + 21 + 15))
    assert (relu.flops, relu.multiply_adds) == (15, 0) and dense + relu == placement.costs_of(made)


def test_what_cannot_be_split():
    made = graph.trace(ops.nn.relu, Spec((2, 3)))
    with pytest.raises(ArgumentError, match=r"no operator 'conv' in (.|\n)*its operators: nn\.relu"):
        placement.split(made, at="conv")
    with pytest.raises(ArgumentTypeError, match="it takes a Graph, not an int"):
        placement.split(3)
    with pytest.raises(ArgumentTypeError, match="a graph or nodes"):
        placement.costs_of([3])


def test_kinds_of_parts():
    kinds = {name: [part.kind for part in placement.split(network(name))] for name in ("alexnet", "resnet18", "squeezenet")}
    assert kinds["alexnet"] == ["conv", "conv", "conv", "fc"]
    assert kinds["resnet18"][0] == "conv" and set(kinds["resnet18"][1:]) == {"residual"}
    assert set(kinds["squeezenet"]) == {"conv", "inception"}
    nothing = graph.trace(lambda x: ops.nn.relu(x), Spec((2, 3)))
    assert [part.kind for part in placement.split(nothing)] == ["other"]
