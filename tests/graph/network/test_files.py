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


def test_weights_that_only_preparations_read_are_in_a_file_once(tmp_path):
    """A convolution by winograd has its transformed weights in panels: neither the weights nor the transform is written."""
    w = constant(np.random.default_rng(0).standard_normal((64, 32, 3, 3)).astype("float32"), name="w")
    network = compile(graph.trace(lambda x: ops.nn.relu(ops.nn.conv2d(x, w, 1, 1, 1)), Spec((1, 32, 28, 28))))
    network.save(tmp_path / "net.tedsl")
    (panels,) = network.prepared.values()
    assert panels.nbytes <= (tmp_path / "net.tedsl").stat().st_size < 1.5 * panels.nbytes
    again = Network.load(tmp_path / "net.tedsl")
    (x,) = arrays_for(network.graph)
    np.testing.assert_array_equal(again(x), network(x))
    ((_, read),) = [(number, constants) for _, number, constants in again.prepared]
    assert all(np.isnan(value.data).all() and value.data.strides == (0, 0, 0, 0) for value in read)
    again.save(tmp_path / "again.tedsl")
    assert (tmp_path / "again.tedsl").read_bytes() == (tmp_path / "net.tedsl").read_bytes()


def test_what_a_network_computed_of_weights_is_kept_in_one_form():
    w = constant(np.random.default_rng(0).standard_normal((64, 32, 3, 3)).astype("float32"), name="w")
    g = graph.trace(lambda x: ops.nn.relu(ops.nn.conv2d(x, w, 1, 1, 1)), Spec((1, 32, 28, 28)))
    network = compile(g)
    ((_, _, (transformed,)),) = network.prepared
    assert np.isnan(transformed.data).all() and not any(transformed.data.strides)
    (x,) = arrays_for(g)
    np.testing.assert_allclose(network(x), graph.evaluate(g, x)[0], rtol=1e-3, atol=1e-4)
    assert not np.isnan(w.data).any()


def test_weights_that_others_read_too_keep_their_elements(tmp_path):
    w = constant(np.random.default_rng(0).standard_normal((200, 64)).astype("float32"), name="w")
    network = compile(graph.trace(lambda x: [ops.nn.dense(x, w), ops.sum(x, 1), w], Spec((64, 64))), opt_level=0)
    assert network.prepared, "the product has no copy of the weights that is prepared"
    network.save(tmp_path / "net.tedsl")
    again = Network.load(tmp_path / "net.tedsl")
    (x,) = arrays_for(network.graph)
    for ours, theirs in zip(again(x), network(x)):
        np.testing.assert_array_equal(ours, theirs)


def test_constants_begin_at_cache_lines(saved):
    again = Network.load(saved[1])
    large = [value.data for value in again.graph.constants if value.data.nbytes > 64 and not np.isnan(value.data).any()]
    assert large and all(array.ctypes.data % 64 == 0 for array in [*large, *again.prepared.values()])


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
