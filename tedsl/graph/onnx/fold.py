"""Nodes whose inputs are all constants, computed at import by the reference implementation of the package onnx."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy
from onnx import AttributeProto, NodeProto
from onnx.reference import ReferenceEvaluator

RANDOM = {"RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike", "Bernoulli", "Multinomial", "Dropout"}

# Before operator set 13 these are over all dimensions from the axis on, which the reference implementation does not know.
OVER_SEVERAL = {"Softmax", "LogSoftmax", "Hardmax"}


# The passes multiply bytes as they are stored.
KEPT = {"DequantizeLinear"}


def folded(node: NodeProto, opsets: Mapping[str, int], arrays: Sequence[Any]) -> list[Any] | None:
    """The arrays of the outputs; None for what is random, reads other graphs or stays as it is, and for what the package does
    not compute.
    """
    if node.op_type in KEPT and arrays[0].dtype.itemsize == 1:
        return None
    if node.op_type in RANDOM or any(one.type in (AttributeProto.GRAPH, AttributeProto.GRAPHS) for one in node.attribute):
        return None
    if node.op_type in OVER_SEVERAL and opsets.get("", 0) < 13:
        return None
    names = [name for name in node.input if name]
    try:
        with numpy.errstate(all="ignore"):
            results = ReferenceEvaluator(node, opsets=dict(opsets)).run(None, dict(zip(names, arrays)))
    except Exception:  # whatever the package, or numpy in it, raises for what it does not compute: the node stays one
        return None
    found = [numpy.asarray(result) for result in results]
    return found if all(array.dtype != object and array.dtype.kind not in "US" for array in found) else None
