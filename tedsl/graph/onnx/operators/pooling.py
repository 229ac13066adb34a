"""Pooling.

With ceil_mode a window that would begin behind the padded data is left out, and a window that reaches over its end counts only
the elements inside (as torch does); topi counts them all, so that there the padding is made first.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy

from tedsl.graph.onnx.call import Call
from tedsl.graph.onnx.operators.convolution import padding_of, spatial
from tedsl.graph.onnx.operators.elementwise import number
from tedsl.graph.onnx.refusal import Unsupported
from tedsl.graph.trace import ops
from tedsl.graph.value import Value, constant
from tedsl.record import record

_POOLS = {1: "pool1d", 2: "pool2d", 3: "pool3d"}


@record
class Windows:
    """The windows of a node: extents, strides, dilation, widths of padding."""

    extents: tuple[int, ...]
    strides: tuple[int, ...]
    dilation: tuple[int, ...]
    pads: tuple[int, ...]

    def results(self, shape: Sequence[Any], ceil: bool) -> list[Any]:
        """The extents of the result for data of spatial extents `shape`."""
        rank, found = len(self.extents), []
        for at, extent in enumerate(shape):
            step, span = self.strides[at], (self.extents[at] - 1) * self.dilation[at] + 1
            room = extent + (self.pads[at] + self.pads[rank + at]) - span
            count = (room + (step - 1 if ceil else 0)) // step + 1
            if ceil and isinstance(count, int) and (count - 1) * step >= extent + self.pads[at]:
                count -= 1
            found.append(count)
        return found


def _windows(call: Call) -> Windows:
    extents = tuple(call.attribute("kernel_shape"))
    rank = len(extents)
    if rank not in _POOLS:
        raise Unsupported(f"pooling of {rank} dimensions")
    strides, dilation = spatial(call, "strides", rank), spatial(call, "dilations", rank)
    pads = padding_of(call, [(k - 1) * d + 1 for k, d in zip(extents, dilation)], strides)
    return Windows(extents, strides, dilation, pads)


def _pooled(x: Value, w: Windows, kind: str, ceil: bool, count_padding: bool) -> Any:
    pool = getattr(ops.nn, _POOLS[len(w.extents)])
    layout = {1: "NCW", 2: "NCHW", 3: "NCDHW"}[len(w.extents)]
    made: Value = pool(x, w.extents, w.strides, w.dilation, w.pads, kind, ceil, layout, count_padding)
    wanted = w.results(x.shape[2:], ceil)
    if any(isinstance(here, int) and here > there for here, there in zip(made.shape[2:], wanted)):
        made = ops.strided_slice(made, [0] * len(wanted), wanted, axes=list(range(2, len(wanted) + 2)))
    return made


def max_pool(call: Call) -> Any:
    x, w, ceil = call[0], _windows(call), bool(call.attribute("ceil_mode", 0))
    if call.results > 1:
        return _with_places(call, x, w, ceil)
    return _pooled(x, w, "max", ceil, True)


def _with_places(call: Call, x: Value, w: Windows, ceil: bool) -> Any:
    """The largest elements and their places among all elements of the data: the windows are gathered side by side."""
    n, c, *space = call.static_shape(0)
    size, results = math.prod(space), [int(extent) for extent in w.results(space, ceil)]
    inside = _inside(w, space, results)
    lowest = -numpy.inf if x.dtype.is_float else numpy.iinfo(str(x.dtype)).min
    beyond = ops.full((n, c, 1), str(x.dtype), lowest)
    windows = ops.take(ops.concatenate([ops.reshape(x, (n, c, size)), beyond], 2), inside, 2, mode="fast")
    tap = ops.argmax(windows, 3)
    count, taps = inside.shape
    at = ops.take(constant(inside), ops.add(tap, constant(numpy.arange(count, dtype="int32") * taps)), None, mode="fast")
    if call.attribute("storage_order", 0):
        order = numpy.arange(size).reshape(space[::-1]).transpose().reshape(-1)
        at = ops.take(constant(order), at, None, mode="clip")
    images = numpy.arange(n * c, dtype="int64").reshape(n, c, 1) * size
    places = ops.add(ops.cast(at, "int64"), constant(images))
    return [ops.reshape(made, (n, c, *results)) for made in (ops.max(windows, 3), places)]


def _inside(w: Windows, space: Sequence[int], results: Sequence[int]) -> Any:
    """For each window the flat places of its elements, the number of places for those in the padding: (windows, elements)."""
    rank = len(space)
    flat, outside = numpy.zeros((1, 1), "int64"), numpy.zeros((1, 1), bool)
    for at in range(rank):
        i, k = numpy.arange(results[at])[:, None], numpy.arange(w.extents[at])[None, :]
        place = i * w.strides[at] + k * w.dilation[at] - w.pads[at]
        beyond = (place < 0) | (place >= space[at])
        flat = (flat[:, None, :, None] * space[at] + place[None, :, None, :]).reshape(len(flat) * len(i), -1)
        outside = (outside[:, None, :, None] | beyond[None, :, None, :]).reshape(flat.shape)
    return numpy.where(outside, math.prod(space), flat).astype("int32")


def max_unpool(call: Call) -> Any:
    x, places = call[0], call[1]
    n, c, *space = call.static_shape(0)
    extents = call.attribute("kernel_shape")
    rank = len(extents)
    strides, pads = spatial(call, "strides", rank), call.attribute("pads", (0,) * (2 * rank))
    usual = [(space[d] - 1) * strides[d] + extents[d] - pads[d] - pads[rank + d] for d in range(rank)]
    wanted = [int(extent) for extent in call.extents(2)][2:] if call.get(2) is not None else usual
    count, size = math.prod((n, c, *space)), math.prod(usual)
    flat = ops.scatter(ops.full((n * c * size,), str(x.dtype), 0), ops.reshape(places, (count,)), ops.reshape(x, (count,)), 0)
    made = ops.reshape(flat, (n, c, *usual))
    return made if wanted == usual else ops.nn.pad(made, [0] * (rank + 2), [0, 0, *[b - a for a, b in zip(usual, wanted)]])


def average_pool(call: Call) -> Any:
    x, w, ceil = call[0], _windows(call), bool(call.attribute("ceil_mode", 0))
    count_padding = bool(call.attribute("count_include_pad", 0))
    if ceil and count_padding:
        rank = len(w.extents)
        x = ops.nn.pad(x, (0, 0, *w.pads[:rank]), (0, 0, *w.pads[rank:]))
        bare = Windows(w.extents, w.strides, w.dilation, (0,) * (2 * rank))
        made = _pooled(x, bare, "avg", True, False)
        wanted = w.results(call[0].shape[2:], True)
        return ops.strided_slice(made, [0] * rank, wanted, axes=list(range(2, rank + 2)))
    return _pooled(x, w, "avg", ceil, count_padding)


def lp_pool(call: Call) -> Any:
    """(sum of |x| ** p) ** (1 / p): the average of powers times the number of elements of a window."""
    x, w, p = call[0], _windows(call), call.attribute("p", 2)
    count = 1
    for extent in w.extents:
        count *= extent
    powers = ops.power(ops.abs(x), number(p, x))
    total = ops.multiply(_pooled(powers, w, "avg", bool(call.attribute("ceil_mode", 0)), True), number(count, x))
    return ops.power(total, number(1 / p, x))


def _global(kind: str) -> Callable[[Call], Value]:
    def translate(call: Call) -> Any:
        x = call[0]
        if len(x.shape) == 4:
            return ops.nn.global_pool(x, kind)
        axes = tuple(range(2, len(x.shape)))
        if kind == "max":
            return ops.max(x, axes, True)
        count: Any = 1
        for extent in call.static_shape(0)[2:]:
            count *= extent
        return ops.divide(ops.sum(x, axes, True), number(count, x))
    return translate


def global_lp_pool(call: Call) -> Any:
    x, p = call[0], call.attribute("p", 2)
    total = ops.sum(ops.power(ops.abs(x), number(p, x)), tuple(range(2, len(x.shape))), True)
    return ops.power(total, number(1 / p, x))


OPERATORS: dict[str, Callable[[Call], Any]] = {
    "MaxPool": max_pool, "AveragePool": average_pool, "LpPool": lp_pool, "GlobalAveragePool": _global("avg"),
    "GlobalMaxPool": _global("max"), "GlobalLpPool": global_lp_pool, "MaxUnpool": max_unpool,
}
