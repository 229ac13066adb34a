"""Operators that change the shape of values, or make values of a shape."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy

from tedsl.graph.onnx.call import Call
from tedsl.graph.onnx.operators.convolution import reshaped
from tedsl.graph.onnx.operators.elementwise import dtype_named
from tedsl.graph.onnx.refusal import Unsupported
from tedsl.graph.trace import ops
from tedsl.graph.value import Value, constant


def reshape(call: Call) -> Any:
    x, target = call[0], list(call.attribute("shape", ())) if call.opset < 5 else list(call.extents(1))
    if not call.attribute("allowzero", 0):
        target = [x.shape[at] if isinstance(extent, int) and extent == 0 else extent for at, extent in enumerate(target)]
    return to_shape(x, target)


def to_shape(x: Value, shape: Sequence[Any]) -> Any:
    """The value of another shape; -1 is what remains. Symbolic extents on both sides are left out of that division."""
    shape = list(shape)
    unknown = [at for at, extent in enumerate(shape) if isinstance(extent, int) and extent == -1]
    if unknown:
        there, here = list(x.shape), [extent for extent in shape if not isinstance(extent, int)]
        for extent in here:
            match = next((one for one in there if one is extent), None)
            if match is not None:
                there.remove(match)
        fixed = [extent for extent in shape if isinstance(extent, int) and extent != -1]
        if all(isinstance(extent, int) for extent in there):
            total, divisor = _product(there), _product(fixed)
            if divisor == 0 or total % divisor:
                raise Unsupported(f"a value of {x.spec} does not fit the shape {tuple(shape)}")
            shape[unknown[0]] = total // divisor
    if tuple(shape) == x.shape and all(new is old or isinstance(new, int) for new, old in zip(shape, x.shape)):
        return x
    return reshaped(x, shape)


def flatten(call: Call) -> Any:
    x, axis = call[0], call.attribute("axis", 1)
    axis = axis + len(x.shape) if axis < 0 else axis
    if axis == 1 and len(x.shape) > 1:
        return to_shape(x, (x.shape[0], -1)) if _nonempty(x.shape[1:]) else reshaped(x, (x.shape[0], 0))
    sides = [_product(x.shape[:axis]), _product(x.shape[axis:])]
    return reshaped(x, sides)


def _nonempty(extents: Sequence[Any]) -> bool:
    return not any(isinstance(extent, int) and extent == 0 for extent in extents)


def _product(extents: Sequence[Any]) -> Any:
    total: Any = 1
    for extent in extents:
        total = total * extent
    return total


def squeeze(call: Call) -> Any:
    axes = call.axes("axes", 1)
    return ops.squeeze(call[0], axes)


def unsqueeze(call: Call) -> Any:
    x, axes = call[0], call.axes("axes", 1) or ()
    rank = len(x.shape) + len(axes)
    new, rest = {axis % rank for axis in axes}, iter(x.shape)
    return reshaped(x, [1 if d in new else next(rest) for d in range(rank)])


def shape(call: Call) -> Any:
    made = ops.shape(call[0], "int64")
    begin, end = call.attribute("start", 0), call.attribute("end")
    return made if not begin and end is None else ops.strided_slice(made, [begin], [end])


def size(call: Call) -> Any:
    return ops.ndarray_size(call[0], "int64")


def expand(call: Call) -> Any:
    x, wanted = call[0], call.extents(1)
    rank = max(len(x.shape), len(wanted))
    pairs = zip((1,) * (rank - len(x.shape)) + x.shape, (1,) * (rank - len(wanted)) + wanted)
    target = [here if isinstance(there, int) and there == 1 else there for here, there in pairs]
    return x if tuple(target) == x.shape else ops.broadcast_to(x, tuple(target))


def constant_of_shape(call: Call) -> Any:
    given = call.attribute("value")
    filled = numpy.zeros(1, "float32") if given is None else given.data
    extents = call.extents(0)
    if all(isinstance(extent, int) for extent in extents):
        return constant(numpy.full(extents, filled.reshape(-1)[0], filled.dtype))
    return ops.full(extents, str(filled.dtype), filled.reshape(-1)[0].item())


def numbers(call: Call) -> Any:
    start, limit, step = [call.array(at).reshape(-1)[0] for at in range(3)]
    return constant(numpy.arange(start, limit, step, dtype=call[0].data.dtype))


def of_constants(call: Call) -> Any:
    """An operator whose shape depends on all of its inputs: known inputs are folded before."""
    for at in range(len(call.inputs)):
        call.array(at)
    raise Unsupported("its constants are not folded")


def eye_like(call: Call) -> Any:
    rows, columns = call.static_shape(0)
    dtype = str(call[0].dtype) if call.attribute("dtype") is None else dtype_named(call.attribute("dtype"))
    return constant(numpy.eye(rows, columns, call.attribute("k", 0), dtype=dtype))


OPERATORS: dict[str, Callable[[Call], Any]] = {
    "Reshape": reshape, "Flatten": flatten, "Squeeze": squeeze, "Unsqueeze": unsqueeze, "Shape": shape, "Size": size,
    "Expand": expand, "ConstantOfShape": constant_of_shape, "Range": numbers, "EyeLike": eye_like,
    "MelWeightMatrix": of_constants,
}
