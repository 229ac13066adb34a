"""Values, nodes and graphs: what they hold, how they are made, and what is refused."""

import gc

import numpy as np
import pytest

from tedsl import graph, te
from tedsl.errors import ArgumentError, ArgumentTypeError, GraphError
from tedsl.graph import Graph, Node, Spec, Value, ops


def block(x, w):
    return ops.nn.relu(ops.nn.conv2d(x, w, 1, 1, 1)) * 2.0


def traced():
    return graph.trace(block, Spec((1, 3, 8, 8)), Spec((4, 3, 3, 3)))


def test_a_function_is_traced_with_the_names_of_its_parameters():
    g = traced()
    assert [value.name for value in g.inputs] == ["x", "w"]
    assert [node.operator for node in g.nodes] == ["nn.conv2d", "nn.relu", "multiply"]
    assert g.outputs[0].spec == Spec((1, 4, 8, 8)) and g.outputs[0].node is g.nodes[-1]
    assert g.users(g.inputs[0]) == (g.nodes[0],) and g.users(g.outputs[0]) == ()


def test_arguments_are_stored_by_name_without_defaults():
    g = graph.trace(lambda x: ops.nn.softmax(ops.sum(x, axis=[0], keepdims=np.bool_(True)), -1), Spec((3, 4)))
    total, soft = g.nodes
    assert total.attributes == {"axis": (0,), "keepdims": True} and soft.attributes == {}


def test_shapes_may_have_variables():
    n = te.var("n")
    g = graph.trace(lambda x: ops.concatenate([ops.reshape(x, (n * 4,)), ops.reshape(x, (n * 4,))]), Spec((n, 4)))
    assert str(g.outputs[0].spec) == "float32[(n * 8)]"
    same = graph.with_inputs(g, [Spec((5, 4))])
    assert same.outputs[0].shape == (40,) and [node.attributes.get("newshape") for node in same.nodes[:2]] == [(20,), (20,)]
    x = np.random.default_rng(0).random((5, 4), "float32")
    np.testing.assert_array_equal(graph.evaluate(g, x)[0], np.concatenate([x.ravel(), x.ravel()]))


@pytest.mark.parametrize("dtype", ["float32", "float64", "int8", "uint8", "int32", "int64", "float16"])
@pytest.mark.parametrize("shape", [(), (1,), (0, 3), (5, 7)])
def test_results_are_those_of_numpy(shape, dtype):
    g = graph.trace(lambda a, b: [a + b, b - a, ops.maximum(a, b) * a], Spec(shape, dtype), Spec(shape, dtype))
    rng = np.random.default_rng(1)
    a, b = [rng.integers(1, 9, shape).astype(dtype) for _ in range(2)]
    for ours, theirs in zip(graph.evaluate(g, a, b), [a + b, b - a, np.maximum(a, b) * a]):
        np.testing.assert_array_equal(ours, theirs)
        assert ours.dtype == theirs.dtype and ours.shape == shape


def test_operators_are_functions_of_topi_that_compute():
    names = graph.operator_names()
    assert {"add", "nn.conv2d", "image.resize2d", "einsum"} <= set(names)
    assert not [name for name in names if name.rpartition(".")[2] in ("entries", "get_pad_tuple", "schedule", "nn")]


def test_arrays_beside_values_are_constants():
    one = np.arange(3, dtype="float32")
    g = graph.trace(lambda x: [one + x, x**2.0, 2.0**x, one * x - one], Spec((3,)))
    assert len(g.constants) == 3 and all(value.spec == Spec((3,)) for value in g.outputs)
    x = np.array([1, 2, 3], "float32")
    for ours, theirs in zip(graph.evaluate(g, x), [one + x, x**2, 2**x, one * x - one]):
        np.testing.assert_allclose(ours, theirs, rtol=1e-6)


def test_several_results_are_values_of_one_node():
    g = graph.trace(lambda x: ops.split(x, [1, 3], axis=1)[::-1], Spec((2, 4)))
    assert len(g.nodes) == 1 and [value.index for value in g.outputs] == [2, 1, 0]
    x = np.arange(8, dtype="float32").reshape(2, 4)
    for ours, theirs in zip(graph.evaluate(g, x), np.split(x, [1, 3], 1)[::-1]):
        np.testing.assert_array_equal(ours, theirs)


