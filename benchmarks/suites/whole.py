"""Whole networks: the program of topi as one kernel, the compiled graph, torch and onnxruntime; models of ONNX."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

import tedsl
import topi
from benchmarks import networks
from benchmarks.case import Case, Contender, Goal, Maker, maker
from benchmarks.contenders import of_graphs, of_networks, of_onnx_files, with_onnx, with_torch
from benchmarks.limits import vector_lanes

LAYOUTS = ("NCHWc", "NHWC")
_STEPS = 6 / 128 / 20  # six steps: sums between two integers may go up or down, in each layer; 20 times that is allowed
DEEP = 50.0  # times the error of one sum: those of the layers add up


def network(name: str, batch: int, threads: int) -> Case:
    """A network on a batch of images."""
    contenders = {f"tedsl {layout}": _ours(name, batch, layout) for layout in LAYOUTS}
    contenders["tedsl graph"] = of_graphs.of_graph(name, batch)
    if batch > 1:
        contenders["tedsl graph by images"] = of_graphs.by_images(name, batch)
    torch = with_torch.torch_or_none(threads)
    if torch is not None:
        contenders |= of_networks.of_torch(torch, name, batch, compiled=os.environ.get("BENCHMARKS_COMPILE", "on") != "off")
    if with_onnx.onnx_or_none():
        contenders["onnxruntime"] = of_networks.of_onnxruntime(name, batch, threads)
    return Case("networks", contenders, lambda: networks.expected(name, batch), 1, networks.operations(name) * batch,
                factor=DEEP)


def _ours(name: str, batch: int, layout: str) -> Contender:
    program = networks.program(name, batch, layout, max(vector_lanes(), 8))
    kernel = tedsl.build(topi.schedules.schedule(program.out), program.arguments)
    result = np.empty((batch, networks.CLASSES), "float32")
    return Contender(lambda: kernel(*program.arrays, result), lambda: result)


def model(name: str, threads: int, quantized: bool = False) -> Case:
    """A model of ONNX on one image, beside onnxruntime, whose result is the reference; up to some steps of 8-bit integers."""
    contenders = of_onnx_files.contenders(name, threads, quantized)
    theirs = contenders["onnxruntime"]

    def expected() -> Any:
        theirs.call()
        return theirs.result() if theirs.result else None

    if quantized:
        return Case("networks", contenders, expected, precision=_STEPS)
    return Case("networks", contenders, expected, factor=DEEP, goal=Goal(1.0 if name in of_onnx_files.FIRST else 1 / 1.1))


def cases(threads: int) -> list[Maker]:
    """The cases of this suite."""
    made = [maker(f"{name}, batch {batch}", network, name, batch, threads) for name in networks.NETWORKS for batch in (1, 8)]
    if with_onnx.onnx_or_none():
        made += [maker(f"{name} of int8", model, name, threads, True) for name in networks.NETWORKS]
        made += [maker(f"ONNX {name}", model, name, threads) for name in of_onnx_files.NAMES]
    return made
