"""Whole networks in torch and onnxruntime, with the weights that the program of topi has."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.case import Contender
from benchmarks.contenders import with_onnx
from benchmarks.contenders.with_torch import calling
from benchmarks.networks import CLASSES, NETWORKS, Builder, Conv


class _Value:
    """A tensor of a recorded network."""


class TorchBuilder(Builder):
    """Records a network as steps on channels-last tensors.

    fused: each convolution with its bias, sum and activation is one call with packed weights, as compiled models do it; else
    these are calls of torch.nn.functional.
    """

    def __init__(self, torch: Any, batch: int, fused: bool) -> None:
        super().__init__(batch)
        self.torch, self.fused, self.image = torch, fused, None
        self.steps: list[tuple[_Value, Callable[..., Any], tuple[_Value, ...]]] = []

    def run(self, image: Any) -> Any:
        """The network on an image."""
        values = {self.first: image}
        for value, function, sources in self.steps:
            result = values[value] = function(*[values[source] for source in sources])
        return result

    def _step(self, function: Callable[..., Any], *sources: _Value) -> _Value:
        value = _Value()
        self.steps.append((value, function, sources))
        return value

    def _input(self, image: Any) -> Any:
        self.image = self.torch.from_numpy(image).contiguous(memory_format=self.torch.channels_last)
        self.first = _Value()
        return self.first

    def _conv(self, spec: Conv, x: Any, w: Any, b: Any, plus: Any) -> Any:
        weights, bias = self.torch.from_numpy(w), self.torch.from_numpy(b)
        sources = (x,) if plus is None else (x, plus)
        return self._step(self._fused(spec, weights, bias) if self.fused else self._eager(spec, weights, bias), *sources)

    def _fused(self, spec: Conv, w: Any, b: Any) -> Callable[..., Any]:
        pads, strides, ones = [spec.pad] * 2, [spec.stride] * 2, [1, 1]
        shape = [self.batch, spec.channels, spec.size, spec.size]
        packed = self.torch.ops.mkldnn._reorder_convolution_weight(w, pads, strides, ones, spec.groups, shape)
        attribute, scalars = {"relu": ("relu", []), "relu6": ("hardtanh", [0, 6]), "": ("none", [])}[spec.activation]
        single = self.torch.ops.mkldnn._convolution_pointwise
        double, after = single.binary, attribute if spec.activation else None

        def call(x: Any, plus: Any = None) -> Any:
            if plus is None:
                return single(x, packed, b, pads, strides, ones, spec.groups, attribute, scalars, "")
            return double(x, plus, packed, b, pads, strides, ones, spec.groups, "add", 1.0, after, scalars, "")

        return call

    def _eager(self, spec: Conv, w: Any, b: Any) -> Callable[..., Any]:
        w = w.contiguous(memory_format=self.torch.channels_last)
        convolve, relu, relu6 = self.torch.nn.functional.conv2d, self.torch.relu, self.torch.nn.functional.relu6
        finish = {"relu": relu, "relu6": relu6, "": lambda y: y}[spec.activation]

        def call(x: Any, plus: Any = None) -> Any:
            y = convolve(x, w, b, spec.stride, spec.pad, 1, spec.groups)
            return finish(y if plus is None else y + plus)

        return call

    def _max_pool(self, x: Any) -> Any:
        pool = self.torch.nn.functional.max_pool2d
        return self._step(lambda x: pool(x, 3, 2, 1), x)

    def _classify(self, x: Any, w: Any, b: Any) -> Any:
        weights, bias, linear = self.torch.from_numpy(w), self.torch.from_numpy(b), self.torch.nn.functional.linear
        return self._step(lambda x: linear(x.mean((2, 3)), weights, bias), x)


def of_torch(torch: Any, name: str, batch: int, compiled: bool) -> dict[str, Contender]:
    """Fused by hand, frozen and optimized by torch.jit, and by torch.compile if `compiled`."""
    fused, plain = TorchBuilder(torch, batch, True), TorchBuilder(torch, batch, False)
    NETWORKS[name](fused)
    NETWORKS[name](plain)
    made = {"torch fused": calling(lambda: fused.run(fused.image))}
    if batch > 1:
        images = fused.image.split(1)
        made["torch fused by images"] = calling(lambda: torch.cat([fused.run(image) for image in images]))

    Network: Any = type("Network", (torch.nn.Module,), {"forward": lambda self, x: plain.run(x)})
    frozen = torch.jit.optimize_for_inference(torch.jit.freeze(torch.jit.trace(Network().eval(), plain.image)))
    made["torch.jit frozen"] = calling(lambda: frozen(plain.image))
    if compiled:
        compiled_network = torch.compile(Network().eval(), options={"freezing": True})
        made["torch.compile"] = calling(lambda: compiled_network(plain.image))
    return made


class OnnxBuilder(Builder):
    """Records a network as nodes of onnx, NCHW."""

    def __init__(self, batch: int) -> None:
        super().__init__(batch)
        self.nodes: list[with_onnx.Node] = []
        self.inputs: dict[str, Any] = {}
        self.weights: dict[str, Any] = {}

    def _node(self, operator: str, sources: list[str], **attributes: Any) -> str:
        name = f"v{len(self.nodes)}"
        self.nodes.append((operator, sources, [name], attributes))
        return name

    def _constant(self, array: Any) -> str:
        name = f"w{len(self.weights)}"
        self.weights[name] = array
        return name

    def _input(self, image: Any) -> Any:
        self.inputs["image"] = image
        return "image"

    def _conv(self, spec: Conv, x: Any, w: Any, b: Any, plus: Any) -> Any:
        y = self._node("Conv", [x, self._constant(w), self._constant(b)], **with_onnx.attributes_of(spec))
        if plus is not None:
            y = self._node("Add", [y, plus])
        if spec.activation == "relu6":
            y = self._node("Clip", [y, *(self._constant(np.array(limit, "float32")) for limit in (0, 6))])
        elif spec.activation:
            y = self._node("Relu", [y])
        return y

    def _max_pool(self, x: Any) -> Any:
        return self._node("MaxPool", [x], kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4)

    def _classify(self, x: Any, w: Any, b: Any) -> Any:
        flat = self._node("Flatten", [self._node("GlobalAveragePool", [x])])
        return self._node("Gemm", [flat, self._constant(w), self._constant(b)], transB=1)


def of_onnxruntime(name: str, batch: int, threads: int) -> Contender:
    """The network as one session."""
    builder = OnnxBuilder(batch)
    out = NETWORKS[name](builder)
    like = np.empty((batch, CLASSES), "float32")
    return with_onnx.session(builder.nodes, builder.inputs, builder.weights, {out: like}, threads)
