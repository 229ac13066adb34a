"""Sub-graphs as text: read, written, run; and malformed texts."""

import numpy as np
import pytest

import tedsl
from tedsl import graph, nd, runtime
from tedsl.errors import ArgumentError, GraphError, ModuleError
from tedsl.graph import Network, Spec, annotate, merge_regions, ops, partition
from tedsl.graph.byoc.examplejson import ConstantsModule, ExampleJsonModule, codegen, parse
from tests.graph.byoc.by_hand import host
from tests.refusing import refused

STATEMENTS = ["input 0 10 10", "input 1 10 10", "input 2 10 10", "input 3 10 10", "add 4 inputs: 0 1 shape: 10 10",
              "sub 5 inputs: 4 2 shape: 10 10", "mul 6 inputs: 5 3 shape: 10 10"]
ARTICLE = "\n".join(["subgraph_0", *[f"  {line}" for line in STATEMENTS]]) + "\n"
TEST = "\n".join(["json_rt_0", *STATEMENTS, "json_rt_1", *STATEMENTS])
TEN = Spec((10, 10))


def chain(a, b, c, d):
    return (a + b - c) * d


def numbers(count=4, seed=0):
    return [np.random.default_rng(seed + at).standard_normal((10, 10)).astype("float32") for at in range(count)]


def partitioned(fn, *specs):
    return partition(merge_regions(annotate(graph.trace(fn, *specs), "examplejson")))


def called(module, name, *arrays):
    out = np.full((10, 10), np.nan, "float32")
    module.get_function(name)(*arrays, out)
    return out


@pytest.mark.parametrize("text", [ARTICLE, TEST, TEST + "\n", ARTICLE.replace("  mul 6", "  add 6")], ids=range(4))
def test_texts_come_back_byte_for_byte(text):
    assert parse(text).text() == text


@pytest.mark.parametrize("text", ["f\n  input 0\n  add 1 inputs: 0 0 shape:\n  outputs: 1 0\n",
                                  "f\ninput 7 0\nmul 0 inputs: 7 7 shape: 0"])
def test_arrays_without_dimensions_or_elements_come_back(text):
    assert parse(text).text() == text


def test_the_graph_of_the_article_has_its_text():
    made = partition(merge_regions(annotate(graph.trace(chain, TEN, TEN, TEN, TEN), "examplejson")),
                     symbols={"examplejson": "subgraph"})
    assert codegen(made.functions).get_source() == ARTICLE


def test_both_last_lines_of_the_article_are_accepted():
    a, b, c, d = numbers()
    np.testing.assert_array_equal(called(ExampleJsonModule(parse(ARTICLE)), "subgraph_0", a, b, c, d), (a + b - c) * d)
    other = ExampleJsonModule(parse(ARTICLE.replace("mul 6", "add 6")))
    np.testing.assert_array_equal(called(other, "subgraph_0", a, b, c, d), a + b - c + d)


# --- faults that such runtimes have had ---------------------------------------------------------------------------------------

def test_a_second_function_does_not_redirect_the_first():
    text = TEST.replace("json_rt_1\n", "json_rt_1\n").rpartition("mul 6")
    module = ExampleJsonModule(parse(text[0] + "add 6" + text[2]))
    first = module.get_function("json_rt_0")
    module.get_function("json_rt_1")
    a, b, c, d = numbers()
    out = np.empty((10, 10), "float32")
    first(a, b, c, d, out)
    np.testing.assert_array_equal(out, (a + b - c) * d)


def test_numbers_belong_to_a_sub_graph_and_not_to_the_module():
    module = ExampleJsonModule(parse("f\ninput 0 2\nadd 1 inputs: 0 0 shape: 2\ng\ninput 1 3\nmul 0 inputs: 1 1 shape: 3"))
    two, three = np.array([1, 2], "float32"), np.array([3, 4, 5], "float32")
    out, other = np.empty(2, "float32"), np.empty(3, "float32")
    for _ in range(2):
        module.get_function("f")(two, out)
        module.get_function("g")(three, other)
    assert out.tolist() == [2, 4] and other.tolist() == [9, 16, 25]


def test_the_output_is_written_and_never_read():
    module = ExampleJsonModule(parse(ARTICLE))
    a, b, c, d = numbers()
    assert np.isfinite(called(module, "subgraph_0", a, b, c, d)).all()  # what stands in it before is NaN


