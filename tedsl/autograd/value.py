"""The data of a tensor and its place in the recorded graph, below its operators."""

from __future__ import annotations

import sys
import weakref
from typing import Any, ClassVar

from tedsl.autograd.kinds import Array, Kind
from tedsl.autograd.node import CONSTANT, AccumulateGrad, Edge, Node
from tedsl.errors import OURS

_new: Any = object.__new__


class Changes:
    """How often the elements of an array were changed in place, and where last. Tensors that share memory share it."""

    __slots__ = ("count", "place")

    def __init__(self) -> None:
        self.count = 0
        self.place: Any = None


class Value:
    """An array, and the edge of the graph to which its gradient goes: its `grad_fn`, or for a leaf its accumulator.

    plain: the class of the results of operations.
    """

    __slots__ = ("__weakref__", "_accumulator", "_array", "_changes", "_held", "_kind", "_requires_grad", "grad", "grad_fn",
                 "output_nr")
    plain: ClassVar[type[Any]]

    _array: Array
    _kind: Kind
    _requires_grad: bool
    _changes: Changes | None
    _accumulator: weakref.ref[AccumulateGrad] | None
    _held: AccumulateGrad | None  # where hooks were registered
    grad: Any
    grad_fn: Node | None
    output_nr: int

    def changes(self) -> Changes:
        """The counter of changes in place."""
        if self._changes is None:
            self._changes = Changes()
        return self._changes

    def count_change(self) -> None:
        """Counts a change of the elements in place, which the program that is running made."""
        changes = self.changes()
        changes.count += 1
        changes.place = place()

    def edge(self) -> Edge:
        """Where its gradient goes. The accumulator of a leaf is one as long as a graph leads to it, or a hook holds it."""
        if self.grad_fn is not None:
            return self.grad_fn, self.output_nr
        if not self._requires_grad:
            return CONSTANT
        known = None if self._accumulator is None else self._accumulator()
        if known is None:
            known = AccumulateGrad(self)
            self._accumulator = weakref.ref(known)
        return known, 0

    def copied(self) -> Any:
        """A tensor with a copy of the elements, outside of the graph."""
        return result(self.plain, self._array.copy(), self._kind, None, 0)


def result(cls: type[Any], array: Array, kind: Kind, grad_fn: Node | None, number: int) -> Any:
    """The tensor of class `cls` that is result `number` of the operation that `grad_fn` recorded, if it was."""
    made = _new(cls)
    made._array = array
    made._kind = kind
    made._requires_grad = grad_fn is not None
    made._changes = made._accumulator = made._held = made.grad = None
    made.grad_fn = grad_fn
    made.output_nr = number
    return made


def place(depth: int = 2) -> Any:
    """The code and the instruction of the program that is running, outside of tedsl; `depth` frames up, or more."""
    frame: Any = sys._getframe(depth)
    while frame is not None and frame.f_code.co_filename.startswith(OURS):
        frame = frame.f_back
    return None if frame is None else (frame.f_code, frame.f_lasti)
