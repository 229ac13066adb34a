"""Whole steps of training beside torch's eager mode: forward, loss, backward, and an optimiser with momentum.

Both train a network of the same first parameters; the rate is 0, so that each step computes the same gradient, of which the
mean by the filters of the first layer is compared with that of our network in float64.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.case import Case, Contender, Goal, Maker, maker
from benchmarks.contenders import with_torch
from tedsl import autograd, nn, optim


def lenet(of: Any) -> Any:
    """LeNet for images of 8 x 8, in the modules of `of`: tedsl.nn, torch.nn."""
    return of.Sequential(of.Conv2d(1, 16, 3, padding=1), of.ReLU(), of.MaxPool2d(2), of.Conv2d(16, 32, 3, padding=1), of.ReLU(),
                         of.MaxPool2d(2), of.Flatten(), of.Linear(128, 64), of.ReLU(), of.Linear(64, 10))


def resnet18(of: Any) -> Any:
    """ResNet-18 (He et al. 2015) without its last pooling, for images of 64 x 64, in the modules of `of`."""

    class Block(of.Module):
        def __init__(self, channels: int, filters: int, stride: int) -> None:
            super().__init__()
            self.body = of.Sequential(of.Conv2d(channels, filters, 3, stride, 1, bias=False), of.BatchNorm2d(filters),
                                      of.ReLU(), of.Conv2d(filters, filters, 3, 1, 1, bias=False), of.BatchNorm2d(filters))
            self.short = of.Sequential(of.Conv2d(channels, filters, 1, stride, bias=False), of.BatchNorm2d(filters)) \
                if stride != 1 or channels != filters else of.Sequential()
            self.relu = of.ReLU()

        def forward(self, x: Any) -> Any:
            return self.relu(self.body(x) + self.short(x))

    blocks, channels = [], 64
    for filters, stride in ((64, 1), (64, 1), (128, 2), (128, 1), (256, 2), (256, 1), (512, 2), (512, 1)):
        blocks.append(Block(channels, filters, stride))
        channels = filters
    return of.Sequential(of.Conv2d(3, 64, 7, 2, 3, bias=False), of.BatchNorm2d(64), of.ReLU(), of.MaxPool2d(3, 2, 1), *blocks,
                         of.Flatten(), of.Linear(512 * 4, 1000))


def step(make: Callable[[Any], Any], shape: tuple[int, ...], classes: int, factor: float, goal: float, threads: int) -> Case:
    """A step of training on images of `shape`."""
    random = np.random.default_rng(0)
    images, labels = random.standard_normal(shape, "float32"), random.integers(0, classes, shape[0])
    nn.manual_seed(0)
    network = make(nn)
    state = [parameter.data.numpy().copy() for parameter in network.parameters()]
    contenders = {"tedsl": _ours(network, images, labels)}
    torch = with_torch.torch_or_none(threads)
    if torch is not None:
        contenders["torch"] = _torch(torch, make(torch.nn), state, images, labels)
    return Case("training", contenders, lambda: _expected(make, state, images, labels), 1, factor=factor,
                goal=Goal(goal))


def _ours(network: Any, images: Any, labels: Any) -> Contender:
    optimizer = optim.SGD(network.parameters(), lr=0.0, momentum=0.9)
    loss_of, x, target = nn.CrossEntropyLoss(), autograd.from_numpy(images), autograd.from_numpy(labels)
    first = network.parameters()[0]

    def call() -> None:
        optimizer.zero_grad()
        loss_of(network(x), target).backward()
        optimizer.step()

    return Contender(call, lambda: _compared(first.grad.numpy()))


def _torch(torch: Any, network: Any, state: list[Any], images: Any, labels: Any) -> Contender:
    for parameter, value in zip(network.parameters(), state, strict=True):
        parameter.data = torch.from_numpy(value.copy())
        parameter.requires_grad_()
    optimizer = torch.optim.SGD(network.parameters(), lr=0.0, momentum=0.9)
    loss_of, x, target = torch.nn.CrossEntropyLoss(), torch.from_numpy(images), torch.from_numpy(labels)
    first = next(network.parameters())

    def call() -> None:
        with torch.enable_grad():
            optimizer.zero_grad()
            loss_of(network(x), target).backward()
            optimizer.step()

    return Contender(call, lambda: _compared(first.grad.numpy()))


def _expected(make: Callable[[Any], Any], state: list[Any], images: Any, labels: Any) -> Any:
    network = make(nn)
    for _, module in network.modules():
        for name, value in list(vars(module).items()):
            if isinstance(value, autograd.Tensor):
                wide = autograd.from_numpy(value.data.numpy().astype("float64"))
                setattr(module, name, wide.requires_grad_(value.requires_grad))
    for parameter, value in zip(network.parameters(), state, strict=True):
        parameter.detach().copy_(value.astype("float64"))
    nn.CrossEntropyLoss()(network(autograd.from_numpy(images.astype("float64"))), autograd.from_numpy(labels)).backward()
    return _compared(network.parameters()[0].grad.numpy())


def _compared(gradient: Any) -> Any:
    """The size of the gradient by each filter."""
    return np.sqrt((gradient.astype("float64") ** 2).sum(axis=(1, 2, 3)))


def cases(threads: int) -> list[Maker]:
    """The cases of this suite."""
    return [maker("training LeNet 32x1x8x8", step, lenet, (32, 1, 8, 8), 10, 100.0, 1 / 0.6, threads),
            maker("training ResNet-18 4x3x64x64", step, resnet18, (4, 3, 64, 64), 1000, 1e4, 1.0, threads)]
