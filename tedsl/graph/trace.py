"""Graphs made by calling functions: `ops` has the operators, `trace` gives a function values and keeps what it returns."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy

from tedsl.errors import ArgumentTypeError, GraphError, type_in_words
from tedsl.graph.apply import apply
from tedsl.graph.graph import Graph
from tedsl.graph.operators import operator_named, operator_names
from tedsl.graph.value import Spec, Value, constant


class Ops:
    """The operators as functions of values: ops.add(a, b), ops.nn.conv2d(x, w, 1, 1, 1), ops.mine.swish(x)."""

    def __init__(self, prefix: str = "") -> None:
        self._prefix = prefix

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        whole = self._prefix + name
        if any(known.startswith(whole + ".") for known in operator_names()):
            return Ops(whole + ".")
        operator_named(whole)  # refuses what is not there

        def call(*args: Any, **kwargs: Any) -> Any:
            return apply(whole, *args, **kwargs)

        call.__name__ = call.__qualname__ = name
        call.__doc__ = operator_named(whole).function.__doc__
        return call

    def __dir__(self) -> list[str]:
        inside = [name.removeprefix(self._prefix) for name in operator_names() if name.startswith(self._prefix)]
        return sorted({name.partition(".")[0] for name in inside})

    def __repr__(self) -> str:
        return f"<the operators of graphs{f' whose names start with {self._prefix}' if self._prefix else ''}>"


ops = Ops()


def trace(fn: Callable[..., Any], *specs: Any, name: str = "main") -> Graph:
    """The graph of what `fn` returns for values of the given shapes and dtypes.

    specs: for each parameter of fn a Spec, a shape (of float32), or an array whose shape and dtype are meant. fn returns a
    value, or a list or tuple of values; arrays that it returns are constants. The inputs are called as the parameters are.
    """
    if not callable(fn):
        raise ArgumentTypeError(f"trace: {fn!r} is not a function", hint="trace(lambda x: ops.nn.relu(x), Spec((1, 3)))")
    inputs = [Value(label, _as_spec(spec)) for label, spec in zip(_labels(fn, len(specs)), specs)]
    returned = fn(*inputs)
    listed = list(returned) if isinstance(returned, (list, tuple)) else [returned]
    outputs = [constant(value) if isinstance(value, numpy.ndarray) else value for value in listed]
    wrong = [value for value in outputs if not isinstance(value, Value)]
    if wrong:
        raise GraphError(f"trace: the function returned {type_in_words(wrong[0])}, not a value",
                         hint="its operators are those of tedsl.graph.ops")
    return Graph(inputs, outputs, name)


def _as_spec(given: Any) -> Spec:
    if isinstance(given, numpy.ndarray):
        return Spec(given.shape, given.dtype)
    return given if isinstance(given, Spec) else Spec(given)


def _labels(fn: Callable[..., Any], count: int) -> list[str]:
    """The names of the parameters; x0, x1, ... of those that have none."""
    try:
        parameters = inspect.signature(fn).parameters
    except (TypeError, ValueError):
        return [f"x{at}" for at in range(count)]
    named = [parameter.name for parameter in parameters.values()
             if parameter.kind in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD)]
    return [named[at] if at < len(named) else f"x{at}" for at in range(count)]
