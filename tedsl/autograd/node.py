"""The nodes of a recorded graph: each passes the gradients of what an operation made on to what it was made of."""

from __future__ import annotations

import itertools
import threading
import weakref
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy

from tedsl.autograd.picture import Graph
from tedsl.errors import ArgumentTypeError, ShapeError, TedslError, type_in_words
from tedsl.ir.source_line import SourceLine

if TYPE_CHECKING:
    from tedsl.autograd.value import Value

Gradient = Any  # a Value, or None for zero
Edge = tuple[Any, int]  # (node, number of its output), (None, 0) for what needs no gradient
CONSTANT: Edge = (None, 0)
NUMBERS = itertools.count()
_ADDING = threading.Lock()  # to gradients of leaves, which threads may share
LAST = 1 << 62  # the number of accumulators: gradients of leaves are added up as soon as they are there


class Hooks:
    """What is called when gradients pass a node: functions of the gradient of one of its outputs, by the number of that; the
    tensors that keep it; functions before and after the node runs.
    """

    __slots__ = ("after", "before", "of_outputs", "retained")

    def __init__(self) -> None:
        self.of_outputs: dict[int, dict[int, Callable[..., Any]]] = {}
        self.retained: dict[int, weakref.ref[Any]] = {}
        self.before: dict[int, Callable[..., Any]] = {}
        self.after: dict[int, Callable[..., Any]] = {}


class Node:
    """A recorded operation. `next_functions` has a pair (function, input_nr) for each input of the operation: the node to which
    its gradient goes, and the number of that node's output; (None, 0) for inputs that need none.

    number: when it was recorded.
    """

    __slots__ = ("__weakref__", "hooks", "next_functions", "number", "place")

    next_functions: tuple[Edge, ...]
    place: Any  # the code and the instruction that recorded it
    hooks: Hooks | None

    def __init__(self, next_functions: tuple[Edge, ...], place: Any = None) -> None:
        self.next_functions = next_functions
        self.number: int = next(NUMBERS)
        self.place = place
        self.hooks = None

    def name(self) -> str:
        """What it is the derivative of: MulBackward0."""
        return type(self).__name__

    @property
    def outputs(self) -> int:
        """How many results the operation has: how many gradients come in."""
        return 1

    def passed(self, heads: Sequence[Gradient], create_graph: bool, keep: bool) -> Sequence[tuple[Gradient, bool]]:
        """For each input its gradient, and whether nobody else has its array; `heads` are those of the results.

        keep: what it reads is kept for another pass.
        """
        raise NotImplementedError

    @property
    def line(self) -> SourceLine | None:
        """The line of the program that recorded it."""
        return line_of(self.place)

    def graph(self) -> Graph:
        """The graph from here to the leaves, to be printed or displayed."""
        return Graph(self)

    def register_hook(self, hook: Callable[[tuple[Any, ...], tuple[Any, ...]], Any]) -> Handle:
        """`hook(grad_inputs, grad_outputs)` is called when this node has run; a tuple that it returns replaces grad_inputs."""
        return Handle.into(self.hooked().after, hook)

    def register_prehook(self, hook: Callable[[tuple[Any, ...]], Any]) -> Handle:
        """`hook(grad_outputs)` is called before this node runs; a tuple that it returns replaces them."""
        return Handle.into(self.hooked().before, hook)

    def hooked(self) -> Hooks:
        """Its hooks, to add one."""
        if self.hooks is None:
            self.hooks = Hooks()
        return self.hooks

    def _repr_html_(self) -> str:
        return self.graph()._repr_html_()

    def __repr__(self) -> str:
        return f"<{self.name()}>"


class Handle:
    """A hook that was registered; `remove()` takes it away."""

    __slots__ = ("_hooks", "key")

    def __init__(self, hooks: dict[int, Callable[..., Any]], key: int) -> None:
        self._hooks, self.key = hooks, key

    @classmethod
    def into(cls, hooks: dict[int, Callable[..., Any]], hook: Callable[..., Any]) -> Handle:
        if not callable(hook):
            raise ArgumentTypeError(f"register_hook: {hook!r} is not a function")
        key = next(NUMBERS)
        hooks[key] = hook
        return cls(hooks, key)

    def remove(self) -> None:
        self._hooks.pop(self.key, None)

    def __enter__(self) -> Handle:
        return self

    def __exit__(self, *_: object) -> None:
        self.remove()


class AccumulateGrad(Node):
    """Where the gradient of a leaf ends: it is added to `variable.grad`. It has no next functions."""

    __slots__ = ("variable",)

    def __init__(self, variable: Value) -> None:
        self.next_functions = ()
        self.number = LAST + next(NUMBERS)
        self.place = self.hooks = None
        self.variable = variable

    def passed(self, heads: Sequence[Gradient], create_graph: bool, keep: bool) -> Sequence[tuple[Gradient, bool]]:
        raise TedslError("the accumulator of a leaf passes nothing on")

    def add(self, gradient: Value, alone: bool, plus: Callable[[Any, Any], Any] | None) -> None:
        """Adds to the gradient of the variable. alone: nobody else has its array. plus: how sums are recorded, if they are."""
        variable = self.variable
        with _ADDING:
            if variable.grad is None:
                variable.grad = gradient if alone or plus is not None else gradient.copied()
            elif plus is not None:
                variable.grad = plus(variable.grad, gradient)
            else:
                before = variable.grad
                if getattr(before, "_kind", None) is not gradient._kind:
                    raise ShapeError(f"backward: the grad of a tensor {variable._kind} was set to {_in_words(before)}",
                                     hint="a gradient has the shape and dtype of its tensor; None clears it: x.grad = None")
                if not before._array.flags.writeable:
                    before._array = before._array.copy()
                numpy.add(before._array, gradient._array, out=before._array)
                if before._changes is not None:  # a graph may have saved it
                    before.count_change()


def _in_words(grad: Any) -> str:
    return f"a tensor {grad._kind}" if hasattr(grad, "_kind") else type_in_words(grad)


def line_of(place: Any) -> SourceLine | None:
    """The line of (code, position of the instruction)."""
    if place is None:
        return None
    code, at = place
    found = 0
    for start, end, line in code.co_lines():
        if start <= at < end and line is not None:
            found = line
    return SourceLine(code.co_filename, found)
