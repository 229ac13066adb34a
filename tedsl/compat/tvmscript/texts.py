"""Scripts in texts, such as `mod.script()` prints."""

from __future__ import annotations

import ast
import textwrap
from typing import Any

from tedsl.compat.tvmscript import ir, tir
from tedsl.compat.tvmscript.parser import Parser
from tedsl.errors import ArgumentError, ArgumentTypeError, type_in_words
from tedsl.ir.func import IRModule, PrimFunc


def from_source(source: str, extra: dict[str, Any] | None = None) -> Any:
    """The functions in a text: an IRModule for a class or several functions, a PrimFunc for one.

    `mod.script()` prints such texts. Raises ArgumentError where the text is no Python, or has no function.
    """
    if not isinstance(source, str):
        raise ArgumentTypeError(f"script.from_source takes the text of functions, not {type_in_words(source)}",
                                hint="script.from_source(mod.script())")
    names = {"T": tir, "I": ir, "tir": tir, **(extra or {})}
    made: dict[str, PrimFunc] = {}
    try:
        tree = ast.parse(textwrap.dedent(source))
    except SyntaxError as error:
        raise ArgumentError(f"script.from_source: line {error.lineno} of the text is no Python: {error.msg}") from None
    held = next((node for node in tree.body if isinstance(node, ast.ClassDef)), None)
    for node in tree.body if held is None else held.body:
        if isinstance(node, ast.FunctionDef):
            parser = Parser(source, names)
            parser.name = node.name
            given = {arg.arg: parser.value(arg.annotation) for arg in node.args.args if arg.annotation is not None}
            made[node.name] = parser.function(node, given)
    if not made:
        raise ArgumentError("script.from_source: there is no function in the text")
    return next(iter(made.values())) if held is None and len(made) == 1 else IRModule(made)
