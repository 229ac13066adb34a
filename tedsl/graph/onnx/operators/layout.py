"""Operators that move elements."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy

from tedsl.graph.onnx.call import Call
from tedsl.graph.onnx.operators.elementwise import number
from tedsl.graph.trace import ops
from tedsl.graph.value import constant


def transpose(call: Call) -> Any:
    x = call[0]
    axes = call.attribute("perm") or tuple(reversed(range(len(x.shape))))
    return x if axes == tuple(range(len(axes))) else ops.transpose(x, axes)


def depth_to_space(call: Call) -> Any:
    mode = {"DCR": "DCR", "CRD": "CDR"}[call.attribute("mode", "DCR")]
    return ops.nn.depth_to_space(call[0], call.attribute("blocksize"), "NCHW", mode)


def space_to_depth(call: Call) -> Any:
    x, block = call[0], call.attribute("blocksize")
    if call.attribute("mode", "DCR") == "DCR":
        return ops.nn.space_to_depth(x, block)
    n, c, h, w = call.static_shape(0)
    parts = ops.transpose(ops.reshape(x, (n, c, h // block, block, w // block, block)), (0, 1, 3, 5, 2, 4))
    return ops.reshape(parts, (n, c * block * block, h // block, w // block))


def trilu(call: Call) -> Any:
    x, offset = call[0], call.number(1, 0)
    rows, columns = call.static_shape(0)[-2:]
    keep = numpy.ones((rows, columns), bool)
    keep = numpy.triu(keep, offset) if call.attribute("upper", 1) else numpy.tril(keep, offset)
    return ops.where(constant(keep), x, number(0, x))


def reverse_sequence(call: Call) -> Any:
    return ops.reverse_sequence(call[0], call[1], call.attribute("time_axis", 0), call.attribute("batch_axis", 1))


OPERATORS: dict[str, Callable[[Call], Any]] = {
    "Transpose": transpose, "DepthToSpace": depth_to_space, "SpaceToDepth": space_to_depth, "Trilu": trilu,
    "ReverseSequence": reverse_sequence,
}
