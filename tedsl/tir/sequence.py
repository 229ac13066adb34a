"""Statements one after the other, as programs written for TVM put them together and take them apart."""

from __future__ import annotations

from typing import Any

from tedsl.errors import ArgumentTypeError
from tedsl.ir.build import as_expr
from tedsl.ir.expr import Expr
from tedsl.ir.stmt import Evaluate, SeqStmt, Stmt


def stmt_seq(*args: Any) -> Stmt:
    """The statements `args` in order; an expression among them is evaluated. One statement stays what it is."""
    made: list[Stmt] = []
    for arg in args:
        if isinstance(arg, Stmt):
            made.append(arg)
        elif isinstance(arg, (Expr, int, float)):
            made.append(Evaluate(as_expr(arg)))
        else:
            raise ArgumentTypeError(f"stmt_seq takes statements and expressions, not {arg!r}")
    return made[0] if len(made) == 1 else SeqStmt(tuple(made))


def stmt_list(stmt: Stmt) -> list[Stmt]:
    """The statements of a sequence, also of sequences within it; any other statement alone."""
    return [one for part in stmt.seq for one in stmt_list(part)] if isinstance(stmt, SeqStmt) else [stmt]
