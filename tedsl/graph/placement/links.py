"""What copies between the processor and a device take: a curve that is measured, and the line through it."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy

from tedsl.record import record
from tedsl.runtime.array import NDArray, array, empty
from tedsl.runtime.devices.device import Device

SIZES = tuple([1 << power for power in range(10, 24, 2)])  # bytes: from what only latency decides to what only bandwidth does
_REPEAT = 5


@record(eq=False)
class Link:
    """seconds + bytes * per_byte, for a copy there or back. points: bytes and the seconds that were measured."""

    seconds: float
    per_byte: float
    points: tuple[tuple[int, float], ...]


def measured_link(place: Device, sizes: Sequence[int] = SIZES) -> Link:
    """The link of a device: the mean of a copy there and one back, the least of five, for each size."""
    points = []
    for size in sizes:
        here, there = numpy.zeros(size, "uint8"), empty((size,), "uint8", place)
        back = array(here)

        def both_ways(there: NDArray = there, here: Any = here, back: NDArray = back) -> None:
            there.copyfrom(here)
            back.copyfrom(there)

        taken = [seconds_of(place, both_ways) / 2 for _ in range(_REPEAT)]
        points.append((size, min(taken)))
    return line_through(points)


def seconds_of(place: Device, work: Callable[[], object]) -> float:
    """The seconds until work on a device has ended; on a simulated one by the clock of its model."""
    driver = place.driver if place.kind == "sim" else None
    begin = time.perf_counter()
    start = driver.record_event(place.device_id) if driver is not None else 0
    work()
    if driver is not None:
        return driver.elapsed(place.device_id, start, driver.record_event(place.device_id))
    place.sync()
    return time.perf_counter() - begin


def line_through(points: Sequence[tuple[int, float]]) -> Link:
    """The latency and the time of a byte with the least sum of squares of relative errors, neither below 0."""
    sizes = numpy.array([size for size, _ in points], float)
    times = numpy.array([time for _, time in points], float)
    rows = numpy.stack([numpy.ones_like(sizes), sizes], 1) / times[:, None]
    latency, per_byte = map(float, numpy.linalg.lstsq(rows, numpy.ones_like(sizes), rcond=None)[0])
    if latency < 0:
        latency, per_byte = 0.0, float((sizes / times).sum() / ((sizes / times) ** 2).sum())
    elif per_byte < 0:
        latency, per_byte = float((1 / times).sum() / (1 / times**2).sum()), 0.0
    return Link(latency, per_byte, tuple(points))
