"""The base of all IR objects: immutable, slotted, compared and hashed by identity, rebuilt by `map_children`."""

from __future__ import annotations

import operator
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import MISSING, Field, FrozenInstanceError, dataclass, field, fields
from enum import IntEnum
from inspect import Parameter, Signature
from itertools import count
from operator import is_
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from tedsl.errors import ArgumentError, ArgumentTypeError, TedslError, arguments_that_misfit, with_article
from tedsl.record import dataclass_transform

if TYPE_CHECKING:
    from typing_extensions import Self

T = TypeVar("T")
K = TypeVar("K")
V = TypeVar("V", covariant=True)

# The globals of all constructors. Classes of nodes enter themselves here, so that a field may hold nodes of a later class;
# so does `operand` of `ir/operators.py`, which stands above the nodes.
SCOPE: dict[str, Any] = {}
_KINDS: dict[object, int] = {}  # the bit of each kind that `walk/contents.py` asks for
_numbers = count()
MASKED = "masked access"  # the kind of loads and stores that have a predicate
POINTER = "pointer"  # the kind of variables of dtype handle
FLOAT_PRODUCT = "product of floats"  # the kind of such a Mul: of indices there are many
# Left to the `__post_init__` of each class.
_UNCHECKED = ("Any", "DType", "float", "PointerType | PrimType")


@dataclass_transform(frozen_default=True, eq_default=False, field_specifiers=(field, Field))
def node(cls: type[T]) -> type[T]:
    """Class decorator of every IR node: immutable, slotted, compared and hashed by identity.

    Slots are set through their descriptors: half the time of a frozen dataclass. The constructor checks that each field is of
    its annotated type, after `adopt` has converted arguments given as users write them; where all are of their types
    already, that costs one `isinstance` a field. A `__post_init__` makes further checks and fills the fields marked
    `init=False`.
    """
    made = dataclass(slots=True, eq=False, init=False, repr=False)(cls)
    kind_bit(made)
    for method in (_late_init(made), *_make_walkers(made)):
        setattr(made, method.__name__, method)  # mypy forbids the assignment
    setattr(made, "init_fields", tuple(f.name for f in fields(made) if f.init))  # type: ignore[arg-type]  # noqa: B010
    return made


def _late_init(cls: Any) -> Callable[..., None]:
    """The constructor of a class until it is first called: then it makes the real one. Most programs need half of them."""
    def __init__(self: Any, *args: Any, **named: Any) -> None:
        cls.__init__ = _make_init(cls)
        cls.__init__(self, *args, **named)

    return __init__


def _make_init(cls: type) -> Callable[..., None]:
    arguments = [f for f in fields(cls) if f.init]
    scope = SCOPE  # of all constructors: classes are found in it by name, also those that are made later
    prefix = f"{cls.__name__}_"
    for f in arguments:
        scope[f"{prefix}set_{f.name}"] = getattr(cls, f.name).__set__
        scope[f"{prefix}default_{f.name}"] = f.default
    # It takes any arguments and refuses those that do not fit, which costs less than a call around it: an argument that is
    # missing is not of its type either.
    header = "".join(f", {f.name}={prefix}default_{f.name}" for f in arguments)
    unchecked = [f.name for f in arguments if f.default is MISSING and _annotation(f) in _UNCHECKED]
    misfits = " or ".join(["rest", "unknown", *(f"{name} is MISSING" for name in unchecked)])
    lines = [f"{prefix}set_{f.name}(self, {f.name})" for f in arguments]
    lines += [f"if {misfits}: raise _misfit(self, rest, unknown)"]
    lines += _type_checks({f.name: _annotation(f) for f in arguments}, vars(sys.modules[cls.__module__]))
    if hasattr(cls, "__post_init__"):
        lines += ["try: self.__post_init__()", "except TedslError: raise",
                  "except (AttributeError, TypeError, ValueError) as error: raise _refused(self, error) from error"]
    scope[f"{prefix}set_contents"] = Node.__dict__["_contents"].__set__
    lines += _contents_lines(cls, f"{prefix}set_contents(self, {{}})")
    text = f"def {prefix}init(self{header}, *rest, **unknown):\n    " + "\n    ".join(lines)
    exec(compile(text, f"{os.path.dirname(__file__)}/<constructor of {cls.__name__}>", "exec"), scope)  # names are ours alone
    made: Callable[..., None] = scope.pop(f"{prefix}init")
    made.__name__, made.__qualname__ = "__init__", f"{cls.__qualname__}.__init__"
    return made


