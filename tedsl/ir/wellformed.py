"""What the constructors of several nodes check about their arguments."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tedsl.errors import ArgumentError, DTypeError, ShapeError
from tedsl.ir.dtype import BOOL, DType
from tedsl.ir.node import Node, set_field

if TYPE_CHECKING:
    from tedsl.ir.buffer import Buffer
    from tedsl.ir.expr import Expr


def adopt(what: Node, *names: str) -> None:
    """Turn operands given as users write them (an axis, `A[i] == x`, a number) into expressions; a pair gets one dtype."""
    from tedsl.ir import build
    from tedsl.ir.expr import Expr

    given = [getattr(what, name) for name in names]
    if all(isinstance(value, Expr) for value in given):
        return
    made = build.match_operands(*given, keep_bool=True) if len(given) == 2 else [build.as_expr(value) for value in given]
    for name, value in zip(names, made):
        set_field(what, name, value)


def constants_of(what: Node, dtype: DType, *names: str) -> None:
    """Turn Python numbers and axes given for these fields into expressions, the numbers of `dtype`."""
    from tedsl.ir.expr import Expr

    for name in names:
        value = getattr(what, name)
        if not isinstance(value, Expr):
            from tedsl.ir import build

            set_field(what, name, build.as_expr(value, dtype))


def check_access_lanes(access: DType, index: Expr, predicate: Expr | None, what: Node) -> None:
    if access.lanes != index.dtype.lanes:
        raise DTypeError(f"{type(what).__name__} of {access} at an index of {index.dtype.lanes} lanes")
    if predicate is not None and (not predicate.dtype.is_bool or predicate.dtype.lanes not in (1, access.lanes)):
        raise DTypeError(f"{type(what).__name__} of {access} under a predicate of dtype {predicate.dtype}")


def check_rank(buffer: Buffer, indices: tuple[Expr, ...]) -> None:
    if len(indices) != len(buffer.shape):
        raise ShapeError(f"buffer {buffer.name} has {len(buffer.shape)} dimensions and is read or written with "
                         f"{len(indices)} indices")


def check_condition(condition: Expr, what: Node) -> None:
    if not condition.dtype.is_bool:
        raise DTypeError(f"the condition of a {type(what).__name__} is bool, not {condition.dtype}",
                         hint="compare first, for example x != 0")


def check_name(name: object, what: str) -> None:
    """Refuses what is no str, and what no text of a program can hold: a NUL, half of a character (a lone surrogate)."""
    if not isinstance(name, str):
        raise ArgumentError(f"the name of {what} is a str, not {name!r}")
    if "\0" in name or (not name.isascii() and any("\ud800" <= letter <= "\udfff" for letter in name)):
        raise ArgumentError(f"the name of {what} has no NUL and no lone surrogate, {name!r} has")


def check_branch(what: Node, name: str) -> None:
    """The field `condition` of a statement, as an expression: it decides by a single truth value."""
    from tedsl.ir.expr import Expr

    if not isinstance(getattr(what, "condition"), Expr):  # noqa: B009 - which node it is does not matter
        adopt(what, "condition")
    of = getattr(what, "condition").dtype  # noqa: B009
    if of is not BOOL:
        raise DTypeError(f"the condition of {name} is a scalar bool, not {of}",
                         hint="compare: x > 0" if of.lanes == 1 else "write it for one element: a vectorized loop makes lanes")
