"""Devices of tedsl beside the processor, as devices of a placement: their parts run there, node by node."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy

from tedsl.driver import build
from tedsl.errors import DeviceError
from tedsl.graph.formula import alone, formula_of
from tedsl.graph.graph import Graph
from tedsl.graph.network.arrays import dtype_of, shape_of
from tedsl.graph.placement.devices import Measured, numbers_for
from tedsl.graph.placement.links import Link, measured_link, seconds_of
from tedsl.graph.placement.split import Part
from tedsl.graph.value import Value
from tedsl.runtime.array import NDArray, array, empty
from tedsl.runtime.devices.device import Device, device
from tedsl.runtime.devices.opencl.opened import partition
from tedsl.runtime.module import Module
from tedsl.target.current import as_target
from topi.schedules import schedule

_CODE = {"sim": "cuda"}  # kinds of devices that run the code of another kind


class DeviceGraph:
    """A graph compiled for a device: a kernel for each node, memory for what lies between them, constants copied there once."""

    def __init__(self, graph: Graph, place: Device) -> None:
        self.graph, self.place = graph, place
        target = as_target(_CODE.get(place.kind, place.kind))
        self.values: dict[Value, NDArray] = {}
        self.calls: list[tuple[Module, tuple[Value, ...]]] = []
        known: dict[str, Module] = {}
        for node in graph.nodes:
            single = alone(node)
            if str(single) not in known:
                formula = formula_of(single)
                args = [*formula.inputs, *formula.outputs]
                with target:
                    known[str(single)] = build(schedule(formula.outputs, target), args, target)
            operands = tuple([value for value in dict.fromkeys(node.inputs) if not (value.is_constant and not value.shape)])
            self.calls.append((known[str(single)], (*operands, *node.outputs)))
            self.values |= {value: array(value.data, place) for value in operands if value.is_constant}
            self.values |= {value: empty(shape_of(value), dtype_of(value), place) for value in node.outputs
                            if value not in graph.outputs}

    def __call__(self, inputs: Sequence[NDArray], outputs: Sequence[NDArray]) -> None:
        """Starts the kernels on arrays of the device: inputs and outputs of the graph."""
        arrays = {**self.values, **dict(zip(self.graph.inputs, inputs)), **dict(zip(self.graph.outputs, outputs))}
        for module, values in self.calls:
            module(*[arrays[value] for value in values])


class Accelerator:
    """A device of tedsl: kind "opencl", "cuda", "sim" and its number. Its times are measured, those of what is sent too, on
    a simulated device by the clock of its model.

    Raises DeviceError if there is no such device here.
    """

    def __init__(self, kind: str = "opencl", number: int = 0, name: str | None = None) -> None:
        self.device = device(kind, number)
        missing = "it is the processor itself" if self.device == device("cpu", number) else self.device.missing
        if missing:
            raise DeviceError(f"Accelerator: there is no device {self.device} here: {missing}",
                              hint='placement.Processor("cpu") is the processor of this machine')
        self.memory = f"{self.device.kind}:{number}" if number else self.device.kind
        self.name = self.memory if name is None else name

    @property
    def text(self) -> str:
        driver = self.device.driver
        model = driver.properties(self.device.device_id).name if driver is not None else ""
        return f"{self.name}: {self.device} {model}"

    @cached_property
    def curve(self) -> Link:
        """What copies between it and the processor take, measured when it is first asked for."""
        return measured_link(self.device)

    @property
    def link(self) -> tuple[float, float]:
        return self.curve.seconds, self.curve.per_byte

    def measure(self, part: Part, repeat: int) -> Measured:
        """Compiles the part, and measures it on random numbers that lie on the device."""
        rng = numpy.random.default_rng(0)
        compiled = DeviceGraph(part.graph, self.device)
        inputs = [array(numbers_for(rng, value.spec), self.device) for value in part.graph.inputs]
        outputs = [empty(shape_of(value), dtype_of(value), self.device) for value in part.graph.outputs]
        seconds = [seconds_of(self.device, lambda: compiled(inputs, outputs)) for _ in range(repeat + 1)]
        return Measured(tuple(seconds[1:]))  # without the first, which loads the code

    def compiled(self, part: Part) -> Any:
        """The part as a function of lists of arrays on the device: inputs, then outputs, which it fills."""
        return DeviceGraph(part.graph, self.device)

    @staticmethod
    def parts_of(number: int, units: int) -> list[Accelerator]:
        """The device opencl(number) as several, of `units` compute units each. Raises DeviceError if it cannot be split so."""
        return [Accelerator("opencl", one) for one in partition(number, units)]

    def __repr__(self) -> str:
        return f"Accelerator({self.device.kind!r}, {self.device.device_id})"
