"""Records: immutable objects of named fields, as frozen dataclasses are, that are quick to define and to make.

    @record                     equal where their fields are, and hashed by them
    @record(eq=False)           compared by identity

Python compiles up to seven functions for a frozen dataclass, a third of the time of an import where there are hundreds, and
fills it through `object.__setattr__`. A record has one such function, its constructor; the others are the same for all records.
`dataclasses.fields`, `replace` and `astuple` work on it.
"""

from __future__ import annotations

import reprlib
from collections.abc import Callable
from dataclasses import MISSING, Field, FrozenInstanceError, dataclass, field, fields
from operator import attrgetter
from typing import TYPE_CHECKING, Any, TypeVar, overload

if TYPE_CHECKING:
    from typing_extensions import dataclass_transform as dataclass_transform
else:
    def dataclass_transform(**_: Any) -> Any:
        return lambda decorator: decorator

T = TypeVar("T")
_FACTORY = object()  # the default of a parameter whose field has a default factory


@overload
def record(cls: type[T], /) -> type[T]: ...
@overload
def record(*, eq: bool = True, repr: bool = True, kw_only: bool = False) -> Callable[[type[T]], type[T]]: ...
@dataclass_transform(frozen_default=True, field_specifiers=(field, Field))
def record(cls: Any = None, /, *, eq: bool = True, repr: bool = True, kw_only: bool = False) -> Any:
    """Class decorator: makes a record of a class with annotated fields.

    eq: compared and hashed by the fields. repr: shown with them. kw_only: the constructor takes them by name alone.
    """
    def decorate(cls: type) -> type:
        made: type = dataclass(init=False, repr=False, eq=False, kw_only=kw_only)(cls)
        own = set(vars(cls))
        methods: list[Callable[..., Any]] = [_constructor(made), *_frozen(made)]
        methods += [_shown] * (repr and "__repr__" not in own)
        methods += _by_value(made, own) if eq else []
        for method in methods:
            setattr(made, method.__name__, method)
        return made

    return decorate if cls is None else decorate(cls)


def _constructor(cls: type) -> Callable[..., None]:
    taken = [f for f in fields(cls) if f.init]
    scope: dict[str, Any] = {"_FACTORY": _FACTORY}
    lines = ["_record = self.__dict__"]  # no field has this name
    for f in fields(cls):
        if f.default_factory is not MISSING:
            scope[f"_make_{f.name}"] = f.default_factory
            made = f"_make_{f.name}()"
            lines.append(f"_record['{f.name}'] = " + (f"{made} if {f.name} is _FACTORY else {f.name}" if f.init else made))
        elif f.init:
            lines.append(f"_record['{f.name}'] = {f.name}")
    if hasattr(cls, "__post_init__"):
        lines.append("self.__post_init__()")
    parameters = ["self"]
    for by_name in (False, True):
        parameters += ["*"] * (by_name and any(f.kw_only for f in taken))
        parameters += [f.name + _default(f, scope) for f in taken if f.kw_only is by_name]
    exec(f"def __init__({', '.join(parameters)}):\n    " + "\n    ".join(lines), scope)
    made_init: Callable[..., None] = scope["__init__"]
    made_init.__module__, made_init.__qualname__ = cls.__module__, f"{cls.__qualname__}.__init__"
    return made_init


def _default(f: Field[Any], scope: dict[str, Any]) -> str:
    """The default of a parameter, whose value is put into the `scope` of the constructor."""
    if f.default_factory is not MISSING:
        return "=_FACTORY"
    if f.default is MISSING:
        return ""
    scope[f"_default_{f.name}"] = f.default
    return f"=_default_{f.name}"


def _frozen(cls: Any) -> list[Callable[..., None]]:
    names = frozenset([f.name for f in fields(cls)])

    def __setattr__(self: Any, name: str, value: object) -> None:
        if type(self) is cls or name in names:
            raise FrozenInstanceError(f"cannot assign to field {name!r}")
        super(cls, self).__setattr__(name, value)

    def __delattr__(self: Any, name: str) -> None:
        if type(self) is cls or name in names:
            raise FrozenInstanceError(f"cannot delete field {name!r}")
        super(cls, self).__delattr__(name)

    return [__setattr__, __delattr__]


@reprlib.recursive_repr()
def _shown(self: Any) -> str:
    shown = ", ".join([f"{f.name}={getattr(self, f.name)!r}" for f in fields(self) if f.repr])
    return f"{type(self).__qualname__}({shown})"


_shown.__name__ = "__repr__"


def _by_value(cls: type, own: set[str]) -> list[Callable[..., Any]]:
    """The methods `__eq__` and `__hash__` of records that are compared by their fields, but for those that the class has."""
    names = [f.name for f in fields(cls) if f.compare]
    values: Callable[[Any], Any] = attrgetter(*names) if names else lambda _: ()

    def __eq__(self: Any, other: object) -> Any:
        return values(self) == values(other) if type(other) is type(self) else NotImplemented

    if len(names) == 1:
        def __hash__(self: Any) -> int:
            return hash((values(self),))
    else:
        def __hash__(self: Any) -> int:
            return hash(values(self))

    has_hash = "__hash__" in own and not ("__eq__" in own and vars(cls)["__hash__"] is None)
    return [*[__eq__] * ("__eq__" not in own), *[__hash__] * (not has_hash)]
