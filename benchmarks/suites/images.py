"""Operators on images beside convolutions: pools, batch norm, resizing, transposed and three-dimensional convolutions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import topi
from benchmarks import reference
from benchmarks.case import Case, Contender, Maker, maker
from benchmarks.contenders import ours, with_onnx, with_torch
from benchmarks.networks import in_layout
from benchmarks.suites.products import bytes_of, drawn, named

CUBIC = -0.75  # the parameter that torch has fixed


@dataclass(frozen=True)
class Pool:
    """A pooling of NCHW images of `shape`."""

    kind: str
    shape: tuple[int, int, int, int]
    kernel: int
    stride: int
    pad: int

    def __str__(self) -> str:
        return f"{self.kind}_pool {self.kernel}x{self.kernel} / {self.stride} {named(self.shape)}"


POOLS = (Pool("max", (1, 64, 112, 112), 3, 2, 1), Pool("max", (1, 128, 56, 56), 2, 2, 0),
         Pool("max", (1, 192, 28, 28), 3, 1, 1), Pool("max", (1, 64, 56, 56), 3, 1, 1),
         Pool("max", (1, 64, 56, 56), 5, 1, 2), Pool("avg", (1, 128, 56, 56), 2, 2, 0),
         Pool("avg", (1, 192, 28, 28), 3, 1, 1), Pool("avg", (1, 2048, 7, 7), 7, 7, 0))
RESIZES = (("nearest_neighbor", 2.0), ("linear", 2.0), ("linear", 0.5), ("cubic", 2.0))
PICTURE = (1, 64, 56, 56)


def pool(p: Pool, threads: int) -> Case:
    """max or avg over windows."""
    (x,) = drawn(p.shape)
    pads = [p.pad] * 4

    def formula(x: Any, layout: str = "NCHW") -> Any:
        return topi.nn.pool2d(x, [p.kernel] * 2, [p.stride] * 2, [1, 1], pads, p.kind, layout=layout)

    expected = reference.pool(x, p.kernel, p.stride, p.pad, p.kind)
    like = np.empty(expected.shape, "float32")
    contenders = _layouts(formula, x)
    torch = with_torch.torch_or_none(threads)
    if torch is not None:
        function = {"max": torch.nn.functional.max_pool2d, "avg": torch.nn.functional.avg_pool2d}[p.kind]
        last = torch.from_numpy(x).contiguous(memory_format=torch.channels_last)
        contenders["torch"] = with_torch.returning(torch, lambda x: function(x, p.kernel, p.stride, p.pad), [x])
        contenders["torch channels last"] = with_torch.calling(lambda: function(last, p.kernel, p.stride, p.pad),
                                                               lambda y: y.contiguous().numpy())
    if with_onnx.onnx_or_none():
        attributes = {"kernel_shape": [p.kernel] * 2, "strides": [p.stride] * 2, "pads": pads}
        extra = {"count_include_pad": 1} if p.kind == "avg" else {}
        operator = {"max": "MaxPool", "avg": "AveragePool"}[p.kind]
        contenders["onnxruntime"] = with_onnx.one(operator, [x], like, threads, **attributes, **extra)
    return Case("pool", contenders, lambda: expected, p.kernel**2, read=bytes_of(x), written=bytes_of(like))


def _layouts(formula: Callable[..., Any], x: Any) -> dict[str, Contender]:
    """A formula of images and a layout, with channels first and last."""
    return {"tedsl NCHW": ours.operator(formula, [x]),
            "tedsl NHWC": ours.operator(lambda x: formula(x, layout="NHWC"), [in_layout(x, "NHWC", 1)],
                                        lambda y: y.transpose(0, 3, 1, 2))}


def batch_norm(threads: int) -> Case:
    """batch_norm and relu for inference."""
    x, gamma, beta, mean, variance = drawn(PICTURE, *[PICTURE[1:2]] * 4)
    variance = np.abs(variance) + np.float32(0.5)
    arrays = [x, gamma, beta, mean, variance]
    contenders = {"tedsl": ours.operator(lambda *a: topi.nn.relu(topi.nn.batch_norm(*a)[0]), arrays)}
    torch = with_torch.torch_or_none(threads)
    if torch is not None:
        norm = torch.nn.functional.batch_norm
        contenders["torch"] = with_torch.returning(torch, lambda x, g, b, m, v: norm(x, m, v, g, b).relu_(), arrays)
    if with_onnx.onnx_or_none():
        weights = {"g": gamma, "b": beta, "m": mean, "v": variance}
        nodes: list[with_onnx.Node] = [("BatchNormalization", ["x", *weights], ["n"], {}), ("Relu", ["n"], ["y"], {})]
        contenders["onnxruntime"] = with_onnx.session(nodes, {"x": x}, weights, {"y": x}, threads)

    def expected() -> Any:
        g, b, m, v = (reference.wide(a)[:, None, None] for a in arrays[1:])
        return np.maximum((reference.wide(x) - m) / np.sqrt(v + 1e-5) * g + b, 0)

    return Case("image", contenders, expected, 4, read=bytes_of(x), written=bytes_of(x))


def resize(method: str, scale: float, threads: int) -> Case:
    """An image of another size; nearest: the place rounded down, else between the centres of pixels."""
    (x,) = drawn(PICTURE)
    size = [int(n * scale) for n in PICTURE[2:]]
    like = np.empty((*PICTURE[:2], *size), "float32")
    mode, rounding = ("asymmetric", "floor") if method == "nearest_neighbor" else ("half_pixel", "")
    contenders = _layouts(lambda x, layout="NCHW": topi.image.resize2d(
        x, [0.0] * 4, size, layout, method, mode, rounding, bicubic_alpha=CUBIC), x)
    torch = with_torch.torch_or_none(threads)
    if torch is not None:
        name = {"nearest_neighbor": "nearest", "linear": "bilinear", "cubic": "bicubic"}[method]
        contenders |= _resize_of_torch(torch, x, size, name)
    if with_onnx.onnx_or_none():
        name = {"nearest_neighbor": "nearest", "linear": "linear", "cubic": "cubic"}[method]
        scales = {"roi": np.zeros(0, "float32"), "scales": np.array([1, 1, scale, scale], "float32")}
        contenders["onnxruntime"] = with_onnx.one(
            "Resize", [x], like, threads, scales, mode=name, coordinate_transformation_mode=mode, cubic_coeff_a=CUBIC,
            nearest_mode="floor")
    return Case("image", contenders, lambda: reference.resize(x, size, method, CUBIC), 16, read=bytes_of(x),
                written=bytes_of(like))


def _resize_of_torch(torch: Any, x: Any, size: list[int], name: str) -> dict[str, Contender]:
    call = torch.nn.functional.interpolate
    last = torch.from_numpy(x).contiguous(memory_format=torch.channels_last)
    return {"torch": with_torch.returning(torch, lambda x: call(x, size, mode=name), [x]),
            "torch channels last": with_torch.calling(lambda: call(last, size, mode=name), lambda y: y.contiguous().numpy())}


def transposed(threads: int) -> Case:
    """A transposed convolution, 4 x 4 with stride 2, that doubles an image, and relu."""
    x, w = drawn((1, 64, 28, 28), (64, 32, 4, 4))
    like = np.empty((1, 32, 56, 56), "float32")
    contenders = {"tedsl": ours.operator(lambda x, w: topi.nn.relu(topi.nn.conv2d_transpose_nchw(
        x, w, (2, 2), (1, 1), "float32", (0, 0))), [x, w])}
    torch = with_torch.torch_or_none(threads)
    if torch is not None:
        convolve, weights = torch.nn.functional.conv_transpose2d, torch.from_numpy(w)
        last, turned = (t.contiguous(memory_format=torch.channels_last) for t in (torch.from_numpy(x), weights))
        contenders["torch"] = with_torch.returning(torch, lambda x: convolve(x, weights, stride=2, padding=1).relu_(), [x])
        contenders["torch channels last"] = with_torch.calling(
            lambda: convolve(last, turned, stride=2, padding=1).relu_(), lambda y: y.contiguous().numpy())
    if with_onnx.onnx_or_none():
        nodes: list[with_onnx.Node] = [
            ("ConvTranspose", ["x", "w"], ["c"], {"kernel_shape": [4, 4], "strides": [2, 2], "pads": [1] * 4}),
            ("Relu", ["c"], ["y"], {})]
        contenders["onnxruntime"] = with_onnx.session(nodes, {"x": x}, {"w": w}, {"y": like}, threads)
    return Case("image", contenders, lambda: np.maximum(reference.transposed_convolution(x, w, 2, 1), 0), 64 * 4,
                2.0 * x.size * w[0].size, bytes_of(x, w), bytes_of(like))


def conv3d(layout: str, threads: int) -> Case:
    """A 3 x 3 x 3 convolution of a volume, and relu."""
    x, w, b = drawn((1, 32, 16, 28, 28), (32, 32, 3, 3, 3), (32,))
    like = np.empty(x.shape, "float32")
    if layout == "NDHWC":
        data, kernel = np.ascontiguousarray(x.transpose(0, 2, 3, 4, 1)), np.ascontiguousarray(w.transpose(2, 3, 4, 1, 0))
        contender = ours.operator(lambda x, w, b: topi.nn.relu(topi.add(topi.nn.conv3d_ndhwc(x, w, 1, 1, 1), b)),
                                  [data, kernel, b], lambda y: y.transpose(0, 4, 1, 2, 3))
    else:
        contender = ours.operator(lambda x, w, b: topi.nn.relu(topi.add(topi.nn.conv3d_ncdhw(x, w, 1, 1, 1), b)),
                                  [x, w, b.reshape(-1, 1, 1, 1)])
    contenders = {f"tedsl {layout}": contender}
    torch = with_torch.torch_or_none(threads)
    if torch is not None:
        contenders |= _conv3d_of_torch(torch, x, w, b)
    if with_onnx.onnx_or_none():
        nodes: list[with_onnx.Node] = [("Conv", ["x", "w", "b"], ["c"], {"kernel_shape": [3] * 3, "pads": [1] * 6}),
                                       ("Relu", ["c"], ["y"], {})]
        contenders["onnxruntime"] = with_onnx.session(nodes, {"x": x}, {"w": w, "b": b}, {"y": like}, threads)
    return Case("image", contenders, lambda: reference.convolution(x, w, b, 1, 1, activation="relu"), 32 * 27,
                2.0 * x.size * w[0].size, bytes_of(x, w), bytes_of(like))


def _conv3d_of_torch(torch: Any, x: Any, w: Any, b: Any) -> dict[str, Contender]:
    tensors = [torch.from_numpy(a) for a in (x, w)]
    bias, convolve = torch.from_numpy(b), torch.nn.functional.conv3d
    data, kernel = (t.contiguous(memory_format=torch.channels_last_3d) for t in tensors)
    return {"torch": with_torch.calling(lambda: convolve(*tensors, bias, 1, 1).relu_()),
            "torch channels last": with_torch.calling(lambda: convolve(data, kernel, bias, 1, 1).relu_(),
                                                      lambda y: y.contiguous().numpy())}


def cases(threads: int) -> list[Maker]:
    """The cases of this suite."""
    made = [maker(str(p), pool, p, threads) for p in POOLS]
    made.append(maker(f"batch_norm + relu {named(PICTURE)}", batch_norm, threads))
    made += [maker(f"resize {method} x{scale:g} {named(PICTURE)}", resize, method, scale, threads) for method, scale in RESIZES]
    made.append(maker("conv2d_transpose 64->32 4x4 28² stride 2", transposed, threads))
    return made + [maker(f"conv3d 32->32 3x3x3 16x28x28 {layout}", conv3d, layout, threads) for layout in ("NCDHW", "NDHWC")]