def test_numbers_are_part_of_the_formulas_that_read_them():
    half = graph.constant(0.5)
    g = graph.trace(lambda x: ops.stack([x * half, ops.broadcast_to(half, (3,))]), Spec((3,)))
    np.testing.assert_array_equal(graph.evaluate(g, np.ones(3, "float32"))[0], np.full((2, 3), 0.5, "float32"))
    assert graph.formula_of(g).operands == g.inputs


def test_a_graph_calls_another_which_reads_constants():
    scale = graph.constant(np.arange(20, dtype="float32"), name="scale")
    inner = graph.trace(lambda x: [x * scale, x + 1], Spec((20,)), name="inner")
    outer = graph.trace(lambda a: ops.add(*graph.call(inner, ops.negative(a)).outputs), Spec((20,)))
    assert graph.formula_of(outer).operands == (*outer.inputs, scale) and outer.functions == (inner,)
    x = np.linspace(0, 1, 20, dtype="float32")
    np.testing.assert_allclose(graph.evaluate(outer, x)[0], -x * scale.data + (1 - x), rtol=1e-6)


def test_outputs_may_be_inputs_and_constants_and_stand_twice():
    g = graph.trace(lambda x: [x, x, np.ones(2, "float32"), x + x], Spec((2,)))
    x = np.array([1, 2], "float32")
    for ours, theirs in zip(graph.evaluate(g, x), [x, x, np.ones(2), 2 * x]):
        np.testing.assert_array_equal(ours, theirs)


def test_long_chains_are_walked_without_recursion():
    x = Value("x", Spec((2,)))
    value = x
    for _ in range(20_000):
        value = Node("negative", {"x": value}, (x.spec,)).outputs[0]
    g = Graph([x], [value])
    assert len(g.nodes) == 20_000
    again = graph.rewrite(g, lambda node: None)
    assert again is g
    del g, again, value
    gc.collect()


def test_rewriting_replaces_results_producers_first():
    seen = []

    def change(node):
        seen.append((node.operator, node.inputs[0].node and node.inputs[0].node.operator))
        return ops.maximum(node.inputs[0], 0.0) if node.operator == "nn.relu" else None

    g = graph.rewrite(traced(), change)
    assert seen == [("nn.conv2d", None), ("nn.relu", "nn.conv2d"), ("multiply", "maximum")]
    assert [node.operator for node in g.nodes] == ["nn.conv2d", "maximum", "multiply"]


def test_a_registered_operator_is_used_as_those_of_topi():
    @graph.register_operator("testing.swish")
    def swish(x, beta=1.0):
        return te.compute(x.shape, lambda *i: x[i] / (1 + te.exp(-beta * x[i])))

    g = graph.trace(lambda x: ops.testing.swish(x, beta=2.0), Spec((4,)))
    x = np.linspace(-1, 1, 4, dtype="float32")
    np.testing.assert_allclose(graph.evaluate(g, x)[0], x / (1 + np.exp(-2 * x)), rtol=1e-6)
    with pytest.raises(ArgumentError, match=r"there is an operator 'testing\.swish'"):
        graph.register_operator("testing.swish", swish)


