"""A network for arrays of known extents: its plan, an arena, and the calls of kernels with the arrays that they take.

Arrays in the arena and constants are bound to the calls once; those of the caller are put in at each call.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any

import numpy

from tedsl.graph.graph import Graph
from tedsl.graph.network.arrays import dtype_of, shape_of
from tedsl.graph.network.kernels import KernelUse
from tedsl.graph.network.steps import Step
from tedsl.graph.plan.plan import MemoryPlan
from tedsl.graph.plan.ranges import Memory
from tedsl.graph.value import Value
from tedsl.record import record
from tedsl.runtime.array import aligned

Array = Any
Function = Callable[..., Any]


@record
class _View:
    """A part of an array of the caller: the number of the array, the byte at which the part begins, its shape."""

    place: int
    begin: int
    shape: tuple[int, ...]


class Instance:
    """Runs a graph of known extents, by the steps of its plan. One call at a time: they share the arena."""

    def __init__(self, graph: Graph, plan: MemoryPlan, steps: Sequence[Step]) -> None:
        self.graph, self.plan, self.steps = graph, plan, tuple(steps)
        self._lock = threading.Lock()
        self.fixed, self._from_outside = self._bound()
        self.results = [(shape_of(value), dtype_of(value)) for value in graph.outputs]
        self.views, self.copies = self._outside_views()
        self.calls = [self._call(step) for step in self.steps]

    def _bound(self) -> tuple[dict[Value, Array], dict[Value, Memory]]:
        """The arrays of values in the arenas and of constants; and the memory of the values that the caller gives."""
        arenas = {device: aligned((size,), numpy.dtype("uint8")) for device, size in self.plan.sizes.items()}
        blocks = {block.first: block for block in self.plan.blocks}
        fixed: dict[Value, Array] = {}
        outside: dict[Value, Memory] = {}
        for memory in self.plan.memories:
            first = memory.first
            if memory.home in ("input", "output"):
                outside |= dict.fromkeys(memory.values, memory)
                continue
            if memory.home == "constant":
                whole = first.data
            elif first in blocks:
                block = blocks[first]
                whole = arenas[block.device][block.offset:block.offset + memory.size].view(dtype_of(first))
            else:  # without elements
                whole = numpy.empty(shape_of(first), dtype_of(first))
            fixed |= {value: _part(whole, begin // value.dtype.bytes, shape_of(value))
                      for value, begin in memory.values.items()}
        return fixed, outside

    def _outside_views(self) -> tuple[list[_View], list[tuple[int, int | Value]]]:
        """The views of arrays of the caller that steps take; and the outputs that are copies of something else: the number of
        the output, and the place of an array or a value.

        Arrays of the caller are numbered: inputs first, then outputs.
        """
        inputs, outputs = self.graph.inputs, self.graph.outputs
        count = len(inputs)
        owner: dict[int, int] = {}  # of memories
        copies: list[tuple[int, Value]] = []
        self.places: dict[Value, int] = {}
        views: list[_View] = []
        for at, value in enumerate(inputs):
            owner[id(self._from_outside[value])] = at
        for at, value in enumerate(outputs):
            memory = self._from_outside.get(value)
            if memory is None or id(memory) in owner:
                copies.append((count + at, value))
            else:
                owner[id(memory)] = count + at
        for value, memory in self._from_outside.items():
            place = owner[id(memory)]
            given = inputs[place] if place < count else outputs[place - count]
            if shape_of(given) == shape_of(value):
                self.places[value] = place
            else:
                self.places[value] = count + len(outputs) + len(views)
                views.append(_View(place, memory.values[value], shape_of(value)))
        return views, [(at, self.places.get(of, of)) for at, of in copies]

    @property
    def uses(self) -> tuple[KernelUse, ...]:
        """The kernel of each step."""
        return tuple([step.use for step in self.steps])

    def _call(self, step: Step) -> tuple[Function, tuple[Any, ...], tuple[int, ...]]:
        """A call: the function; its arrays, None where one comes from outside; the places of these, () if there are none."""
        arrays = tuple([self.fixed.get(one, one.data) if isinstance(one, Value) else one for one in step.operands])
        places = tuple([self.places.get(one, -1) if isinstance(one, Value) else -1 for one in step.operands])
        return step.function, arrays, places if max(places) >= 0 else ()

    def run(self, inputs: Sequence[Array], outputs: Sequence[Array]) -> None:
        """Computes the outputs; the arrays fit, and are contiguous."""
        given = self.given(inputs, outputs)
        with self._lock:
            for function, arrays, places in self.calls:
                if places:
                    arrays = tuple([array if place < 0 else given[place] for array, place in zip(arrays, places)])
                function(*arrays)
            for to, of in self.copies:
                numpy.copyto(given[to], (given[of] if isinstance(of, int) else self.fixed[of]))

    def exclusive(self) -> AbstractContextManager[object]:
        """A `with` block in which no other thread runs this."""
        return self._lock

    def given(self, inputs: Sequence[Array], outputs: Sequence[Array]) -> list[Array]:
        """The arrays of the caller and their views, by their places."""
        given = [*inputs, *outputs]
        for view in self.views:
            whole = given[view.place]
            given.append(_part(whole, view.begin // whole.itemsize, view.shape))
        return given

    def fresh(self) -> list[Array]:
        """New arrays for the outputs."""
        return [numpy.empty(shape, dtype) for shape, dtype in self.results]

    def step_arrays(self, inputs: Sequence[Array], outputs: Sequence[Array]) -> list[tuple[Function, tuple[Any, ...]]]:
        """The calls with all their arrays, in order."""
        given = self.given(inputs, outputs)
        return [(function, tuple([array if place < 0 else given[place] for array, place in zip(arrays, places)])
                 if places else arrays) for function, arrays, places in self.calls]


def _part(whole: Array, begin: int, shape: tuple[int, ...]) -> Array:
    """The elements of a contiguous array from number `begin` on, in a shape."""
    return whole.reshape(-1)[begin:begin + math.prod(shape)].reshape(shape)
