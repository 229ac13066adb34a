"""The networks of the tests of ONNX at their real sizes: tedsl and onnxruntime on one model."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from benchmarks.case import Contender
from benchmarks.contenders import with_onnx

NAMES = ("resnet18", "resnet50", "mobilenet_v2", "squeezenet", "vgg11", "vgg16", "alexnet", "googlenet", "inception_v3", "bert")
FIRST = ("resnet18", "resnet50", "vgg11", "vgg16")  # which take at most the time of onnxruntime; the others 1.1 of it


def model_of(name: str) -> tuple[Any, list[Any]]:
    """A model, with random weights from a seed, and arrays of its inputs."""
    made: tuple[Any, list[Any]] = import_module("tests.graph.onnx.networks").network(name)
    return made


def contenders(name: str, threads: int) -> dict[str, Contender]:
    """The network compiled, and a session of onnxruntime."""
    from tedsl import graph

    proto, arrays = model_of(name)
    network = graph.compile(graph.from_onnx(proto, {"batch": 1}))
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
