"""Constant folding of instructions while they are written, and the expressions that registers hold, for messages."""

from __future__ import annotations

import re
from collections.abc import Callable

from tedsl.ir import build
from tedsl.ir.dtype import INT64, wrap_integer
from tedsl.ir.expr import Expr

_BINARY = re.compile(r"(\w+) i64 (\S+), (\S+)")
_COMPARE = re.compile(r"icmp (\w+) i64 (\S+), (\S+)")
_LOGICAL = re.compile(r"(and|or) i1 (\S+), (\S+)")
_SELECT = re.compile(r"select i1 (\S+), i64 (\S+), i64 (\S+)")
_ZEXT = re.compile(r"zext i1 (\S+) to i64")
_NUMBER = re.compile(r"-?\d+")

_OPERATORS: dict[str, Callable[[int, int], int]] = {
    "add": lambda a, b: a + b, "sub": lambda a, b: a - b, "mul": lambda a, b: a * b, "and": lambda a, b: a & b,
    "or": lambda a, b: a | b, "xor": lambda a, b: a ^ b,
    "sdiv": lambda a, b: abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1),
    "srem": lambda a, b: abs(a) % abs(b) * (-1 if a < 0 else 1)}
_COMPARISONS: dict[str, Callable[[int, int], bool]] = {
    "eq": lambda a, b: a == b, "ne": lambda a, b: a != b, "slt": lambda a, b: a < b, "sle": lambda a, b: a <= b,
    "sgt": lambda a, b: a > b, "sge": lambda a, b: a >= b}
_EXPRESSIONS: dict[str, Callable[[Expr, Expr], Expr]] = {
    "add": build.add, "sub": build.sub, "mul": build.mul, "sdiv": build.floordiv, "srem": build.floormod}


def folded(instruction: str) -> str | None:
    """Returns the result of `instruction` if it is a constant or one of its operands; None if it must be computed."""
    if (found := _COMPARE.fullmatch(instruction)) and _are_numbers(found[2], found[3]):
        return _bool(_COMPARISONS[found[1]](int(found[2]), int(found[3])))
    if (found := _COMPARE.fullmatch(instruction)) and found[2] == found[3]:
        return _bool(found[1] in ("eq", "sle", "sge"))
    if (found := _BINARY.fullmatch(instruction)) and found[1] in _OPERATORS and _are_numbers(found[2], found[3]):
        return str(wrap_integer(_OPERATORS[found[1]](int(found[2]), int(found[3])), INT64))
    if found := _LOGICAL.fullmatch(instruction):
        neutral, deciding = ("true", "false") if found[1] == "and" else ("false", "true")
        if deciding in (found[2], found[3]):
            return deciding
        return found[3] if found[2] == neutral else found[2] if found[3] == neutral else None
    if (found := _SELECT.fullmatch(instruction)) and found[1] in ("true", "false"):
        return found[2] if found[1] == "true" else found[3]
    if (found := _ZEXT.fullmatch(instruction)) and found[1] in ("true", "false"):
        return str(int(found[1] == "true"))
    return None


def expression_of(instruction: str, known: Callable[[str], Expr | None]) -> Expr | None:
    """Returns the expression that `instruction` computes from `known` registers; None if it is not arithmetic or an operand is
    unknown.
    """
    found = _BINARY.fullmatch(instruction)
    if found is None or found[1] not in _EXPRESSIONS:
        return None
    a, b = known(found[2]), known(found[3])
    return None if a is None or b is None else _EXPRESSIONS[found[1]](a, b)


def is_number(value: str) -> bool:
    """Tells whether an operand is a constant rather than a register."""
    return _NUMBER.fullmatch(value) is not None


def _are_numbers(a: str, b: str) -> bool:
    return is_number(a) and is_number(b)


def _bool(value: bool) -> str:
    return "true" if value else "false"
