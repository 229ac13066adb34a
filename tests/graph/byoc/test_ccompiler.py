"""Graphs as C: the text, what runs of it, what is refused. What runs is left out where no C compiler is."""

import re
import subprocess

import numpy as np
import pytest

from tedsl import graph, nd, runtime
from tedsl.errors import ArgumentError, GraphError, ModuleError
from tedsl.graph import Graph, Network, Spec, Value, annotate, merge_regions, ops, partition
from tedsl.graph.byoc.ccompiler import CSourceModule, CVisitor, codegen
from tests.codegen.c.compilers import HERE, needs_compiler
from tests.graph.byoc.by_hand import host
from tests.refusing import refused

TEN = Spec((10, 10))


def chain(a, b, c, d):
    return (a + b - c) * d


def partitioned(fn, *specs):
    return partition(merge_regions(annotate(graph.trace(fn, *specs), "ccompiler")), symbols={"ccompiler": "gcc"})


def random(*specs, seed=0):
    rng = np.random.default_rng(seed)
    return [np.asarray(rng.standard_normal(spec.shape) * 5).astype(str(spec.dtype)) for spec in specs]


def agrees(fn, *specs, exact=True):
    g = graph.trace(fn, *specs)
    made = partition(merge_regions(annotate(g, "ccompiler")))
    assert len(made.functions) == len(made.nodes) == 1, "a node stays with tedsl"
    network = graph.compile(made)
    given = random(*specs)
    got = network(*given)
    for one, want in zip(got if isinstance(got, tuple) else (got,), graph.evaluate(g, *given)):
        (np.testing.assert_array_equal if exact else np.testing.assert_allclose)(one, want, **({} if exact else {"rtol": 1e-5}))
    return network


# --- the text -------------------------------------------------------------------------------------------------------------

def test_subtract_multiply_add_is_the_structure_of_the_article():
    text = codegen(partitioned(chain, TEN, TEN, TEN, TEN).functions).get_source()
    assert re.findall(r"^CSOURCE_BINARY_OP_2D\((\w+), (.), (\w+), \w+, 10, 10\)$", text, re.M) == [
        ("gcc_0_0", "*", "float"), ("gcc_0_1", "-", "float"), ("gcc_0_2", "+", "float")]
    body = text[text.index("int32_t gcc_0_("):text.index("int32_t gcc_0(")]
    assert body.replace("input2, ", "input2,\n    ", 1).strip() == """
int32_t gcc_0_(const float *gcc_0_input0, const float *gcc_0_input1, const float *gcc_0_input2,
    const float *gcc_0_input3, float *gcc_0_out0)
{
    int32_t status = 0;
    float *buf_0 = malloc(sizeof(float) * (size_t)100);
    float *buf_1 = malloc(sizeof(float) * (size_t)100);
    if (buf_0 == NULL || buf_1 == NULL) {
        status = 1;
    } else {
        gcc_0_2(gcc_0_input0, gcc_0_input1, buf_0);
        gcc_0_1(buf_0, gcc_0_input2, buf_1);
        gcc_0_0(buf_1, gcc_0_input3, gcc_0_out0);
    }
    free(buf_0);
    free(buf_1);
    return status;
}""".strip()


def test_the_rank_of_a_macro_is_that_of_the_array_and_not_the_number_of_operands():
    text = codegen(partitioned(lambda a, b: a + b, Spec((2, 3, 4)), Spec((2, 3, 4))).functions).get_source()
    assert "CSOURCE_BINARY_OP_3D(gcc_0_0, +, float, float, 2, 3, 4)" in text and "OP_2D" not in text


@pytest.mark.parametrize("spec, size", [(Spec((20, 100)), "sizeof(float) * (size_t)2000"),
                                        (Spec((5, 4), "float64"), "sizeof(double) * (size_t)20"),
                                        (Spec((3,), "int8"), "sizeof(int8_t) * (size_t)3")])
def test_each_buffer_has_the_size_of_its_own_array(spec, size):
    text = codegen(partitioned(lambda a, b: a + b + b, spec, spec).functions).get_source()
    assert re.findall(r"malloc\((.*)\);", text) == [size]


