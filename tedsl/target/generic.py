"""Functions whose implementation the current target chooses, by TVM's names.

    @target.generic_func
    def layout(data):
        return "NCHW"                       # for targets without one of their own

    @layout.register(["cuda", "gpu"])
    def layout_cuda(data):
        return "NCHW4c"

    with target.Target("cuda"):
        layout(data)                        # "NCHW4c"

In TVM 0.6 operators of topi were such functions: `@topi.nn.conv2d.register("cpu")` puts a program's own in their place.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Iterable, Sequence
from contextvars import ContextVar
from types import FunctionType
from typing import Any

from tedsl.errors import ArgumentError, ArgumentTypeError
from tedsl.target.current import as_target
from tedsl.target.stack import current_target

Function = Callable[..., Any]


class GenericFunc:
    """A function with implementations for keys of targets: the first key of the current target that has one chooses.

    Without a `with Target(...)` block it is the default, as in TVM; where there is none, the one for this machine.
    """

    def __init__(self, name: str = "", fdefault: Function | None = None) -> None:
        self.name, self._default = name, fdefault
        self._by_key: dict[str, Function] = {}

    @property
    def fdefault(self) -> Function | None:
        """The implementation for targets without one of their own."""
        return self._default

    @property
    def dispatch_dict(self) -> dict[str, Function]:
        """The implementations by key, a copy."""
        return dict(self._by_key)

    def set_default(self, func: Function, allow_override: bool = False) -> None:
        """Makes `func` the implementation for targets without one. Raises ArgumentError if there is one already."""
        if self._default is not None and not allow_override:
            raise ArgumentError(f"set_default: {self.name} has a default already", hint="pass allow_override=True")
        self._default = _checked(func, "set_default")

    def register(self, func: Any, key_list: Any = None, allow_override: bool = False) -> Any:
        """Makes `func` the implementation for targets with one of the keys; register(keys) alone is a decorator.

        Raises ArgumentError for a key that has one already.
        """
        if not callable(func):
            return functools.partial(self.register, key_list=func, allow_override=allow_override)
        for key in _keys(key_list):
            if key in self._by_key and not allow_override:
                raise ArgumentError(f"register: {self.name} has an implementation for {key!r} already",
                                    hint="pass allow_override=True")
            self._by_key[key] = func
        return func

    def get_packed_func(self) -> Function:
        """The implementation for the current target; ArgumentError if there is none."""
        if self._default is not None and current_target() is None:
            return self._default
        target = as_target(None)
        for key in (*target.keys, target.kind.name):
            if key in self._by_key:
                return self._by_key[key]
        if self._default is None:
            raise ArgumentError(f"{self.name} has no implementation for {target}",
                                hint=f"it has for {', '.join(self._by_key) or 'none'}; set_default gives one for all others")
        return self._default

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.get_packed_func()(*args, **kwargs)


_NAMED: dict[str, GenericFunc] = {}
_RUNNING: ContextVar[tuple[Function, ...]] = ContextVar("_RUNNING", default=())  # implementations that called what now runs


def generic_func(fdefault: Function) -> GenericFunc:
    """Returns the generic function whose default implementation is `fdefault`. A decorator."""
    made = GenericFunc(_checked(fdefault, "generic_func").__name__, fdefault)
    functools.update_wrapper(made, fdefault)
    return made


def give_implementations(names: dict[str, Any]) -> None:
    """Makes the functions in `__all__` of a module's variables `names` such that the target chooses their implementation."""
    names.update({name: with_implementations(names[name], name, names[name].__module__) for name in names["__all__"]
                  if type(names[name]) is FunctionType and not hasattr(names[name], "register")})


@functools.cache
def with_implementations(function: FunctionType, name: str, module: str) -> Any:
    """Returns `function` as the function `name` of a module whose implementation the target chooses.

    It has the methods of a GenericFunc. An implementation that calls it, directly or by other operators, gets `function`, in
    whose place it stands.
    """
    generic = GenericFunc(name, function)

    def call(*args: Any, **kwargs: Any) -> Any:
        chosen, running = generic.get_packed_func(), _RUNNING.get()
        if chosen is function or chosen in running:
            return function(*args, **kwargs)
        token = _RUNNING.set((*running, chosen))
        try:
            return chosen(*args, **kwargs)
        finally:
            _RUNNING.reset(token)

    functools.update_wrapper(call, function)
    call.__name__ = call.__qualname__ = name
    call.__module__ = module
    call.__dict__.update(register=generic.register, set_default=generic.set_default, get_packed_func=generic.get_packed_func)
    home = sys.modules[module]
    if getattr(home, name, None) is function:  # where pickle looks for it
        setattr(home, name, call)
    return call


def get_native_generic_func(name: str) -> GenericFunc:
    """Returns the generic function called `name`, the same for the same name."""
    return _NAMED.setdefault(name, GenericFunc(name))


def override_native_generic_func(func_name: str) -> Callable[[Function], GenericFunc]:
    """Returns a decorator that makes a function the default of the generic function called `func_name`."""
    def decorate(fdefault: Function) -> GenericFunc:
        made = get_native_generic_func(func_name)
        made.set_default(fdefault, allow_override=True)
        functools.update_wrapper(made, fdefault)
        return made

    return decorate


def extend_native_generic_func(func_name: str, keys: str | Sequence[str], priority: int = 10) -> Callable[[Function], Function]:
    """Returns a decorator that adds an implementation for targets with `keys` to the generic function called `func_name`.

    priority: accepted; the last implementation for a key counts.
    """
    def decorate(function: Function) -> Function:
        get_native_generic_func(func_name).register(function, keys, allow_override=True)
        return function

    return decorate


def _checked(function: Any, where: str) -> Function:
    if not callable(function):
        raise ArgumentTypeError(f"{where}: an implementation is a function, not {function!r}")
    found: Function = function
    return found


def _keys(given: Any) -> Iterable[str]:
    keys = [given] if isinstance(given, str) else given
    if not isinstance(keys, (list, tuple)) or not keys or not all(isinstance(key, str) for key in keys):
        raise ArgumentTypeError(f"register: keys of targets are strings, not {given!r}", hint='for example ["cuda", "gpu"]')
    return keys
