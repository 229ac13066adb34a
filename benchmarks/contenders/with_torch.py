"""torch (oneDNN, MKL) as a contender: results into given memory, weights prepacked, activations fused, channels last."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from benchmarks.case import Contender
from benchmarks.networks import Conv


@functools.cache
def torch_or_none(threads: int) -> Any:
    """The module torch, told to use so many threads and to record nothing; None where it is not installed."""
    try:
        import torch
    except ImportError:
        return None
    torch.set_num_threads(threads)
    torch.set_grad_enabled(False)
    return torch


def calling(function: Callable[[], Any], view: Callable[[Any], Any] | None = None) -> Contender:
    """A contender that returns a tensor, seen as numpy through `view`."""
    last: list[Any] = [None]

    def call() -> None:
        last[0] = function()

    def result() -> Any:
        return view(last[0]) if view is not None else last[0].numpy()

    return Contender(call, result)


def into(torch: Any, function: Callable[..., Any], arrays: Sequence[Any], like: Any) -> Contender:
    """`function(out, *tensors)`, which stores its result in `out`, of the shape and dtype of the array `like`."""
    out = torch.from_numpy(np.empty(like.shape, like.dtype))
    tensors = [torch.from_numpy(array) for array in arrays]
    return Contender(lambda: function(out, *tensors), out.numpy)


def returning(torch: Any, function: Callable[..., Any], arrays: Sequence[Any]) -> Contender:
    """`function(*tensors)`, which allocates its result."""
    tensors = [torch.from_numpy(array) for array in arrays]
    return calling(lambda: function(*tensors))


# --- convolutions and layers, weights prepacked ---------------------------------------------------------------------------

def convolutions(torch: Any, spec: Conv, x: Any, w: Any, b: Any) -> dict[str, Contender]:
    """The convolution of NCHW data `x`: prepacked and fused as compiled models call it, and eager channels last."""
    data, weights, bias = (torch.from_numpy(a) for a in (x, w, b))
    last = data.contiguous(memory_format=torch.channels_last)
    ones, strides, pads = [1, 1], [spec.stride] * 2, [spec.pad] * 2
    packed = torch.ops.mkldnn._reorder_convolution_weight(weights, pads, strides, ones, spec.groups, list(x.shape))
    attribute, scalars = {"relu": ("relu", []), "relu6": ("hardtanh", [0, 6]), "": ("none", [])}[spec.activation]
    fused = functools.partial(torch.ops.mkldnn._convolution_pointwise, last, packed, bias, pads, strides, ones, spec.groups,
                              attribute, scalars, "")
    eager = _eager(torch, spec, last, weights.contiguous(memory_format=torch.channels_last), bias)
    return {"torch fused": calling(fused, lambda y: y.contiguous().numpy()),
            "torch channels last": calling(eager, lambda y: y.contiguous().numpy())}


def convolution_nchw(torch: Any, spec: Conv, x: Any, w: Any, b: Any) -> Contender:
    """The convolution as torch does it by default: NCHW in and out."""
    return calling(_eager(torch, spec, *(torch.from_numpy(a) for a in (x, w, b))))


def _eager(torch: Any, spec: Conv, x: Any, w: Any, b: Any) -> Callable[[], Any]:
    finish = {"relu": torch.relu_, "relu6": lambda y: y.clamp_(0, 6), "": lambda y: y}[spec.activation]
    return lambda: finish(torch.nn.functional.conv2d(x, w, b, spec.stride, spec.pad, 1, spec.groups))


def layers(torch: Any, x: Any, w: Any, b: Any, activation: str = "relu") -> dict[str, Contender]:
    """x wᵀ + b with relu or nothing: prepacked and fused by oneDNN, prepacked by MKL, and eager into given memory."""
    data, weights, bias = (torch.from_numpy(a) for a in (x, w, b))
    out = torch.from_numpy(np.empty((x.shape[0], w.shape[0]), "float32"))
    finish = torch.relu_ if activation else lambda y: y
    made = {"torch": Contender(lambda: finish(torch.addmm(bias, data, weights.t(), out=out)), out.numpy)}
    packed, attribute = torch.ops.mkldnn._reorder_linear_weight(weights, x.shape[0]), activation or "none"
    made["torch fused"] = calling(lambda: torch.ops.mkldnn._linear_pointwise(data, packed, bias, attribute, [], ""))
    if torch.backends.mkl.is_available():
        by_mkl = torch.ops.mkl._mkl_reorder_linear_weight(weights, x.shape[0])
        made["torch MKL packed"] = calling(
            lambda: finish(torch.ops.mkl._mkl_linear(data, by_mkl, weights, bias, x.shape[0])))
    return made