def test_every_malloc_is_checked_before_the_first_kernel_is_called():
    text = codegen(partitioned(chain, TEN, TEN, TEN, TEN).functions).get_source()
    buffers = re.findall(r"\*(\w+) = malloc", text)
    condition = text.index("if (" + " || ".join(f"{name} == NULL" for name in buffers))
    assert text.rindex("malloc(") < condition < text.index("gcc_0_2(gcc_0_input0") and len(buffers) == 2


def test_an_output_is_written_and_not_copied_in():
    text = codegen(partitioned(chain, TEN, TEN, TEN, TEN).functions).get_source()
    assert "memcpy" not in text.partition("int32_t gcc_0_(")[2]
    assert re.findall(r"(\w+ ?\w+) \*gcc_0_(?:input|out)\d", text) == ["const float"] * 4 + [" float"] or \
        ", float *gcc_0_out0)" in text


def test_saved_text_is_a_file_in_c(tmp_path):
    module = codegen(partitioned(chain, TEN, TEN, TEN, TEN).functions)
    module.save(tmp_path / "gcc.c")
    assert (tmp_path / "gcc.c").read_text() == module.get_source("c")
    refused(lambda: module.save(tmp_path / "gcc.so"), "saved as .c", error=ModuleError)
    refused(lambda: module.get_source("ll"), "no format 'll'", error=ArgumentError)
    refused(lambda: module.get_function("gcc_1"), "no function 'gcc_1'; it has: gcc_0", error=AttributeError)


# --- what runs --------------------------------------------------------------------------------------------------------------

@needs_compiler
@pytest.mark.parametrize("shape", [(), (7,), (10, 10), (2, 3, 4), (2, 1, 3, 2, 2), (0, 4)], ids=str)
def test_any_rank(shape):
    agrees(lambda a, b: (a - b) * b + a, Spec(shape), Spec(shape))


@needs_compiler
@pytest.mark.parametrize("dtype", ["float32", "float64", "int8", "uint8", "int16", "uint16", "int32", "uint32",
                                   "int64", "uint64"])
def test_any_dtype(dtype):
    agrees(lambda a, b: (a + b) * a - b, Spec((5, 6), dtype), Spec((5, 6), dtype))


@needs_compiler
@pytest.mark.parametrize("one, other", [((3, 4), (4,)), ((3, 1), (4,)), ((), (2, 3)), ((2, 1, 3), (5, 1)), ((1, 1), (1,)),
                                        ((0, 4), (1, 4)), ((1,), (2, 1, 2))], ids=str)
def test_operands_are_broadcast(one, other):
    agrees(lambda a, b: (a - b) * a, Spec(one), Spec(other))
    agrees(lambda a, b: (a - b) + b, Spec(one, "uint8"), Spec(other, "uint8"))


@needs_compiler
@pytest.mark.parametrize("dtype, numbers", [("float32", (0.1, -2.5)), ("float64", (0.1, 1e300)), ("int8", (-128, 127)),
                                            ("uint64", (0, 2**63 - 1)), ("int64", (-2**63, 3))])
def test_numbers_are_operands(dtype, numbers):
    agrees(lambda x: numbers[0] - x * numbers[1], Spec((3, 4), dtype))


@pytest.mark.parametrize("fn", [lambda x: x / 2, ops.nn.relu], ids=["division", "relu"])
def test_what_c_would_compute_otherwise_stays_with_tedsl(fn):
    g = graph.trace(lambda x: fn(x), Spec((4,), "int32"))
    assert not partition(merge_regions(annotate(g, "ccompiler"))).functions


@needs_compiler
def test_sums_of_integers_wrap():
    made = partition(annotate(graph.trace(lambda a: a * a, Spec((2,), "int32")), "ccompiler"))
    x = np.array([2**31 - 1, -2**31], "int32")
    np.testing.assert_array_equal(graph.compile(made)(x), x * x)


@needs_compiler
def test_division_negation_and_relu():
    agrees(lambda a, b: ops.nn.relu(-(a / b)), Spec((3, 4)), Spec((3, 4)))


@needs_compiler
def test_products_of_matrices_are_functions():
    agrees(lambda a, b, c: ops.matmul(a, b) + c, Spec((3, 4)), Spec((4, 5)), Spec((3, 5)), exact=False)


