"""The operators of graphs: every function of topi by its dotted name ("nn.conv2d", "add"), and those that programs register."""

from __future__ import annotations

import difflib
import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import topi
from tedsl.errors import ArgumentError, ArgumentTypeError, GraphError, arguments_that_misfit, type_in_words
from tedsl.graph.value import CALL, Argument, as_attribute, holds_values
from tedsl.graph.value import Value as GraphValue
from tedsl.record import record

_REGISTERED: dict[str, Operator] = {}
_PACKAGES = ("nn", "image")  # the parts of topi whose operators have a prefix


@record(eq=False)
class Operator:
    """An operator: `function` takes and returns tensors of te, as those of topi do. name: as it stands in texts."""

    name: str
    function: Callable[..., Any]
    signature: inspect.Signature

    def bound(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> dict[str, Argument]:
        """The arguments by the names of the parameters, in their order, without those equal to the default.

        Raises ArgumentTypeError for arguments that do not fit the parameters or that texts cannot hold.
        """
        try:
            given = self.signature.bind(*args, **kwargs).arguments
        except TypeError as misfit:
            refusal = arguments_that_misfit(self.name, self.signature, list(args), kwargs)
            raise refusal or ArgumentTypeError(f"{self.name}: {misfit}") from None
        arguments: dict[str, Argument] = {}
        for name, value in given.items():
            argument = self._argument(name, value)
            default = self.signature.parameters[name].default
            if holds_values(argument) or type(argument) is not type(default) or argument != default:
                arguments[name] = argument
        return arguments

    def _argument(self, name: str, given: Any) -> Argument:
        if isinstance(given, GraphValue):
            return given
        if isinstance(given, (list, tuple)) and any(isinstance(part, GraphValue) for part in given):
            strangers = [part for part in given if not isinstance(part, GraphValue)]
            if strangers:
                raise ArgumentTypeError(f"{self.name}: {name} holds values of the graph and {type_in_words(strangers[0])}",
                                        hint="graph.constant(array) makes a value of numbers")
            return tuple(given)
        return as_attribute(self.name, name, given)

    def __call__(self, arguments: Mapping[str, Any]) -> list[Any]:
        """The tensors of te that the operator gives for tensors in place of values."""
        positional, named = [], {}
        for name, parameter in self.signature.parameters.items():
            if parameter.kind is parameter.VAR_POSITIONAL:
                positional += arguments.get(name, ())
            elif name in arguments and parameter.kind is parameter.POSITIONAL_ONLY:
                positional.append(arguments[name])
            elif name in arguments:
                named[name] = arguments[name]
        if any(parameter.kind is parameter.VAR_POSITIONAL for parameter in self.signature.parameters.values()):
            before = [named.pop(name) for name, parameter in self.signature.parameters.items()
                      if name in named and parameter.kind is parameter.POSITIONAL_OR_KEYWORD]
            positional = before + positional
        made = self.function(*positional, **named)
        return list(made) if isinstance(made, (list, tuple)) else [made]


def operator_named(name: str) -> Operator:
    """The operator called `name`. Raises GraphError, with near names, if there is none."""
    found = _REGISTERED.get(name) or _of_topi(name)
    if found is None:
        near = difflib.get_close_matches(name, operator_names(), 3) or [known for known in operator_names()
                                                                       if known.endswith("." + name)]
        raise GraphError(f"there is no operator {name!r}" + (f"; near: {', '.join(near)}" if near else ""),
                         hint="operators are the functions of topi by their dotted names; graph.register_operator adds others")
    return found


def operator_names() -> list[str]:
    """The names of all operators, sorted."""
    ours = [name for name in dir(topi) if _of_topi(name)]
    for package in _PACKAGES:
        ours += [f"{package}.{name}" for name in dir(getattr(topi, package)) if _of_topi(f"{package}.{name}")]
    return sorted({*ours, *_REGISTERED})


def is_of_topi(name: str) -> bool:
    """Whether an operator is a function of topi, not one that a program registered."""
    return name not in _REGISTERED and _of_topi(name) is not None


@functools.cache
def _of_topi(name: str) -> Operator | None:
    package, _, last = name.rpartition(".")
    home = topi if not package else getattr(topi, package) if package in _PACKAGES else None
    function = vars(home).get(last) if home is not None else None
    if function is None or last.startswith(("_", "get_pad_tuple")) or not _is_of_topi(function):
        return None
    return Operator(name, function, inspect.signature(function))


def _is_of_topi(value: Any) -> bool:
    plain = inspect.unwrap(value) if callable(value) else value
    return inspect.isfunction(plain) and plain.__module__.startswith("topi.")


def register_operator(name: str, function: Callable[..., Any] | None = None) -> Any:
    """Makes `function`, which takes and returns tensors of te, an operator of graphs; also a decorator.

    name: dotted, of Python's identifiers. Raises ArgumentError if an operator has that name.
    """
    if function is None:
        return functools.partial(register_operator, name)
    if not isinstance(name, str) or not all(part.isidentifier() for part in name.split(".")) or name in (CALL, "constant"):
        raise ArgumentError(f"register_operator: {name!r} cannot be the name of an operator",
                            hint="write a dotted name: 'mine.swish'")
    if not callable(function):
        raise ArgumentTypeError(f"register_operator: {function!r} is not a function of tensors")
    if name in _REGISTERED or _of_topi(name):
        raise ArgumentError(f"register_operator: there is an operator {name!r}", hint="choose another name")
    _REGISTERED[name] = Operator(name, function, inspect.signature(function))
    return function
