"""Regions of graphs: which nodes a compiler gets, what is merged, functions that are made of them."""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tedsl import graph
from tedsl.errors import ArgumentError, ArgumentTypeError, GraphError
from tedsl.graph import Graph, Spec, Value, annotate, merge_regions, ops, partition
from tedsl.graph.byoc import Annotation, Part, Region
from tedsl.graph.match import a_constant, anything, op, optional
from tests.graph.random_graphs import graphs
from tests.refusing import refused

VECTOR = Spec((4,))


@pytest.fixture(autouse=True)
def clean(monkeypatch):
    """No codegen but those that are there."""
    monkeypatch.setattr("tedsl.graph.byoc.codegens._REGISTERED", {})


def arrays(g, seed=0):
    rng = np.random.default_rng(seed)
    return [rng.standard_normal(tuple(map(int, value.shape))).astype("float32") for value in g.inputs]


def same(g, changed):
    for want, got in zip(graph.evaluate(g, *arrays(g)), graph.evaluate(changed, *arrays(g))):
        np.testing.assert_array_equal(got, want)


def whole(g, compiler, supported, **more):
    return partition(merge_regions(annotate(g, compiler, supported)), **more)


def test_a_region_becomes_a_function_whose_name_is_its_symbol():
    g = graph.trace(lambda x, y: ops.tanh((x + y) * x), VECTOR, VECTOR)
    assert str(whole(g, "mine", ["add", "multiply"])) == "\n".join([
        '@compiler("mine")', "def mine_0(x: float32[4], y: float32[4]):", "    add: float32[4] = add(x, y)",
        "    multiply: float32[4] = multiply(add, x)", "    return multiply", "",
        "def main(x: float32[4], y: float32[4]):", "    mine_0_1: float32[4] = call(mine_0, x, y)",
        "    tanh: float32[4] = tanh(mine_0_1)", "    return tanh"])


def test_without_merging_each_node_is_a_function():
    g = graph.trace(lambda x, y: (x + y) * x, VECTOR, VECTOR)
    made = partition(annotate(g, "mine", ["add", "multiply"]))
    assert [function.name for function in made.functions] == ["mine_0", "mine_1"]
    same(g, made)


def test_symbols_begin_as_asked_and_are_not_taken_twice():
    g = graph.trace(lambda x: ops.tanh(x) + x, VECTOR)
    once = whole(g, "mine", "add", symbols={"mine": "gcc"})
    twice = whole(once, "mine", "tanh", symbols={"mine": "gcc"})
    assert [function.name for function in twice.functions] == ["gcc_1", "gcc_0"]


def test_a_predicate_sees_nodes():
    g = graph.trace(lambda x: ops.sum(ops.tanh(x), axis=0), Spec((3, 4)))
    made = whole(g, "mine", lambda node: node.outputs[0].shape == (3, 4))
    assert [node.operator for node in made.functions[0].nodes] == ["tanh"]


def test_values_are_taken_once_and_several_are_returned():
    w = graph.constant(np.arange(20, dtype="float32"))

    def program(x):
        y = x + x
        z = y * w
        return ops.tanh(y), z - x

    g = graph.trace(program, Spec((20,)))
    made = whole(g, "mine", ["add", "multiply", "subtract"])
    (function,) = made.functions
    assert [value.name for value in function.inputs] == ["x"] and len(function.outputs) == 2
    assert function.constants[0] is w and not made.constants
    same(g, made)


def test_a_merge_that_would_be_a_circle_is_left():
    def program(x):
        a = x + x
        return ops.tanh(a) + a

    g = graph.trace(program, VECTOR)
    annotation = merge_regions(annotate(g, "mine", "add"))
    assert len(annotation.regions) == 2
    same(g, partition(annotation))


def test_two_regions_that_stand_between_are_merged_in_the_order_that_leaves_no_circle():
    def program(x):
        a = x + x
        b = a + x
        return b + a

    assert len(merge_regions(annotate(graph.trace(program, VECTOR), "mine", "add")).regions) == 1


def test_a_region_that_needs_itself_is_refused():
    def program(x):
        a = x + x
        return ops.tanh(a) + a

    g = graph.trace(program, VECTOR)
    first, _, last = g.nodes
    with pytest.raises(GraphError, match=r"a region of mine .* needs what is computed of its own results outside"):
        partition(Annotation(g, (Region("mine", (Part((first,)), Part((last,)))),)))


def test_two_compilers_share_a_graph():
    g = graph.trace(lambda x: ops.nn.relu(ops.tanh(x + x)), VECTOR)
    annotation = annotate(annotate(g, "one", ["add", "nn.relu"]), "two", ["tanh", "nn.relu"])
    assert str(annotation) == "one: add\none: nn.relu\ntwo: tanh"
    made = partition(merge_regions(annotation))
    assert [function.compiler for function in made.functions] == ["one", "two", "one"]
    same(g, made)


def scaled(node):
    """An addition to a product that nothing else reads."""
    products = [value.node for value in node.inputs if value.node and value.node.operator == "multiply"]
    return [products[0], node] if node.operator == "add" and products else None


def test_a_composite_is_a_function_with_a_name():
    g = graph.trace(lambda x, y: ops.tanh(x * y + y), VECTOR, VECTOR)
    made = partition(merge_regions(annotate(g, "mine", "tanh", composites={"scaled": scaled})))
    (function,) = made.functions
    assert [node.function.name if node.function else node.operator for node in function.nodes] == ["scaled", "tanh"]
    assert [node.operator for node in function.nodes[0].function.nodes] == ["multiply", "add"]
    same(g, made)


