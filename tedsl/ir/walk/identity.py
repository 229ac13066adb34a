"""What a value says, as a digest: equal for values that agree in everything, in any process; None where that cannot be said.

For keys of caches. A value is taken apart down to numbers and texts: nodes by the arguments of their constructors, records
(dataclasses of tedsl and topi) by their fields, other classes of ours by the attributes that they list as `identity_fields`.
A mapping that is only asked about objects met elsewhere is listed in `identity_lookups`: what it says of others is left out.
What is shared stays shared: an object is written where it is first met and is a number from then on, so that two variables of
one name are told apart, and two programs have one digest only if some renaming of objects makes them the same. Functions,
arrays and objects of other packages say nothing that another process could compare: whatever holds one has no identity.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Collection, Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from functools import cache
from typing import Any, NamedTuple

from tedsl.digest import digest
from tedsl.ir.container import Array
from tedsl.ir.dtype import DType
from tedsl.ir.expr import FloatImm, IntImm, StringImm, Var
from tedsl.ir.node import FrozenDict, Node
from tedsl.ir.types import PrimType

OURS = ("tedsl", "topi")  # packages whose records are known to hold all that they say in their fields


def identity(value: Any, without: Collection[type] = ()) -> str | None:
    """Returns the digest of what `value` says, or None if it holds something that cannot be compared across processes.

    without: classes whose objects say nothing, such as the lines of the program that wrote a formula.
    """
    try:
        words = _words(value, without)
    except _Unknown:
        return None
    return digest(_ENCODER.encode(words).encode())


_ENCODER = json.JSONEncoder(separators=(",", ":"), check_circular=False)


class _Unknown(Exception):
    """An object that says nothing that could be compared in another process."""


def _words(value: Any, without: Collection[type] = ()) -> list[Any]:
    writer = _Writer(without)
    writer.write(value)
    writer.write_lookups()
    return writer.words


class _Writer:
    """Writes values as words: an object is a word for its class, then its parts, whose number is that of the class or a word.

    Words of one kind begin with one letter, so that no text of a program is taken for a class.
    """

    def __init__(self, without: Collection[type] = ()) -> None:
        self.constants = {**_CONSTANTS, **dict.fromkeys(without, _nothing)} if without else _CONSTANTS
        self.words: list[Any] = []
        self.known: dict[int, tuple[str, Any]] = {}  # by id; the objects are held, so that no other one gets their id
        self.lookups: list[Mapping[Any, Any]] = []

    def write(self, value: Any) -> None:
        words, known, constants = self.words, self.known, self.constants
        stack = [value]
        while stack:
            item = stack.pop()
            cls = type(item)
            constant = constants.get(cls)
            if constant is not None:
                words.append(constant(item))
                continue
            if cls is tuple or cls is list or cls is Array:
                words.append(f"{'[' if cls is list else '('}{len(item)}")
                stack.extend(item[::-1])
                continue
            seen = known.get(id(item))
            if seen is not None:
                words.append(seen[0])
                continue
            if isinstance(item, Enum):
                words.append(_enum_word(item))
                continue
            kind = _KINDS.get(cls) or _kind_of(cls)
            words.append(kind.word)
            if kind.is_shared:
                known[id(item)] = f"#{len(known)}", item
            if kind.attributes or kind.lookups:
                stack.extend([getattr(item, attribute) for attribute in kind.attributes])
                self.lookups += [getattr(item, attribute) for attribute in kind.lookups]
            elif cls in (dict, FrozenDict):
                words.append(len(item))
                for key, held in reversed(list(item.items())):
                    stack += (held, key)
            elif all(type(member) is str for member in item):  # a set
                words.append(sorted(item))
            else:
                raise _Unknown

    def write_lookups(self) -> None:
        """Writes the entries of lookups whose keys were met; of all others the texts that they map to, which are taken."""
        left = [(number, key, held) for number, entries in enumerate(self.lookups) for key, held in entries.items()]
        count = -1
        while count != len(left):
            count, waiting, left = len(left), left, []
            for number, key, held in waiting:
                word = self._met(key)
                if word is None:
                    left.append((number, key, held))
                    continue
                self.words += ("=", number, word)
                self.write(held)
        self.words += [f"'{held}" for _, _, held in left if type(held) is str]

    def _met(self, key: Any) -> Any:
        """The words of an object that was met before; None for any other."""
        cls = type(key)
        constant = _CONSTANTS.get(cls)
        if constant is not None:
            return constant(key)
        kind = _KINDS.get(cls)
        if kind is None or kind.is_shared or not kind.attributes:
            seen = self.known.get(id(key))
            return None if seen is None else seen[0]
        parts = [self._met(getattr(key, attribute)) for attribute in kind.attributes]  # of a value
        return None if None in parts else [kind.word, *parts]


def _nothing(_: object) -> str:
    return "-"


def _bits(number: float) -> str:
    """The bits of a float, in which NaNs differ."""
    return struct.pack("<d", number).hex()


# The word of a constant, by its class. Which object it is means nothing.
_CONSTANTS: dict[type[Any], Callable[[Any], Any]] = {
    type(None): _nothing, bool: bool, int: int, str: lambda text: f"'{text}", float: lambda number: f"f{_bits(number)}",
    DType: lambda dtype: f":{dtype}", PrimType: lambda of: f"p{of.dtype}",
    IntImm: lambda e: f"i{e.dtype}={e.value:d}", FloatImm: lambda e: f"x{e.dtype}={_bits(e.value)}",
    StringImm: lambda e: f"s{e.value}",
}


class _Kind(NamedTuple):
    """How objects of a class are written: the word for it, the attributes that say what an object is, the last one first,
    whether it matters which object it is, and which attributes are lookups.
    """

    word: str
    attributes: tuple[str, ...] = ()
    is_shared: bool = False
    lookups: tuple[str, ...] = ()


_KINDS: dict[type[Any], _Kind] = {dict: _Kind("{"), FrozenDict: _Kind("{"), set: _Kind("<"), frozenset: _Kind("<")}


@cache
def _enum_word(member: Enum) -> str:
    cls = type(member)
    if cls.__module__.partition(".")[0] not in OURS:
        raise _Unknown
    return f"e{cls.__module__}.{cls.__qualname__}.{member.name}"


def _kind_of(cls: type[Any]) -> _Kind:
    if cls.__module__.partition(".")[0] not in OURS:
        raise _Unknown
    listed: tuple[str, ...] | None = cls.__dict__.get("identity_fields")
    lookups: tuple[str, ...] = cls.__dict__.get("identity_lookups", ())
    if listed is None and issubclass(cls, Var):
        listed = ("name", "type_annotation")
    elif listed is None and issubclass(cls, Node):
        listed = cls.init_fields
    elif listed is None and is_dataclass(cls):
        listed = tuple([field.name for field in fields(cls)])
    if not (listed or lookups):
        raise _Unknown
    is_value = cls.__dict__.get("identity_by_value", False)
    attributes = tuple([name for name in reversed(listed or ()) if name not in lookups])
    return _KINDS.setdefault(cls, _Kind(f"c{cls.__module__}.{cls.__qualname__}", attributes, not is_value, lookups))
