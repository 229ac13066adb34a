"""The operators of ONNX: for each a function of a `Call` that makes nodes and returns the values of its outputs.

It returns None where the body of the operator, which the package onnx has, is to be taken. What it cannot express raises
Unsupported.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tedsl.graph.onnx.call import Call
from tedsl.graph.onnx.operators import (
    activations,
    contributed,
    convolution,
    elementwise,
    images,
    indexing,
    layout,
    normalization,
    pooling,
    products,
    quantized,
    recurrent,
    reductions,
    shapes,
    slices,
    spectra,
)
from tedsl.graph.value import Value

Translation = Callable[[Call], Value | Sequence[Value] | None]
_FAMILIES = (activations, convolution, elementwise, images, indexing, layout, normalization, pooling, products, quantized,
             recurrent, reductions, shapes, slices, spectra)
OPERATORS: dict[str, Translation] = {name: function for family in _FAMILIES for name, function in family.OPERATORS.items()}


def operator_for(name: str, domain: str = "") -> Translation | None:
    """The function of an operator of a domain, "" for the default one; None if there is none."""
    return OPERATORS.get(name) if not domain else contributed.OPERATORS.get(name) if domain == "com.microsoft" else None
