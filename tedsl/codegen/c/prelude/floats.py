"""Floats: the smaller and the larger of two, NaN if either is NaN, the second of two equal ones."""

from __future__ import annotations

from collections.abc import Callable
from string import Template

from tedsl.codegen.c.text.types import suffix, value_type
from tedsl.ir.dtype import DType

_EXTREMUM = """
$T tedsl_${name}_$S($T a, $T b)
{
    return (a != a || a $operator b) ? a : b;
}
"""


def _extremum(name: str, operator: str) -> Callable[[DType], str]:
    return lambda of: Template(_EXTREMUM).substitute(T=value_type(of), S=suffix(of), name=name, operator=operator)


TEXTS: dict[str, Callable[[DType], str]] = {"fmin": _extremum("fmin", "<"), "fmax": _extremum("fmax", ">")}
