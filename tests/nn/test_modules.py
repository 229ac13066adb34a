"""Modules, their state, dropout and embedding, and what is said to misuse."""

import numpy as np
import pytest

from tedsl import nn
from tedsl.autograd import Tensor, from_numpy
from tedsl.errors import ArgumentError, ArgumentTypeError, ShapeError, TedslError


def test_embedding_adds_up_the_gradients_of_equal_rows():
    layer = nn.Embedding(6, 3)
    index = np.array([[1, 4, 1], [0, 1, 5]])
    layer(from_numpy(index)).sum().backward()
    assert layer.weight.grad.numpy()[:, 0].tolist() == [1, 3, 0, 0, 1, 1]


def test_dropout_keeps_the_mean_and_is_repeated_by_its_seed():
    layer, x = nn.Dropout(0.25), from_numpy(np.ones(100_000, "float32"))
    nn.manual_seed(5)
    first = layer(x).numpy()
    nn.manual_seed(5)
    assert (layer(x).numpy() == first).all()
    assert set(np.unique(first)) == {np.float32(0), np.float32(1 / 0.75)} and abs(first.mean() - 1) < 0.02
    assert layer.eval()(x) is x


def test_a_saved_network_is_loaded_with_the_same_values(tmp_path):
    def network():
        return nn.Sequential(nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2), nn.Flatten(), nn.Linear(8, 3))

    first, second = network(), network()
    first(from_numpy(np.random.default_rng(0).standard_normal((3, 1, 4, 4)).astype("float32")))
    first.save(tmp_path / "network.npz")
    second.load(tmp_path / "network.npz")
    assert list(first.state_dict()) == ["0.weight", "0.bias", "1.weight", "1.bias", "3.weight", "3.bias", "1.running_mean",
                                        "1.running_var"]
    assert all((a == b).all() for a, b in zip(first.state_dict().values(), second.state_dict().values()))


def test_state_that_does_not_fit_is_refused_and_nothing_is_changed():
    layer = nn.Linear(3, 2)
    before = layer.state_dict()
    with pytest.raises(ArgumentError, match=r"bias is missing; other is not in the module; weight has shape \(3, 2\)"):
        layer.load_state_dict({"weight": np.zeros((3, 2)), "other": np.zeros(1)})
    assert all((layer.state_dict()[name] == before[name]).all() for name in before)


def test_modules_find_their_parameters_once_also_in_lists_and_when_shared():
    class Network(nn.Module):
        def __init__(self):
            self.parts = [nn.Linear(2, 2, bias=False), nn.Linear(2, 2, bias=False)]
            self.again = self.parts[0]
            self.scale = Tensor(np.ones(1), requires_grad=True)
            self.constant = Tensor(np.ones(1))

    network = Network()
    assert [name for name, _ in network.named_parameters()] == ["scale", "parts.0.weight", "parts.1.weight"]
    assert "parts.0): Linear(2, 2, bias=False)" in repr(network)
    network.eval()
    assert not network.parts[1].training


def test_frozen_parameters_are_saved_and_loaded(tmp_path):
    network, other = (nn.Sequential(nn.Linear(2, 3), nn.Linear(3, 1)) for _ in range(2))
    network[0].weight.requires_grad = False
    assert list(network.state_dict()) == ["0.weight", "0.bias", "1.weight", "1.bias"] and len(network.parameters()) == 3
    network.save(tmp_path / "network.npz")
    other.load(tmp_path / "network.npz")
    assert (other[0].weight.detach().numpy() == network[0].weight.numpy()).all()
    network[0].weight = None
    assert "0.weight" not in network.state_dict()


def test_networks_of_bfloat16(tmp_path):
    layer, other = nn.Linear(3, 2, dtype="bfloat16"), nn.Linear(3, 2, dtype="bfloat16")
    nn.functional.cross_entropy(layer(Tensor(np.ones((4, 3)), "bfloat16")), np.array([0, 1, 1, 0])).backward()
    assert layer.weight.grad.dtype == "bfloat16"
    layer.save(tmp_path / "layer.npz")
    other.load(tmp_path / "layer.npz")
    assert (other.weight.detach().numpy() == layer.weight.detach().numpy()).all()


