"""Products of 8-bit integers, bfloat16 and float16."""

from __future__ import annotations

from typing import Any

import numpy as np

import topi
from benchmarks import reference
from benchmarks.case import Case, Contender, Maker, maker
from benchmarks.contenders import ours, with_onnx, with_torch
from benchmarks.networks import Conv, back_to_nchw, in_layout, kernel_in_layout
from benchmarks.suites.products import drawn, packed_layer
from tedsl import te

SIZE = 1024
LAYER = Conv(64, 56, 64, 3, 1)
FIRST = Conv(3, 224, 64, 7, 2)  # its channels fill no group of the products that instructions add up
BFLOAT16, FLOAT16 = 2.0**-8, 2.0**-11  # half a unit in the last place of the result


def _integers(*shapes: tuple[int, ...]) -> list[Any]:
    """A uint8 array, then an int8 array."""
    rng = np.random.default_rng(0)
    return [rng.integers(0, 256, shapes[0], "uint8"), rng.integers(-128, 128, shapes[1], "int8")]


def _of_bytes(x: te.Tensor, w: te.Tensor) -> te.Tensor:
    return topi.nn.dense(x, w, out_dtype="int32")


def int8_matmul(threads: int) -> Case:
    """x wᵀ of uint8 and int8 in int32."""
    x, w = _integers((SIZE, SIZE), (SIZE, SIZE))
    contenders = {"tedsl": ours.operator(_of_bytes, [x, w]), **packed_layer(_of_bytes, x, w)}
    torch = with_torch.torch_or_none(threads)
    if torch is not None:
        contenders["torch prepacked"] = _int8_layer_of_torch(torch, x, w)
    if with_onnx.onnx_or_none():
        contenders["onnxruntime"] = with_onnx.one("MatMulInteger", [x], np.empty((SIZE, SIZE), "int32"), threads, {"w": w.T})
    return Case("low precision", contenders, lambda: x.astype("int64") @ w.T.astype("int64"), 0)


def _int8_layer_of_torch(torch: Any, x: Any, w: Any) -> Contender:
    """oneDNN's, with a result in float32, which holds these sums exactly."""
    data, packed = torch.from_numpy(x), torch.ops.onednn.qlinear_prepack(torch.from_numpy(w), list(x.shape))
    scale, zero = torch.ones(len(w)), torch.zeros(len(w), dtype=torch.int64)
    return with_torch.calling(lambda: torch.ops.onednn.qlinear_pointwise(
        data, 1.0, 0, packed, scale, zero, None, 1.0, 0, torch.float32, "none", [], ""))


def bfloat16_matmul(threads: int) -> Case:
    """x wᵀ of bfloat16, summed in float32."""
    import ml_dtypes

    x, w = (a.astype(ml_dtypes.bfloat16) for a in drawn((SIZE, SIZE), (SIZE, SIZE)))
    contenders = {"tedsl": ours.operator(topi.nn.dense, [x, w]), **packed_layer(topi.nn.dense, x, w)}
    torch = with_torch.torch_or_none(threads)
    if torch is not None:
        data, weights = (torch.from_numpy(a.view("int16")).view(torch.bfloat16) for a in (x, w))
        packed = torch.ops.mkldnn._reorder_linear_weight(weights, SIZE)
        contenders["torch prepacked"] = with_torch.calling(
            lambda: torch.ops.mkldnn._linear_pointwise(data, packed, None, "none", [], ""), lambda y: y.float().numpy())
    return Case("low precision", contenders, lambda: reference.wide(x) @ reference.wide(w).T, 1, precision=BFLOAT16)


def float16_matmul(size: int, threads: int) -> Case:
    """x w of float16, summed in float32."""
    x, w = (a.astype("float16") for a in drawn((size, size), (size, size)))
    contenders = {"tedsl": ours.operator(topi.matmul, [x, w])}
    torch = with_torch.torch_or_none(threads)
    if torch is not None:
        contenders["torch"] = with_torch.returning(torch, torch.matmul, [x, w])
    return Case("low precision", contenders, lambda: reference.wide(x) @ reference.wide(w), 1, precision=FLOAT16)


def int8_convolution(threads: int, spec: Conv, layout: str) -> Case:
    """A convolution of uint8 and int8 in int32."""
    x, w = _integers((1, spec.channels, spec.size, spec.size), (spec.filters, spec.channels, spec.kernel, spec.kernel))
    data, kernel = in_layout(x, layout, 1), np.ascontiguousarray(kernel_in_layout(w, layout, spec, 1))
    contenders = {"tedsl": ours.operator(lambda x, w: topi.nn.conv2d(x, w, spec.stride, spec.pad, 1, layout, "int32"),
                                         [data, kernel], lambda y: back_to_nchw(y, layout))}
    torch = with_torch.torch_or_none(threads)
    if torch is not None:
        contenders["torch prepacked"] = _int8_convolution_of_torch(torch, spec, x, w, layout)
    return Case("low precision", contenders,
                lambda: reference.convolution(x, w, None, spec.stride, spec.pad).astype("int64"), 0)


def _int8_convolution_of_torch(torch: Any, spec: Conv, x: Any, w: Any, layout: str) -> Contender:
    """oneDNN's, which has channels last: of data in NCHW, and for such a result, it copies both."""
    order = torch.channels_last if layout == "NHWC" else torch.contiguous_format
    data = torch.from_numpy(x).contiguous(memory_format=order)
    scale, zero, ones = torch.ones(spec.filters), torch.zeros(spec.filters, dtype=torch.int64), [1, 1]
    step, pad = [spec.stride] * 2, [spec.pad] * 2
    packed = torch.ops.onednn.qconv_prepack(torch.from_numpy(w), scale, 1.0, 0, step, pad, ones, 1, list(x.shape))
    return with_torch.calling(
        lambda: torch.ops.onednn.qconv2d_pointwise(data, 1.0, 0, packed, scale, zero, None, step, pad, ones, 1, 1.0, 0,
                                                   torch.float32, "none", [], "").contiguous(memory_format=order),
        lambda y: y.contiguous().numpy())


def cases(threads: int) -> list[Maker]:
    """The cases of this suite."""
    return [maker(f"matmul {SIZE} u8 i8 -> i32", int8_matmul, threads),
            maker(f"matmul {SIZE} bf16", bfloat16_matmul, threads),
            *(maker(f"matmul {size} float16", float16_matmul, size, threads) for size in (256, 512)),
            *(maker(f"{spec}{'' if layout == 'NHWC' else ' nchw'} u8 i8 -> i32", int8_convolution, threads, spec, layout)
              for spec in (LAYER, FIRST) for layout in ("NHWC", "NCHW"))]
