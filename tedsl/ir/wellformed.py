"""Checks of arguments shared by the constructors of several nodes, and what nodes say of fields that they do not have."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

from tedsl.errors import (
    ArgumentError,
    ArgumentTypeError,
    DTypeError,
    ShapeError,
    missing_attribute,
    type_in_words,
    with_article,
)
from tedsl.ir.dtype import BOOL, DType
from tedsl.ir.node import Node

if TYPE_CHECKING:
    from tedsl.ir.buffer import Buffer
    from tedsl.ir.expr import Expr


def check_access_lanes(access: DType, index: Expr, predicate: Expr | None, what: Node) -> None:
    if access.lanes != index.dtype.lanes:
        raise DTypeError(f"{type(what).__name__} of {access} at an index of {index.dtype.lanes} lanes")
    if predicate is not None and (not predicate.dtype.is_bool or predicate.dtype.lanes not in (1, access.lanes)):
        raise DTypeError(f"{type(what).__name__} of {access} under a predicate of dtype {predicate.dtype}")


@lru_cache(maxsize=256)
def last_of(indices: tuple[Any, ...]) -> int:
    """The largest index of a shuffle; -1 if one is negative, or no constant. Many shuffles have the same few orders."""
    values = [value if type(value := getattr(index, "value", -1)) is int else -1 for index in indices]
    return -1 if min(values) < 0 else max(values)


def check_rank(buffer: Buffer, indices: tuple[Expr, ...]) -> None:
    if len(indices) != len(buffer.shape):
        raise ShapeError(f"buffer {buffer.name} has {len(buffer.shape)} dimensions and is read or written with "
                         f"{len(indices)} indices")


def producer_dtype(producer: object, what: str) -> DType:
    """The dtype of a tensor of the language; ArgumentTypeError for other objects."""
    of = getattr(producer, "dtype", None)
    if type(of) is not DType or not isinstance(getattr(producer, "name", None), str):
        raise ArgumentTypeError(f"{what}: the field producer is a tensor, not {producer!r}")
    return of


def check_rank_of_producer(producer: Any, count: int, what: str) -> None:
    shape = getattr(producer, "shape", None)
    if not isinstance(shape, tuple):
        raise ArgumentTypeError(f"the field producer is a tensor, not {producer!r}")
    if count != len(shape):
        raise ShapeError(f"the tensor {producer.name} has {len(shape)} dimensions and is given {count} {what}")


def check_condition(condition: Expr, what: Node) -> None:
    if not condition.dtype.is_bool:
        raise DTypeError(f"the condition of {type_in_words(what)} is bool, not {condition.dtype}",
                         hint="compare first, for example x != 0")


def check_name(name: object, what: str) -> None:
    """Raise unless `name` is a str without characters that program text cannot hold: NUL and lone surrogates."""
    if not isinstance(name, str):
        raise ArgumentError(f"the name of {what} is a str, not {name!r}")
    if "\0" in name or (not name.isascii() and any("\ud800" <= letter <= "\udfff" for letter in name)):
        raise ArgumentError(f"the name of {what} has no NUL and no lone surrogate, {name!r} has")


def check_branch(what: Node, name: str) -> None:
    """Raise unless the field `condition` of a statement is a scalar bool."""
    of = getattr(what, "condition").dtype  # noqa: B009 - which node it is does not matter
    if of is not BOOL:
        raise DTypeError(f"the condition of {name} is a scalar bool, not {of}",
                         hint="compare: x > 0" if of.lanes == 1 else "write it for one element: a vectorized loop makes lanes")


_INSTEAD = {"buffer": "buffer_var, the variable of the flat memory that lowered modules hold",
            "indices": "index, the one place in the flat memory that lowered modules hold"}


class FlatAccess:
    """The base of accesses by `buffer_var` and `index`: they name these when asked for those of BufferLoad and BufferStore."""

    __slots__ = ()

    if not TYPE_CHECKING:  # for type checkers a misspelled name is an error
        def __getattr__(self, name: str) -> Any:
            if name not in _INSTEAD:
                raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}", name=name, obj=self)
            raise missing_attribute(with_article(type(self).__name__), name, self, _INSTEAD)
