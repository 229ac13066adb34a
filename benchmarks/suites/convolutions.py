"""Convolutions: of ResNet-18 in any layout, as networks compute them and in NCHW, depthwise, pointwise, 3x3 by winograd."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np

import tedsl
import topi
from benchmarks import networks, reference
from benchmarks.case import Case, Contender, Goal, Maker, maker
from benchmarks.contenders import ours, with_onnx, with_torch
from benchmarks.goals import AT_LIMIT
from benchmarks.limits import vector_lanes
from benchmarks.networks import Conv
from benchmarks.suites.products import bytes_of
from tedsl import te
from tedsl.graph.passes.winograd import tiles_for

WINOGRAD = tuple(Conv(channels, size, channels, 3, 1, activation="relu") for channels, size in
                 ((64, 56), (128, 28), (256, 14), (512, 7)))
WINOGRAD_ERROR = 12  # times more than that of direct sums, for tiles of 4 x 4


def arrays_of(spec: Conv, batch: int = 1) -> tuple[Any, Any, Any]:
    """Images in NCHW, weights in OIHW and biases for a convolution."""
    rng = np.random.default_rng(0)
    x = rng.standard_normal((batch, spec.channels, spec.size, spec.size), dtype="float32")
    w = rng.standard_normal((spec.filters, spec.channels // spec.groups, spec.kernel, spec.kernel), dtype="float32")
    return x, w, rng.standard_normal(spec.filters, dtype="float32")


def in_layout(spec: Conv, layout: str, x: Any, w: Any, b: Any) -> Contender:
    """Our convolution with images and weights prepared for a layout, in arrays of tedsl, as those of the others are theirs; in
    NCHW all compute with what they are given.
    """
    block = max(vector_lanes(), 8)
    data = networks.in_layout(x, layout, block)
    kernel = np.ascontiguousarray(networks.kernel_in_layout(w, layout, spec, block))
    bias = np.ascontiguousarray(networks.per_channel(b, layout, block))
    if layout != "NCHW":
        data, kernel, bias = (tedsl.nd.array(a) for a in (data, kernel, bias))
    D, W, B = (te.placeholder(a.shape, name=name) for a, name in ((data, "data"), (kernel, "kernel"), (bias, "bias")))
    out = networks.activated(topi.add(networks.convolved(spec, D, W, layout), B), spec.activation)
    return ours.scheduled(out, [D, W, B], [data, kernel, bias], lambda y: networks.back_to_nchw(y, layout),
                          own=layout != "NCHW")


def result_like(spec: Conv, batch: int = 1) -> Any:
    """An array like the result in NCHW."""
    return np.empty((batch, spec.filters, spec.out, spec.out), "float32")


def _case(row: str, spec: Conv, contenders: dict[str, Contender], x: Any, w: Any, b: Any, times: int = 1,
          factor: float = 1.0) -> Case:
    return Case(row, contenders,
                lambda: reference.convolution(x, w, b, spec.stride, spec.pad, spec.groups, spec.activation),
                spec.channels // spec.groups * spec.kernel**2, spec.needed_operations * x.shape[0], bytes_of(x, w, b),
                bytes_of(result_like(spec, x.shape[0])), factor, times=times)


def any_layout(row: str, spec: Conv, times: int, threads: int) -> Case:
    """Images and weights in the layout that suits each library best."""
    x, w, b = arrays_of(spec)
    contenders = {f"tedsl {layout}": in_layout(spec, layout, x, w, b) for layout in ("NCHWc", "NHWC")}
    return _case(row, spec, contenders | _others(spec, x, w, b, threads), x, w, b, times)


def _others(spec: Conv, x: Any, w: Any, b: Any, threads: int) -> dict[str, Contender]:
    """The convolution by other libraries, each in the layout that suits it best."""
    contenders: dict[str, Contender] = {}
    torch = with_torch.torch_or_none(threads)
    if torch is not None:
        contenders |= with_torch.convolutions(torch, spec, x, w, b)
    if with_onnx.onnx_or_none():
        like, block = result_like(spec), with_onnx.block_of_channels()
        blocked = with_onnx.blocked_convolution(spec, x, w, b, like, threads, block)
        contenders["onnxruntime"] = blocked or with_onnx.convolution(spec, x, w, b, like, threads)
    return contenders


def chosen(row: str, spec: Conv, times: int, threads: int) -> Case:
    """The convolution as networks compute it: by winograd where its model says that it takes less time, or direct."""
    size = tiles_for((1, spec.size, spec.size), spec.channels, spec.filters) if (spec.kernel, spec.stride) == (3, 1) else None
    if size is None:
        return any_layout(row, spec, times, threads)
    x, w, b = arrays_of(spec)
    contenders = {f"tedsl winograd {size}x{size}": _by_tiles(size, x, w, b)} | _others(spec, x, w, b, threads)
    made = _case(row, spec, contenders, x, w, b, times, WINOGRAD_ERROR)
    return replace(made, operations=_operations_by_tiles(spec, size))


def nhwc(spec: Conv, times: int, threads: int) -> Case:
    """Channels last in and out; the others pack the weights before."""
    x, w, b = arrays_of(spec)
    contenders = {"tedsl": in_layout(spec, "NHWC", x, w, b)}
    torch = with_torch.torch_or_none(threads)
    if torch is not None:
        contenders |= with_torch.convolutions(torch, spec, x, w, b)
    return _case("conv", spec, contenders, x, w, b, times)


def nchw(spec: Conv, times: int, threads: int) -> Case:
    """NCHW in and out, OIHW weights: what is packed is packed in the call, but by onnxruntime, whose weights are constants."""
    x, w, b = arrays_of(spec)
    contenders = {"tedsl": in_layout(spec, "NCHW", x, w, b)}
    torch = with_torch.torch_or_none(threads)
    if torch is not None:
        contenders["torch"] = with_torch.convolution_nchw(torch, spec, x, w, b)
    if with_onnx.onnx_or_none():
        contenders["onnxruntime"] = with_onnx.convolution(spec, x, w, b, result_like(spec), threads)
    return replace(_case("conv nchw", spec, contenders, x, w, b, times), beside=("onnxruntime",))


def winograd(spec: Conv, threads: int) -> Case:
    """A 3 x 3 convolution whose weights were prepared before, by the tiles that the model of networks chooses, or direct."""
    x, w, b = arrays_of(spec)
    size = tiles_for((1, spec.size, spec.size), spec.channels, spec.filters)
    tried = size or 2
    by_tiles, direct = _by_tiles(tried, x, w, b), in_layout(spec, "NCHWc", x, w, b)
    contenders = {"tedsl": by_tiles, "direct": direct} if size else {"tedsl direct": direct, "by tiles": by_tiles}
    torch = with_torch.torch_or_none(threads)
    if torch is not None:
        contenders |= with_torch.convolutions(torch, spec, x, w, b)
    made = _case("winograd", spec, contenders, x, w, b, factor=WINOGRAD_ERROR)
    if size is None:
        return replace(made, goal=Goal(1.0, AT_LIMIT, either=True))
    return replace(made, operations=_operations_by_tiles(spec, size))


def _by_tiles(size: int, x: Any, w: Any, b: Any) -> Contender:
    """A 3 x 3 convolution and relu by tiles of `size` x `size`, whose weights were transformed before."""
    u = ours.computed(lambda w: topi.nn.conv2d_winograd_weight_transform(w, size), w)

    def formula(x: Any, u: Any, b: Any) -> Any:
        y = topi.nn.conv2d_winograd_nchw(x, u, 1, 1, 1, pre_computed=True, tile_size=size)
        return topi.nn.relu(topi.add(y, b))

    return ours.operator(formula, [x, u, b.reshape(-1, 1, 1)])


def _operations_by_tiles(spec: Conv, size: int) -> float:
    return spec.operations * (size + 2) ** 2 / (size * size * 9)


# --- the shapes of networks -----------------------------------------------------------------------------------------------

@cache
def resnet18() -> Counter[Conv]:
    """The convolutions of ResNet-18, each with relu."""
    return _fused(networks.convolutions("ResNet-18"), "relu")


@cache
def depthwise() -> Counter[Conv]:
    """The depthwise convolutions of MobileNet-V2."""
    every = networks.convolutions("MobileNet-V2")
    return Counter({spec: times for spec, times in every.items() if spec.groups > 1})


@cache
def pointwise() -> Counter[Conv]:
    """The pointwise convolutions of ResNet-50 and MobileNet-V2, with the activations that they have there."""
    every = networks.convolutions("ResNet-50") + networks.convolutions("MobileNet-V2")
    return Counter({spec: times for spec, times in every.items() if spec.kernel == 1})


def _fused(specs: Counter[Conv], activation: str) -> Counter[Conv]:
    """The convolutions with another activation, those that become equal counted together."""
    counted: Counter[Conv] = Counter()
    for spec, times in specs.items():
        counted[replace(spec, activation=activation)] += times
    return counted


def cases(threads: int) -> list[Maker]:
    """The cases of this suite."""
    made = [maker(f"{spec} {spec.activation}", any_layout, "conv", spec, times, threads) for spec, times in resnet18().items()]
    made += [maker(f"{spec} {spec.activation} chosen", chosen, "conv chosen", spec, times, threads)
             for spec, times in resnet18().items()]
    made += [maker(f"{spec} {spec.activation} NCHW", nchw, spec, times, threads) for spec, times in resnet18().items()]
    for row, specs in (("depthwise", depthwise()), ("pointwise", pointwise())):
        made += [maker(f"{spec} {spec.activation}", any_layout, row, spec, times, threads) for spec, times in specs.items()]
    return made + [maker(f"winograd {spec}", winograd, spec, threads) for spec in WINOGRAD]
