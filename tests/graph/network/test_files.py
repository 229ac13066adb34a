"""Networks in files."""

import numpy as np
import pytest

import tedsl
from tedsl import graph, te
from tedsl.errors import ModuleError
from tedsl.graph import Spec, constant, ops
from tedsl.graph.network import Network, compile
from tests.graph.network.test_network import arrays_for
from tests.graph.networks import resnet18


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    path = tmp_path_factory.mktemp("networks") / "resnet18.tedsl"
    network = compile(resnet18(32, width=8))
    network.save(path)
    return network, path


def test_a_network_comes_back(saved):
    network, path = saved
    again = Network.load(path)
    (x,) = arrays_for(network.graph)
    np.testing.assert_array_equal(again(x), network(x))
    assert str(again.graph) == str(network.graph) and again.plan.size == network.plan.size
    assert len(again.modules) == len(network.modules)
    assert again.profile(x, repeat=1).steps[0].operations == network.profile(x, repeat=1).steps[0].operations


def test_a_network_of_any_batch_comes_back(tmp_path):
    n = te.var("n")
    w = constant(np.linspace(-1, 1, 60, dtype="float32").reshape(5, 12))
    g = graph.trace(lambda x: ops.nn.relu(ops.nn.dense(ops.tanh(ops.nn.softmax(x)), w)), Spec((n, 12)))
    network = compile(g, batches=(4,))
    network.save(tmp_path / "net.tedsl")
    again = Network.load(tmp_path / "net.tedsl")
    assert again.asked == network.asked == ((4,),)
    for batch in (4, 5):
        x = np.random.default_rng(batch).standard_normal((batch, 12)).astype("float32")
        np.testing.assert_array_equal(again(x), network(x))


def test_what_was_prepared_is_saved(tmp_path):
    w = constant(np.random.default_rng(0).standard_normal((8, 8)).astype("float32"))
    network = compile(graph.trace(lambda x: ops.matmul(x, ops.tanh(ops.transpose(w))), Spec((4, 8))), opt_level=0)
    network.save(tmp_path / "net.tedsl")
    again = Network.load(tmp_path / "net.tedsl")
    assert [node.operator for node in again.graph.nodes] == ["matmul"]
    x = np.ones((4, 8), "float32")
    np.testing.assert_array_equal(again(x), network(x))


@pytest.mark.parametrize("damage, message", [
    (lambda data: data[:-100], "cut off"),
    (lambda data: data[:5000] + bytes([data[5000] ^ 1]) + data[5001:], "is damaged"),
    (lambda data: b"", "is empty"),
])
def test_a_damaged_file_is_refused(saved, tmp_path, damage, message):
    path = tmp_path / "damaged.tedsl"
    path.write_bytes(damage(saved[1].read_bytes()))
    with pytest.raises(ModuleError, match=message):
        Network.load(path)


def test_a_file_of_a_module_is_no_network(tmp_path):
    x = te.placeholder((4,), name="x")
    y = te.compute((4,), lambda i: x[i] + 1.0)
    tedsl.build(te.create_schedule(y.op), [x, y]).export_library(tmp_path / "add.tedsl")
    with pytest.raises(ModuleError, match=r"holds a module, not a network(.|\n)*load_module"):
        Network.load(tmp_path / "add.tedsl")
    with pytest.raises(ModuleError, match="there is no file"):
        Network.load(tmp_path / "absent.tedsl")
    with pytest.raises(ModuleError, match=r"\.tedsl files, not as 'net.so'"):
        compile(graph.trace(ops.tanh, Spec((4,)))).save(tmp_path / "net.so")
