"""Whole networks as graphs of tedsl, compiled to a kernel for each group of operators, with one memory plan."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.case import Contender
from benchmarks.networks import NETWORKS, Builder, Conv
from tedsl import graph
from tedsl.graph import Graph, Spec, Value, call, constant, ops


class GraphBuilder(Builder):
    """Makes a graph, NCHW. grouped: a convolution, its bias, sum and activation are one kernel, whatever passes do. at_once:
    the images that the graph takes, None for `batch`.
    """

    def __init__(self, batch: int, grouped: bool = True, seed: int = 0, at_once: int | None = None) -> None:
        super().__init__(batch, seed)
        self.grouped, self.at_once = grouped, at_once or batch
        self.image: Any = None
        self.inputs: list[Value] = []

    def _input(self, image: Any) -> Any:
        self.image = image
        self.inputs.append(Value("image", Spec((self.at_once, *image.shape[1:]))))
        return self.inputs[-1]

    def _conv(self, spec: Conv, x: Any, w: Any, b: Any, plus: Any) -> Any:
        operands = [x, constant(w, name="weight"), constant(b.reshape(-1, 1, 1), name="bias")]
        operands += [] if plus is None else [plus]
        return self._group(f"conv_{spec.kernel}x{spec.kernel}", lambda *values: _convolved(spec, *values), operands)

    def _max_pool(self, x: Any) -> Any:
        return ops.nn.pool2d(x, (3, 3), (2, 2), (1, 1), (1, 1, 1, 1), "max")

    def _classify(self, x: Any, w: Any, b: Any) -> Any:
        average = ops.reshape(ops.nn.global_pool(x, "avg"), (self.at_once, w.shape[1]))
        return ops.nn.dense(average, constant(w, name="weight"), constant(b, name="bias"))

    def _group(self, name: str, formula: Any, operands: list[Value]) -> Value:
        if not self.grouped:
            made: Value = formula(*operands)
            return made
        return call(graph.trace(formula, *[value.spec for value in operands], name=name), *operands).outputs[0]


def _convolved(spec: Conv, x: Value, w: Value, b: Value, plus: Value | None = None) -> Value:
    if spec.groups == spec.channels > 1:
        y = ops.nn.depthwise_conv2d_nchw(x, w, spec.stride, spec.pad, 1)
    else:
        y = ops.nn.conv2d(x, w, spec.stride, spec.pad, 1)
    y = ops.add(y, b)
    y = y if plus is None else ops.add(y, plus)
    if spec.activation == "relu6":
        y = ops.clip(y, 0.0, 6.0)
    elif spec.activation:
        y = ops.nn.relu(y)
    made: Value = y
    return made


def graph_of(name: str, batch: int = 1, grouped: bool = True, at_once: int | None = None) -> tuple[Graph, Any]:
    """The graph of a network, of `at_once` images, and the images that its reference takes."""
    builder = GraphBuilder(batch, grouped, at_once=at_once)
    out = NETWORKS[name](builder)
    return Graph(builder.inputs, [out], name.replace("-", "").lower()), builder.image


def of_graph(name: str, batch: int) -> Contender:
    """The network, compiled."""
    made, image = graph_of(name, batch)
    network = graph.compile(made)
    result = np.empty(tuple(network.outputs[0].shape), "float32")
    return Contender(lambda: network(image, out=result), lambda: result)


def by_images(name: str, batch: int) -> Contender:
    """The network for one image, compiled, and called for each: what a layer leaves stays in the caches for the next one."""
    made, images = graph_of(name, batch, at_once=1)
    network = graph.compile(made)
    result = np.empty((batch, *network.outputs[0].shape[1:]), "float32")
    pairs = [(images[at:at + 1], result[at:at + 1]) for at in range(batch)]

    def call() -> None:
        for image, out in pairs:
            network(image, out=out)

    return Contender(call, lambda: result)
