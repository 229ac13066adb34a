"""Training of LeNet on digits beside torch: with its parameters at each step, and free running for an epoch."""

import copy

import numpy as np
import pytest

import tedsl
from tedsl import autograd, nn, optim

torch = pytest.importorskip("torch")
datasets = pytest.importorskip("sklearn.datasets")
BATCH, EPOCH = 32, 42


def lenet(of):
    return of.Sequential(of.Conv2d(1, 16, 3, padding=1), of.ReLU(), of.MaxPool2d(2), of.Conv2d(16, 32, 3, padding=1), of.ReLU(),
                         of.MaxPool2d(2), of.Flatten(), of.Linear(128, 64), of.ReLU(), of.Linear(64, 10))


def networks():
    """Ours and torch's with the same first parameters: He's, and biases of 0."""
    ours, theirs = lenet(nn), lenet(torch.nn)
    random = np.random.default_rng(0)
    for parameter in theirs.parameters():
        fan = int(np.prod(parameter.shape[1:]))
        value = random.standard_normal(parameter.shape) * np.sqrt(2 / fan) if parameter.ndim > 1 else np.zeros(parameter.shape)
        parameter.data = torch.tensor(value.astype("float32"))
    given(ours, theirs)
    return ours, theirs


def optimizers(ours, theirs):
    return [of.SGD(network.parameters(), lr=0.02, momentum=0.9) for of, network in ((optim, ours), (torch.optim, theirs))]


def given(ours, theirs):
    """Gives torch's parameters to our network."""
    for mine, other in zip(ours.parameters(), theirs.parameters(), strict=True):
        mine.detach().copy_(other.detach().numpy())


def batches(epochs):
    digits = datasets.load_digits()
    images, labels = (digits.images / 16).astype("float32")[:, None], digits.target.astype("int64")
    random = np.random.default_rng(1)
    for _ in range(epochs):
        order = random.permutation(len(images))
        for step in range(EPOCH):
            chosen = order[step * BATCH:(step + 1) * BATCH]
            yield images[chosen], labels[chosen]


def steps(ours, theirs, x, y):
    """The losses of both networks; their gradients are computed."""
    loss = nn.CrossEntropyLoss()(ours(autograd.from_numpy(x)), autograd.from_numpy(y))
    expected = torch.nn.functional.cross_entropy(theirs(torch.from_numpy(x)), torch.from_numpy(y))
    loss.backward()
    expected.backward()
    return loss.item(), expected.item()


def off_exact(ours, network, x, y):
    """How far our gradients, and torch's, are from those in float64, for each parameter, as parts of the largest."""
    exact = copy.deepcopy(network).double()
    exact.zero_grad()
    torch.nn.functional.cross_entropy(exact(torch.from_numpy(x).double()), torch.from_numpy(y)).backward()
    wanted = [b.grad.numpy() for b in exact.parameters()]
    return [[float(np.abs(a.grad.numpy().astype("float64") - b).max() / np.abs(b).max())
             for a, b in zip(one.parameters(), wanted, strict=True)] for one in (ours, network)]


@pytest.fixture(autouse=True)
def one_thread():
    """Kernels of microseconds: other threads would wait for each other."""
    before = tedsl.get_num_threads(), torch.get_num_threads()
    tedsl.set_num_threads(1)
    torch.set_num_threads(1)
    yield
    tedsl.set_num_threads(before[0])
    torch.set_num_threads(before[1])


def test_losses_and_gradients_are_those_of_torch_at_each_of_420_steps():
    ours, theirs = networks()
    mine, other = optimizers(ours, theirs)
    distances = []
    for step, (x, y) in enumerate(batches(10)):
        given(ours, theirs)
        mine.zero_grad()
        other.zero_grad()
        loss, expected = steps(ours, theirs, x, y)
        assert abs(loss - expected) <= 1e-6 * max(1, expected)
        apart = [np.abs(a.grad.numpy() - b.grad.numpy()).max() / float(b.grad.abs().max())
                 for a, b in zip(ours.parameters(), theirs.parameters(), strict=True)]
        if max(apart) > 1e-5 or not step % 10:
            off, torch_off = map(max, off_exact(ours, theirs, x, y))
            distances.append((off, torch_off))
            # Where probabilities are near 1 their differences from 1 have few digits left, in torch's float32 as in ours.
            assert max(apart) <= 1e-5 or off <= 1e-5 + torch_off
        other.step()
    assert expected < 0.2
    ours_apart, theirs_apart = np.mean(distances, axis=0)
    assert ours_apart <= 1.5 * theirs_apart


def test_an_epoch_of_free_running_keeps_the_losses_of_torch():
    ours, theirs = networks()
    mine, other = optimizers(ours, theirs)
    for x, y in batches(1):
        mine.zero_grad()
        other.zero_grad()
        loss, expected = steps(ours, theirs, x, y)
        assert abs(loss - expected) <= 1e-5 * max(1, expected)
        mine.step()
        other.step()


def test_the_graph_of_a_step_keeps_no_more_memory_than_that_of_torch():
    ours, theirs = networks()
    x, y = next(batches(1))
    loss = nn.CrossEntropyLoss()(ours(autograd.from_numpy(x)), autograd.from_numpy(y))
    kept, nodes, waiting = {}, set(), [loss.grad_fn]
    while waiting:
        node = waiting.pop()
        if node is not None and node not in nodes:
            nodes.add(node)
            kept |= {id(array): array for array in getattr(node, "saved", ())}
            waiting += [function for function, _ in node.next_functions]
    parameters = {id(parameter.data.numpy()) for parameter in ours.parameters()}
    by_torch = {}

    def counted(tensor):
        storage = tensor.untyped_storage()
        by_torch[storage.data_ptr()] = storage.nbytes()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(counted, lambda tensor: tensor):
        torch.nn.functional.cross_entropy(theirs(torch.from_numpy(x)), torch.from_numpy(y))
    own = {parameter.data_ptr() for parameter in theirs.parameters()}
    assert 0 < sum(array.nbytes for key, array in kept.items() if key not in parameters) \
        <= sum(size for key, size in by_torch.items() if key not in own)