def kind_bit(kind: object) -> int:
    """The bit by which nodes remember that one of `kind` is below them: `walk/contents.py` says what kinds there are."""
    return _KINDS.get(kind) or _KINDS.setdefault(kind, 1 << next(_numbers))


def _contents_lines(cls: Any, done: str) -> list[str]:
    """The lines of a method that find out which kinds of nodes stand in a node of `cls`, from what its children know, and end
    with `done`, which takes them.
    """
    types = {f.name: str(f.type) for f in fields(cls)}
    many = [name for name in cls.children if types[name].startswith("tuple[")]
    terms = [str(kind_bit(cls)), *["self._own_kinds()"][:cls._own_kinds is not Node._own_kinds]]
    for name in cls.children:
        if name not in many:
            terms.append(f"(0 if self.{name} is None else self.{name}._contents)" if types[name].endswith("| None") else
                         f"self.{name}._contents")
    if not many:
        return [done.format(" | ".join(terms))]
    loops = [f"for child in self.{name}: contents |= child._contents" for name in many]
    return [f"contents = {' | '.join(terms)}", *loops, done.format("contents")]


def _signature(cls: type) -> Signature:
    """The arguments of the constructor of a class of nodes."""
    return Signature([Parameter("self", Parameter.POSITIONAL_ONLY), *(
        Parameter(f.name, Parameter.POSITIONAL_OR_KEYWORD, default=Parameter.empty if f.default is MISSING else f.default,
                  annotation=f.type) for f in fields(cls) if f.init)])


def _misfit(made: Any, rest: tuple[Any, ...] = (), unknown: Mapping[str, Any] | None = None) -> ArgumentTypeError:
    """The error of a constructor that was called with too few arguments, with more than it takes, `rest`, or with `unknown`
    names."""
    cls = type(made)
    given = {f.name: getattr(made, f.name) for f in fields(cls) if f.init and getattr(made, f.name) is not MISSING}
    in_order = (*given.values(), *rest) if rest else ()
    error = arguments_that_misfit(cls.__name__, _signature(cls), (made, *in_order),
                                  unknown or {} if rest else {**given, **(unknown or {})})
    assert error is not None
    return error


def _refused(made: Any, error: Exception) -> ArgumentTypeError:
    """The error for a constructor whose checks failed because an argument has an unexpected type."""
    cls = type(made)
    takes = ", ".join(f"{f.name}: {f.type}" for f in fields(cls) if f.init)
    given = ", ".join(type(getattr(made, f.name)).__name__ for f in fields(cls) if f.init)
    return ArgumentTypeError(f"{cls.__name__} takes ({takes}), and got ({given}): {error}")


def _make_walkers(cls: type) -> list[Callable[..., Any]]:
    """The methods `child_nodes` and `map_children` of a class, generated without a loop over the fields, since passes spend
    most of their time in them.
    """
    base: Any = cls
    if base.child_nodes is not Node.child_nodes:
        return []
    types = {f.name: str(f.type) for f in fields(cls)}
    listed, mapped, same = [], ["pass"], ["True"]
    for name in base.children:
        many, optional = types[name].startswith("tuple["), types[name].endswith("| None")
        listed.append(f"*self.{name}" if many else f"*(() if self.{name} is None else (self.{name},))" if optional
                      else f"self.{name}")
        mapped.append(f"{name} = self.{name}; new_{name} = " + (f"tuple([fn(item) for item in {name}])" if many else
                      f"None if {name} is None else fn({name})" if optional else f"fn({name})"))
        same.append(f"all(map(is_, {name}, new_{name}))" if many else f"new_{name} is {name}")
    arguments = ", ".join(f"new_{f.name}" if f.name in base.children else f"self.{f.name}" for f in fields(base) if f.init)
    changed = ", ".join(f"{name}=new_{name}" for name in base.children)
    whole = f"cls({arguments}) if type(self) is cls else " if base.replace is Node.replace else ""
    scope: dict[str, Any] = {"is_": is_, "cls": cls}
    exec(f"def child_nodes(self):\n    return [{', '.join(listed)}]\n"
         "def map_children(self, fn):\n    " + "\n    ".join(mapped) +
         f"\n    if {' and '.join(same)}: return self"
         f"\n    return {whole}self.replace({changed})\n", scope)
    made = [scope["child_nodes"], scope["map_children"]]
    for method in made:
        method.__qualname__ = f"{cls.__qualname__}.{method.__name__}"
    return made


set_field = object.__setattr__  # for __post_init__ only: a node never changes afterwards


