"""Codegens: registered, of installed packages, missing; what they may return."""

import sys
from importlib import metadata
from pathlib import Path

import numpy as np
import pytest

import tedsl
from tedsl import graph
from tedsl.errors import ArgumentError, ArgumentTypeError, GraphError, ModuleError, TedslError
from tedsl.graph import Network, Spec, annotate, merge_regions, ops, partition, register_codegen
from tests.graph.byoc.by_hand import Evaluated
from tests.refusing import refused

FOUR = Spec((4,))


@pytest.fixture(autouse=True)
def clean(monkeypatch):
    """Nothing that a test registers outlives it."""
    monkeypatch.setattr("tedsl.graph.byoc.codegens._REGISTERED", {})


def partitioned(compiler="mine", operators=("tanh",)):
    g = graph.trace(lambda x, y: ops.tanh(x + y) * ops.tanh(x), FOUR, FOUR)
    return partition(merge_regions(annotate(g, compiler, operators)))


def arrays():
    return [np.linspace(-1, 1, 4, dtype="float32"), np.linspace(0, 3, 4, dtype="float32")]


def test_a_registered_codegen_makes_a_part_of_a_network():
    register_codegen("mine")(Evaluated)
    x, y = arrays()
    Evaluated.calls.clear()
    network = graph.compile(partitioned())
    np.testing.assert_allclose(network(x, y), np.tanh(x + y) * np.tanh(x), rtol=1e-5)
    assert sorted(Evaluated.calls) == ["mine_0", "mine_1"]
    assert len({id(module) for module in network.modules.values() if isinstance(module, Evaluated)}) == 1


def test_modules_of_others_are_saved_with_a_network(tmp_path, monkeypatch):
    register_codegen("mine", Evaluated)
    network = graph.compile(partitioned())
    network.save(tmp_path / "net.tedsl")
    refused(lambda: Network.load(tmp_path / "net.tedsl"), "a module of the kind 'evaluated', which no package here can load",
            error=ModuleError)
    tedsl.register_func("runtime.module.loadbinary_evaluated", Evaluated.load)
    try:
        np.testing.assert_array_equal(Network.load(tmp_path / "net.tedsl")(*arrays()), network(*arrays()))
    finally:
        tedsl.runtime.remove_global_func("runtime.module.loadbinary_evaluated")


def test_batches_of_any_size():
    register_codegen("mine", Evaluated)
    g = graph.trace(lambda x: ops.tanh(x) + x, Spec((tedsl.te.var("n"), 4)))
    network = graph.compile(partition(merge_regions(annotate(g, "mine", "tanh"))), batches=(2,))
    for batch in (1, 2, 3):
        x = np.random.default_rng(batch).standard_normal((batch, 4)).astype("float32")
        np.testing.assert_allclose(network(x), np.tanh(x) + x, rtol=1e-5)


def test_a_missing_codegen_is_named_with_those_that_there_are():
    register_codegen("mine", Evaluated)
    refused(lambda: graph.compile(partitioned("mime")), "no codegen 'mime'; there are ccompiler, examplejson, mine",
            "did you mean 'mine'?", error=GraphError)


@pytest.mark.parametrize("act, kind, words", [
    (lambda: register_codegen("a b", Evaluated), ArgumentError, "'a b' cannot be the name"),
    (lambda: register_codegen("mine", 3), ArgumentTypeError, "not a function of graphs"),
    (lambda: register_codegen("ccompiler", Evaluated), ArgumentError, "there is a codegen 'ccompiler'"),
    (lambda: register_codegen("ccompiler", Evaluated, override=True), ArgumentError, "choose another name"),
])
def test_what_is_no_codegen_is_refused(act, kind, words):
    refused(act, words, error=kind)


def test_one_is_replaced_where_that_is_asked_for():
    register_codegen("mine", Evaluated)
    refused(lambda: register_codegen("mine", Evaluated), "override=True", error=ArgumentError)
    assert register_codegen("mine", Evaluated, override=True) is Evaluated