def test_a_file_that_was_not_saved_is_refused(tmp_path):
    (tmp_path / "other.npz").write_text("hello")
    with pytest.raises(ArgumentError, match="is not a file that save"):
        nn.Linear(3, 2).load(tmp_path / "other.npz")


@pytest.mark.parametrize("way, path, sentence", [
    ("load", "missing.npz", r"Linear.load: '.*missing.npz': No such file"), ("load", "", "Is a directory"),
    ("save", "missing/layer.npz", r"Linear.save: '.*': No such file"), ("load", 3, "an int is not the path of a file")])
def test_files_that_cannot_be_opened_are_refused(tmp_path, way, path, sentence):
    with pytest.raises(ArgumentError, match=sentence):
        getattr(nn.Linear(3, 2), way)(tmp_path / path if isinstance(path, str) else path)


def test_a_batch_of_no_images():
    network = nn.Sequential(nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(18, 3))
    network(Tensor(np.ones((0, 1, 8, 8), "float32"))).sum().backward()
    assert not any(parameter.grad.numpy().any() for parameter in network.parameters())
    assert not network[1].running_mean.numpy().any()


def test_arrays_of_numpy_are_taken():
    x, target = np.ones((2, 3), "float32"), np.array([0, 1])
    assert nn.functional.relu(x).shape == (2, 3) and nn.functional.embedding(target, x).shape == (2, 3)
    np.testing.assert_allclose(nn.functional.cross_entropy(x, target).item(), np.log(3), rtol=1e-6)


@pytest.mark.parametrize("call, kind, sentence", [
    (lambda: nn.Linear(3, 2)(Tensor(np.ones((2, 4)))), ShapeError, r"linear: x has shape \(2, 4\) and the weight \(2, 3\)"),
    (lambda: nn.Conv2d(3, 2, 3)(Tensor(np.ones((1, 4, 5, 5)))), ShapeError, r"conv2d: x has shape \(1, 4, 5, 5\)"),
    (lambda: nn.Conv2d(3, 2, 3, groups=2), ArgumentError, "not to be divided into 2 groups"),
    (lambda: nn.Conv2d(3, 2, (3, 3, 3)), ArgumentError, r"kernel_size is \(3, 3, 3\), not an integer or a pair"),
    (lambda: nn.MaxPool2d(2)(Tensor(np.ones((4, 4)))), ShapeError, "max_pool2d: x has shape"),
    (lambda: nn.BatchNorm2d(3)(Tensor(np.ones((1, 2, 4, 4)))), ShapeError, "channels are dimension 1"),
    (lambda: nn.LayerNorm(3)(Tensor(np.ones((2, 4)))), ShapeError, "is not its last dimensions"),
    (lambda: nn.Dropout(1.0), ArgumentError, "Dropout: p is 1.0"),
    (lambda: nn.CrossEntropyLoss()(Tensor(np.ones((2, 3))), Tensor(np.ones(2))), ShapeError, "cross_entropy: x has shape"),
    (lambda: nn.CrossEntropyLoss("avg")(Tensor(np.ones((2, 3))), Tensor(np.ones(2, "int32"))), ArgumentError,
     "reduction is 'avg'"),
    (lambda: nn.MSELoss()(Tensor(np.ones((2, 3))), Tensor(np.ones(3))), ShapeError, "mse_loss"),
    (lambda: nn.Embedding(3, 2)(Tensor(np.ones(3))), ShapeError, "the index is float64"),
    (lambda: nn.Sequential(nn.ReLU(), 3), ArgumentTypeError, "layer 1 is an int"),
    (lambda: nn.Module()(1), TedslError, "Module has no forward"),
    (lambda: nn.Dropout("a"), ArgumentError, "p is 'a'"),
    (lambda: nn.manual_seed("a"), ArgumentError, "'a' is not an integer"),
    (lambda: nn.Linear(3, 2).load_state_dict(None), ArgumentTypeError, "a NoneType is not what state_dict"),
    (lambda: nn.Linear(3), ArgumentTypeError, "'out_features' is missing"),
])
def test_misuse_is_refused(call, kind, sentence):
    with pytest.raises(kind, match=sentence):
        call()
