"""Conversion of values of a hybrid script to numbers and conditions; any other value is an error at its line."""

from __future__ import annotations

import ast
import numbers
from typing import Any

from tedsl.errors import type_in_words
from tedsl.ir import build
from tedsl.ir.dtype import DType
from tedsl.ir.expr import Expr, StringImm
from tedsl.lang.hybrid.scope import Array
from tedsl.lang.hybrid.source import Source
from tedsl.lang.tensor import Tensor


def kind_of(value: Any) -> str:
    """A description of `value` for an error message."""
    if isinstance(value, (Array, Tensor)):
        return f"the {'array' if isinstance(value, Array) else 'tensor'} {value.name}"
    if isinstance(value, DType):
        return "a dtype"
    if isinstance(value, (str, StringImm)):
        return f"the text {str(getattr(value, 'value', value))!r}"
    if value is None:
        return "None"
    if isinstance(value, (Expr, numbers.Number)):
        return "a number"
    return "a function" if callable(value) else type_in_words(value)


def refuse_arrays(source: Source, node: ast.AST, *values: Any) -> None:
    """Refuses a whole array where a number is expected."""
    for value in values:
        if isinstance(value, (Array, Tensor)):
            mine = isinstance(value, Array)
            source.fail(node, f"{value.name} is a whole {'array' if mine else 'tensor'}",
                        hint=f"read an element: {value.name}[i]" if mine else f"make {value.name} an argument of the script")


def number(source: Source, node: ast.AST, value: Any, hint: str = "") -> Expr:
    """`value` as an expression."""
    if isinstance(value, (Array, Tensor, str, StringImm, tuple, list)) or value is None \
            or (callable(value) and not isinstance(value, Expr)):
        source.fail(node, f"a number is wanted here, this is {kind_of(value)}",
                    hint=hint or (f"read an element: {value.name}[i]" if isinstance(value, Array) else ""))
    return build.as_expr(value)


def known_int(value: Any) -> int | None:
    """`value` as an int if it is an integer constant, else None."""
    return int(value) if isinstance(value, numbers.Integral) else build.as_int(value)


def condition(value: Expr) -> Expr:
    """`value` as a condition: a number counts as true unless it is 0, as in Python."""
    return value if value.dtype.is_bool else build.not_equal(value, build.const(0, value.dtype))


def truth(source: Source, node: ast.AST, value: Any) -> Expr | bool:
    """The truth of `value` as a condition; a bool if it is already known."""
    refuse_arrays(source, node, value)
    if isinstance(value, Expr):
        return condition(value)
    try:
        return bool(value)
    except (TypeError, ValueError) as error:  # an array of numpy around the script, for one
        source.fail(node, f"{kind_of(value)} is neither true nor false: {error}", hint="compare first, for example x != 0")
