"""Sequences of statements, composed and taken apart, by the names of TVM."""

from __future__ import annotations

from typing import Any

from tedsl.errors import ArgumentTypeError
from tedsl.ir.build import as_expr
from tedsl.ir.expr import Expr
from tedsl.ir.stmt import Evaluate, SeqStmt, Stmt


def stmt_seq(*args: Any) -> Stmt:
    """Returns the sequence of the statements `args`; an expression becomes an Evaluate. A single statement is returned
    unchanged.

    Raises ArgumentTypeError for anything else.
    """
    statements: list[Stmt] = []
    for arg in args:
        if isinstance(arg, Stmt):
            statements.append(arg)
        elif isinstance(arg, (Expr, int, float)):
            statements.append(Evaluate(as_expr(arg)))
        else:
            raise ArgumentTypeError(f"stmt_seq takes statements and expressions, not {arg!r}")
    return statements[0] if len(statements) == 1 else SeqStmt(tuple(statements))


def stmt_list(stmt: Stmt) -> list[Stmt]:
    """Returns the statements of a sequence, nested sequences flattened; any other statement as the only one."""
    return [leaf for part in stmt.seq for leaf in stmt_list(part)] if isinstance(stmt, SeqStmt) else [stmt]
