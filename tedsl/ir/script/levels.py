"""Operator precedence, as in Python."""

from __future__ import annotations

from enum import IntEnum

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
    Broadcast,
    Call,
    Div,
    Expr,
    FloatImm,
    FloorDiv,
    FloorMod,
    IntImm,
    Let,
    Load,
    Mod,
    Mul,
    Not,
    Or,
    Ramp,
    Sub,
)
from tedsl.ir.node import Node
from tedsl.ir.ops import BITWISE_AND, BITWISE_NOT, BITWISE_OR, BITWISE_XOR, IF_THEN_ELSE, SHIFT_LEFT, SHIFT_RIGHT, Op
from tedsl.ir.script.printer import ScriptPrinter
from tedsl.ir.text import Part


class Level(IntEnum):
    """Precedence levels, from the lowest to the highest."""

    LET = 0
    CHOICE = 1
    OR = 2
    AND = 3
    NOT = 4
    COMPARISON = 5
    BIT_OR = 6
    BIT_XOR = 7
    BIT_AND = 8
    SHIFT = 9
    SUM = 10
    PRODUCT = 11
    UNARY = 12
    ATOM = 13


# How an operator is written, and how tightly it binds; what binds tighter than a sum stands without blanks.
INFIX: dict[type, tuple[str, Level]] = {
    Or: (" or ", Level.OR), And: (" and ", Level.AND),
    EQ: (" == ", Level.COMPARISON), NE: (" != ", Level.COMPARISON), LT: (" < ", Level.COMPARISON),
    LE: (" <= ", Level.COMPARISON), GT: (" > ", Level.COMPARISON), GE: (" >= ", Level.COMPARISON),
    Add: (" + ", Level.SUM), Sub: (" - ", Level.SUM),
    Mul: ("*", Level.PRODUCT), FloorDiv: ("//", Level.PRODUCT), FloorMod: ("%", Level.PRODUCT), Div: ("/", Level.PRODUCT),
}
OPERATORS: dict[Op, tuple[str, Level]] = {
    BITWISE_OR: (" | ", Level.BIT_OR), BITWISE_XOR: (" ^ ", Level.BIT_XOR), BITWISE_AND: (" & ", Level.BIT_AND),
    SHIFT_LEFT: (" << ", Level.SHIFT), SHIFT_RIGHT: (" >> ", Level.SHIFT), BITWISE_NOT: ("~", Level.UNARY),
    IF_THEN_ELSE: (" if ", Level.CHOICE),
}


def level(e: Node, p: ScriptPrinter) -> Level:
    """The precedence of the text of `e`, which decides whether it needs parentheses inside an operator."""
    while isinstance(e, Broadcast):
        e = e.value
    match e:
        case Div() | Mod() if not e.dtype.is_float:
            return Level.ATOM
        case BinaryOp() if type(e) in INFIX:
            return INFIX[type(e)][1]
        case IntImm() | FloatImm():
            return Level.UNARY if e.value < 0 else Level.ATOM
        case Call(op=op):
            return OPERATORS[op][1] if op in OPERATORS else Level.ATOM
        case Not():
            return Level.NOT
        case Ramp():
            return Level.SUM
        case Let():
            return Level.LET
        case Load() if p.needs_mask(e.predicate):
            return Level.CHOICE
    return Level.ATOM


def operand(e: Expr, least: Level, p: ScriptPrinter) -> list[Part]:
    """The text of `e` as an operand, in parentheses if its precedence is below `least`."""
    return [e] if level(e, p) >= least else ["(", e, ")"]