@pytest.mark.parametrize("returned, words", [
    (lambda functions: 3, "returned 3, which is not a module"),
    (lambda functions: Evaluated(functions[:-1]), "made a module without the function mine_"),
])
def test_what_a_codegen_returns_is_checked(returned, words):
    register_codegen("mine", returned)
    refused(lambda: graph.compile(partitioned()), words, error=GraphError)


ENTRIES = metadata.EntryPoints([
    metadata.EntryPoint("theirs", "tests.graph.byoc.by_hand:Evaluated", "tedsl.codegens"),
    metadata.EntryPoint("broken", "no_such_package:codegen", "tedsl.codegens"),
    metadata.EntryPoint("junk", "tests.graph.byoc.by_hand:__name__", "tedsl.codegens"),
    metadata.EntryPoint("torch", "tedsl_torch:TorchModule", "tedsl.codegens"),
    metadata.EntryPoint("loadbinary_torch", "tedsl_torch:TorchModule.load", "tedsl.modules"),
])


@pytest.fixture
def installed(monkeypatch):
    """As if packages with ENTRIES were installed."""
    monkeypatch.setattr(metadata, "entry_points", lambda group: ENTRIES.select(group=group))
    monkeypatch.syspath_prepend(str(Path(__file__).parent / "plugin"))
    yield
    sys.modules.pop("tedsl_torch", None)


def test_an_installed_package_brings_a_codegen(installed):
    x, y = arrays()
    np.testing.assert_allclose(graph.compile(partitioned("theirs"))(x, y), np.tanh(x + y) * np.tanh(x), rtol=1e-5)
    assert {"theirs", "torch"} <= set(graph.codegen_names())


@pytest.mark.parametrize("name, words", [("broken", "cannot be loaded from no_such_package:codegen"),
                                         ("junk", "which is not a function of graphs")])
def test_a_broken_package_is_named(name, words, installed):
    refused(lambda: graph.compile(partitioned(name)), words, error=TedslError)


def test_torch_computes_parts_of_a_network(installed):
    pytest.importorskip("torch")
    from tests.graph.byoc import installed as program

    program.check()


def test_the_package_of_torch_is_short():
    source = Path(__file__).parent / "plugin" / "tedsl_torch" / "__init__.py"
    assert len([line for line in source.read_text().splitlines() if line.strip()]) <= 30


class Numpy(graph.LibraryModule):
    """Parts of graphs, computed by numpy."""

    type_key = "by_numpy"
    operators = {"add": np.add, "tanh": np.tanh, "concatenate": lambda parts, axis=0: np.concatenate(parts, axis),
                 "split": lambda x, count, axis=0: tuple(np.split(x, count, axis)),
                 "nn.softmax": lambda x, axis=-1: np.exp(x) / np.exp(x).sum(axis, keepdims=True)}


def of_numpy(x, y):
    first, second = ops.split(ops.concatenate([ops.tanh(x), y + np.arange(40, dtype="float32").reshape(4, 10)], 1), 2, 1)
    return ops.nn.softmax(first + second, 0)


def test_a_library_computes_parts_that_are_kept():
    g = graph.trace(of_numpy, Spec((4, 10)), Spec((4, 10)))
    graph.register_codegen("by_numpy", Numpy)
    tedsl.register_func("runtime.module.loadbinary_by_numpy", Numpy.load)
    parts = graph.partition(graph.merge_regions(graph.annotate(g, "by_numpy")))
    assert [node.operator for node in parts.nodes] == ["call"]
    module = Numpy([node.function for node in parts.nodes])
    again = Numpy.load(module.save_to_bytes())
    assert again.get_source() == module.get_source() and "concatenate" in module.get_source()
    x, y = (np.random.default_rng(k).standard_normal((4, 10)).astype("float32") for k in range(2))
    for runs in (graph.compile(parts), module, again):
        out = np.empty((4, 10), "float32")
        if isinstance(runs, Numpy):
            runs.get_function(parts.nodes[0].function.name)(x, y, out)
        else:
            out = runs(x, y)
        np.testing.assert_allclose(out, graph.evaluate(g, x, y)[0], rtol=1e-5)
    with pytest.raises(TedslError, match="Numpy has no function for exp"):
        Numpy([graph.trace(ops.exp, Spec((3,)))])
    with pytest.raises(AttributeError):
        module.get_function("other")