def _fields_of(made: Any) -> tuple[Field[Any], ...]:
    """The fields of a node, whose class `node` has made a dataclass."""
    return fields(made)


class _SignatureOf:
    """The attribute `__signature__` of a class of nodes: what `help` and `inspect` show of its constructor."""

    def __get__(self, made: object, cls: type) -> Signature:
        whole = _signature(cls)
        return whole.replace(parameters=list(whole.parameters.values())[1:])


class Node:
    """Base of expressions, statements, ranges and functions.

    children: names of the fields that hold child nodes (a node, None, or a tuple of nodes), in evaluation order.
    binders: names of the fields that define a variable (or iteration variable); rewriters leave them alone.
    """

    __slots__ = ("__weakref__", "_contents")  # the latter, filled by the constructor, is for `walk/contents.py`
    if TYPE_CHECKING:  # an annotation that stays would make a field of it
        _contents: int
    children: ClassVar[tuple[str, ...]] = ()
    binders: ClassVar[tuple[str, ...]] = ()
    __signature__ = _SignatureOf()
    init_fields: ClassVar[tuple[str, ...]] = ()  # filled by `node`: the arguments of the constructor
    # What checks its calls itself, or is called by tedsl alone, millions of times: no `entry` of `tedsl/errors.py` around it.
    checked_methods: ClassVar[tuple[str, ...]] = ("__init__", "adopt", "child_nodes", "map_children", "note_contents",
                                                   "replace", "same_as")
    full_text: ClassVar[Callable[[object], str]]  # how `str` prints a node, and `repr`: set by `text`, which stands above
    short_text: ClassVar[Callable[[object], str]]

    def __init_subclass__(cls) -> None:
        if cls.__module__.startswith("tedsl.ir."):
            SCOPE[cls.__name__] = cls

    def adopt(self) -> None:
        """Converts constructor arguments that depend on each other, such as a number to the dtype of the other operand.

        Called only if some field is not of its annotated type. Expression fields that still hold other operands afterwards are
        converted one by one.
        """

    def _own_kinds(self) -> int:
        """The bits of the kinds of this node beside its class."""
        return 0

    def note_contents(self) -> None:
        """Notes which kinds of nodes stand here, as a constructor does, in a node that was made without one."""
        contents = kind_bit(type(self)) | self._own_kinds()
        for child in self.child_nodes():
            contents |= child._contents
        set_field(self, "_contents", contents)

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

    def _move(self) -> Self:
        """This object: TVM's way of handing one over to a pass, which may change it in place there."""
        return self

    if not TYPE_CHECKING:  # type checkers know that fields are not set
        def __setattr__(self, name: str, value: object) -> None:
            raise FrozenInstanceError(f"cannot assign to field {name!r}")

        def __delattr__(self, name: str) -> None:
            raise FrozenInstanceError(f"cannot delete field {name!r}")

    def __getstate__(self) -> list[Any]:
        return [getattr(self, f.name) for f in _fields_of(self)]

    def __setstate__(self, state: list[Any]) -> None:
        for f, value in zip(_fields_of(self), state):
            object.__setattr__(self, f.name, value)
        self.note_contents()

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

    if not TYPE_CHECKING:  # a list, as of TVM's maps
        def items(self):
            return [*self._items.items()]

    def __hash__(self) -> int:
        return len(self._items)  # equal mappings have equal hashes

    def __repr__(self) -> str:
        return "{" + ", ".join(f"{k!r}: {v!r}" for k, v in self._items.items()) + "}"


# --- types of fields --------------------------------------------------------------------------------------------------

def _type_checks(types: Mapping[str, str], module: Mapping[str, Any]) -> list[str]:
    """The lines of a constructor that call `_adopt_fields` if an argument is not of its type.

    types: the annotation of each argument. module: the names of the module of the class, for types that are not nodes.
    """
    for of in types.values():
        name = _element(of) or of.removesuffix(" | None")
        if name in module:
            SCOPE.setdefault(name, module[name])
    single = [_fits(name, of) for name, of in types.items() if of not in _UNCHECKED]
    many = [(name, _element(of)) for name, of in types.items() if _element(of)]
    if not single:
        return []
    whole = " and ".join(single)
    if not many:
        return [f"if not ({whole}): _adopt_fields(self)"]
    lines = [f"fits = {whole}", "if fits:"]
    for name, of in many:
        lines += [f"    for item in {name}:", f"        if not isinstance(item, {of}):", "            fits = False; break"]
    return [*lines, "if not fits: _adopt_fields(self)"]


