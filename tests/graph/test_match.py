"""Patterns: where they fit, and graphs with what fits replaced."""

import pytest

from tedsl import graph
from tedsl.errors import ArgumentTypeError, GraphError
from tedsl.graph import Spec, ops
from tedsl.graph.match import a_constant, an_input, anything, match, op, optional, replace

X = Spec((2, 3))


def network(x, y):
    return ops.nn.relu(ops.add(2.0, ops.multiply(x, y))) - ops.nn.relu(x)


def test_operators_operands_and_names():
    g = graph.trace(network, X, X)
    product = op("multiply", anything("a"), anything("b"))
    (found,) = match(g, op("nn.relu", op("add", product, a_constant(2, name="two"))))
    assert found["a"] is g.inputs[0] and found["b"] is g.inputs[1] and found["two"].data == 2
    assert found[product].node.operator == "multiply" and found.value.node.operator == "nn.relu"
    assert [node.operator for node in found.nodes] == ["multiply", "add", "nn.relu"]
    assert "a" in found and "c" not in found
    assert [len(match(g, pattern)) for pattern in (op("nn.relu", an_input()), op(("add", "subtract"), ...), a_constant(3),
                                                   op("add", product))] == [1, 2, 0, 0]


def test_a_pattern_at_two_places_is_one_value():
    x = anything()
    square = op("multiply", x, x)
    g = graph.trace(lambda a, b: [a * a, a * b], X, X)
    assert [found.value for found in match(g, square)] == [g.outputs[0]]
    named = op("multiply", anything("x"), anything("x"))
    assert [found.value for found in match(g, named)] == [g.outputs[0]]


def test_alternatives_conditions_and_nodes_that_may_be_there():
    x = anything("x")
    either = op("nn.relu", x) | op("tanh", x)
    wide = op("exp", x).where(lambda value: value.shape[0] == 2)
    maybe = op("nn.relu", optional(op("exp", x, name="exp"), lambda inner: op("negative", inner, name="negative")))
    g = graph.trace(lambda a: [ops.tanh(a), ops.nn.relu(ops.negative(ops.exp(a))), ops.nn.relu(ops.exp(a))], X)
    assert len(match(g, either)) == 3 and len(match(g, wide)) == 2
    assert ["negative" in found for found in match(g, maybe)] == [True, False]


def test_alternatives_are_tried_until_the_whole_fits():
    x = anything("x")
    pattern = op("subtract", op("nn.relu", x) | op("nn.relu", op("exp", x)), op("tanh", x))
    g = graph.trace(lambda a: ops.nn.relu(ops.exp(a)) - ops.tanh(a), X)
    assert match(g, pattern)[0]["x"] is g.inputs[0]


def test_attributes():
    g = graph.trace(lambda a: [ops.sum(a, axis=1), ops.sum(a, axis=(0, 1)), ops.sum(a)], X)
    x = anything()
    assert [len(match(g, op("sum", x, axis=wanted))) for wanted in (1, [0, 1], None, lambda given: given is not None)] == \
        [1, 1, 1, 2]
    assert len(match(g, op("sum", x, keepdims=False))) == 3


def test_replace(golden):
    x = anything("x")
    swish = op("multiply", x, op("sigmoid", x))
    g = graph.trace(lambda a: (lambda e: ops.multiply(ops.sigmoid(e), e) + a)(ops.exp(a)), X)
    after = replace(g, swish, lambda found: ops.nn.relu(found["x"]))
    golden.sections(before=str(g), after=str(after))
    assert replace(after, swish, lambda found: found["x"]) is after
    assert replace(g, swish, lambda found: None) is g


def test_replace_alone():
    g = graph.trace(lambda a: (lambda e: [ops.tanh(e), ops.nn.relu(e)])(ops.exp(a)), X)
    pattern = op("tanh", op("exp", anything("x")))
    assert replace(g, pattern, lambda found: ops.cos(found["x"]), alone=True) is g
    once = graph.trace(lambda a: ops.tanh(ops.exp(a)), X)
    assert [node.operator for node in replace(once, pattern, lambda found: ops.cos(found["x"]), alone=True).nodes] == ["cos"]


def test_what_is_refused():
    with pytest.raises(ArgumentTypeError, match="a pattern is made by"):
        op("add", anything(), 1.0)
    g = graph.trace(lambda a: ops.exp(a), X)
    with pytest.raises(GraphError, match="other shapes"):
        replace(g, op("exp", anything("x")), lambda found: ops.sum(found["x"]))
