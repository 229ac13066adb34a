"""Graphs as text and back."""

import textwrap

import numpy as np
import pytest

from tedsl import graph, te
from tedsl.errors import ArgumentError, GraphError
from tedsl.graph import Graph, Spec, ops
from tedsl.graph.text.printer import names_of_constants


def both_ways(g, **constants):
    again = Graph.parse(str(g), constants)
    assert str(again) == str(g)
    return again


def test_graphs_that_are_called_have_the_variables_of_their_callers():
    n = te.var("n")
    add = graph.trace(ops.add, Spec((n, 3)), Spec((n, 3)), name="both")
    x = graph.Value("x", Spec((n, 3)))
    (y,) = graph.call(add, x, x).outputs
    (z,) = graph.call(add, x, y).outputs
    again = both_ways(Graph([x], [z], "main"))
    assert again.outputs[0].shape[0] is again.inputs[0].shape[0]
    np.testing.assert_array_equal(graph.compile(again)(np.ones((2, 3), "float32")), np.full((2, 3), 3, "float32"))


def test_results_of_calls_keep_their_names():
    x = graph.Value("x", Spec((2,)))
    inner = Graph([x], graph.call(graph.trace(ops.tanh, Spec((2,)), name="f"), x).outputs, "f")
    y = graph.Value("y", Spec((2,)))
    both_ways(Graph([y], graph.call(inner, y).outputs, "f"))


def test_variables_of_other_graphs_are_unknown():
    """And those of a line stand in its own shape before they are arguments."""
    f = "def f(x: float32[n]):\n    return x\n\n"
    for argument in ("n", "n * 2"):
        with pytest.raises(GraphError, match="line 5: n is neither a value nor a variable"):
            Graph.parse(f + f"def main(x: float32[1]):\n    y = broadcast_to(x, ({argument},))\n    return y")
    g = Graph.parse("def main(x: float32[1]):\n    y: float32[n] = broadcast_to(x, (n,))\n    return y")
    with pytest.raises(ArgumentError, match="no input says what n is"):
        graph.compile(g)


def test_the_text_of_a_graph():
    weight = graph.constant(np.ones((4, 3, 3, 3), "float32"), name="w")
    shift = graph.constant([0.5, -1.0, float("inf"), float("nan")], name="shift")

    def network(x):
        a, b = ops.split(ops.nn.relu(ops.nn.bias_add(ops.nn.conv2d(x, weight, 2, 1, 1), shift)), 2, axis=1)
        return ops.concatenate([b, a], axis=1), ops.einsum("nchw,nchw->n", a, b)

    g = graph.trace(network, Spec((te.var("n"), 3, 8, 8)))
    assert str(g) == textwrap.dedent("""\
        def main(x: float32[n, 3, 8, 8]):
            w: float32[4, 3, 3, 3] = constant("w")
            shift: float32[4] = constant([0.5, -1.0, inf, nan])
            conv2d: float32[n, 4, 4, 4] = nn.conv2d(x, w, strides=2, padding=1)
            bias_add: float32[n, 4, 4, 4] = nn.bias_add(conv2d, shift)
            relu: float32[n, 4, 4, 4] = nn.relu(bias_add)
            split, split_1 = split(relu, indices_or_sections=2, axis=1)
            concatenate: float32[n, 4, 4, 4] = concatenate((split_1, split), axis=1)
            einsum: float32[n] = einsum("nchw,nchw->n", split, split_1)
            return concatenate, einsum""")
    assert names_of_constants(g) == {"w": weight}
    again = both_ways(g, w=weight.data)
    x = np.random.default_rng(0).random((2, 3, 8, 8), "float32")
    for ours, theirs in zip(graph.evaluate(again, x), graph.evaluate(g, x)):
        np.testing.assert_array_equal(ours, theirs)


def test_called_graphs_stand_before_those_that_call_them():
    leaf = Graph(*_square("square"), "square", compiler="ccompiler")
    middle = graph.trace(lambda a: graph.call(leaf, ops.exp(a)).outputs[0], Spec((2,)), name="middle")
    main = graph.trace(lambda a: graph.call(middle, graph.call(leaf, a).outputs[0]).outputs[0] - a, Spec((2,)))
    assert str(main) == textwrap.dedent("""\
        @compiler("ccompiler")
        def square(x: float32[2]):
            multiply: float32[2] = multiply(x, x)
            return multiply

        def middle(a: float32[2]):
            exp: float32[2] = exp(a)
            square_1: float32[2] = call(square, exp)
            return square_1

        def main(a: float32[2]):
            square_1: float32[2] = call(square, a)
            middle_1: float32[2] = call(middle, square_1)
            subtract: float32[2] = subtract(middle_1, a)
            return subtract""")
    assert both_ways(main).functions[0].compiler == "ccompiler"


