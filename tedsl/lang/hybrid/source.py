"""The text of a function, and errors that point at a line of it."""

from __future__ import annotations

import ast
import contextlib
import inspect
import textwrap
from collections.abc import Callable
from typing import Any, NoReturn

from tedsl.errors import ExpressionError, TedslError, type_in_words
from tedsl.ir.source_line import SourceLine
from tedsl.record import record


@record
class Source:
    """Where a function is written, its lines, and its syntax tree."""

    name: str
    file: str
    first: int
    lines: tuple[str, ...]
    tree: ast.FunctionDef

    def line_of(self, node: ast.AST) -> SourceLine:
        return SourceLine(self.file, self.first + getattr(node, "lineno", 1) - 1)

    def fail(self, node: ast.AST, problem: str, hint: str = "") -> NoReturn:
        """Raise the error of `problem` at `node`."""
        raise ExpressionError(f"{self.where(node)}: {problem}", hint=hint)

    def where(self, node: ast.AST) -> str:
        line = getattr(node, "lineno", 1)
        text = self.lines[line - 1].strip() if 0 < line <= len(self.lines) else ""
        return f"hybrid script {self.name} ({self.line_of(node)}, `{text}`)"

    def relocated(self, node: ast.AST, error: TedslError) -> TedslError:
        """`error`, with the line at which it happened."""
        if error.problem.startswith("hybrid script "):
            return error
        copy = type(error).__new__(type(error))
        TedslError.__init__(copy, f"{self.where(node)}: {error.problem}", hint=error.hint)
        return copy


def source_of(function: Callable[..., Any]) -> Source:
    """The source of a Python function; ExpressionError if it cannot be read."""
    name = getattr(function, "__name__", repr(function))
    try:
        lines, first = inspect.getsourcelines(function)
        file = inspect.getsourcefile(function) or "?"
    except (OSError, TypeError) as error:
        raise ExpressionError(f"hybrid script {name}: its source cannot be read: {error}",
                              hint="write the function in a file: what is typed into exec has no source") from None
    text = textwrap.dedent("".join(lines))
    tree: ast.stmt | None = None
    with contextlib.suppress(SyntaxError):  # the lines of a lambda are parts of a statement
        tree = ast.parse(text).body[0]
    if name == "<lambda>" or tree is None:
        raise ExpressionError(f"hybrid script {name}: a function made by `def` is needed, this is a lambda",
                              hint="a script is loops and stores: @te.hybrid.script above def f(a): ...")
    if not isinstance(tree, ast.FunctionDef):
        raise ExpressionError(f"hybrid script {name}: a function made by `def` is needed, this is {type_in_words(tree)}",
                              hint="write def f(a, b): ...")
    return Source(name, file, max(first, 1), tuple(text.splitlines()), tree)