def test_a_composite_whose_inner_result_is_read_elsewhere_is_not_taken():
    def program(x, y):
        product = x * y
        return product + y, ops.tanh(product)

    assert annotate(graph.trace(program, VECTOR, VECTOR), "mine", composites={"scaled": scaled}).regions == ()


def test_what_a_compiler_says_of_itself_is_what_it_takes(monkeypatch):
    def mine(functions):
        """Makes nothing."""

    monkeypatch.setattr("tedsl.graph.byoc.codegens._REGISTERED", {"mine": mine})
    g = graph.trace(lambda x: ops.tanh(x) + x, VECTOR)
    refused(lambda: annotate(g, "mine"), "the codegen 'mine' does not say which nodes it takes", error=GraphError)
    mine.supports = lambda node: node.operator == "tanh"
    assert [region.nodes[0].operator for region in annotate(g, "mine").regions] == ["tanh"]


def test_nothing_to_do_gives_the_same_objects():
    g = graph.trace(lambda x: ops.tanh(x) + x, VECTOR)
    annotation = annotate(g, "mine", "tanh")
    assert merge_regions(annotation) is annotation
    assert partition(annotate(g, "mine", ())) is g and partition(g) is g
    assert str(annotate(g, "mine", ())) == "no compiler takes a node"


@pytest.mark.parametrize("act, kind, words", [
    (lambda g: annotate(3, "mine", "add"), ArgumentTypeError, "nodes of a Graph"),
    (lambda g: merge_regions(g), ArgumentTypeError, "what annotate returns"),
    (lambda g: partition(3), ArgumentTypeError, "what annotate or merge_regions returns"),
    (lambda g: annotate(g, "mine", composites={"a b": scaled}), ArgumentError, "'a b' cannot be the name"),
    (lambda g: annotate(g, "mine", composites={"ab": lambda node: g.nodes[:1]}), GraphError, "or lacks that node"),
    (lambda g: annotate(g, "mine"), GraphError, "no codegen 'mine'; there are ccompiler, examplejson"),
])
def test_what_is_wrong_is_refused(act, kind, words):
    g = graph.trace(lambda x: ops.tanh(x) + x, VECTOR)
    refused(lambda: act(g), words, error=kind)


OPERATORS = ("add", "reshape", "nn.relu", "tanh", "negative", "split", "concatenate", "transpose", "nn.softmax")


@settings(max_examples=20, deadline=None, suppress_health_check=list(HealthCheck))
@given(graphs(), st.sets(st.sampled_from(OPERATORS)), st.sets(st.sampled_from(OPERATORS)))
def test_random_graphs_stay_what_they_are(g, first, second):
    annotation = merge_regions(annotate(annotate(g, "one", first), "two", second))
    made = partition(annotation)  # a circle would be refused
    assert sum(len(function.nodes) for function in made.functions) == \
        sum(node.operator in first | second for node in g.nodes)
    for function in made.functions:
        assert len(function.inputs) == len({*function.inputs}) and function.compiler in ("one", "two")
        assert not any(value.is_constant for node in made.nodes if node.function for value in node.inputs)
    same(g, made)


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(graphs(), st.sets(st.sampled_from(OPERATORS), min_size=1))
def test_no_two_regions_could_still_be_merged(g, names):
    annotation = merge_regions(annotate(g, "one", names))
    regions = [set(region.nodes) for region in annotation.regions]
    for at, before in enumerate(regions):
        for after in regions[:at] + regions[at + 1:]:
            if any(value.node in before for node in after for value in node.inputs):
                joined = Annotation(g, (Region("one", (Part(tuple(before | after)),)),))
                with pytest.raises(GraphError):
                    partition(Annotation(g, (*joined.regions, *[region for region in annotation.regions
                                                               if set(region.nodes) not in (before, after)])))


def test_a_long_chain_is_one_region():
    x = Value("x", VECTOR)
    y = x
    for _ in range(2000):
        y = y + x
    (function,) = whole(Graph([x], [y]), "mine", "add").functions
    assert len(function.nodes) == 2000


def test_a_composite_is_a_pattern():
    conv = op("nn.conv2d", anything(), a_constant())
    pattern = op("nn.relu", optional(conv, lambda made: op("nn.bias_add", made, anything())))
    w = graph.constant(np.ones((2, 2, 3, 3), "float32"), name="w")
    b = graph.constant(np.ones(2, "float32"), name="b")

    def net(x):
        y = ops.nn.relu(ops.nn.bias_add(ops.nn.conv2d(x, w, 1, 1, 1), b))
        return ops.nn.relu(ops.nn.conv2d(y, w, 1, 1, 1)) + ops.nn.relu(y)

    g = graph.trace(net, Spec((1, 2, 4, 4)))
    annotated = annotate(g, "other", supported=(), composites={"conv_relu": pattern})
    assert sorted(part.nodes[-1].operator + str(len(part.nodes)) for region in annotated.regions for part in region.parts) == \
        ["nn.relu2", "nn.relu3"]
    parted = partition(merge_regions(annotated))
    x = np.random.default_rng(0).random((1, 2, 4, 4), "float32")
    np.testing.assert_array_equal(graph.evaluate(parted, x)[0], graph.evaluate(g, x)[0])
