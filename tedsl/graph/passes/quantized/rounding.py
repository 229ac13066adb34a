"""Values that are quantized again.

    cast(clip(nearbyint((q - z) * s / s) + z, 0, 255), "uint8")      ──►      q
    nearbyint((x * s + b) / d)                                       ──►      nearbyint(x * (s / d) + b / d)

A division takes longer than all else around it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy

from tedsl.graph.apply import apply
from tedsl.graph.graph import Graph
from tedsl.graph.match import Match, Pattern, a_constant, anything, match_value, op, replace
from tedsl.graph.passes.quantized.values import DEQUANTIZED, is_bytes, whole_in
from tedsl.graph.value import Node, Value, constant


def same(node: Node) -> Value | None:
    """The integers that were dequantized, where they are quantized with the same scale and zero point again; else None."""
    out = node.outputs[0]
    found = match_value(out, _AGAIN) if node.operator == "cast" and is_bytes(out) else None
    if found is None or found["stored"].spec != out.spec or not _is_number(found["scale"], found["again"]):
        return None
    point = constant(0, "int32") if "point" not in found else found["point"]
    clip, limits = found["clipped"].node, numpy.iinfo(str(out.dtype))
    assert clip is not None
    covers = clip.arguments["a_min"] <= limits.min and clip.arguments["a_max"] >= limits.max
    offset = whole_in(found).offset
    return found["stored"] if covers and offset is not None and _is_number(point, constant(offset, "int32")) else None


def _is_number(one: Value, other: Value) -> bool:
    """Whether two constants are the same single number."""
    return one.data.size == other.data.size == 1 and bool((one.data.reshape(()) == other.data.reshape(())).all())


def without_divisions(graph: Graph) -> Graph:
    """The graph with divisions by constants before rounding as factors."""
    for pattern, change in _DIVISIONS:
        graph = replace(graph, pattern, change, alone=True)
    return graph


def _absorbed(found: Match) -> Value | None:
    """A quotient whose divisor a factor and a summand take up."""
    inverse = _inverse(found)
    scale = None if inverse is None else _times(found["scale"], inverse)
    if scale is None:
        return None
    result = apply("multiply", found["x"], scale)
    if "sum" in found:
        node, bias = found["sum"].node, _times(found["bias"], inverse)
        if node is None or bias is None:
            return None
        result = apply(node.operator, result, bias, **node.attributes)
    return _rounded(result, found)


def _multiplied(found: Match) -> Value | None:
    """A quotient as a product."""
    inverse = _inverse(found)
    return None if inverse is None else _rounded(apply("multiply", found["x"], constant(inverse.astype("float32"))), found)


def _inverse(found: Match) -> Any:
    """One over a divisor, in float64; None unless it is one number whose inverse float32 holds, and all is float32."""
    divisor, tiny = found["divisor"].data, numpy.finfo("float32").tiny
    if str(found.value.dtype) != "float32" or divisor.shape != () or not tiny <= divisor <= 1 / tiny:
        return None
    return 1 / divisor.astype("float64")


def _times(value: Value, factor: Any) -> Value | None:
    """A constant times a factor; None where float32 does not hold it, or with fewer digits: 0 times infinity is no number."""
    product, limits = value.data * factor, numpy.finfo("float32")
    size = numpy.abs(product)
    held = ((size >= limits.tiny) & (size <= limits.max)) | (value.data == 0)
    return constant(product.astype("float32"), name=value.name) if held.all() else None


def _rounded(value: Value, found: Match) -> Value | None:
    result: Value = apply("nearbyint", value)
    return result if result.spec == found.value.spec else None


def _pattern_of_same() -> Pattern:
    rounded = op("nearbyint", op("divide", DEQUANTIZED, a_constant("again")))
    point = a_constant("point")
    return op("cast", op("clip", op("add", rounded, op("cast", point) | point) | rounded, name="clipped",
                         a_min=lambda given: True, a_max=lambda given: True))


def _rules() -> tuple[tuple[Pattern, Callable[[Match], Value | None]], ...]:
    scaled, bias = op("multiply", anything("x"), a_constant("scale")), a_constant("bias")
    total = op("nn.bias_add", scaled, bias, axis=lambda axis: True, name="sum") | op("add", scaled, bias, name="sum")
    return ((op("nearbyint", op("divide", total | scaled, a_constant("divisor"))), _absorbed),
            (op("nearbyint", op("divide", anything("x"), a_constant("divisor"))), _multiplied))


_AGAIN, _DIVISIONS = _pattern_of_same(), _rules()
