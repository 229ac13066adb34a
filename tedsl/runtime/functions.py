"""Python functions by name: `register_func` gives a function the name by which kernels call it with `tir.call_packed`.

    @tedsl.register_func("my.scale")
    def scale(x, y, factor):          # arrays are NDArrays on the kernel's own memory, valid during the call
        y[:] = x.numpy() * factor
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, overload

from tedsl.errors import ArgumentError, ArgumentTypeError, MissingFunctionError
from tedsl.ir.functions import FUNCTIONS, Registered, find_function, listed
from tedsl.runtime.array import NDArray

F = TypeVar("F", bound=Callable[..., Any])


class PackedFunc:
    """A Python function as TVM's programs pass it around; calling it calls the function."""

    __slots__ = ("__wrapped__", "name")

    def __init__(self, function: Callable[..., Any], name: str = "") -> None:
        if not callable(function):
            raise ArgumentTypeError(f"a packed function is made of a function, not {function!r}")
        self.__wrapped__ = function
        self.name = name or getattr(function, "__name__", type(function).__name__)

    def __call__(self, *args: Any, **options: Any) -> Any:
        return self.__wrapped__(*args, **options)

    def __repr__(self) -> str:
        return f"<tedsl.PackedFunc {self.name}>"


@overload
def register_func(func_name: F, f: None = None, override: bool = False) -> F: ...
@overload
def register_func(func_name: str, f: None = None, override: bool = False) -> Callable[[F], F]: ...
@overload
def register_func(func_name: str, f: F, override: bool = False) -> F: ...


def register_func(func_name: Any, f: Any = None, override: bool = False) -> Any:
    """Registers `f` under a name that kernels call by `tir.call_packed(name, ...)`.
    Also a decorator, with or without a name.

    override: replace the function that has the name already.
    """
    if callable(func_name) and not isinstance(func_name, str):
        return _register(getattr(func_name, "__name__", ""), func_name, override)
    if not isinstance(func_name, str) or not func_name or "\0" in func_name:
        raise ArgumentTypeError(f"register_func: the name of a function is a str that is not empty, not {func_name!r}")
    if f is None:
        return lambda function: _register(func_name, function, override)
    return _register(func_name, f, override)


def _register(name: str, function: Any, override: bool) -> Any:
    if not callable(function):
        raise ArgumentTypeError(f"register_func: {function!r} cannot be called")
    if name in FUNCTIONS and not override:
        raise ArgumentError(f"register_func: there is a function {name!r} already", hint="pass override=True to replace it")
    FUNCTIONS[name] = Registered(function, NDArray)
    return function


def get_global_func(name: str, allow_missing: bool = False) -> PackedFunc | None:
    """Returns the function registered as `name`; if there is none, None with allow_missing, else raises
    MissingFunctionError."""
    func = find_function(name)
    if func is None and not allow_missing:
        raise MissingFunctionError(f"no function is registered as {name!r}", hint="tedsl.register_func(name, function)")
    if func is None:
        return None
    return func.function if isinstance(func.function, PackedFunc) else PackedFunc(func.function, name)


def list_global_func_names() -> list[str]:
    """Returns the names of all registered functions."""
    return listed()


def remove_global_func(name: str) -> None:
    """Removes the function registered as `name`; MissingFunctionError if there is none."""
    if FUNCTIONS.pop(name, None) is None:
        raise MissingFunctionError(f"no function is registered as {name!r}")
