"""Resizing and sampling of images.

A resized dimension is a sum of a few elements of the data with weights; places and weights are computed at import, dimension by
dimension, as the definition of the operator Resize says.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy

from tedsl.graph.onnx.call import Call
from tedsl.graph.onnx.operators.elementwise import cast, number
from tedsl.graph.onnx.refusal import Unsupported
from tedsl.graph.trace import ops
from tedsl.graph.value import Value, constant
from tedsl.record import record

_NEAREST: dict[str, Callable[[Any], Any]] = {
    "round_prefer_floor": lambda x: numpy.ceil(x - 0.5), "round_prefer_ceil": lambda x: numpy.floor(x + 0.5),
    "floor": numpy.floor, "ceil": numpy.ceil,
}


@record
class Axis:
    """A dimension to resize: its extents, the factor between them, the part of the data (for tf_crop_and_resize).

    Extents are symbolic only where they are the same.
    """

    extent: Any
    result: Any
    scale: float
    part: tuple[float, float]


def resize(call: Call) -> Any:
    x, shape = call[0], call[0].shape
    axes = tuple(axis % len(shape) for axis in call.attribute("axes", range(len(shape))))
    made, outside = x, numpy.zeros((), bool)
    crop = call.attribute("coordinate_transformation_mode") == "tf_crop_and_resize"
    for axis, info in zip(axes, _axes(call, shape, axes)):
        if not isinstance(info.extent, int) or (info.extent == info.result and info.scale == 1 and not crop):
            continue
        places = _places(call, info)
        if crop:
            beyond = (places < 0) | (places > info.extent - 1)
            outside = outside | beyond.reshape([-1 if d == axis else 1 for d in range(len(shape))])
        made = _resized(call, made, axis, info, places)
    if outside.any():
        made = ops.where(constant(outside), number(call.attribute("extrapolation_value", 0.0), made), made)
    return cast(made, str(x.dtype))


def _axes(call: Call, shape: tuple[Any, ...], axes: tuple[int, ...]) -> list[Axis]:
    roi = call.array(1).reshape(-1).tolist() if call.opset >= 11 and call.get(1) is not None and call.array(1).size else []
    parts = list(zip(roi[:len(axes)], roi[len(axes):])) or [(0.0, 1.0)] * len(axes)
    extents = [shape[axis] for axis in axes]
    given = call.get(2 if call.opset >= 11 else 1)
    if call.operator == "Upsample" and call.opset < 9:
        scales = list(call.attribute("scales"))
    elif given is not None and given.shape != (0,):
        scales = call.array(2 if call.opset >= 11 else 1).astype(float).tolist()
    else:
        return [Axis(n, m, scale, part) for n, m, scale, part in zip(extents, *_sizes(call, extents), parts)]
    crop = call.attribute("coordinate_transformation_mode") == "tf_crop_and_resize"
    return [_scaled(extent, (part[1] - part[0]) if crop else 1, scale, part)
            for extent, scale, part in zip(extents, scales, parts)]


def _scaled(extent: Any, share: float, scale: float, part: tuple[float, float]) -> Axis:
    if scale == 1 and share == 1:
        return Axis(extent, extent, 1.0, part)
    if not isinstance(extent, int):
        raise Unsupported(f"resizing of a symbolic extent, {extent}")
    return Axis(extent, math.floor(extent * share * scale), scale, part)


def _sizes(call: Call, extents: list[Any]) -> tuple[list[Any], list[float]]:
    wanted = list(call.extents(3))
    policy = call.attribute("keep_aspect_ratio_policy", "stretch")
    symbolic = [extent for size, extent in zip(wanted, extents) if not isinstance(extent, int) and size is not extent]
    if symbolic or (policy != "stretch" and not all(isinstance(extent, int) for extent in extents)):
        raise Unsupported(f"resizing of symbolic extents, {extents}")
    factors = [1.0 if size is extent else size / extent for size, extent in zip(wanted, extents)]
    if policy != "stretch":
        factor = min(factors) if policy == "not_larger" else max(factors)
        factors = [factor] * len(extents)
        wanted = [math.floor(extent * factor + 0.5) for extent in extents]
    return wanted, factors


def _places(call: Call, axis: Axis) -> Any:
    """The places in the data of the elements of the result, between elements."""
    mode = call.attribute("coordinate_transformation_mode", "half_pixel" if call.opset >= 11 else "asymmetric")
    i, n, out = numpy.arange(axis.result, dtype=float), axis.extent, axis.scale * axis.extent
    if mode == "align_corners":
        return i * 0 if axis.result == 1 else i * (n - 1) / (out - 1)
    if mode == "asymmetric":
        return i / axis.scale
    if mode == "tf_crop_and_resize":
        begin, end = axis.part
        if axis.result == 1:
            return numpy.full(1, 0.5 * (begin + end) * (n - 1))
        return begin * (n - 1) + i * (end - begin) * (n - 1) / (axis.result - 1)
    if mode == "pytorch_half_pixel" and axis.result == 1:
        return i - 0.5
    if mode == "half_pixel_symmetric":
        adjustment = axis.result / out
        return n / 2 * (1 - adjustment) + (i + 0.5) / axis.scale - 0.5
    if mode in ("half_pixel", "pytorch_half_pixel"):
        return (i + 0.5) / axis.scale - 0.5
    if mode == "tf_half_pixel_for_nn":
        return (i + 0.5) / axis.scale
    raise Unsupported(f"coordinate_transformation_mode {mode!r}")


def _resized(call: Call, x: Value, axis: int, info: Axis, places: Any) -> Any:
    mode, last = call.attribute("mode", "nearest"), info.extent - 1
    if mode == "nearest":
        rounding = call.attribute("nearest_mode", "round_prefer_floor" if call.opset >= 11 else "floor")
        near = numpy.clip(_NEAREST[rounding](places), 0, last).astype("int32")
        return ops.take(x, near, axis, mode="fast")
    taps, weights = _taps(call, mode, info, places)
    if call.attribute("exclude_outside", 0):
        weights = numpy.where((taps < 0) | (taps > last), 0, weights)
    weights = weights / weights.sum(0)
    wide = cast(x, "float32" if x.dtype.bits < 64 or not x.dtype.is_float else "float64")
    made: Value | None = None
    for places_of, weight in zip(numpy.clip(taps, 0, last).astype("int32"), weights):
        shape = [-1 if d == axis else 1 for d in range(len(x.shape))]
        factor = constant(weight.reshape(shape).astype(str(wide.dtype)))
        term = ops.multiply(ops.take(wide, places_of, axis, mode="fast"), factor)
        made = term if made is None else ops.add(made, term)
    assert made is not None
    return made


def _taps(call: Call, mode: str, info: Axis, places: Any) -> tuple[Any, Any]:
    """The elements that each result is a sum of, and their weights: (taps, results) each."""
    reach = 1 if mode in ("linear", "bilinear") else 2
    stretch = max(1.0, 1 / info.scale) if call.attribute("antialias", 0) else 1.0
    width = math.ceil(reach * stretch)
    taps = numpy.floor(places)[None, :] + numpy.arange(1 - width, width + 1)[:, None]
    distance = numpy.abs(taps - places[None, :]) / stretch
    if reach == 1:
        return taps, numpy.maximum(1 - distance, 0)
    a = call.attribute("cubic_coeff_a", -0.75)
    near = ((a + 2) * distance - (a + 3)) * distance ** 2 + 1
    far = ((a * distance - 5 * a) * distance + 8 * a) * distance - 4 * a
    return taps, numpy.where(distance <= 1, near, numpy.where(distance < 2, far, 0))


def grid_sample(call: Call) -> Any:
    x, grid = call[0], call[1]
    rank = len(x.shape) - 2
    if rank not in (2, 3):
        raise Unsupported(f"sampling in {rank} dimensions")
    method = {"linear": "bilinear", "cubic": "bicubic"}.get(call.attribute("mode", "linear"), call.attribute("mode", "linear"))
    places = ops.transpose(grid, (0, rank + 1, *range(1, rank + 1)))
    return ops.image.grid_sample(x, places, method, "NCHW" if rank == 2 else "NCDHW", call.attribute("padding_mode", "zeros"),
                                 bool(call.attribute("align_corners", 0)))


def column_to_image(call: Call) -> Any:
    """The sums of the columns that fall on each pixel."""
    x, block = call[0], [int(extent) for extent in call.extents(2)]
    image, rank = [int(extent) for extent in call.extents(1)], len(block)
    n, rows, columns = call.static_shape(0)
    strides, dilation = call.attribute("strides", (1,) * rank), call.attribute("dilations", (1,) * rank)
    pads = call.attribute("pads", (0,) * (2 * rank))
    padded = [image[d] + pads[d] + pads[rank + d] for d in range(rank)]
    counts = [(padded[d] - dilation[d] * (block[d] - 1) - 1) // strides[d] + 1 for d in range(rank)]
    taps, windows = numpy.indices(block).reshape(rank, -1, 1), numpy.indices(counts).reshape(rank, 1, -1)
    places = taps * numpy.reshape(dilation, (rank, 1, 1)) + windows * numpy.reshape(strides, (rank, 1, 1))
    channels = rows // math.prod(block)
    parts = ops.transpose(ops.reshape(x, (n, channels, math.prod(block), columns)), (2, 3, 0, 1))
    zeros = ops.full((*padded, n, channels), str(x.dtype), 0)
    made = ops.transpose(ops.scatter_nd(zeros, constant(places), parts, "add"), (rank, rank + 1, *range(rank)))
    ends = [pads[d] + image[d] for d in range(rank)]
    return made if not any(pads) else ops.strided_slice(made, list(pads[:rank]), ends, axes=list(range(2, rank + 2)))


OPERATORS: dict[str, Callable[[Call], Any]] = {"Resize": resize, "Upsample": resize, "GridSample": grid_sample,
                                               "Col2Im": column_to_image}
