"""Fourier transforms, as products with matrices of sines and cosines."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy

from tedsl.graph.onnx.call import Call
from tedsl.graph.onnx.operators.products import product
from tedsl.graph.onnx.operators.shapes import to_shape
from tedsl.graph.onnx.refusal import Unsupported
from tedsl.graph.trace import ops
from tedsl.graph.value import Value, constant


def dft(call: Call) -> Any:
    x, rank = call[0], len(call[0].shape)
    axis = call.attribute("axis", 1) if call.opset < 20 else call.number(2, -2)
    axis %= rank
    inverse, onesided = bool(call.attribute("inverse", 0)), bool(call.attribute("onesided", 0))
    extent = x.shape[axis]
    if axis == rank - 1 or not isinstance(extent, int):
        raise Unsupported(f"a transform along dimension {axis} of {x.spec}")
    one_of_two = inverse and onesided
    length = int(call.number(1, 2 * (extent - 1) if one_of_two else extent))
    order = [d for d in range(rank) if d not in (axis, rank - 1)]
    rows = ops.transpose(x, (*order, axis, rank - 1))
    if one_of_two:
        made = _real(rows, min(length // 2 + 1, extent), length)
    else:
        made = transformed(rows, min(length, extent), length, inverse, onesided)
    back = [0] * rank
    for place, d in enumerate((*order, axis, rank - 1)):
        back[d] = place
    return ops.transpose(made, tuple(back))


def transformed(rows: Value, used: int, length: int, inverse: bool, onesided: bool) -> Any:
    """The transform along the dimension before the last, which holds real and imaginary parts."""
    *outer, extent, parts = rows.shape
    if used < extent:
        rows = ops.strided_slice(rows, [0], [used], axes=[len(outer)])
    count = length // 2 + 1 if onesided else length
    angles = 2 * numpy.pi * numpy.outer(numpy.arange(used), numpy.arange(count)) / length
    sign, scale = (1, 1 / length) if inverse else (-1, 1)
    real, imaginary = numpy.cos(angles) * scale, sign * numpy.sin(angles) * scale
    matrix = numpy.stack([real, imaginary], -1)[:, None]
    if parts == 2:
        matrix = numpy.concatenate([matrix, numpy.stack([-imaginary, real], -1)[:, None]], 1)
    flat = to_shape(rows, (*outer, used * parts))
    made = product(flat, constant(matrix.reshape(-1, count * 2).astype(str(rows.dtype))))
    return to_shape(made, (*outer, count, 2))


def _real(rows: Value, used: int, length: int) -> Any:
    """The real values whose transform has one side `rows`: each other coefficient is the conjugate of one that is given."""
    *outer, extent, parts = rows.shape
    if used < extent:
        rows = ops.strided_slice(rows, [0], [used], axes=[len(outer)])
    k = numpy.arange(used)
    angles = 2 * numpy.pi * numpy.outer(k, numpy.arange(length)) / length
    times = numpy.where((k == 0) | (2 * k == length), 1, 2)[:, None] / length
    matrix = numpy.stack([numpy.cos(angles) * times, -numpy.sin(angles) * times], 1).reshape(2 * used, length)
    made = product(to_shape(rows, (*outer, used * parts)), constant(matrix.astype(str(rows.dtype))))
    return to_shape(made, (*outer, length, 1))


def stft(call: Call) -> Any:
    signal, extent, step = call[0], call.static_shape(0)[1], int(call.number(1, None))
    window = call.get(2)
    length = int(call.number(3, call.static_shape(2)[0] if window is not None else 0))
    frames = (extent - length) // step + 1
    places = (numpy.arange(frames)[:, None] * step + numpy.arange(length)).astype("int32")
    cut = ops.take(signal, places, 1, mode="fast")
    if window is not None:
        cut = ops.multiply(cut, ops.expand_dims(window, 1))
    return transformed(cut, length, length, False, bool(call.attribute("onesided", 1)))


OPERATORS: dict[str, Callable[[Call], Any]] = {"DFT": dft, "STFT": stft}