@needs_compiler
def test_constants_are_exact_and_bound():
    w = np.array([0.1, 1e-45, -3.4028235e38, np.inf, -np.inf, np.nan, 0.0, 1e16, 123456.79], "float32")
    agrees(lambda x: x + w, Spec((9,)))
    huge = np.array([-2**63, 2**63 - 1, 0], "int64")
    agrees(lambda x: x + huge, Spec((3,), "int64"))


@needs_compiler
def test_several_outputs_and_values_that_are_read_twice():
    def program(a, b):
        c = a + b
        return c, c * c, -c, c

    agrees(program, TEN, TEN)


def halves(node):
    return [node.inputs[0].node, node] if node.operator == "negative" and node.inputs[0].node else None


@needs_compiler
def test_composites_are_functions_of_their_own():
    g = graph.trace(lambda a, b: -(a + b) * a, TEN, TEN)
    made = partition(merge_regions(annotate(g, "ccompiler", "multiply", composites={"halves": halves})))
    given = random(TEN, TEN)
    np.testing.assert_array_equal(graph.compile(made)(*given), graph.evaluate(g, *given)[0])
    assert "static int32_t ccompiler_0_1_(" in codegen(made.functions).get_source()


@needs_compiler
def test_two_functions_of_a_module_do_not_disturb_each_other():
    made = partition(merge_regions(annotate(graph.trace(lambda a, b: ops.tanh(a + b) - b, TEN, TEN), "ccompiler")))
    module = codegen(made.functions)
    first, second = [module.get_function(name) for name in module.function_names]
    a, b = random(TEN, TEN)
    out, other = np.empty_like(a), np.empty_like(a)
    second(a, b, other)
    first(a, b, out)
    np.testing.assert_array_equal(out, a + b)
    np.testing.assert_array_equal(other, a - b)


class WithExp(CVisitor):
    """The visitor of the tutorial: one operator more."""

    def visit_operator(self, node, name):
        if node.operator == "exp":
            return (f"static void {name}(const float *a, float *out)\n{{\n    for (int i = 0; i < {node.outputs[0].spec.size}; "
                    "++i) {\n        out[i] = expf(a[i]);\n    }\n}")
        return super().visit_operator(node, name)


@needs_compiler
def test_a_subclass_writes_kernels_of_its_own():
    g = graph.trace(lambda a: ops.exp(a) + a, TEN)
    module = codegen(partition(merge_regions(annotate(g, "ccompiler", ["exp", "add"]))).functions, WithExp)
    (a,), out = random(TEN), np.empty((10, 10), "float32")
    module.get_function("ccompiler_0")(nd.array(a), out)
    np.testing.assert_allclose(out, np.exp(a) + a, rtol=1e-6)


@needs_compiler
@pytest.mark.parametrize("wrong, words", [
    (lambda x: (x,), "another number of arrays"),
    (lambda x: (x, x.astype("float64"), x), "array 1: the array has another dtype"),
    (lambda x: (x, x[:5], x), "array 1: the array has another shape"),
    (lambda x: (x, x[0], x), "array 1: the array has another shape"),
    (lambda x: (x, x, x.T), "array 2: the array is not contiguous"),
    (lambda x: (x, 3, x), "arrays of numpy or NDArrays"),
])
def test_the_wrapper_refuses_arrays_that_do_not_fit(wrong, words):
    module = codegen(partitioned(lambda a, b: a + b, TEN, TEN).functions)
    refused(lambda: module.get_function("gcc_0")(*wrong(np.ones((10, 10), "float32"))), words)


@needs_compiler
def test_memory_that_is_not_there_is_a_status():
    big = Spec((1 << 30, 1 << 15), "float64")  # 256 TiB
    a = Value("a", big)
    module = codegen([Graph([a], [ops.negative(-a)], "gcc_0")])
    out = np.lib.stride_tricks.as_strided(np.zeros(1), big.shape, (0, 0))
    refused(lambda: module.get_function("gcc_0")(out, out), "not contiguous")
    raw = module.library().gcc_0_
    assert raw(None, None) == 1


def test_nodes_without_c_are_refused_by_name():
    x = Value("x", TEN)
    refused(lambda: codegen([Graph([x], [ops.tanh(x)], "gcc_0")]), "gcc_0: there is no C for <Node tanh(x)", error=GraphError)
    half = Value("x", Spec((3,), "float16"))
    refused(lambda: codegen([Graph([half], [half + half], "gcc_0")]), "x is float16[3]", error=GraphError)


