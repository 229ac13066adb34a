"""Translates expressions to the language of journals, where it can express them."""

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
from tedsl.schedule.record.term import Apply, Name, Term, text_of

BINARY = {Add: "+", Sub: "-", Mul: "*", FloorDiv: "//", FloorMod: "%", LT: "<", LE: "<=", GT: ">", GE: ">=", EQ: "==",
          NE: "!=", Min: "te.min", Max: "te.max", And: "te.all", Or: "te.any"}
BITS = {BITWISE_AND: "&", BITWISE_OR: "|", BITWISE_XOR: "^", SHIFT_RIGHT: ">>"}
LONGEST = 200  # characters: what is longer is kept as an object
DEEPEST = 20


class _NoForm(Exception):
    """Raised for an expression that the language cannot express."""


def formula(expr: Expr, term_of_var: Callable[[Var], Term]) -> Term:
    """`expr` as a term over the terms of its variables; None where the language cannot express it, or only at length."""
    try:
        term = _formula(expr, term_of_var, 0)
    except _NoForm:
        return None
    return term if len(text_of(term)) <= LONGEST else None


def spelled(expr: Expr) -> str | None:
    """`expr` as Python over the names of its variables; None where `formula` returns None."""
    term = formula(expr, lambda var: Name(var.name))
    return None if term is None else text_of(term)


def _formula(e: Expr, term_of_var: Callable[[Var], Term], depth: int) -> Term:
    if depth > DEEPEST:
        raise _NoForm

    def parts(*children: Expr) -> tuple[Term, ...]:
        return tuple([_formula(child, term_of_var, depth + 1) for child in children])

    match e:
        case Var():
            return term_of_var(e)
        case IntImm(value=value) if not e.dtype.lanes > 1:
            return value if e.dtype is INT32 else Apply("te.const", (value, str(e.dtype)))
        case Cast(value=Var() as var):
            return Apply("astype", (*parts(var), str(e.dtype)))
        case Not(a=a):
            return Apply("~", parts(a))
        case Call(op=op, args=(Expr() as a,)) if op is BITWISE_NOT:
            return Apply("~", parts(a))
        case Call(op=op, args=(Expr() as a, Expr() as b)) if op in BITS:
            return Apply(BITS[op], parts(a, b))
        case BinaryOp(a=a, b=b) if type(e) in BINARY:
            return Apply(BINARY[type(e)], parts(a, b))
    raise _NoForm
