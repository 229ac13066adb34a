"""The scopes of names while a hybrid script is read."""

from __future__ import annotations

import ast
from typing import Any

from tedsl.ir.buffer import Buffer
from tedsl.record import record


@record
class Array:
    """A tensor of the program: `kind` is "input", "output" or "local", `name` what the script calls it."""

    buffer: Buffer
    kind: str
    name: str

    def __repr__(self) -> str:
        return f"the array {self.name}"


@record
class Number:
    """A number that is assigned more than once: the one element of a buffer."""

    buffer: Buffer


class Scope:
    """The names of the function by block; those of finished blocks are remembered for error messages."""

    def __init__(self) -> None:
        self.blocks: list[dict[str, Any]] = [{}]
        self.ended: dict[str, int] = {}  # name -> the line where its block began

    def find(self, name: str) -> Any:
        """The value that `name` is bound to; KeyError if it is not bound."""
        for block in reversed(self.blocks):
            if name in block:
                return block[name]
        raise KeyError(name)

    def __contains__(self, name: str) -> bool:
        return any(name in block for block in self.blocks)

    def define(self, name: str, value: Any) -> None:
        self.blocks[-1][name] = value

    def enter(self) -> None:
        self.blocks.append({})

    def leave(self, line: int) -> None:
        self.ended.update(dict.fromkeys(self.blocks.pop(), line))


def assigned_again(function: ast.FunctionDef) -> set[str]:
    """The names of numbers that change: assigned in several places or by `+=` and the like."""
    seen: set[str] = set()
    again: set[str] = set()
    for node in ast.walk(function):
        if isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
            again.add(node.target.id)
        elif isinstance(node, ast.Assign):
            for target in node.targets:
                for name in target.elts if isinstance(target, ast.Tuple) else (target,):
                    if isinstance(name, ast.Name):
                        (again if name.id in seen else seen).add(name.id)
    return again


def written_elements(function: ast.FunctionDef) -> set[str]:
    """The names of arrays to elements of which something is assigned."""
    targets: list[ast.expr] = []
    for node in ast.walk(function):
        if isinstance(node, (ast.AugAssign, ast.AnnAssign)):
            targets.append(node.target)
        elif isinstance(node, ast.Assign):
            targets += node.targets
    return {target.value.id for target in targets if isinstance(target, ast.Subscript) and isinstance(target.value, ast.Name)}


def returned_names(function: ast.FunctionDef) -> set[str]:
    """The names that the function returns."""
    values = [node.value for node in ast.walk(function) if isinstance(node, ast.Return) and node.value is not None]
    return {part.id for value in values for part in (value.elts if isinstance(value, ast.Tuple) else [value])
            if isinstance(part, ast.Name)}
