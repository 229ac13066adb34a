"""The devices that are simulated, as numbers: their limits, and the model of time.

A model gives reports a scale: which of two schedules is better and what bounds it. It knows no caches and no latency of memory;
measured times of a device differ.
"""

from __future__ import annotations

from collections.abc import Mapping

from tedsl.record import record
from tedsl.runtime.devices.api import DeviceProperties


@record
class Model:
    """A device. cycles: how long one of the four parts of a processor is busy with one instruction of a warp, by its class.
    bandwidth: bytes a second of its memory. host: bytes a second to and from the host. start: seconds that a launch takes.
    """

    properties: DeviceProperties
    bandwidth: float
    cycles: Mapping[str, float]
    host: float = 20e9
    start: float = 3e-6


CYCLES: dict[str, float] = {"float32": 1, "float16": 1, "integer": 2, "logic": 2, "move": 1, "float64": 2, "convert": 8,
                            "special": 8, "shuffle": 4, "barrier": 4, "branch": 2, "control": 1, "copy": 4, "tensor": 16,
                            "tensor 16x8": 8}
MEMORY_CYCLES = 4  # of an access of a warp
DEPENDENT = 4  # cycles between two instructions of one warp


def _properties(name: str, capability: str, processors: int, clock: float, shared: int) -> DeviceProperties:
    return DeviceProperties(name, capability, 32, 1024, (1024, 1024, 64), (2 ** 31 - 1, 65535, 65535), shared, 65536,
                            processors, clock, 4 << 30)


MODELS: dict[str, Model] = {
    "7.0": Model(_properties("simulated device of capability 7.0", "7.0", 80, 1.53e9, 96 << 10), 0.90e12, CYCLES),
    "8.0": Model(_properties("simulated device of capability 8.0", "8.0", 108, 1.41e9, 163 << 10), 1.56e12, CYCLES),
    "9.0": Model(_properties("simulated device of capability 9.0", "9.0", 132, 1.75e9, 227 << 10), 3.35e12, CYCLES),
}
DEVICES = 4  # that there are, all of one model


@record
class Duration:
    """The time of a kernel by the model, in seconds, and what it is spent on most: "instructions", "dependent instructions",
    "shared memory", "sectors" (between processors and memory), "memory", "start".
    """

    seconds: float
    bound: str


def duration(model: Model, blocks: int, warps: int, classes: Mapping[str, int], passes: int, sectors: int) -> Duration:
    """Returns the time of a kernel of `blocks` blocks and `warps` warps.

    classes: instructions of warps by class. passes: over the banks of shared memory. sectors: of global memory. The processors
    take the blocks in rounds; those of the last may be idle.
    """
    processors, clock = model.properties.processors, model.properties.clock
    rounds = -(-blocks // processors)
    busy = blocks / rounds  # processors that work, on average
    issue = sum(count * model.cycles.get(kind, MEMORY_CYCLES) for kind, count in classes.items()) / 4
    times = {
        "instructions": issue / busy / clock,
        "dependent instructions": sum(classes.values()) / max(1, warps) * DEPENDENT / clock,
        "shared memory": passes / busy / clock,
        "sectors": sectors / 4 / busy / clock,
        "memory": sectors * 32 / model.bandwidth,
    }
    bound = max(times, key=lambda name: times[name])
    return Duration(model.start + times[bound], bound if times[bound] > model.start else "start")
