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
    """The functions in a text: an IRModule for a class, a PrimFunc for a function; `mod.script()` prints such texts."""
    if not isinstance(source, str):
        raise ArgumentTypeError(f"script.from_source takes the text of functions, not {type_in_words(source)}",
                                hint="script.from_source(mod.script())")
    names = {"T": tir, "I": ir, "tir": tir, **(extra or {})}
    made: dict[str, PrimFunc] = {}
    tree = ast.parse(textwrap.dedent(source))
    held = next((node for node in tree.body if isinstance(node, ast.ClassDef)), None)
    for node in tree.body if held is None else held.body:
        if isinstance(node, ast.FunctionDef):
            parser = Parser(source, names)
            parser.name = node.name
            given = {arg.arg: parser.value(arg.annotation) for arg in node.args.args if arg.annotation is not None}
            made[node.name] = parser.function(node, given)
    if not made:
        raise ArgumentError("script.from_source: there is no function in the text")
    return IRModule(made) if held is not None else next(iter(made.values()))
