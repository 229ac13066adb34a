"""Devices that parts are placed on: this processor, cores of it, and simulated ones with a stated model of their speed."""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Collection, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Protocol

import numpy

from tedsl.actors.running.cores import held_cores
from tedsl.errors import ArgumentError, ArgumentTypeError, DeviceError, type_in_words
from tedsl.graph.network import Network, compile
from tedsl.graph.placement.costs import costs_of
from tedsl.graph.placement.split import Part
from tedsl.record import record
from tedsl.runtime.parallel import get_num_threads
from tedsl.target.current import host_target
from tedsl.target.target import Target


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
    _check_processors(where, [device for device in listed if isinstance(device, Processor)])
    return listed


_OF_A_DEVICE = ("name", "text", "link", "measure")


def _positive(what: str, **numbers: float) -> None:
    for name, value in numbers.items():
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 < value < float("inf"):
            raise ArgumentError(f"{what}: {name} is a number above 0, not {value!r}")


class Processor:
    """The processor of this machine, or some of its cores.

    cores: the numbers of those that the thread of this device is held to; None: all that the process may use. On one core
    parallel loops are serial. The threads of a parallel loop belong to the process: at most one device of a placement may
    have several cores, and not fewer than these threads. Raises ArgumentError for cores that the process may not use.
    """

    def __init__(self, name: str = "cpu", cores: Collection[int] | None = None) -> None:
        self.name = name
        self.cores = None if cores is None else _checked_cores(name, cores)
        self.link = (0.0, 0.0)

    @property
    def text(self) -> str:
        held = "" if self.cores is None else f" on cores {', '.join(map(str, sorted(self.cores)))}"
        return f"{self.name}: {self.target}{held}"

    @property
    def target(self) -> Target:
        """What parts are compiled for."""
        here = host_target()
        return Target(f"{here} -num-cores=1") if self.cores is not None and len(self.cores) == 1 else here

    def compiled(self, part: Part) -> Network:
        """The part as a network for these cores."""
        return compile(part.graph, self.target)

    def measure(self, part: Part, repeat: int) -> Measured:
        """Compiles the part, and measures it on random numbers, in a thread that is held to the cores."""
        rng = numpy.random.default_rng(0)
        arrays = [numbers_for(rng, value.spec) for value in part.graph.inputs]
        network = self.compiled(part)
        seconds: list[float] = []

        def run() -> None:
            if self.cores is not None:
                os.sched_setaffinity(0, self.cores)  # of this thread alone
            network(*arrays)
            for _ in range(repeat):
                begin = time.perf_counter()
                network(*arrays)
                seconds.append(time.perf_counter() - begin)

        if self.cores is None:
            run()
        else:
            with ThreadPoolExecutor(1) as thread:
                thread.submit(run).result()
        return Measured(tuple(seconds))

    def __repr__(self) -> str:
        return f"Processor({self.name!r})" if self.cores is None else f"Processor({self.name!r}, cores={sorted(self.cores)})"


def _checked_cores(name: str, cores: Any) -> frozenset[int]:
    """Cores that the process may use, of which parallel loops do not have more threads. Raises ArgumentError."""
    held = held_cores(f"Processor: cores of {name}", cores)
    if 1 < len(held) < get_num_threads():
        raise ArgumentError(f"Processor: {name} has {len(held)} cores, and parallel loops have {get_num_threads()} threads",
                            hint=f"tedsl.set_num_threads({len(held)})")
    return held


def _check_processors(where: str, processors: Sequence[Processor]) -> None:
    """Refuses processors that have a core in common, or of which two have several. Raises ArgumentError."""
    if len(processors) > 1 and any(one.cores is None for one in processors):
        raise ArgumentError(f"{where}: two of the devices are the processor of this machine, which has its cores but once",
                            hint='list one Processor, or divide them: Processor("a", cores=[0]), Processor("b", cores=[1])')
    for number, one in enumerate(processors):
        for other in processors[:number]:
            common = (one.cores or frozenset()) & (other.cores or frozenset())
            if common:
                raise ArgumentError(f"{where}: {other.name} and {one.name} both have core {min(common)}",
                                    hint="give each core to one of them")
    several = [one.name for one in processors if one.cores is not None and len(one.cores) > 1]
    if len(several) > 1:
        raise ArgumentError(f"{where}: {several[0]} and {several[1]} both have several cores, and there is one set of threads "
                            "for parallel loops", hint="give all but one of them a single core")


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
