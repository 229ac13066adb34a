"""Layers: modules with the parameters of one operator. First values are those of PyTorch, where nothing else is said."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from tedsl.autograd import Tensor
from tedsl.errors import ArgumentError
from tedsl.nn import functional, random
from tedsl.nn.functional import Pair, pair
from tedsl.nn.module import Module


class Linear(Module):
    """x @ weight.T + bias over the last dimension."""

    def __init__(self, in_features: int, out_features: int, bias: bool = True, dtype: Any = "float32") -> None:
        random.checked_sizes("Linear", in_features=in_features, out_features=out_features)
        bound = 1 / math.sqrt(in_features)
        self.weight = random.uniform((out_features, in_features), bound, dtype)
        self.bias = random.uniform((out_features,), bound, dtype) if bias else None

    def forward(self, x: Tensor) -> Tensor:
        return functional.linear(x, self.weight, self.bias)

    def extra_repr(self) -> str:
        return f"{self.weight.shape[1]}, {self.weight.shape[0]}" + ", bias=False" * (self.bias is None)


class Conv2d(Module):
    """A convolution of (batch, channels, height, width) with zeros around."""

    def __init__(self, in_channels: int, out_channels: int, kernel_size: Pair, stride: Pair = 1, padding: Pair = 0,
                 dilation: Pair = 1, groups: int = 1, bias: bool = True, dtype: Any = "float32") -> None:
        random.checked_sizes("Conv2d", in_channels=in_channels, out_channels=out_channels, groups=groups)
        if in_channels % groups or out_channels % groups:
            raise ArgumentError(f"Conv2d: {in_channels} and {out_channels} channels are not to be divided into {groups} groups")
        window = pair(kernel_size, "Conv2d: kernel_size")
        self.stride, self.padding = pair(stride, "Conv2d: stride"), pair(padding, "Conv2d: padding")
        self.dilation, self.groups = pair(dilation, "Conv2d: dilation"), groups
        bound = 1 / math.sqrt(max(in_channels // groups * math.prod(window), 1))
        self.weight = random.uniform((out_channels, in_channels // groups, *window), bound, dtype)
        self.bias = random.uniform((out_channels,), bound, dtype) if bias else None

    def forward(self, x: Tensor) -> Tensor:
        return functional.conv2d(x, self.weight, self.bias, self.stride, self.padding, self.dilation, self.groups)

    def extra_repr(self) -> str:
        out, inner, *window = self.weight.shape
        return (f"{inner * self.groups}, {out}, kernel_size={tuple(window)}, stride={self.stride}, padding={self.padding}"
                + f", groups={self.groups}" * (self.groups > 1) + ", bias=False" * (self.bias is None))


class BatchNorm2d(Module):
    """Each channel normalized: in training by the batch, else by running statistics of training, which it keeps.

    running = (1 - momentum) * running + momentum * that of the batch, the variance with the number of elements less one.
    """

    buffers = ("running_mean", "running_var")

    def __init__(self, num_features: int, eps: float = 1e-5, momentum: float = 0.1, dtype: Any = "float32") -> None:
        random.checked_sizes("BatchNorm2d", num_features=num_features)
        self.eps, self.momentum = eps, momentum
        self.weight, self.bias = random.constant((num_features,), 1, dtype), random.constant((num_features,), 0, dtype)
        self.running_mean = random.constant((num_features,), 0, dtype).detach()
        self.running_var = random.constant((num_features,), 1, dtype).detach()

    def forward(self, x: Tensor) -> Tensor:
        if not self.training:
            return functional.batch_norm_of(x, self.weight, self.bias, self.running_mean, self.running_var, self.eps)
        out, mean, variance = functional.batch_norm(x, self.weight, self.bias, self.eps)
        if x.size == 0:  # a batch of no images has no statistics
            return out
        count = x.size // x.shape[1]
        for running, new in ((self.running_mean, mean.data.numpy()),
                             (self.running_var, variance.data.numpy() * (count / max(count - 1, 1)))):
            running.copy_(running.numpy() * (1 - self.momentum) + new.astype(running.numpy().dtype) * self.momentum)
        return out

    def extra_repr(self) -> str:
        return f"{self.weight.shape[0]}, eps={self.eps}, momentum={self.momentum}"


class LayerNorm(Module):
    """Normalized over the last dimensions, `normalized_shape`."""

    def __init__(self, normalized_shape: int | Sequence[int], eps: float = 1e-5, dtype: Any = "float32") -> None:
        shape = (normalized_shape,) if isinstance(normalized_shape, int) else tuple(normalized_shape)
        self.eps = eps
        self.weight, self.bias = random.constant(shape, 1, dtype), random.constant(shape, 0, dtype)

    def forward(self, x: Tensor) -> Tensor:
        return functional.layer_norm(x, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        return f"{self.weight.shape}, eps={self.eps}"


class Embedding(Module):
    """A row of the weight for each integer."""

    def __init__(self, num_embeddings: int, embedding_dim: int, dtype: Any = "float32") -> None:
        random.checked_sizes("Embedding", num_embeddings=num_embeddings, embedding_dim=embedding_dim)
        self.weight = random.kaiming_normal((num_embeddings, embedding_dim), 1, 1.0, dtype)

    def forward(self, index: Tensor) -> Tensor:
        return functional.embedding(index, self.weight)

    def extra_repr(self) -> str:
        return ", ".join(map(str, self.weight.shape))


class MaxPool2d(Module):
    """The maximum of each window."""

    def __init__(self, kernel_size: Pair, stride: Pair | None = None, padding: Pair = 0) -> None:
        self.kernel_size, self.stride, self.padding = kernel_size, stride, padding

    def forward(self, x: Tensor) -> Tensor:
        return functional.max_pool2d(x, self.kernel_size, self.stride, self.padding)

    def extra_repr(self) -> str:
        return str(self.kernel_size)


class Dropout(Module):
    """In training each element is 0 with probability p, and the others are multiplied by 1 / (1 - p)."""

    def __init__(self, p: float = 0.5) -> None:
        if not isinstance(p, (int, float)) or not 0 <= p < 1:
            raise ArgumentError(f"Dropout: p is {p!r}, not a probability from 0 and below 1")
        self.p = p

    def forward(self, x: Tensor) -> Tensor:
        if not self.training or self.p == 0:
            return x
        array = x.data.numpy()
        kept = random.generator().random(array.shape) >= self.p
        made: Tensor = x * np.multiply(kept, 1 / (1 - self.p), dtype=array.dtype)
        return made

    def extra_repr(self) -> str:
        return f"p={self.p}"


class ReLU(Module):
    """max(x, 0)."""

    def forward(self, x: Tensor) -> Tensor:
        return functional.relu(x)


class GELU(Module):
    """x times the probability that a normal number is below x."""

    def forward(self, x: Tensor) -> Tensor:
        return functional.gelu(x)


class Flatten(Module):
    """All dimensions but the first as one."""

    def forward(self, x: Tensor) -> Tensor:
        made: Tensor = x.reshape(x.shape[0], math.prod(x.shape[1:]))
        return made


class CrossEntropyLoss(Module):
    """-log softmax(x) at the target classes; see functional.cross_entropy."""

    def __init__(self, reduction: str = "mean") -> None:
        self.reduction = reduction

    def forward(self, x: Tensor, target: Tensor) -> Tensor:
        return functional.cross_entropy(x, target, self.reduction)


class MSELoss(Module):
    """The squares of differences; see functional.mse_loss."""

    def __init__(self, reduction: str = "mean") -> None:
        self.reduction = reduction

    def forward(self, x: Tensor, target: Tensor) -> Tensor:
        return functional.mse_loss(x, target, self.reduction)
