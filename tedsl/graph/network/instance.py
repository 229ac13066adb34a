"""A network for arrays of known extents: its plan, an arena, and the calls of kernels with the arrays that they take.

Arrays in the arena and constants are bound to the calls once; those of the caller are put in at each call.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any

import numpy

from tedsl.autograd.formula import numpy_dtype
from tedsl.graph.graph import Graph
from tedsl.graph.network.kernels import KernelUse
from tedsl.graph.plan.offsets import ALIGNMENT
from tedsl.graph.plan.plan import MemoryPlan
from tedsl.graph.plan.ranges import Memory
from tedsl.graph.value import Value

Array = Any
Function = Callable[..., Any]


def aligned_bytes(size: int) -> Array:
    """A new array of bytes that begins at a multiple of the alignment."""
    whole = numpy.empty(size + ALIGNMENT, numpy.uint8)
    start = -whole.ctypes.data % ALIGNMENT
    return whole[start:start + size]


def shape_of(value: Value) -> tuple[int, ...]:
    """The extents of a value, which are numbers."""
    return tuple([int(extent) for extent in value.shape])


def dtype_of(value: Value) -> Any:
    """The dtype of arrays for a value."""
    return numpy_dtype(value.dtype)


class Instance:
    """Runs a graph of known extents. One call at a time: they share the arena.

    uses: the kernel of each step of the plan; functions: for each step what is called with its arrays.
    """

    def __init__(self, graph: Graph, plan: MemoryPlan, uses: Sequence[KernelUse],
                 functions: Sequence[Function]) -> None:
        self.graph, self.plan, self.uses, self.functions = graph, plan, tuple(uses), tuple(functions)
        self._lock = threading.Lock()
        self.fixed, self._from_outside = self._bound()
        self.results = [(shape_of(value), dtype_of(value)) for value in graph.outputs]
        self.views, self.copies = self._outside_views()
        self.calls = [self._call(use, function) for use, function in zip(self.uses, functions)]

    def _bound(self) -> tuple[dict[Value, Array], dict[Value, Memory]]:
        """The arrays of values in the arenas and of constants; and the memory of the values that the caller gives."""
        arenas = {device: aligned_bytes(size) for device, size in self.plan.sizes.items()}
        blocks = {block.values[0]: block for block in self.plan.blocks}
        fixed: dict[Value, Array] = {}
        outside: dict[Value, Memory] = {}
        for memory in self.plan.memories:
            first = memory.values[0]
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
            fixed |= {value: whole.reshape(shape_of(value)) for value in memory.values}
        return fixed, outside

    def _outside_views(self) -> tuple[list[tuple[int, tuple[int, ...]]], list[tuple[int, int | Value]]]:
        """The views of arrays of the caller that steps take: the number of the array and a shape; and the outputs that are
        copies of something else: the number of the output, and the place of an array or a value.

        Arrays of the caller are numbered: inputs first, then outputs.
        """
        inputs, outputs = self.graph.inputs, self.graph.outputs
        count = len(inputs)
        owner: dict[int, int] = {}  # of memories
        copies: list[tuple[int, Value]] = []
        self.places: dict[Value, int] = {}
        views: list[tuple[int, tuple[int, ...]]] = []
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
                views.append((place, shape_of(value)))
        return views, [(at, self.places.get(of, of)) for at, of in copies]

    def _call(self, use: KernelUse, function: Function) -> tuple[Function, tuple[Any, ...], tuple[int, ...]]:
        """A call: the function; its arrays, None where one comes from outside; the places of these, () if there are none."""
        values = (*use.reads, *use.writes)
        arrays = tuple([self.fixed.get(value, value.data) for value in values])  # data: of constants inside of called graphs
        places = tuple([self.places.get(value, -1) for value in values])
        return function, arrays, places if max(places) >= 0 else ()

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
        for place, shape in self.views:
            given.append(given[place].reshape(shape))
        return given

    def fresh(self) -> list[Array]:
        """New arrays for the outputs."""
        return [numpy.empty(shape, dtype) for shape, dtype in self.results]

    def step_arrays(self, inputs: Sequence[Array], outputs: Sequence[Array]) -> list[tuple[Function, tuple[Any, ...]]]:
        """The calls with all their arrays, in order."""
        given = self.given(inputs, outputs)
        return [(function, tuple([array if place < 0 else given[place] for array, place in zip(arrays, places)])
                 if places else arrays) for function, arrays, places in self.calls]
