"""`runtime.convert`, which turns Python values into expressions, and `runtime.enabled`, which tells what targets run here."""

from __future__ import annotations

from typing import Any

from tedsl.errors import ArgumentTypeError, TedslError, type_in_words
from tedsl.ir import build
from tedsl.ir.container import Array
from tedsl.ir.dtype import dtype
from tedsl.ir.expr import StringImm
from tedsl.ir.node import FrozenDict, Node
from tedsl.runtime.devices.device import device
from tedsl.runtime.functions import PackedFunc
from tedsl.target.current import as_target


def convert(value: Any) -> Any:
    """Converts numbers to constants, str to string constants, functions to packed functions; sequences and dicts item by item.

    None, arrays and objects of programs (tensors, schedules, modules, targets, ...) are returned as they are, also those that
    can be called.
    """
    if value is None or isinstance(value, (Node, FrozenDict)) or hasattr(value, "asobject") or _is_ours(value):
        return value
    if build.is_numpy_scalar(value):
        return build.const(value.item(), dtype(value.dtype))
    if isinstance(value, (bool, int, float)):
        return build.const(value)
    if isinstance(value, str):
        return StringImm(value)
    if isinstance(value, (list, tuple)):
        return Array(map(convert, value))
    if isinstance(value, dict):
        return FrozenDict({key: convert(item) for key, item in value.items()})
    if callable(value):
        return PackedFunc(value)
    raise ArgumentTypeError(f"runtime.convert: {type_in_words(value)} cannot be converted",
                            hint="numbers, strings, lists, tuples, dicts and functions can be converted")


class _IsOurs(type):
    def __instancecheck__(cls, value: object) -> bool:
        return type(value).__module__.split(".")[0] == "tedsl"


class Object(metaclass=_IsOurs):
    """Base class of the objects in programs, for `isinstance` only. It has no instances of its own."""


def _is_ours(value: Any) -> bool:
    """Tells whether `value` is a function of this package (a reducer is one) or an instance of one of its classes."""
    home = str(getattr(value, "__module__", ""))  # an object has that of its class
    return home == "tedsl" or home.startswith("tedsl.")


def enabled(target: Any) -> bool:
    """Tells whether programs built for `target` run here."""
    try:
        wanted = as_target(target)
    except TedslError:
        return False
    if wanted.kind.device_backend:
        return device(wanted.kind.device_kind).exist
    return wanted.kind.name == "llvm" and wanted.runs_here