def test_arrays_of_any_shape_have_room():
    module = ExampleJsonModule(parse("f\ninput 0 30 7 5\nadd 1 inputs: 0 0 shape: 30 7 5\nmul 2 inputs: 1 0 shape: 30 7 5"))
    x = np.random.default_rng(0).standard_normal((30, 7, 5)).astype("float32")
    out = np.empty_like(x)
    module.get_function("f")(nd.array(x), out)
    np.testing.assert_array_equal(out, (x + x) * x)


# --- the module --------------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("wrong, words", [
    (lambda x: (x,), "takes 5 arrays, not 1"),
    (lambda x: (x, x, x, x.astype("float64"), x), "array 3 is float64[10, 10], not float32[10, 10]"),
    (lambda x: (x, x, x[:5], x, x), "array 2 is float32[5, 10]"),
    (lambda x: (x, x, x, x, None), "arrays of numpy or NDArrays, not "),
])
def test_arrays_that_do_not_fit_are_refused(wrong, words):
    refused(lambda: ExampleJsonModule(parse(ARTICLE)).get_function("subgraph_0")(*wrong(numbers(1)[0])), words)


def test_functions_that_are_not_there_are_named():
    module = ExampleJsonModule(parse(TEST))
    refused(lambda: module.get_function("json_rt_2"), "it has: json_rt_0, json_rt_1", error=AttributeError)
    refused(lambda: module.get_source("json"), "no format 'json'", error=ArgumentError)


def test_the_registered_functions_make_modules(tmp_path):
    module = tedsl.get_global_func("module.examplejson_module_create")(ARTICLE)
    (tmp_path / "net.examplejson").write_text(TEST)
    again = tedsl.get_global_func("module.loadbinary_examplejson")(module.save_to_bytes())
    file = tedsl.get_global_func("module.loadfile_examplejson")(str(tmp_path / "net.examplejson"), "examplejson")
    assert again.get_source() == module.get_source() == ARTICLE and file.get_source() == TEST


def test_files_are_written_and_loaded(tmp_path):
    module = ExampleJsonModule(parse(TEST))
    module.save(tmp_path / "net.examplejson")
    assert runtime.load_module(tmp_path / "net.examplejson").get_source() == TEST
    refused(lambda: module.save(tmp_path / "net.so"), "saved as .examplejson", error=ModuleError)
    (tmp_path / "bad.examplejson").write_text(TEST.replace("sub 5", "sub x"))
    refused(lambda: runtime.load_module(tmp_path / "bad.examplejson"), "bad.examplejson holds no sub-graphs: line 7: 'x'",
            error=ModuleError)


@pytest.mark.parametrize("constants", [False, True])
def test_modules_that_import_sub_graphs_are_saved_with_them(constants, tmp_path):
    w = numbers(1, 7)[0]
    made = partitioned(lambda a, b: a * w + b if constants else a * b, TEN, TEN)
    module = host()
    module.import_module(codegen(made.functions))
    module.save(tmp_path / "both.tedsl")
    function = runtime.load_module(tmp_path / "both.tedsl").get_function("examplejson_0", query_imports=True)
    (a, b), out = numbers(2), np.empty((10, 10), "float32")
    function(a, b, out)
    np.testing.assert_array_equal(out, a * w + b if constants else a * b)


# --- networks ----------------------------------------------------------------------------------------------------------------

def test_a_network_with_constants_and_several_sub_graphs_is_saved(tmp_path):
    v, w = numbers(2, 9)

    def program(a, b):
        c = ops.tanh(a * w + b)
        return c - v, ops.nn.relu(c) * c

    g = graph.trace(program, TEN, TEN)
    made = partition(merge_regions(annotate(g, "examplejson")))
    network = graph.compile(made)
    given = numbers(2)
    network.save(tmp_path / "net.tedsl")
    for runs in (network, Network.load(tmp_path / "net.tedsl")):
        for got, want in zip(runs(*given), graph.evaluate(g, *given)):
            np.testing.assert_allclose(got, want, rtol=1e-6, atol=1e-6)
        assert sum(isinstance(module, ConstantsModule) for module in runs.modules.values()) == 3


