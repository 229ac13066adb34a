"""Sequences of values at run time by the names of TVM's containers."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Sequence
from typing import Any

from tedsl.errors import ArgumentTypeError


class ADT(tuple[Any, ...]):
    """Fields with a number, `tag`, that tells which kind of value they make."""

    tag: int

    def __new__(cls, tag: int, fields: Iterable[Any]) -> ADT:
        for field in fields:
            if isinstance(field, (bool, int, float, str)):
                raise ArgumentTypeError(f"an ADT holds objects, such as arrays, not {field!r}", hint="nd.array(x)")
        made = super().__new__(cls, fields)
        made.tag = operator.index(tag)
        return made


def tuple_object(fields: Sequence[Any] | None = None) -> ADT:
    """The fields as a value of tag 0."""
    return ADT(0, fields or ())


class ShapeTuple(tuple[int, ...]):
    """A shape: ints."""

    def __new__(cls, shape: Iterable[int]) -> ShapeTuple:
        return super().__new__(cls, [operator.index(dim) for dim in shape])

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return len(self)
