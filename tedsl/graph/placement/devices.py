"""Devices that parts are placed on: this processor, and simulated ones with a stated model of their speed."""

from __future__ import annotations

import statistics
import time
from typing import Any, Protocol

import numpy

from tedsl.errors import ArgumentError, ArgumentTypeError, DeviceError, type_in_words
from tedsl.graph.network import compile
from tedsl.graph.placement.costs import costs_of
from tedsl.graph.placement.split import Part
from tedsl.record import record
from tedsl.target.current import host_target


@record
class Measured:
    """Seconds of repetitions; mean, median, and spread, the standard deviation."""

    seconds: tuple[float, ...]

    @property
    def mean(self) -> float:
        return statistics.fmean(self.seconds)

    @property
    def median(self) -> float:
        return statistics.median(self.seconds)

    @property
    def spread(self) -> float:
        return statistics.pstdev(self.seconds)


class Device(Protocol):
    """Something that computes parts. name: unique among the devices of a placement. text: what its times depend on."""

    @property
    def name(self) -> str: ...

    @property
    def text(self) -> str: ...

    @property
    def link(self) -> tuple[float, float]:
        """What sending to or from the memory of the processor takes: seconds, and seconds for each byte."""

    def measure(self, part: Part, repeat: int) -> Measured:
        """The times of a part, with nothing else running."""


def checked_devices(where: str, devices: Any) -> tuple[Device, ...]:
    """The devices, which have names of their own. Raises ArgumentError or ArgumentTypeError, which begins with `where`."""
    example = '[placement.Processor("cpu"), placement.Simulated("gpu", flops=1e12, bandwidth=1e11)]'
    listed = tuple(devices) if isinstance(devices, (list, tuple)) else (devices,)
    wrong = [one for one in listed if isinstance(one, type) or not all(hasattr(one, name) for name in _OF_A_DEVICE)]
    if wrong:
        raise ArgumentTypeError(f"{where}: a device has {', '.join(_OF_A_DEVICE)}, and {type_in_words(wrong[0])} has not",
                                hint=f"for example {example}")
    if not listed or len({device.name for device in listed}) < len(listed):
        raise ArgumentError(f"{where}: devices are one or more, with names of their own; they are called "
                            f"{', '.join(device.name for device in listed) or 'nothing'}", hint=f"for example {example}")
    if sum(isinstance(device, Processor) for device in listed) > 1:
        raise ArgumentError(f"{where}: two of the devices are the processor of this machine, which has its cores but once",
                            hint="list one Processor")
    return listed


_OF_A_DEVICE = ("name", "text", "link", "measure")


def _positive(what: str, **numbers: float) -> None:
    for name, value in numbers.items():
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 < value < float("inf"):
            raise ArgumentError(f"{what}: {name} is a number above 0, not {value!r}")


class Processor:
    """The processor of this machine."""

    def __init__(self, name: str = "cpu") -> None:
        self.name = name
        self.link = (0.0, 0.0)

    @property
    def text(self) -> str:
        return f"{self.name}: {host_target()}"

    def measure(self, part: Part, repeat: int) -> Measured:
        """Compiles the part, and measures it on random numbers."""
        rng = numpy.random.default_rng(0)
        arrays = [numbers_for(rng, value.spec) for value in part.graph.inputs]
        network = compile(part.graph)
        network(*arrays)
        seconds = []
        for _ in range(repeat):
            begin = time.perf_counter()
            network(*arrays)
            seconds.append(time.perf_counter() - begin)
        return Measured(tuple(seconds))

    def __repr__(self) -> str:
        return f"Processor({self.name!r})"


def numbers_for(rng: Any, spec: Any) -> Any:
    """An array to measure with. Raises DeviceError where the shape is not known."""
    if not all(isinstance(extent, int) for extent in spec.shape):
        raise DeviceError(f"profile: the shape of {spec} is known only at the call", hint="trace the network for one size")
    if spec.dtype.is_float:
        return rng.standard_normal(spec.shape).astype(str(spec.dtype))
    return rng.integers(0, 2, spec.shape).astype(str(spec.dtype))


class Simulated:
    """A device that is not there: a node takes `launch` seconds, and as long as its operations at `flops` per second or its
    bytes at `bandwidth` per second, whichever is more. Sending takes link_latency, and bytes at link_bandwidth.
    """

    def __init__(self, name: str, flops: float, bandwidth: float, launch: float = 1e-5, link_latency: float = 2e-5,
                 link_bandwidth: float = 1e10) -> None:
        if not isinstance(name, str) or not name:
            raise ArgumentTypeError(f"Simulated: the name of a device is a str, not {type_in_words(name)}")
        _positive(f"Simulated({name!r})", flops=flops, bandwidth=bandwidth, launch=launch, link_latency=link_latency,
                  link_bandwidth=link_bandwidth)
        self.name, self.flops, self.bandwidth, self.launch = name, flops, bandwidth, launch
        self.link = (link_latency, 1 / link_bandwidth)

    @property
    def text(self) -> str:
        return f"{self.name}: {self.flops} flops/s, {self.bandwidth} bytes/s, {self.launch} s per launch, link {self.link}"

    def measure(self, part: Part, repeat: int = 1) -> Measured:
        """What the model says."""
        costs = [costs_of(node) for node in part.nodes]
        total = sum(self.launch + max(one.flops / self.flops, one.bytes / self.bandwidth) for one in costs)
        return Measured((total,))

    def __repr__(self) -> str:
        return f"Simulated({self.text!r})"