def _square(name):
    g = graph.trace(lambda x: x * x, Spec((2,)), name=name)
    return g.inputs, g.outputs


def test_names_are_identifiers_and_unique():
    a = graph.constant(np.zeros(20, "float32"), name="layer.0/weight")
    b = graph.constant(np.ones(20, "float32"), name="layer.0/weight")
    g = graph.trace(lambda x: (x + a) * b, Spec((20,)))
    assert list(names_of_constants(g)) == ["layer_0_weight", "layer_0_weight_1"]
    both_ways(g, layer_0_weight=a.data, layer_0_weight_1=b.data)


@pytest.mark.parametrize("data", [np.zeros((0, 3), "float32"), np.array(3, "int64"), np.array([True, False]),
                                  np.array([[2**63 - 1, -2**63]]), np.array([1, 255], "uint8"),
                                  np.array([1e-45, 3e38], "float32"), np.array([0.1], "float64")], ids=str)
def test_small_constants_keep_every_bit(data):
    g = both_ways(graph.trace(lambda x: [x, data], Spec((1,))))
    again = g.outputs[1].data
    assert again.dtype == data.dtype and again.shape == data.shape and again.tobytes() == data.tobytes()


MAIN = "def main(x: float32[1]):\n    "
def test_graphs_share_a_constant():
    shift = graph.constant([1.0, 2.0], name="shift")
    inner = graph.trace(lambda x: x + shift, Spec((2,)), name="inner")
    g = both_ways(graph.trace(lambda x: graph.call(inner, x * shift).outputs[0], Spec((2,))))
    assert g.constants == g.functions[0].constants


REFUSED = {
    "syntax": ("def main(x: float32[1]:\n    return x", "line 1: "),
    "no graph": ("", "the text has no graph"),
    "statement": ("x = 1", "line 1: here stands a graph"),
    "no spec": ("def main(x):\n    return x", "line 1: a shape and dtype are missing"),
    "dtype": ("def main(x: float31[1]):\n    return x", "line 1: there is no dtype 'float31'"),
    "extent": ("def main(x: float32['a']):\n    return x", "line 1: 'a' are no extents"),
    "negative extent": ("def main(x: float32[-1]):\n    return x", "line 1: .*-1"),
    "operator": (MAIN + "y: float32[1] = relu6(x)\n    return y", "line 2: there is no operator 'relu6'"),
    "name": (MAIN + "y: float32[1] = exp(z)\n    return y", "line 2: z is neither a value"),
    "returned": (MAIN + "return y", "line 2: y is not the name of a value"),
    "stated": (MAIN + "y: float32[2] = exp(x)\n    return y", r"line 2: y is float32\[1\], and the text says"),
    "twice": (MAIN + "x: float32[1] = exp(x)\n    return x", "line 2: x is set twice"),
    "count": ("def main(x: float32[2]):\n    a, b, c = split(x, indices_or_sections=2)\n    return a",
              "line 2: split gives 2 values"),
    "call": (MAIN + "y: float32[1] = call(f, x)\n    return y", "line 2: .*calls no graph"),
    "array": (MAIN + 'y: float32[9, 9] = constant("w")\n    return y', "line 2: the array of the constant w"),
    "elements": (MAIN + "y: float32[3] = constant([1, 2])\n    return y", "line 2: y is float32"),
    "overflow": (MAIN + "y: int8[1] = constant([300])\n    return y", "line 2: .*no elements of int8"),
    "end": (MAIN + "y: float32[1] = exp(x)", "line 2: main ends with `return`"),
    "two": ("def f(x: float32[1]):\n    return x\ndef f(x: float32[1]):\n    return x", "line 3: there are two graphs"),
    "decorator": ("@jit\ndef f(x: float32[1]):\n    return x", "line 1: jit is not known here"),
    "star": ("def f(*x):\n    return x", "line 1: f: the inputs of a graph"),
    "code": ("def f(x: float32[1]):\n    import os\n    return x", "line 2: import os is no line of a graph"),
    "call of code": ("def f(x: float32[1]):\n    y = exp(open('a'))\n    return y", "line 2: open.* is no argument"),
}


def test_a_line_is_named_once():
    source = "def f(x: float32[1]):\n    return x\n" + MAIN + "y: float32[1] = call(f, z)\n    return y"
    with pytest.raises(GraphError, match=r"^line 4: z is not the name of a value"):
        Graph.parse(source)


@pytest.mark.parametrize("name", REFUSED)
def test_texts_that_describe_no_graph_are_refused_with_the_line(name):
    source, words = REFUSED[name]
    with pytest.raises(GraphError, match=words):
        Graph.parse(source)