def test_nodes_without_a_statement_are_named():
    x = graph.Value("x", TEN)
    refused(lambda: codegen([graph.Graph([x], [ops.tanh(x)], "f")]), "f: there is no statement for <Node tanh(x)",
            error=GraphError)


def test_damaged_modules_are_refused():
    from tedsl.graph.byoc.examplejson.module import with_constants

    refused(lambda: with_constants(b"{}", "the piece"), "the piece is not a module of sub-graphs", error=ModuleError)


INPUTS = "f\ninput 0 4\ninput 1 4\n"
MALFORMED = [
    ("", 1, "begins with its symbol"),
    ("\n", 1, "begins with its symbol"),
    ("input 0 4\n", 1, "begins with its symbol"),
    ("f g\n", 1, "begins with its symbol"),
    ("f\n", 1, "computes nothing"),
    ("f\ninput 0 4\n", 1, "computes nothing"),
    (INPUTS + "pow 2 inputs: 0 1 shape: 4", 4, "no operator 'pow'; there are add, sub, mul"),
    (INPUTS + "add inputs: 0 1 shape: 4", 4, "'inputs:' is not a number"),
    (INPUTS + "add 2 inputs: 0 shape: 4", 4, "add has 2 inputs, not 1"),
    (INPUTS + "add 2 inputs: 0 1 1 shape: 4", 4, "add has 2 inputs, not 3"),
    (INPUTS + "add 2 inputs: 0 9 shape: 4", 4, "no value 9 before this line"),
    (INPUTS + "add 2 inputs: 0 2 shape: 4", 4, "no value 2 before this line"),
    (INPUTS + "add 1 inputs: 0 0 shape: 4", 4, "there is a value 1 already"),
    (INPUTS + "add 2 inputs: 0 1 shape: 4 4", 4, "the value 0 has the shape 4"),
    (INPUTS + "add 2 inputs: 0 1", 4, "`inputs:` and `shape:`"),
    (INPUTS + "add 2 shape: 4 inputs: 0 1", 4, "`inputs:` and `shape:`"),
    (INPUTS + "add 2 inputs: 0 1 shape: -4", 4, "'-4' is not a number"),
    (INPUTS + "add 02 inputs: 0 1 shape: 4", 4, "'02' is not a number"),
    (INPUTS + "add 2  inputs: 0 1 shape: 4", 4, "one blank"),
    (INPUTS + "add 2 inputs: 0 1 shape: 4 ", 4, "one blank"),
    (INPUTS + "\nadd 2 inputs: 0 1 shape: 4", 4, "no line is empty"),
    (INPUTS + "  add 2 inputs: 0 1 shape: 4", 4, "indented by 0 blanks"),
    ("f\n   input 0 4\n", 2, "by two blanks, or by none"),
    (INPUTS + "add\t2 inputs: 0 1 shape: 4", 4, "one blank"),
    (INPUTS + "add 2 inputs: 0 1 shape: ４", 4, "one blank"),
    (INPUTS + "add 2 inputs: 0 1 shape: 4\ninput 3 4", 5, "an input is none"),
    (INPUTS + "add 2 inputs: 0 1 shape: 4\nf\n", 5, "there is a sub-graph f already"),
    (INPUTS + "add 2 inputs: 0 1 shape: 4\noutputs: 5", 5, "no value 5 before"),
    (INPUTS + "add 2 inputs: 0 1 shape: 4\noutputs:", 5, "there are no outputs"),
    (INPUTS + "add 2 inputs: 0 1 shape: 4\noutputs: 2 0\ninput 3 4", 6, "behind its outputs"),
    (INPUTS + "add", 4, "add has no number"),
    (INPUTS + "add 2 inputs: 0 1 shape: 4\r\n", 4, "one blank"),
    (INPUTS + "add 2 inputs: 0 1 shape: 99999999999999999999", 4, "is not a number"),
]


@pytest.mark.parametrize("text, line, words", MALFORMED, ids=range(len(MALFORMED)))
def test_malformed_texts_are_refused_with_their_line(text, line, words):
    refused(lambda: parse(text), f"line {line}: ", words, error=GraphError)


def test_what_is_no_text_is_refused():
    refused(lambda: parse(b"f"), "is a str, not a bytes")