X = Value("x", Spec((2, 3)))
MISTAKES = {
    "unknown operator": (lambda: ops.nn.conv2, GraphError, "there is no operator 'nn.conv2'; near: nn.conv2d"),
    "missing prefix": (lambda: ops.softmax, GraphError, "there is no operator 'softmax'; near: .*nn.*softmax"),
    "shapes": (lambda: ops.nn.dense(X, Value("w", Spec((4, 5)))), GraphError, r"nn.dense\(data=float32\[2, 3\]"),
    "parameter": (lambda: ops.nn.relu(X, beta=1), ArgumentTypeError, "beta"),
    "attribute": (lambda: ops.sum(X, axis={1}), ArgumentTypeError, "sum: axis is a set"),
    "mixed": (lambda: ops.concatenate([X, 1]), ArgumentTypeError, "holds values of the graph and an int"),
    "truth": (lambda: bool(X), ArgumentTypeError, "neither true nor false"),
    "element": (lambda: X[0], ArgumentTypeError, "no elements yet(.|\n)*strided_slice"),
    "loop": (lambda: list(X), ArgumentTypeError, "no elements yet|its elements are not known"),
    "sum of Python": (lambda: sum(X), ArgumentTypeError, "no elements yet to go through"),
    "change": (lambda: setattr(X, "name", "y"), ArgumentTypeError, "cannot be changed"),
    "unlisted input": (lambda: Graph([], [X + 1]), GraphError, r"its outputs need x: float32\[2, 3\]"),
    "twice": (lambda: Graph([X, X], [X]), GraphError, "listed twice"),
    "no outputs": (lambda: Graph([X], []), GraphError, "no outputs"),
    "name": (lambda: Graph([X], [X], "a-b"), ArgumentError, "'a-b' cannot be the name"),
    "not values": (lambda: Graph([X], [1]), ArgumentTypeError, "outputs are values, not an int"),
    "traced to a number": (lambda: graph.trace(lambda x: 3, Spec((1,))), GraphError, "returned an int"),
    "extent": (lambda: Spec((1.5,)), ArgumentTypeError, "an extent is an int"),
    "operands": (lambda: graph.call(traced(), X), GraphError, "takes 2 values, not 1"),
    "spec of operand": (lambda: graph.call(traced(), X, X), GraphError, r"its input x is float32\[1, 3, 8, 8\], and x is"),
    "replacement": (lambda: graph.rewrite(traced(), lambda node: X), GraphError, "other shapes or dtypes"),
    "arrays": (lambda: graph.evaluate(traced(), np.ones(2, "float32")), ArgumentError, "x is an array of"),
    "count": (lambda: graph.evaluate(Graph([X], [X])), ArgumentError, r"takes 1 arrays \(x\), not 0"),
    "dtype": (lambda: graph.evaluate(Graph([X], [X]), np.ones((2, 3))), ArgumentError, "of float32, not of float64"),
    "list": (lambda: graph.evaluate(Graph([X], [X]), [1]), ArgumentTypeError, "not a list"),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_mistakes_are_refused_in_words(name):
    wrong, kind, words = MISTAKES[name]
    with pytest.raises(kind, match=words):
        wrong()


def test_two_extents_for_one_variable_are_refused():
    n = te.var("n")
    g = graph.trace(lambda a, b: a + b, Spec((n,)), Spec((n,)))
    with pytest.raises(GraphError, match="n is 2 and 3"):
        graph.evaluate(g, np.ones(2, "float32"), np.ones(3, "float32"))


def test_two_variables_of_one_name_are_refused():
    with pytest.raises(GraphError, match=r"two variables in the shapes of its inputs are called n(.|\n)*use one variable n"):
        graph.trace(lambda x, y: x, Spec((te.var("n"), 2)), Spec((te.var("n"), 2)))


def test_texts_are_strings():
    with pytest.raises(ArgumentTypeError, match="the text is an int"):
        Graph.parse(3)


def test_functions_of_numpy_are_operators():
    ones = np.ones((2, 2), "float32")
    g = graph.trace(lambda x: np.exp(np.maximum(ones, x)) - np.absolute(x), Spec((2, 2)))
    assert [node.operator for node in g.nodes] == ["maximum", "exp", "abs", "subtract"]
    for wrong, words in ((lambda x: np.hypot(x, x), "no operator 'hypot'"), (np.add.reduce, "numpy.add .* by reduce"),
                         (lambda x: np.exp(x, where=ones), "with where")):
        with pytest.raises((ArgumentTypeError, GraphError), match=words):
            graph.trace(wrong, Spec((2, 2)))


def test_values_are_compared_by_functions():
    for compare, name in ((lambda x: x < 1, "less"), (lambda x: x >= 1, "greater_equal"), (lambda x: x > 1, "greater")):
        with pytest.raises(ArgumentTypeError, match=rf"compared by functions(.|\n)*ops\.{name}\(a, b\)"):
            graph.trace(compare, Spec((2,)))


@pytest.mark.parametrize("inputs, words", [
    ("x: float32[2], x: float32[2]", "line 1: main has two inputs called x"),
    ("x: float32[2 // 0]", "line 1: .* are no extents"),
    ("x: float32[n % 0]", "line 1: .* are no extents")])
def test_inputs_that_a_text_cannot_have(inputs, words):
    with pytest.raises(GraphError, match=words):
        Graph.parse(f"def main({inputs}):\n    y: float32[2] = nn.relu(x)\n    return y")
