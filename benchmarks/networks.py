"""ResNet-18, ResNet-50 and MobileNet-V2 for inference, as topi programs, and as torch, onnxruntime and numpy run them.

    program = networks.program("ResNet-18", batch=1, layout="NHWC")
    s = topi.schedules.schedule(program.out)
    kernel = tedsl.build(s, program.arguments)
    kernel(*program.arrays, result)

A network is a function of a `Builder`; each library has one, and all draw the same weights. Batch norms are folded into the
weights and biases of the convolutions, as every library does for inference.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import topi
from benchmarks import reference
from tedsl import te

IMAGE, CLASSES = 224, 1000


@dataclass(frozen=True)
class Conv:
    """A convolution of square images with padding kernel // 2, a bias and an activation."""

    channels: int
    size: int
    filters: int
    kernel: int
    stride: int
    groups: int = 1
    activation: str = ""

    @property
    def pad(self) -> int:
        return self.kernel // 2

    @property
    def out(self) -> int:
        """Height and width of the result."""
        return (self.size + 2 * self.pad - self.kernel) // self.stride + 1

    @property
    def operations(self) -> float:
        """Of one image; a multiply-add counts two."""
        return 2.0 * self.filters * self.out**2 * self.channels // self.groups * self.kernel**2

    @property
    def needed_operations(self) -> float:
        """Those of one image without the products of zeros of the border, which nobody has to compute."""
        inside = sum(0 <= at * self.stride + tap - self.pad < self.size for at in range(self.out) for tap in range(self.kernel))
        return 2.0 * self.filters * self.channels // self.groups * inside**2

    def __str__(self) -> str:
        kind = f"depthwise {self.channels}" if self.groups == self.channels > 1 else f"{self.channels}->{self.filters}"
        return f"{kind} {self.kernel}x{self.kernel} {self.size}²" + (f" stride {self.stride}" if self.stride > 1 else "")