def _annotation(of: Field[Any]) -> str:
    """The type of a field as text: a string annotation as it is, a class by its name, "Any" for anything else."""
    return of.type if isinstance(of.type, str) else of.type.__name__ if type(of.type) is type else "Any"


def _element(of: str) -> str:
    """The element type of a tuple type; "" for other types."""
    return of.removeprefix("tuple[").removesuffix(", ...]") if of.startswith("tuple[") else ""


def _fits(name: str, of: str) -> str:
    """The condition that the argument `name` is of the type `of` and needs no conversion."""
    if of.startswith("tuple["):
        return f"type({name}) is tuple"
    if of.startswith("Mapping["):
        return f"isinstance({name}, FrozenDict)"
    if of.endswith(" | None"):
        return f"({name} is None or isinstance({name}, {of.removesuffix(' | None')}))"
    if of == "int":
        return f"type({name}) is int"
    if of == "str":
        return f"(isinstance({name}, str) and {name}.isascii())"
    return f"isinstance({name}, {of})"


def _adopt_fields(made: Any) -> None:
    """Converts the fields of the node `made` to their annotated types; ArgumentTypeError names a field that does not fit."""
    types = {f.name: _annotation(f) for f in fields(made) if f.init}
    if any(getattr(made, name) is MISSING for name in types):
        raise _misfit(made)
    for name, of in types.items():
        value = getattr(made, name)
        if not isinstance(value, str):
            object.__setattr__(made, name, _converted(value, of))
    try:
        made.adopt()
    except TedslError:
        raise
    except (AttributeError, TypeError, ValueError):
        pass  # it met an argument of another type, which is refused now
    for name, of in types.items():
        value = _with_expressions(getattr(made, name), of)
        object.__setattr__(made, name, value)
        if not _is(value, of):
            raise ArgumentTypeError(f"{type(made).__name__}: the field {name} is {_article(of)}, not {_shown(value)}")
        if isinstance(value, str) and not is_text(value):
            raise ArgumentError(f"{type(made).__name__}: the field {name} has no lone surrogate, {value!r} has")


def _converted(value: Any, of: str) -> Any:
    """`value` as a field of type `of`: a list as a tuple, an integer as int or enum member, a mapping as a FrozenDict."""
    cls = SCOPE.get(of)
    try:
        if _element(of) and isinstance(value, Iterable) and not isinstance(value, Mapping):
            return tuple(value)
        if of.startswith("Mapping[") and (value is None or isinstance(value, Mapping)):
            return SCOPE["FrozenDict"](value)
        if of == "int":
            return int(operator.index(value))
        if isinstance(cls, type) and issubclass(cls, IntEnum):
            return cls(value)
    except (TypeError, ValueError):
        pass  # refused below, by the type of the field
    return value


def _with_expressions(value: Any, of: str) -> Any:
    """`value` with the operands in it converted to expressions, for a field of type `of`."""
    if of in ("Expr", "Expr | None"):
        return value if value is None else SCOPE["operand"](value)
    if of == "tuple[Expr, ...]" and isinstance(value, tuple):
        return tuple([SCOPE["operand"](item) for item in value])
    return value


def _is(value: Any, of: str) -> bool:
    """Whether `value` is of the type given by an annotation."""
    if of in _UNCHECKED:
        return True
    if of.endswith(" | None"):
        return value is None or _is(value, of.removesuffix(" | None"))
    if _element(of):
        return type(value) is tuple and all(_is(item, _element(of)) for item in value)
    if of.startswith("Mapping["):
        return isinstance(value, SCOPE["FrozenDict"])
    return isinstance(value, {"int": int, "str": str}.get(of) or SCOPE[of])


def is_text(value: str) -> bool:
    return value.isascii() or not any("\ud800" <= letter <= "\udfff" for letter in value)


def _article(of: str) -> str:
    """The type of a field in words."""
    if of.endswith(" | None"):
        return f"{_article(of.removesuffix(' | None'))} or None"
    if _element(of):
        return f"a tuple of {_element(of)}s"
    return {"str": "a str", "int": "an int", "Mapping[str, Any]": "a dict"}.get(of, with_article(of))


def _shown(value: Any) -> str:
    """The text of a value for an error message; for a tuple, of its first element that may be wrong."""
    text = repr(value)
    return f"{text if len(text) <= 60 else text[:57] + '...'} ({type(value).__name__})"


SCOPE |= {"_adopt_fields": _adopt_fields, "_refused": _refused, "_misfit": _misfit, "MISSING": MISSING,
          "TedslError": TedslError, "FrozenDict": FrozenDict}
