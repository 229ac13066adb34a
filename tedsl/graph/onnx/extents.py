"""Arithmetic of shapes with symbolic extents: what Shape gives, and what models compute of it, as arrays of int and te.var.

The nodes are made as well; those that nothing but shapes needs fall away.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy

from tedsl.graph.dimensions import as_dimension
from tedsl.graph.onnx.call import Call

Arrays = list[Any]


def extents_of(call: Call, known: dict[Any, Any]) -> Any:
    """The result of a node that computes with extents, as an array of objects; None if it is not known."""
    if call.operator in ("Shape", "Size"):
        return _OF_SHAPES[call.operator](call)
    rule = _RULES.get(call.operator)
    given = [value for value in call.inputs if value is not None]
    if rule is None or not any(value in known for value in given):
        return None
    arrays = [known.get(value, value.data) for value in given]
    if any(array is None or array.dtype.kind not in "iuO" for array in arrays):
        return None
    return numpy.asarray(rule(call, [array.astype(object) for array in arrays]), dtype=object)


def shape_part(call: Call) -> Any:
    """The extents that a node Shape asks for."""
    extents = list(call[0].shape)[slice(call.attribute("start", 0), call.attribute("end"))]
    return numpy.array(extents, dtype=object)


def _size(call: Call) -> Any:
    total: Any = 1
    for extent in call[0].shape:
        total = total * extent
    return numpy.array(as_dimension(total), dtype=object)


def _slice(call: Call, arrays: Arrays) -> Any:
    if call.opset < 10:
        begins, ends = call.attribute("starts"), call.attribute("ends")
        axes, steps = call.attribute("axes", range(len(begins))), [1] * len(begins)
    else:
        begins, ends = arrays[1], arrays[2]
        axes = arrays[3] if len(arrays) > 3 else range(len(begins))
        steps = arrays[4] if len(arrays) > 4 else [1] * len(begins)
    places: list[Any] = [slice(None)] * arrays[0].ndim
    for axis, begin, end, step in zip(axes, begins, ends, steps):
        places[int(axis)] = slice(int(begin), int(end), int(step))
    return arrays[0][tuple(places)]


def _by_elements(operation: Callable[[Any, Any], Any]) -> Callable[[Call, Arrays], Any]:
    def rule(call: Call, arrays: Arrays) -> Any:
        made = operation(arrays[0], arrays[1])
        return numpy.array([as_dimension(one) for one in numpy.reshape(made, -1)], dtype=object).reshape(numpy.shape(made))
    return rule


def _axes(call: Call, arrays: Arrays) -> tuple[int, ...] | None:
    given = call.attribute("axes", arrays[1] if len(arrays) > 1 else None)
    return None if given is None else tuple(map(int, given))


def _unsqueeze(call: Call, arrays: Arrays) -> Any:
    return numpy.expand_dims(arrays[0], _axes(call, arrays) or ())


def _cast(call: Call, arrays: Arrays) -> Any:
    if call.attribute("to") not in (6, 7):  # int32, int64
        raise TypeError
    return arrays[0]


_OF_SHAPES: dict[str, Callable[[Call], Any]] = {"Shape": shape_part, "Size": _size}
_RULES: dict[str, Callable[[Call, Arrays], Any]] = {
    "Gather": lambda call, arrays: numpy.take(arrays[0], arrays[1].astype(int), call.attribute("axis", 0)),
    "Slice": _slice,
    "Concat": lambda call, arrays: numpy.concatenate(arrays, call.attribute("axis", 0)),
    "Squeeze": lambda call, arrays: numpy.squeeze(arrays[0], _axes(call, arrays)),
    "Unsqueeze": _unsqueeze,
    "Cast": _cast,
    "Identity": lambda call, arrays: arrays[0],
    "Reshape": lambda call, arrays: arrays[0].reshape([int(one) for one in arrays[1]]),
    "Add": _by_elements(lambda a, b: a + b),
    "Sub": _by_elements(lambda a, b: a - b),
    "Mul": _by_elements(lambda a, b: a * b),
    "Div": _by_elements(lambda a, b: a // b),
}
