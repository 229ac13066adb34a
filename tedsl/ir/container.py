"""Sequences and mappings of objects by the names of TVM's containers.

Shapes and axes are Arrays, tuples that print as lists, and to which lists are added, as to TVM's:

    A.shape                      [n, 128]
    A.shape[:1] + [4]            [n, 4], a list
    A.shape[:1] + (4,)           (n, 4), a tuple
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from tedsl.errors import entries
from tedsl.ir.node import FrozenDict

T = TypeVar("T")


class _AnyTuple(type):
    """For `isinstance(x, container.Array)` every tuple is one: loops hold plain ones."""

    def __instancecheck__(cls, value: object) -> bool:
        return isinstance(value, tuple)


class Array(tuple[T, ...], metaclass=_AnyTuple):
    """A tuple that prints as a list, and to which a list can be added, which gives a list."""

    __slots__ = ()

    def __repr__(self) -> str:
        return repr(list(self))

    def __reduce__(self) -> tuple[Any, ...]:
        return Array, (tuple(self),)

    if not TYPE_CHECKING:  # for type checkers it is a tuple
        def __getitem__(self, index):
            found = tuple.__getitem__(self, index)
            return Array(found) if type(index) is slice else found

        def __add__(self, other):
            return list(self) + other if isinstance(other, list) else tuple.__add__(self, other)

        def __radd__(self, other):
            return other + list(self) if isinstance(other, list) else NotImplemented


String: type = str  # texts of programs are Python's
Map = FrozenDict  # buffer_map, attrs: what `runtime.convert` makes of a dict

__all__ = ["Array", "Map", "String"]

entries(globals())
