"""Evaluates integer expressions of shapes and strides at a call, exactly, and finds which variable a dimension determines.

Values are Python ints, so nothing overflows: whether a value fits its variable's dtype is checked by the caller.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from tedsl.errors import LoweringError
from tedsl.ir.expr import (
    EQ,
    GE,
    GT,
    LE,
    LT,
    NE,
    Add,
    And,
    Cast,
    Div,
    Expr,
    FloorDiv,
    FloorMod,
    IntImm,
    Max,
    Min,
    Mod,
    Mul,
    Not,
    Or,
    Select,
    Sub,
    Var,
)
from tedsl.ir.script import shown
from tedsl.ir.walk.visitor import post_order


def _truncated(a: int, b: int) -> int:
    return 0 if b == 0 else abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


BINARY: dict[type[Expr], Callable[[int, int], int]] = {
    Add: lambda a, b: a + b,
    Sub: lambda a, b: a - b,
    Mul: lambda a, b: a * b,
    FloorDiv: lambda a, b: a // b if b else 0,
    FloorMod: lambda a, b: a % b if b else 0,
    Div: _truncated,
    Mod: lambda a, b: a - _truncated(a, b) * b if b else 0,
    Min: min,
    Max: max,
    EQ: lambda a, b: int(a == b),
    NE: lambda a, b: int(a != b),
    LT: lambda a, b: int(a < b),
    LE: lambda a, b: int(a <= b),
    GT: lambda a, b: int(a > b),
    GE: lambda a, b: int(a >= b),
    And: lambda a, b: a & b,
    Or: lambda a, b: a | b,
}


def exact(expr: Expr, values: Mapping[Var, int]) -> int:
    """Returns the value of an integer expression."""
    done: dict[Expr, int] = {}
    for node in post_order(expr):
        match node:
            case IntImm(value=value):
                done[node] = value
            case Var():
                done[node] = values[node]
            case Cast(value=inner):
                done[node] = done[inner]
            case Not(a=a):
                done[node] = 1 - done[a]
            case Select(condition=c, true_value=t, false_value=f):
                done[node] = done[t] if done[c] else done[f]
            case Expr() if type(node) in BINARY:
                done[node] = BINARY[type(node)](done[node.a], done[node.b])  # type: ignore[attr-defined]
            case _:
                raise LoweringError(f"the shape {shown(expr)} of an argument cannot be evaluated at the call",
                                    hint="build shapes from variables, numbers and + - * // % min max")
    return done[expr]


def coefficient(expr: Expr, var: Var) -> int | None:
    """Returns the constant c of expr = c * var + rest, where rest does not use `var`; None if it is not of that form."""
    done: dict[Expr, int | None] = {}
    for node in post_order(expr):
        match node:
            case Var():
                done[node] = int(node is var)
            case Cast(value=a):
                done[node] = done[a]
            case Add(a=a, b=b) | Sub(a=a, b=b):
                left, right = done[a], done[b]
                sign = 1 if isinstance(node, Add) else -1
                done[node] = None if left is None or right is None else left + sign * right
            case Mul(a=a, b=IntImm(value=factor)) | Mul(a=IntImm(value=factor), b=a):
                inner = done[a]
                done[node] = None if inner is None else inner * factor
            case Expr():
                done[node] = 0 if all(done[child] == 0 for child in node.child_nodes()) else None  # type: ignore[index]
    return done[expr]
