"""Objects by the name of their class, as TVM's reflection makes them, and functions and attributes as objects of programs.

    ir.make_node("IntImm", dtype="int32", value=10)       tir.IntImm("int32", 10)
    ir.make_node("DictAttrs", x=1, name="a")              an object with the attributes x and name
    ir.EnvFunc.get("my.function")                         the function registered under that name
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from tedsl.errors import ArgumentError, ArgumentTypeError, OptionError, entries
from tedsl.ir.dtype import dtype
from tedsl.ir.expr import Expr, StringImm
from tedsl.ir.node import SCOPE, FrozenDict, Node
from tedsl.ir.walk.equal import structural_equal
from tedsl.record import record
from tedsl.runtime.functions import get_global_func
from tedsl.runtime.objects import convert


class Attrs(Mapping[str, Any]):
    """Attributes by name: `attrs.name` and `attrs["name"]`."""

    def __init__(self, values: Mapping[str, Any]) -> None:
        self._values = FrozenDict(dict(values))

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or name not in self._values:
            raise AttributeError(f"there is no attribute {name!r}; there are: {', '.join(self.__dict__.get('_values', ()))}")
        return self._values[name]

    def __getitem__(self, item: str) -> Any:
        return self._values[item]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def list_field_info(self) -> list[str]:
        """The names of the attributes."""
        return list(self._values)

    def get_int(self, key: str) -> int:
        """An attribute as an int."""
        return int(self._values[key])

    def get_int_tuple(self, key: str) -> tuple[int, ...]:
        """An attribute as ints."""
        return tuple([int(item) for item in self._values[key]])

    def get_str(self, key: str) -> str:
        """An attribute as text."""
        value = self._values[key]
        return str(value.value if isinstance(value, StringImm) else value)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Attrs) and structural_equal(self._values, other._values)

    def __hash__(self) -> int:
        return hash(tuple(self._values))

    def __parts__(self) -> tuple[Any, ...]:
        """What `save_json` writes of them."""
        return type(self).__name__, self._values

    def __repr__(self) -> str:
        return json.dumps({name: plain(value) for name, value in self._values.items()})


class DictAttrs(Attrs):
    """Attributes of any names."""

    def __init__(self, values: Mapping[str, Any]) -> None:
        super().__init__({name: convert(value) for name, value in values.items()})


class TestAttrs(Attrs):
    """Attributes of known names, with defaults and bounds, which TVM has for trying `make_node`."""

    def __init__(self, values: Mapping[str, Any]) -> None:
        unknown = [name for name in values if name not in ("axis", "name", "padding", "func")]
        if unknown:
            raise ArgumentError(f"TestAttrs: there is no attribute {unknown[0]!r}", hint="axis, name, padding and func")
        if "name" not in values:
            raise ArgumentError("TestAttrs: the attribute 'name' is missing")
        axis = values.get("axis", 10)
        if not 1 <= int(axis) <= 10:
            side = "below the lower bound 1" if axis < 1 else "above the upper bound 10"
            raise ArgumentError(f"TestAttrs: axis is {axis}, {side}")
        super().__init__({"axis": int(axis), "name": str(values["name"]), "padding": convert(values.get("padding", (0, 0))),
                          "func": values.get("func")})


def plain(value: Any) -> Any:
    """A value of attributes as Python's numbers, texts, lists and dicts."""
    if isinstance(value, Mapping):
        return {str(plain(key)): plain(item) for key, item in value.items()}
    if isinstance(value, (tuple, list)):
        return [plain(item) for item in value]
    if isinstance(value, Expr) and hasattr(value, "value"):
        return value.value
    return value if value is None or isinstance(value, (bool, int, float, str)) else str(value)


@record
class EnvFunc:
    """A registered function, by its name: `save_json` writes the name."""

    name: str

    @staticmethod
    def get(name: str) -> EnvFunc:
        """The function registered as `name`; OptionError if there is none."""
        get_global_func(name)
        return EnvFunc(name)

    @property
    def func(self) -> Callable[..., Any]:
        """The function itself."""
        found = get_global_func(self.name)
        assert found is not None
        return found

    def __call__(self, *args: Any) -> Any:
        return self.func(*args)

    def __parts__(self) -> tuple[Any, ...]:
        """What `save_json` writes of it."""
        return "EnvFunc", self.name


env_func, dict_attrs, attrs_for_tests = EnvFunc.get, DictAttrs, TestAttrs  # by which load_json makes them


def make_node(type_key: str, **kwargs: Any) -> Any:
    """An object of the class `type_key`, "tir.IntImm" or "IntImm", with these fields.

    Raises OptionError for a class that is not known, ArgumentTypeError for fields that are not those of the class.
    """
    if not isinstance(type_key, str):
        raise ArgumentTypeError(f"make_node: the class is given by its name, not {type_key!r}")
    fields = {name: value for name, value in kwargs.items() if name != "span"}
    kind = type_key.rpartition(".")[2]
    if kind in ("DictAttrs", "TestAttrs"):
        return DictAttrs(fields) if kind == "DictAttrs" else TestAttrs(fields)
    if kind == "MemoryInfo":
        return Attrs(fields)
    if kind == "Tensor":
        return _output_of(**fields)
    cls = SCOPE.get(kind)
    if not isinstance(cls, type) or not issubclass(cls, Node):
        raise OptionError(f"make_node: there is no class {type_key!r}",
                          hint='for example make_node("IntImm", dtype="int32", value=1)')
    if "dtype" in fields and "dtype" not in cls.init_fields:
        del fields["dtype"]  # it follows from the others
    elif "dtype" in fields:
        fields["dtype"] = dtype(str(fields["dtype"]))
    return cls(**fields)


def _output_of(op: Any, value_index: int = 0, shape: Any = None, dtype: Any = None) -> Any:
    """A tensor: its shape and dtype are those of the operation."""
    return op.output(int(value_index))


__all__ = ["Attrs", "DictAttrs", "EnvFunc", "make_node"]

entries(globals())
