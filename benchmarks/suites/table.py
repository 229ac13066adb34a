"""The suites by name."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module

from benchmarks.case import Maker


@dataclass(frozen=True)
class Suite:
    """A module of `benchmarks.suites` with a function `cases`. by_default: runs where no suite is named."""

    title: str
    module: str
    by_default: bool = True

    def cases(self, threads: int, count: int, seed: int) -> list[Maker]:
        """The cases of the suite. count, seed: of shapes that are drawn."""
        make = import_module(f"benchmarks.suites.{self.module}").cases
        made: list[Maker] = make(threads, count, seed) if self.module == "drawn" else make(threads)
        return made


SUITES: dict[str, Suite] = {
    "products": Suite("matmul, dense, batch_matmul, attention", "products"),
    "convolutions": Suite("of ResNet-18 in any layout, as chosen, in NCHW, depthwise, pointwise, winograd", "convolutions"),
    "elementwise": Suite("formulas of each element, 16 M and 100 k", "elementwise"),
    "networks": Suite("ResNet-18, ResNet-50, MobileNet-V2, batch 1 and 8; models of ONNX", "whole"),
    "images": Suite("pools, batch_norm, resizes, transposed and 3-d convolutions", "images"),
    "rows": Suite("softmax, layer_norm, reductions along each axis, transposes", "rows"),
    "gradients": Suite("of ResNet-18's convolutions, products, cross entropy, layer_norm, max_pool", "gradients"),
    "training": Suite("steps of LeNet and ResNet-18 with tedsl.nn", "training"),
    "ordering": Suite("cumsum, sort, topk, unique, scatter, gather, one_hot, embedding", "ordering"),
    "operators": Suite("searches, quotients, logarithms, samples of images, norms of groups, a recurrence", "operators"),
    "low_precision": Suite("int8, bfloat16, float16", "low_precision"),
    "builds": Suite("schedule, lower and build, beside numba", "builds"),
    "random": Suite("shapes drawn at random: --count, --seed", "drawn", by_default=False),
    "calls": Suite("the overhead of calls and of parallel regions", "calls"),
}