# --- in networks ------------------------------------------------------------------------------------------------------------

@needs_compiler
def test_a_network_is_saved_with_its_functions_in_c(tmp_path):
    w = np.linspace(0, 1, 100, dtype="float32").reshape(10, 10)
    network = graph.compile(partitioned(lambda a, b: ops.tanh(a + b * w) - b, TEN, TEN))
    given = random(TEN, TEN)
    network.save(tmp_path / "net.tedsl")
    again = Network.load(tmp_path / "net.tedsl")
    np.testing.assert_array_equal(again(*given), network(*given))
    assert sum(isinstance(module, CSourceModule) for module in again.modules.values()) == 2


@needs_compiler
def test_a_module_is_saved_with_functions_in_c_that_it_imports(tmp_path):
    module = host()
    module.import_module(codegen(partitioned(chain, TEN, TEN, TEN, TEN).functions))
    module.save(tmp_path / "both.tedsl")
    function = runtime.load_module(tmp_path / "both.tedsl").get_function("gcc_0", query_imports=True)
    given, out = random(TEN, TEN, TEN, TEN), np.empty((10, 10), "float32")
    function(*given, out)
    np.testing.assert_array_equal(out, chain(*given))


@needs_compiler
def test_one_library_holds_the_kernels_of_tedsl_and_the_functions_in_c(tmp_path):
    w = np.linspace(0, 1, 100, dtype="float32").reshape(10, 10)
    network = graph.compile(partitioned(lambda a, b: ops.tanh(a + b * w - a) * b - b, TEN, TEN))
    network.export_library(tmp_path / "net.so")
    given, out = random(TEN, TEN), np.empty((10, 10), "float32")
    runtime.load_module(tmp_path / "net.so")["run"](*given, out)
    np.testing.assert_array_equal(out, network(*given))
    listed = subprocess.run(["nm", "-D", "--defined-only", tmp_path / "net.so"], capture_output=True, text=True, check=False)
    assert "gcc_0" not in listed.stdout, "the functions are inside"


@needs_compiler
def test_a_library_says_that_a_function_in_c_has_failed(tmp_path):
    n = 1 << 22  # the product in the middle has 64 TiB
    column, row = Spec((n, 1)), Spec((1, n))
    g = graph.trace(lambda a, b: ops.matmul(ops.matmul(b, ops.matmul(a, b)), a), column, row)
    graph.compile(partition(merge_regions(annotate(g, "ccompiler")))).export_library(tmp_path / "net.so")
    run, out = runtime.load_module(tmp_path / "net.so")["run"], np.empty((1, 1), "float32")
    refused(lambda: run(np.ones((n, 1), "float32"), np.ones((1, n), "float32"), out), "ccompiler_0 has failed")


def test_code_that_runs_in_python_is_in_no_library(tmp_path):
    made = partition(annotate(graph.trace(lambda a, b: a + b, TEN, TEN), "examplejson"))
    refused(lambda: graph.compile(made).export_library(tmp_path / "net.so"),
            "examplejson_0 is a function of the compiler examplejson, whose code is not a part of libraries", error=ModuleError)


@needs_compiler
def test_a_program_in_c_calls_the_saved_file(tmp_path):
    codegen(partitioned(chain, TEN, TEN, TEN, TEN).functions).save(tmp_path / "gcc.c")
    (tmp_path / "main.c").write_text("""#include "gcc.c"
int main(void) {
    float a[100], out[100];
    for (int i = 0; i < 100; ++i) { a[i] = (float)i; }
    if (gcc_0_(a, a, a, a, out) != 0) { return 1; }
    return out[9] == 81.0f && gcc_0(NULL, 3) == 2 ? 0 : 1;
}""")
    program = tmp_path / "program"
    flags = ["-std=c99", "-Wall", "-Wextra", "-Werror", "-pedantic", "-o", program, tmp_path / "main.c", "-lm"]
    subprocess.run([*HERE.command, *map(str, flags)], check=True, timeout=300)
    assert subprocess.run([program], check=False, timeout=60).returncode == 0
