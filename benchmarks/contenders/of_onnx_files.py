"""The networks of the tests of ONNX at their real sizes: tedsl and onnxruntime on one model."""

from __future__ import annotations

import tempfile
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy

from benchmarks.case import Contender
from benchmarks.contenders import with_onnx
from benchmarks.contenders.of_networks import OnnxBuilder
from benchmarks.networks import CLASSES, NETWORKS

NAMES = ("resnet18", "resnet50", "mobilenet_v2", "squeezenet", "vgg11", "vgg16", "alexnet", "googlenet", "inception_v3", "bert")
FIRST = ("resnet18", "resnet50", "vgg11", "vgg16")  # which take at most the time of onnxruntime; the others 1.1 of it


def model_of(name: str) -> tuple[Any, list[Any]]:
    """A model, with random weights from a seed, and arrays of its inputs."""
    made: tuple[Any, list[Any]] = import_module("tests.graph.onnx.networks").network(name)
    return made


def quantized_model_of(name: str) -> tuple[Any, list[Any]]:
    """A network of `benchmarks.networks` that onnxruntime quantized, with scales for each channel, from one drawn image."""
    onnx, _ = with_onnx.onnx_or_none()
    quantization = import_module("onnxruntime.quantization")
    builder = OnnxBuilder(1)
    result = {NETWORKS[name](builder): numpy.empty((1, CLASSES), "float32")}
    with tempfile.TemporaryDirectory() as folder:
        before, after = [str(Path(folder) / file) for file in ("float.onnx", "int.onnx")]
        Path(before).write_bytes(with_onnx.model(builder.nodes, builder.inputs, builder.weights, result))
        quantization.quantize_static(before, after, _Images([builder.inputs]), per_channel=True)
        return onnx.load(after), list(builder.inputs.values())


class _Images:
    """What calibration reads, one mapping from inputs to arrays after the other."""

    def __init__(self, feeds: list[dict[str, Any]]) -> None:
        self._feeds = iter(feeds)

    def get_next(self) -> dict[str, Any] | None:
        return next(self._feeds, None)


def contenders(name: str, threads: int, quantized: bool = False) -> dict[str, Contender]:
    """The network compiled, and a session of onnxruntime."""
    from tedsl import graph

    proto, arrays = quantized_model_of(name) if quantized else model_of(name)
    network = graph.compile(graph.from_onnx(proto, None if quantized else {"batch": 1}))
    _, ort = with_onnx.onnx_or_none()
    options = ort.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
    session = ort.InferenceSession(proto.SerializeToString(), options, providers=["CPUExecutionProvider"])
    feeds = dict(zip([one.name for one in proto.graph.input], arrays))
    return {"tedsl": _kept(lambda: network(*arrays)), "onnxruntime": _kept(lambda: session.run(None, feeds)[0])}


def _kept(call: Any) -> Contender:
    last: list[Any] = [None]

    def run() -> None:
        last[0] = call()

    return Contender(run, lambda: last[0])
