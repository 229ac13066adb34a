"""What a value says, as a digest: equal for values that agree in everything, in any process; None where that cannot be said.

For keys of caches. A value is taken apart down to numbers and texts: nodes by the arguments of their constructors, records
(dataclasses of tedsl and topi) by their fields, other classes of ours by the attributes that they list as `identity_fields`.
What is shared stays shared: an object is written where it is first met and is a number from then on, so that two variables of
one name are told apart, and two programs have one digest only if some renaming of objects makes them the same. Functions,
arrays and objects of other packages say nothing that another process could compare: whatever holds one has no identity.
"""

from __future__ import annotations

import hashlib
import json
import struct
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from enum import Enum
from typing import Any, NamedTuple

from tedsl.ir.dtype import DType
from tedsl.ir.expr import FloatImm, IntImm, StringImm, Var
from tedsl.ir.node import FrozenDict, Node
from tedsl.ir.types import PrimType

OURS = ("tedsl", "topi")  # packages whose records are known to hold all that they say in their fields
_BYTES = 24  # of a digest
_LEAVES = (IntImm, FloatImm, StringImm)  # constants: which object it is means nothing


def digest(data: bytes) -> str:
    """Returns the digest of `data` in hexadecimal digits."""
    return hashlib.blake2b(data, digest_size=_BYTES).hexdigest()


def identity(value: Any) -> str | None:
    """Returns the digest of what `value` says, or None if it holds something that cannot be compared across processes."""
    try:
        words = _words(value)
    except _Unknown:
        return None
    return digest(json.dumps(words, separators=(",", ":"), check_circular=False).encode())


class _Unknown(Exception):
    """An object that says nothing that could be compared in another process."""


def _words(value: Any) -> list[Any]:
    """The words of `value`: each object is a word for its class, then its parts, whose number is that of the class or a word.

    Words of one kind begin with one letter, so that no text of a program is taken for a class.
    """
    words: list[Any] = []
    known: dict[int, tuple[str, Any]] = {}  # by id; the objects are held, so that no other one gets their id
    stack = [value]
    while stack:
        item = stack.pop()
        cls = type(item)
        constant = _CONSTANTS.get(cls)
        if constant is not None:
            words.append(constant(item))
            continue
        if cls is tuple or cls is list:
            words += ("(" if cls is tuple else "[", len(item))
            stack.extend(item[::-1])
            continue
        seen = known.get(id(item))
        if seen is not None:
            words.append(seen[0])
            continue
        kind = _KINDS.get(cls) or _kind_of(cls)
        words.append(kind.word)
        if kind.is_shared:
            known[id(item)] = f"#{len(known)}", item
        if kind.attributes:
            stack.extend([getattr(item, attribute) for attribute in kind.attributes])
        elif issubclass(cls, Enum):
            words.append(item.name)
        elif cls in (dict, FrozenDict):
            words.append(len(item))
            for key, held in reversed(list(item.items())):
                stack += (held, key)
        elif all(type(member) is str for member in item):  # a set
            words.append(sorted(item))
        else:
            raise _Unknown
    return words


# The word of a constant, by its class. Of a float its bits, in which NaNs differ.
_CONSTANTS: dict[type[Any], Callable[[Any], Any]] = {
    type(None): lambda _: "-", str: lambda text: f"'{text}", bool: bool, int: int, DType: lambda dtype: f":{dtype}",
    float: lambda number: f"f{struct.pack('<d', number).hex()}",
    PrimType: lambda of: f"p{of.dtype}",
}


class _Kind(NamedTuple):
    """How objects of a class are written: the word for it, the attributes that say what an object is, the last one first, and
    whether it matters which object it is.
    """

    word: str
    attributes: tuple[str, ...] = ()
    is_shared: bool = False


_KINDS: dict[type[Any], _Kind] = {dict: _Kind("{"), FrozenDict: _Kind("{"), set: _Kind("<"), frozenset: _Kind("<")}


def _kind_of(cls: type[Any]) -> _Kind:
    if cls.__module__.partition(".")[0] not in OURS:
        raise _Unknown
    word = f"c{cls.__module__}.{cls.__qualname__}"
    listed: tuple[str, ...] | None = cls.__dict__.get("identity_fields")
    if listed is None and issubclass(cls, Var):
        listed = ("name", "type_annotation")
    elif listed is None and issubclass(cls, Node):
        listed = cls.init_fields
    elif listed is None and is_dataclass(cls):
        listed = tuple([field.name for field in fields(cls)])
    if not listed and not issubclass(cls, Enum):
        raise _Unknown
    return _KINDS.setdefault(cls, _Kind(word, (listed or ())[::-1], bool(listed) and cls not in _LEAVES))