class Builder(ABC):
    """Makes the layers of a network in one library. A value is whatever the library has for it; `size` and `channels` follow
    the images.
    """

    def __init__(self, batch: int, seed: int = 0) -> None:
        self.batch, self._random = batch, np.random.default_rng(seed)
        self.shapes: dict[int, tuple[int, int]] = {}
        self._alive: list[Any] = []  # an id is that of one value while it lives

    def input(self) -> Any:
        image = self._drawn((self.batch, 3, IMAGE, IMAGE))
        return self._seen(self._input(image), 3, IMAGE)

    def conv(self, x: Any, filters: int, kernel: int, stride: int = 1, *, groups: int = 1, activation: str = "relu",
             plus: Any = None) -> Any:
        """The convolution with bias, then `plus` added, then the activation."""
        channels, size = self.shapes[id(x)]
        spec = Conv(channels, size, filters, kernel, stride, groups, activation)
        fan = channels // groups * kernel**2
        gain = (2.0 if activation else 0.5) / fan
        w = self._drawn((filters, channels // groups, kernel, kernel), gain**0.5)
        b = self._drawn((filters,), 0.1)
        return self._seen(self._conv(spec, x, w, b, plus), filters, spec.out)

    def max_pool(self, x: Any) -> Any:
        """Windows of 3 x 3 with stride 2 and padding 1."""
        channels, size = self.shapes[id(x)]
        return self._seen(self._max_pool(x), channels, (size - 1) // 2 + 1)

    def classify(self, x: Any) -> Any:
        """The average over the image, and the product with a matrix."""
        channels, _ = self.shapes[id(x)]
        w = self._drawn((CLASSES, channels), channels**-0.5)
        return self._classify(x, w, self._drawn((CLASSES,)))

    def _drawn(self, shape: tuple[int, ...], scale: float = 1.0) -> Any:
        return self._random.standard_normal(shape, dtype="float32") * np.float32(scale)

    def _seen(self, value: Any, channels: int, size: int) -> Any:
        self.shapes[id(value)] = channels, size
        self._alive.append(value)
        return value

    @abstractmethod
    def _input(self, image: Any) -> Any: ...

    @abstractmethod
    def _conv(self, spec: Conv, x: Any, w: Any, b: Any, plus: Any) -> Any: ...

    @abstractmethod
    def _max_pool(self, x: Any) -> Any: ...

    @abstractmethod
    def _classify(self, x: Any, w: Any, b: Any) -> Any: ...


# --- the networks ---------------------------------------------------------------------------------------------------------

def resnet18(net: Builder) -> Any:
    x = net.max_pool(net.conv(net.input(), 64, 7, 2))
    for stage, filters in enumerate((64, 128, 256, 512)):
        for block in range(2):
            stride = 2 if stage > 0 and block == 0 else 1
            skip = net.conv(x, filters, 1, stride, activation="") if stride > 1 else x
            x = net.conv(net.conv(x, filters, 3, stride), filters, 3, plus=skip)
    return net.classify(x)


def resnet50(net: Builder) -> Any:
    x = net.max_pool(net.conv(net.input(), 64, 7, 2))
    for stage, (filters, blocks) in enumerate(((64, 3), (128, 4), (256, 6), (512, 3))):
        for block in range(blocks):
            stride = 2 if stage > 0 and block == 0 else 1
            skip = net.conv(x, 4 * filters, 1, stride, activation="") if block == 0 else x
            inner = net.conv(net.conv(x, filters, 1), filters, 3, stride)
            x = net.conv(inner, 4 * filters, 1, plus=skip)
    return net.classify(x)


def mobilenet_v2(net: Builder) -> Any:
    x, channels = net.conv(net.input(), 32, 3, 2, activation="relu6"), 32
    for expand, filters, blocks, first in ((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1),
                                           (6, 160, 3, 2), (6, 320, 1, 1)):
        for block in range(blocks):
            stride, wide = first if block == 0 else 1, channels * expand
            inner = net.conv(x, wide, 1, activation="relu6") if expand > 1 else x
            inner = net.conv(inner, wide, 3, stride, groups=wide, activation="relu6")
            x = net.conv(inner, filters, 1, activation="", plus=x if stride == 1 and channels == filters else None)
            channels = filters
    return net.classify(net.conv(x, 1280, 1, activation="relu6"))


NETWORKS: dict[str, Callable[[Builder], Any]] = {"ResNet-18": resnet18, "ResNet-50": resnet50, "MobileNet-V2": mobilenet_v2}


# --- shapes only ----------------------------------------------------------------------------------------------------------

class _Listing(Builder):
    """Lists the convolutions of a network."""

    def __init__(self) -> None:
        super().__init__(1)
        self.convolutions: list[Conv] = []

    def _input(self, image: Any) -> Any:
        return object()

    def _conv(self, spec: Conv, x: Any, w: Any, b: Any, plus: Any) -> Any:
        self.convolutions.append(spec)
        return object()

    def _max_pool(self, x: Any) -> Any:
        return object()

    def _classify(self, x: Any, w: Any, b: Any) -> Any:
        return None


def convolutions(name: str) -> Counter[Conv]:
    """The convolutions of a network in order, and how often each occurs."""
    listing = _Listing()
    NETWORKS[name](listing)
    return Counter(listing.convolutions)


def operations(name: str) -> float:
    """Of the convolutions of a network for one image."""
    return sum(spec.operations * times for spec, times in convolutions(name).items())


# --- tedsl ----------------------------------------------------------------------------------------------------------------

@dataclass(frozen=True)
class Program:
    """A network as a tensor `out` of placeholders, `inputs`, for which `arrays` are the image and the weights."""

    out: te.Tensor
    inputs: list[te.Tensor]
    arrays: list[Any]

    @property
    def arguments(self) -> list[te.Tensor]:
        return [*self.inputs, self.out]


class TopiBuilder(Builder):
    """The operators of topi in layout "NCHW", "NHWC" or "NCHWc", which has blocks of channels, of `block` where that divides
    them.
    """

    def __init__(self, batch: int, layout: str = "NHWC", block: int = 16, seed: int = 0) -> None:
        super().__init__(batch, seed)
        self.layout, self.block = layout, block
        self.inputs: list[te.Tensor] = []
        self.arrays: list[Any] = []

    def _argument(self, array: Any, name: str) -> te.Tensor:
        self.arrays.append(np.ascontiguousarray(array))
        self.inputs.append(te.placeholder(array.shape, str(array.dtype), name=f"{name}{len(self.inputs)}"))
        return self.inputs[-1]

    def _input(self, image: Any) -> Any:
        return self._argument(in_layout(image, self.layout, self.block), "image")

    def _conv(self, spec: Conv, x: Any, w: Any, b: Any, plus: Any) -> Any:
        y = convolved(spec, x, self._argument(kernel_in_layout(w, self.layout, spec, self.block), "weight"), self.layout)
        y = topi.add(y, self._argument(per_channel(b, self.layout, self.block), "bias"))
        return activated(y if plus is None else topi.add(y, plus), spec.activation)

    def _max_pool(self, x: Any) -> Any:
        return topi.nn.pool2d(x, [3, 3], [2, 2], [1, 1], [1, 1, 1, 1], "max", layout=self.layout)

    def _classify(self, x: Any, w: Any, b: Any) -> Any:
        average = topi.nn.global_pool(x, "avg", self.layout)
        flat = topi.reshape(average, (self.batch, w.shape[1]))
        return topi.nn.dense(flat, self._argument(w, "weight"), self._argument(b, "bias"))


class Declared(TopiBuilder):
    """The same program without values of its tensors."""

    def _drawn(self, shape: tuple[int, ...], scale: float = 1.0) -> Any:
        return np.broadcast_to(np.float32(scale), shape)

    def _argument(self, array: Any, name: str) -> te.Tensor:
        self.inputs.append(te.placeholder(array.shape, str(array.dtype), name=f"{name}{len(self.inputs)}"))
        return self.inputs[-1]


def block_of(channels: int, block: int) -> int:
    """How many channels are in a block: the most, up to `block`, that divide them."""
    return next(n for n in range(min(block, channels), 0, -1) if channels % n == 0)


def in_layout(x: Any, layout: str, block: int) -> Any:
    """NCHW data in another layout."""
    if layout == "NCHWc":
        n, c, h, w = x.shape
        inner = block_of(c, block)
        return np.ascontiguousarray(x.reshape(n, c // inner, inner, h, w).transpose(0, 1, 3, 4, 2))
    return np.ascontiguousarray(x.transpose(0, 2, 3, 1)) if layout == "NHWC" else x


def back_to_nchw(y: Any, layout: str) -> Any:
    """The inverse of `in_layout`."""
    if layout == "NCHWc":
        n, c, h, w, block = y.shape
        return y.transpose(0, 1, 4, 2, 3).reshape(n, c * block, h, w)
    return y.transpose(0, 3, 1, 2) if layout == "NHWC" else y


def kernel_in_layout(w: Any, layout: str, spec: Conv, block: int) -> Any:
    """OIHW weights as the convolution of a layout takes them."""
    outer = block_of(spec.filters, block)
    if spec.groups == spec.channels > 1:
        if layout == "NCHWc":
            return w.reshape(-1, outer, 1, *w.shape[2:], 1).transpose(0, 2, 3, 4, 5, 1)
        return w.transpose(2, 3, 0, 1) if layout == "NHWC" else w
    if layout == "NCHWc":
        inner = block_of(spec.channels, block)
        split = w.reshape(spec.filters // outer, outer, spec.channels // inner, inner, *w.shape[2:])
        return split.transpose(0, 2, 4, 5, 3, 1)
    return w.transpose(2, 3, 1, 0) if layout == "NHWC" else w


def per_channel(b: Any, layout: str, block: int) -> Any:
    """A vector of channels that is broadcast over images."""
    if layout == "NCHWc":
        return b.reshape(-1, 1, 1, block_of(b.size, block))
    return b if layout == "NHWC" else b.reshape(-1, 1, 1)


def convolved(spec: Conv, x: te.Tensor, w: te.Tensor, layout: str) -> te.Tensor:
    """The convolution in a layout."""
    nn = topi.nn
    if spec.groups == spec.channels > 1:
        depthwise = {"NCHW": nn.depthwise_conv2d_nchw, "NHWC": nn.depthwise_conv2d_nhwc, "NCHWc": nn.depthwise_conv2d_NCHWc}
        made: te.Tensor = depthwise[layout](x, w, spec.stride, spec.pad, 1)
    elif layout == "NCHWc":
        made = nn.conv2d_NCHWc(x, w, spec.stride, spec.pad, 1)
    else:
        made = nn.conv2d(x, w, spec.stride, spec.pad, 1, layout)
    return made


def activated(y: te.Tensor, activation: str) -> te.Tensor:
    """relu, relu6 or nothing."""
    if activation == "relu6":
        return topi.clip(y, 0.0, 6.0)
    return topi.nn.relu(y) if activation else y


def program(name: str, batch: int = 1, layout: str = "NHWC", block: int = 16) -> Program:
    """A network as a program of topi. block: the most channels in a block of layout "NCHWc"."""
    builder = TopiBuilder(batch, layout, block)
    out = NETWORKS[name](builder)
    return Program(out, builder.inputs, builder.arrays)


# --- numpy ----------------------------------------------------------------------------------------------------------------

class NumpyBuilder(Builder):
    """The result in float64."""

    def _input(self, image: Any) -> Any:
        return reference.wide(image)

    def _conv(self, spec: Conv, x: Any, w: Any, b: Any, plus: Any) -> Any:
        y = reference.convolution(x, w, b, spec.stride, spec.pad, spec.groups)
        return reference.activated(y if plus is None else y + plus, spec.activation)

    def _max_pool(self, x: Any) -> Any:
        return reference.pool(x, 3, 2, 1, "max")

    def _classify(self, x: Any, w: Any, b: Any) -> Any:
        return x.mean(axis=(2, 3)) @ reference.wide(w).T + reference.wide(b)


def expected(name: str, batch: int = 1) -> Any:
    """The result of a network in float64."""
    return NETWORKS[name](NumpyBuilder(batch))
