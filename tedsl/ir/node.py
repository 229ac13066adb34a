"""What every IR object is: immutable, slotted, compared and hashed by identity, rebuilt by `map_children`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import MISSING, Field, dataclass, field, fields
from operator import is_
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from tedsl.errors import ArgumentTypeError, TedslError

if TYPE_CHECKING:
    from typing_extensions import Self, dataclass_transform
else:
    def dataclass_transform(**_: Any) -> Any:
        return lambda decorator: decorator

T = TypeVar("T")
K = TypeVar("K")
V = TypeVar("V", covariant=True)


@dataclass_transform(frozen_default=True, eq_default=False, field_specifiers=(field, Field))
def node(cls: type[T]) -> type[T]:
    """Class decorator of every IR node: immutable, slotted, compared and hashed by identity.

    Slots are set through their descriptors: half the time of a frozen dataclass. A `__post_init__`
    checks the arguments and fills the fields marked `init=False`.
    """
    made = dataclass(frozen=True, slots=True, eq=False, init=False, repr=False)(cls)
    for method in (_make_init(made), *_make_walkers(made)):
        setattr(made, method.__name__, method)  # mypy forbids the assignment
    setattr(made, "init_fields", tuple(f.name for f in fields(made) if f.init))  # type: ignore[arg-type]  # noqa: B010
    return made


def _make_init(cls: type) -> Callable[..., None]:
    arguments = [f for f in fields(cls) if f.init]
    scope: dict[str, Any] = {f"_set_{f.name}": getattr(cls, f.name).__set__ for f in arguments}
    scope |= {f"_default_{f.name}": f.default for f in arguments}
    header = ", ".join(f.name if f.default is MISSING else f"{f.name}=_default_{f.name}" for f in arguments)
    lines = [f"_set_{f.name}(self, {f.name})" for f in arguments]
    if hasattr(cls, "__post_init__"):
        scope |= {"_refused": _refused, "TedslError": TedslError}
        lines += ["try: self.__post_init__()", "except TedslError: raise",
                  "except (AttributeError, TypeError, ValueError) as error: raise _refused(self, error) from error"]
    exec(f"def __init__(self, {header}):\n    " + "\n    ".join(lines or ["pass"]), scope)  # names are ours alone
    made: Callable[..., None] = scope["__init__"]
    made.__qualname__ = f"{cls.__qualname__}.__init__"
    return made


def _refused(made: Any, error: Exception) -> ArgumentTypeError:
    """What a constructor says that got objects of other types than its fields are: its checks failed on them."""
    cls = type(made)
    takes = ", ".join(f"{f.name}: {f.type}" for f in fields(cls) if f.init)
    given = ", ".join(type(getattr(made, f.name)).__name__ for f in fields(cls) if f.init)
    return ArgumentTypeError(f"{cls.__name__} takes ({takes}), and got ({given}): {error}")


def _make_walkers(cls: type) -> list[Callable[..., Any]]:
    """`child_nodes` and `map_children` without a loop over the fields: passes spend their time in these."""
    base: Any = cls
    if not cls.children or base.child_nodes is not Node.child_nodes:  # type: ignore[attr-defined]
        return []
    types = {f.name: str(f.type) for f in fields(cls)}
    listed, mapped, same = [], [], []
    for name in base.children:
        many, optional = types[name].startswith("tuple["), types[name].endswith("| None")
        listed.append(f"*self.{name}" if many else f"*(() if self.{name} is None else (self.{name},))" if optional
                      else f"self.{name}")
        mapped.append(f"{name} = self.{name}; new_{name} = " + (f"tuple([fn(item) for item in {name}])" if many else
                      f"None if {name} is None else fn({name})" if optional else f"fn({name})"))
        same.append(f"all(map(is_, {name}, new_{name}))" if many else f"new_{name} is {name}")
    changed = ", ".join(f"{name}=new_{name}" for name in base.children)
    scope: dict[str, Any] = {"is_": is_}
    exec(f"def child_nodes(self):\n    return [{', '.join(listed)}]\n"
         "def map_children(self, fn):\n    " + "\n    ".join(mapped) +
         f"\n    return self if {' and '.join(same)} else self.replace({changed})\n", scope)
    made = [scope["child_nodes"], scope["map_children"]]
    for method in made:
        method.__qualname__ = f"{cls.__qualname__}.{method.__name__}"
    return made


set_field = object.__setattr__  # for __post_init__ only: a node never changes afterwards


class Node:
    """Base of expressions, statements, ranges and functions.

    children: names of the fields that hold child nodes (a node, None, or a tuple of nodes), in evaluation order.
    binders: names of the fields that define a variable (or iteration variable); rewriters leave them alone.
    """

    __slots__ = ("__weakref__",)
    children: ClassVar[tuple[str, ...]] = ()
    binders: ClassVar[tuple[str, ...]] = ()
    init_fields: ClassVar[tuple[str, ...]] = ()  # filled by `node`: the arguments of the constructor
    full_text: ClassVar[Callable[[object], str]]  # how `str` prints a node, and `repr`: set by `text`, which stands above
    short_text: ClassVar[Callable[[object], str]]

    def child_nodes(self) -> list[Node]:
        """The children, in order; None is left out."""
        found: list[Node] = []
        for name in self.children:
            value = getattr(self, name)
            if isinstance(value, tuple):
                found.extend(value)
            elif value is not None:
                found.append(value)
        return found

    def map_children(self, fn: Callable[[Any], Any]) -> Self:
        """This node with `fn` applied to each child, or this very object if no child changed."""
        changed: dict[str, Any] = {}
        for name in self.children:
            old = getattr(self, name)
            if isinstance(old, tuple):
                new: Any = tuple([fn(item) for item in old])
                if any(a is not b for a, b in zip(new, old)):
                    changed[name] = new
            elif old is not None:
                new = fn(old)
                if new is not old:
                    changed[name] = new
        return self.replace(**changed) if changed else self

    def replace(self, **changed: Any) -> Self:
        """A copy with the named fields changed."""
        cls: Any = type(self)
        return cls(*[changed[name] if name in changed else getattr(self, name)  # type: ignore[no-any-return]
                     for name in cls.init_fields])

    def same_as(self, other: object) -> bool:
        """Whether both are the same object."""
        return self is other

    def __copy__(self) -> Self:
        return self

    def __repr__(self) -> str:
        return type(self).short_text(self)

    def __str__(self) -> str:
        return type(self).full_text(self)


class FrozenDict(Mapping[K, V]):
    """An immutable mapping that keeps its order and finds keys by identity of nodes (or equality of strings)."""

    __slots__ = ("_items",)

    def __init__(self, items: Mapping[K, V] | None = None) -> None:
        self._items: dict[K, V] = dict(items or {})

    def __getitem__(self, key: K) -> V:
        return self._items[key]

    def __iter__(self) -> Iterator[K]:
        return iter(self._items)

    def __len__(self) -> int:
        return len(self._items)

    def __hash__(self) -> int:
        return len(self._items)  # equal mappings have equal hashes

    def __repr__(self) -> str:
        return "{" + ", ".join(f"{k!r}: {v!r}" for k, v in self._items.items()) + "}"
