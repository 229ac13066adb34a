"""Operators that read and write at positions, and sorting."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy

from tedsl.graph.onnx.call import Call
from tedsl.graph.onnx.operators.elementwise import cast, number
from tedsl.graph.onnx.refusal import Unsupported
from tedsl.graph.trace import ops
from tedsl.graph.value import Value, constant


def gather(call: Call) -> Any:
    x, indices, axis = call[0], call[1], call.attribute("axis", 0)
    axis %= len(x.shape)
    extent = x.shape[axis]
    if indices.data is not None and isinstance(extent, int):
        places = numpy.where(indices.data < 0, indices.data + extent, indices.data)
        return ops.take(x, constant(places), axis, mode="clip")
    return ops.take(x, indices, axis, mode="wrap")


def gather_elements(call: Call) -> Any:
    return ops.gather(call[0], call.attribute("axis", 0), call[1])


def gather_nd(call: Call) -> Any:
    x, indices, batch = call[0], call[1], call.attribute("batch_dims", 0)
    places = _first(indices)
    if batch:
        shape = call.static_shape(1)[:-1]
        rows = numpy.indices(shape, dtype=str(indices.dtype))[:batch]
        places = ops.concatenate([constant(rows), places], 0)
    return ops.gather_nd(x, places)


def _first(indices: Value) -> Any:
    """The positions with their last dimension, which counts dimensions of the data, first."""
    rank = len(indices.shape)
    return ops.transpose(indices, (rank - 1, *range(rank - 1))) if rank > 1 else indices


def scatter_elements(call: Call) -> Any:
    kind, axis = call.attribute("reduction", "none"), call.attribute("axis", 0)
    if kind in ("none", "add"):
        return (ops.scatter if kind == "none" else ops.scatter_add)(call[0], call[1], call[2], axis)
    indices = call[1]
    places = list(numpy.indices(call.static_shape(1), dtype=str(indices.dtype)))
    whole = ops.stack([indices if d == axis % len(places) else constant(place) for d, place in enumerate(places)], 0)
    return ops.scatter_nd(call[0], whole, call[2], kind)


def scatter_nd(call: Call) -> Any:
    kind = call.attribute("reduction", "none")
    return ops.scatter_nd(call[0], _first(call[1]), call[2], "update" if kind == "none" else kind)


def tensor_scatter(call: Call) -> Any:
    """The updates at a position of each sequence of a cache: each place reads the cache, or the update that falls on it."""
    past, update, axis = call[0], call[1], call.attribute("axis", -2)
    shape, axis = call.static_shape(0), axis % len(past.shape)
    length, steps = shape[axis], call.static_shape(1)[axis]
    along = [length if d == axis else 1 for d in range(len(shape))]
    begins = call.get(2)
    begin = constant(0, "int64") if begins is None else ops.reshape(begins, (-1, *[1] * (len(shape) - 1)))
    number_of = ops.subtract(constant(numpy.arange(length, dtype="int64").reshape(along)), begin)
    if call.attribute("mode", "linear") == "circular":
        number_of = ops.floor_mod(number_of, constant(length, "int64"))
    written = ops.logical_and(ops.greater_equal(number_of, constant(0, "int64")), ops.less(number_of, constant(steps, "int64")))
    near = ops.clip(number_of, 0, steps - 1)
    wide = update if steps == length else ops.nn.pad(update, [0] * len(shape), [length - steps if d == axis else 0
                                                                              for d in range(len(shape))])
    return ops.where(written, ops.gather(wide, axis, ops.broadcast_to(near, shape)), past)


def one_hot(call: Call) -> Any:
    depth = int(call.number(1, None))
    indices, values, axis = cast(call[0], "int64"), call[2], call.attribute("axis", -1)
    axis %= len(indices.shape) + 1
    inside = ops.where(ops.less(indices, number(0, indices)), ops.add(indices, number(depth, indices)), indices)
    classes = numpy.arange(depth, dtype="int64").reshape([depth if d == axis else 1 for d in range(len(indices.shape) + 1)])
    found = ops.equal(ops.expand_dims(inside, axis), constant(classes))
    off, on = [ops.reshape(part, ()) for part in ops.split(values, [1])]
    return ops.where(found, on, off)


def top_k(call: Call) -> Any:
    count = call.attribute("k") if call.opset < 10 else int(call.number(1, None))
    if count == 0:
        raise Unsupported("k of 0")
    return ops.topk(call[0], count, call.attribute("axis", -1), "both", not call.attribute("largest", 1), "int64")


def compress(call: Call) -> Any:
    x, axis = call[0], call.attribute("axis")
    places = constant(numpy.nonzero(call.array(1).reshape(-1))[0])
    return ops.take(x, places, None if axis is None else axis % len(x.shape), mode="fast")


OPERATORS: dict[str, Callable[[Call], Any]] = {
    "Gather": gather, "GatherElements": gather_elements, "GatherND": gather_nd, "ScatterElements": scatter_elements,
    "Scatter": scatter_elements, "ScatterND": scatter_nd, "OneHot": one_hot, "TopK": top_k, "Compress": compress,
    "TensorScatter": tensor_scatter,
}
