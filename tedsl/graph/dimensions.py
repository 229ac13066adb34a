"""Extents of values: numbers, or expressions over named variables such as the size of a batch."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, TypeAlias

import numpy

from tedsl.arith.analyzer import Analyzer
from tedsl.errors import ArgumentError, ArgumentTypeError, type_in_words
from tedsl.ir.dtype import INT32
from tedsl.ir.expr import Add, BinaryOp, Expr, FloorDiv, FloorMod, IntImm, Max, Min, Mul, SizeVar, Sub, Var
from tedsl.ir.walk.substitute import substitute

Dimension: TypeAlias = "int | Expr"
_SIGNS = {Add: "+", Sub: "-", Mul: "*", FloorDiv: "//", FloorMod: "%"}
_OPERATORS: dict[type, Any] = {ast.Add: Add, ast.Sub: Sub, ast.Mult: Mul, ast.FloorDiv: FloorDiv, ast.Mod: FloorMod}
_FUNCTIONS = {"max": Max, "min": Min}
_EXPECTED: ContextVar[Mapping[Var, Dimension]] = ContextVar("expected extents of variables")


def as_dimension(extent: Any) -> Dimension:
    """An extent as an int where it is a constant, simplified where not."""
    if isinstance(extent, bool) or not isinstance(extent, (int, numpy.integer, Expr)):
        raise ArgumentTypeError(f"an extent is an int or an expression such as te.var('n'), not {type_in_words(extent)}")
    if isinstance(extent, Expr):
        simple = extent if isinstance(extent, (IntImm, Var)) else Analyzer().simplify(extent)
        extent = int(simple.value) if isinstance(simple, IntImm) else simple
    if not isinstance(extent, Expr) and extent < 0:
        raise ArgumentError(f"an extent is at least 0, not {extent}")
    return extent if isinstance(extent, Expr) else int(extent)


def dimension_text(extent: Dimension) -> str:
    """An extent as it stands in texts: 3, n, (n + 1), max(n, 2)."""
    match extent:
        case int():
            return str(extent)
        case IntImm(value=number):
            return str(number)
        case Var(name=name):
            return name
        case Max(a=a, b=b) | Min(a=a, b=b):
            return f"{type(extent).__name__.lower()}({dimension_text(a)}, {dimension_text(b)})"
        case Add() | Sub() | Mul() | FloorDiv() | FloorMod():
            return f"({dimension_text(extent.a)} {_SIGNS[type(extent)]} {dimension_text(extent.b)})"
        case _:
            raise ArgumentTypeError(f"{extent} cannot be an extent: + - * // % max min of variables and numbers can")


def dimension_of(tree: ast.expr, variables: dict[str, Var]) -> Dimension | None:
    """The extent that a piece of text says; None if it says none. Unknown names become variables."""
    match tree:
        case ast.Constant(value=int() as number) if not isinstance(number, bool):
            return number
        case ast.Name(id=name):
            return variables.setdefault(name, SizeVar(name))
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _OPERATORS:
            divisor = dimension_of(right, variables)
            if divisor == 0 and isinstance(op, (ast.FloorDiv, ast.Mod)):
                return None
            return _binary(_OPERATORS[type(op)], dimension_of(left, variables), divisor)
        case ast.Call(func=ast.Name(id=name), args=[left, right]) if name in _FUNCTIONS:
            return _binary(_FUNCTIONS[name], dimension_of(left, variables), dimension_of(right, variables))
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() as number)):
            return -number
        case _:
            return None


def _binary(kind: Any, left: Dimension | None, right: Dimension | None) -> Expr | None:
    if left is None or right is None:
        return None
    made: Expr = kind(*[IntImm(INT32, side) if isinstance(side, int) else side for side in (left, right)])
    return made


def with_extents(extent: Dimension, extents: Mapping[Var, Dimension]) -> Dimension:
    """The extent with numbers, or other expressions, in place of variables."""
    if isinstance(extent, int):
        return extent
    new = {var: IntImm(var.dtype, extent) if isinstance(extent, int) else extent for var, extent in extents.items()}
    return as_dimension(substitute(extent, new))


def variables_in(extent: Dimension) -> list[Var]:
    """The variables of an extent, each once, in order."""
    found: dict[Var, None] = {}
    stack: list[Any] = [extent]
    while stack:
        part = stack.pop()
        if isinstance(part, Var):
            found[part] = None
        elif isinstance(part, BinaryOp):
            stack += [part.b, part.a]
    return list(found)


@contextmanager
def expecting(extents: Mapping[Var, Dimension]) -> Iterator[None]:
    """Context manager in which the variables are expected to be these numbers, by choices that depend on them."""
    before = _EXPECTED.set(extents)
    try:
        yield
    finally:
        _EXPECTED.reset(before)


def expected_extent(extent: Dimension) -> int:
    """The number that an extent is expected to be: that of the variables that `expecting` gives; 1 where they are not known."""
    known = with_extents(extent, _EXPECTED.get({}))
    return known if isinstance(known, int) else 1
