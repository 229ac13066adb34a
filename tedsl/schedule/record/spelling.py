"""Expressions as Python: what the journal writes for an argument that is a formula, as far as it can be written."""

from __future__ import annotations

from collections.abc import Callable

from tedsl.ir.dtype import INT32
from tedsl.ir.expr import (
    EQ,
    GE,
    GT,
    LE,
    LT,
    NE,
    Add,
    And,
    BinaryOp,
    Call,
    Cast,
    Expr,
    FloorDiv,
    FloorMod,
    IntImm,
    Max,
    Min,
    Mul,
    Not,
    Or,
    Sub,
    Var,
)
from tedsl.ir.ops import BITWISE_AND, BITWISE_NOT, BITWISE_OR, BITWISE_XOR, SHIFT_RIGHT

INFIX = {Add: "+", Sub: "-", Mul: "*", FloorDiv: "//", FloorMod: "%", LT: "<", LE: "<=", GT: ">", GE: ">=", EQ: "==", NE: "!="}
CALLS = {Min: "te.min", Max: "te.max", And: "te.all", Or: "te.any"}
BITS = {BITWISE_AND: "&", BITWISE_OR: "|", BITWISE_XOR: "^", SHIFT_RIGHT: ">>"}
LONGEST = 200  # characters: what is longer is kept as an object


def spelled(expr: Expr, name_of: Callable[[Var], str | None]) -> str | None:
    """`expr` in Python over the names of its variables; None where that cannot be said, or not briefly."""
    try:
        text = _spell(expr, name_of, 0)
    except _CannotSpell:
        return None
    return text if len(text) <= LONGEST else None


class _CannotSpell(Exception):
    pass


def _spell(e: Expr, name_of: Callable[[Var], str | None], depth: int) -> str:
    if depth > 20:
        raise _CannotSpell
    if isinstance(e, IntImm) and not e.dtype.lanes > 1:
        return str(e.value) if e.dtype is INT32 else f"te.const({e.value}, {str(e.dtype)!r})"
    if isinstance(e, Var):
        name = name_of(e)
        if name is None:
            raise _CannotSpell
        return name
    if isinstance(e, Cast):
        return f"{_spell(e.value, name_of, depth + 1)}.astype({str(e.dtype)!r})" if isinstance(e.value, Var) else _unknown()
    if isinstance(e, Not):
        return f"(~{_spell(e.a, name_of, depth + 1)})"
    if isinstance(e, Call) and e.op in BITS:
        a, b = (_spell(part, name_of, depth + 1) for part in e.args)
        return f"({a} {BITS[e.op]} {b})"
    if isinstance(e, Call) and e.op is BITWISE_NOT:
        return f"(~{_spell(e.args[0], name_of, depth + 1)})"
    if isinstance(e, BinaryOp) and (type(e) in INFIX or type(e) in CALLS):
        a, b = (_spell(part, name_of, depth + 1) for part in (e.a, e.b))
        return f"({a} {INFIX[type(e)]} {b})" if type(e) in INFIX else f"{CALLS[type(e)]}({a}, {b})"
    return _unknown()


def _unknown() -> str:
    raise _CannotSpell
