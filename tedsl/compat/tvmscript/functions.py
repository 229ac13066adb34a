"""Scripts that are functions of the running program."""

from __future__ import annotations

import ast
import inspect
import textwrap
from typing import Any

from tedsl.compat.tvmscript.parser import Parser
from tedsl.errors import ArgumentError
from tedsl.ir.func import PrimFunc


def definition_in(source: str) -> ast.FunctionDef | None:
    """The function at the begin of a text that may be any part of a program; None if there is none."""
    try:
        first = ast.parse(source).body[0]
    except (SyntaxError, IndexError):
        return None
    return first if isinstance(first, ast.FunctionDef) else None


def function_of(function: Any) -> PrimFunc:
    """The PrimFunc of a Python function, by its source."""
    try:
        lines, first = inspect.getsourcelines(function)
    except (OSError, TypeError):
        raise ArgumentError(f"T.prim_func: the source of {getattr(function, '__name__', function)!r} is not known",
                            hint="write it in a file or a notebook; script.from_source(text) reads texts") from None
    tree = definition_in(textwrap.dedent("".join(lines)))
    if tree is None:
        raise ArgumentError(f"T.prim_func: {function!r} is no function that `def` defines",
                            hint="@T.prim_func before def f(...):")
    around = inspect.getclosurevars(function).nonlocals
    names = {**function.__globals__, **around}
    parser = Parser("", names, first)
    parser.name = tree.name
    given = {name: parser.value(ast.parse(of, mode="eval").body) if isinstance(of, str) else of
             for name, of in function.__annotations__.items()}
    return parser.function(tree, given)
