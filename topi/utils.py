"""Constants out of expressions, by TVM's names."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tedsl.errors import ArgumentError


def get_const_int(expr: Any) -> int:
    """The value of a constant expression; ArgumentError where it is known only at the call."""
    value = getattr(expr, "value", expr)
    if isinstance(value, bool) or not isinstance(value, int):
        raise ArgumentError(f"get_const_int: {expr!r} is no constant", hint="use te.var dimensions as expressions, as they are")
    return value


def get_const_float(expr: Any) -> float:
    """The value of a constant float expression."""
    value = getattr(expr, "value", expr)
    if not isinstance(value, (int, float)):
        raise ArgumentError(f"get_const_float: {expr!r} is no constant")
    return float(value)


def get_const_tuple(in_tuple: Iterable[Any]) -> tuple[Any, ...]:
    """The values of constant expressions; those known only at the call stay as they are."""
    return tuple(value if isinstance(value := getattr(e, "value", e), int) else e for e in in_tuple)
