"""The names of `I` in scripts: `from tedsl.script import ir as I`."""

from __future__ import annotations

from typing import Any

from tedsl.errors import ArgumentTypeError
from tedsl.ir.func import IRModule, PrimFunc


def ir_module(mod: Any = None, **_: Any) -> Any:
    """Decorator of a class of functions with `T.prim_func`: the IRModule of them."""
    if mod is None:
        return ir_module
    if not isinstance(mod, type):
        raise ArgumentTypeError("I.ir_module decorates a class", hint="T.prim_func decorates a function")
    functions = {name: value for name, value in vars(mod).items() if isinstance(value, PrimFunc)}
    if not functions:
        raise ArgumentTypeError(f"I.ir_module: the class {mod.__name__} has no function with T.prim_func")
    return IRModule(functions)


def module_attrs(attrs: Any) -> None:
    """Of modules: accepted."""
