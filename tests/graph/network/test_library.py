"""Networks as libraries of one function."""

import ctypes
import subprocess
import sys

import numpy as np
import pytest

import tedsl
from tedsl import graph, te
from tedsl.errors import ArgumentError, ModuleError
from tedsl.graph import Spec, constant, ops
from tedsl.graph.network import compile
from tests.graph.network.test_network import arrays_for
from tests.graph.networks import resnet18


@pytest.fixture(scope="module")
def exported(tmp_path_factory):
    path = tmp_path_factory.mktemp("library") / "libresnet.so"
    network = compile(resnet18(32, width=8))
    network.export_library(path)
    return network, path


def test_a_library_has_one_function_that_runs_the_network(exported):
    network, path = exported
    module = tedsl.runtime.load_module(path)
    assert module.function_names == ("run",)
    (x,) = arrays_for(network.graph)
    y = np.empty((1, 1000), "float32")
    module["run"](x, y)
    np.testing.assert_array_equal(y, network(x))
    with pytest.raises(ArgumentError, match="run: argument 1"):
        module["run"](x[:, :2], y)


def test_the_function_is_one_of_c(exported):
    network, path = exported
    run = ctypes.CDLL(str(path)).resnet_run_raw
    (x,) = arrays_for(network.graph)
    y = np.empty((1, 1000), "float32")
    assert run(ctypes.c_void_p(x.ctypes.data), ctypes.c_void_p(y.ctypes.data)) == 0
    np.testing.assert_array_equal(y, network(x))


def test_parts_of_arrays_are_passed_to_kernels(tmp_path):
    def fn(x):
        first, second = ops.split(x, 2, 0)  # of what the caller gives
        whole = ops.nn.softmax(ops.concatenate([ops.tanh(second), ops.negative(first)], 0))
        return ops.concatenate([ops.nn.softmax(part) for part in ops.split(whole, 2, 0)], 0)  # where the caller wants it

    network = compile(graph.trace(fn, Spec((4, 16))), opt_level=0)
    assert [node.operator for node in network.plan.steps] == ["tanh", "negative", "nn.softmax", "nn.softmax", "nn.softmax"]
    x, y = *arrays_for(network.graph), np.empty((4, 16), "float32")
    network.export_library(tmp_path / "lib.so")
    tedsl.runtime.load_module(tmp_path / "lib.so")["run"](x, y)
    np.testing.assert_array_equal(y, network(x))
    (wanted,) = graph.evaluate(network.graph, x)
    np.testing.assert_array_equal(y, wanted)
    network.save(tmp_path / "net.tedsl")
    np.testing.assert_array_equal(graph.Network.load(tmp_path / "net.tedsl")(x), y)


def test_a_wheel_runs_without_tedsl(tmp_path):
    w = constant(np.linspace(-1, 1, 48, dtype="float32").reshape(4, 12), name="w")
    network = compile(graph.trace(lambda x: (ops.nn.relu(ops.nn.dense(ops.tanh(x), w)), x), Spec((2, 12))))
    network.export_library(tmp_path / "net-1.0.whl")
    (wheel,) = tmp_path.glob("*.whl")
    subprocess.run([sys.executable, "-m", "zipfile", "-e", str(wheel), str(tmp_path / "site")], check=True)
    code = ("import sys; sys.path.insert(0, 'site'); import numpy as np, net;"
            "x = np.arange(24, dtype='float32').reshape(2, 12);"
            "y = np.empty((2, 4), 'float32'); z = np.empty((2, 12), 'float32'); net.run(x, y, z); np.save('y.npy', y);"
            "assert (x == z).all() and 'tedsl' not in sys.modules")
    subprocess.run([sys.executable, "-I", "-c", code], check=True, cwd=tmp_path)
    np.testing.assert_array_equal(np.load(tmp_path / "y.npy"), network(np.arange(24, dtype="float32").reshape(2, 12))[0])


def test_results_in_place_and_outputs_that_are_copies(tmp_path):
    def fn(x):
        y = ops.tanh(ops.nn.relu(ops.nn.softmax(x)))
        return ops.nn.softmax(y), ops.reshape(x, (64,)), constant(np.arange(3, dtype="int64"))

    network = compile(graph.trace(fn, Spec((4, 16))), opt_level=0)
    assert network.plan.overwritten
    network.export_library(tmp_path / "net.so")
    x = np.random.default_rng(0).standard_normal((4, 16)).astype("float32")
    results = [np.empty((4, 16), "float32"), np.empty(64, "float32"), np.empty(3, "int64")]
    tedsl.runtime.load_module(tmp_path / "net.so")["run"](x, *results)
    for result, wanted in zip(results, network(x)):
        np.testing.assert_array_equal(result, wanted)


def test_what_cannot_be_exported_is_refused(tmp_path):
    n = te.var("n")
    with pytest.raises(ArgumentError, match=r"takes arrays of any n(.|\n)*with_inputs"):
        compile(graph.trace(ops.tanh, Spec((n, 3)))).export_library(tmp_path / "net.so")
    with pytest.raises(ModuleError, match=r"networks are exported as \.so(.|\n)*network.save"):
        compile(graph.trace(ops.tanh, Spec((2, 3)))).export_library(tmp_path / "net.tedsl")
