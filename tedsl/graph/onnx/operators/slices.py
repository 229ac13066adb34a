"""Parts of values, values put together, margins."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy

from tedsl.graph.onnx.call import Call
from tedsl.graph.onnx.refusal import Unsupported
from tedsl.graph.trace import ops
from tedsl.graph.value import Value

_FAR = 2 ** 31 - 1


def slice_of(call: Call) -> Any:
    x = call[0]
    if call.opset < 10:
        begins, ends = call.attribute("starts"), call.attribute("ends")
        axes, steps = call.attribute("axes"), None
    else:
        begins, ends = call.extents(1), call.extents(2)
        axes = None if call.get(3) is None else call.extents(3)
        steps = None if call.get(4) is None else call.extents(4)
    along = [axis % len(x.shape) for axis in (range(len(begins)) if axes is None else axes)]
    by = [1] * len(along) if steps is None else list(steps)
    places = [_places(begin, end, step, x.shape[axis]) for begin, end, step, axis in zip(begins, ends, by, along)]
    return ops.strided_slice(x, [place[0] for place in places], [place[1] for place in places], by, along)


def _places(begin: Any, end: Any, step: int, extent: Any) -> tuple[Any, Any]:
    """Begin and end, None for those beyond the ends; begins beyond the end are that."""
    if isinstance(begin, int) and isinstance(extent, int) and begin > extent:
        begin = extent
    if isinstance(begin, int) and begin <= -_FAR:
        begin = None if step > 0 else begin
    if isinstance(begin, int) and begin >= _FAR:
        begin = None
    if isinstance(end, int) and (end >= _FAR or end <= -_FAR):
        end = None
    return begin, end


def split(call: Call) -> Any:
    x, axis = call[0], call.attribute("axis", 0) % len(call[0].shape)
    sizes = call.axes("split", 1)
    if sizes is None:
        extent = x.shape[axis]
        if not isinstance(extent, int):
            raise Unsupported(f"the parts of a symbolic extent of {x.spec}")
        count = call.attribute("num_outputs", call.results)
        part = -(-extent // count)
        sizes = tuple([max(min(part, extent - at * part), 0) for at in range(count)])
    places = numpy.cumsum(sizes)[:-1].tolist()
    made = ops.split(x, places, axis) if places else [x]
    return [made] if isinstance(made, Value) else made


def concat(call: Call) -> Any:
    values = [call[at] for at in range(len(call.inputs))]
    return values[0] if len(values) == 1 else ops.concatenate(values, call.attribute("axis", 1))


def tile(call: Call) -> Any:
    return ops.tile(call[0], call.extents(1))


def pad(call: Call) -> Any:
    x, mode = call[0], call.attribute("mode", "constant")
    rank = len(x.shape)
    pads = list(call.attribute("pads")) if call.opset < 11 else list(call.extents(1))
    axes = [axis % rank for axis in (range(rank) if call.get(3) is None else call.extents(3))]
    before, behind = [0] * rank, [0] * rank
    for at, axis in enumerate(axes):
        before[axis], behind[axis] = pads[at], pads[len(axes) + at]
    if mode != "constant":
        return _around(x, before, behind, mode)
    x = _cropped(x, before, behind)
    fill = call.attribute("value", 0.0) if call.opset < 11 else call.number(2, 0)
    wide = [max(width, 0) for width in before], [max(width, 0) for width in behind]
    return ops.nn.pad(x, *wide, fill) if any(wide[0]) or any(wide[1]) else x


def _cropped(x: Value, before: Sequence[int], behind: Sequence[int]) -> Any:
    """What negative widths leave."""
    if min((*before, *behind), default=0) >= 0:
        return x
    ends = [extent + min(width, 0) for extent, width in zip(x.shape, behind)]
    return ops.strided_slice(x, [max(-width, 0) for width in before], ends)


def _around(x: Value, before: Sequence[int], behind: Sequence[int], mode: Any) -> Any:
    """Margins of elements of the value: "reflect", "edge" or "wrap"."""
    x = _cropped(x, before, behind)
    for axis, (low, high) in enumerate(zip(before, behind)):
        if low > 0 or high > 0:
            extent = x.shape[axis]
            if not isinstance(extent, int):
                raise Unsupported(f"margins of mode {mode} around a symbolic extent of {x.spec}")
            places = numpy.pad(numpy.arange(extent, dtype="int32"), (max(low, 0), max(high, 0)), mode)
            x = ops.take(x, places, axis, mode="fast")
    return x


OPERATORS: dict[str, Callable[[Call], Any]] = {"Slice": slice_of, "Split": split, "Concat": concat, "Tile": tile, "Pad": pad}
