"""A simulated device: its memory, its clock, its streams."""

from __future__ import annotations

from itertools import count
from threading import RLock

from tedsl.errors import AllocationError, DeviceError
from tedsl.simulate.memory.region import Region
from tedsl.simulate.memory.space import GLOBAL_WINDOW, Space
from tedsl.simulate.models import Model

ONE_AT_A_TIME = RLock()  # held while a device works: threads of a program that share one, or copy between two, take turns
_ALIGNED, _GAP = 256, 4096  # of allocations; between them, so that accesses behind one are not in the next


class SimulatedDevice:
    """One device. memory: its allocations. Streams are their numbers; each has the time, in seconds, when its work will have
    ended. Work runs at once; the time is that of the model.
    """

    def __init__(self, number: int, model: Model) -> None:
        self.number, self.model, self.memory = number, model, Space()
        self._next = GLOBAL_WINDOW * (number + 1)
        self._used = 0
        self._streams: dict[int, float] = {0: 0.0}
        self._events: dict[int, float] = {}
        self._names = count(1)

    def allocate(self, size: int, name: str = "") -> Region:
        """Returns new memory, which nothing has written."""
        if size < 0 or self._used + size > self.model.properties.memory:
            raise AllocationError(f"sim({self.number}) has no {size} bytes left of its {self.model.properties.memory}")
        region = Region(name or f"memory {self._next:#x}", self._next, size)
        self._next += -(-(size + _GAP) // _ALIGNED) * _ALIGNED
        self._used += size
        self.memory.add(region)
        return region

    def free(self, address: int) -> None:
        """Gives memory back."""
        region = self.memory.before(address)
        if region is None or region.base != address:
            raise DeviceError(f"sim({self.number}) is asked to free {address:#x}, which it has not allocated")
        self.memory.remove(region)
        self._used -= region.size

    def place(self, address: int, size: int) -> tuple[Region, int]:
        """Returns the region of `size` bytes at `address`, and where in it they begin."""
        region = self.memory.before(address)
        if region is None or address + size > region.base + region.size:
            raise DeviceError(f"sim({self.number}) is asked to copy {size} bytes at {address:#x}, which are not all allocated")
        return region, address - region.base

    def create_stream(self) -> int:
        """Returns a new stream."""
        name = next(self._names)
        self._streams[name] = self._streams[0]
        return name

    def free_stream(self, stream: int) -> None:
        """Frees a stream."""
        self._require(stream)
        if stream:
            del self._streams[stream]

    def spend(self, stream: int, seconds: float) -> None:
        """Puts work of this duration behind that of a stream; work of the default stream waits for that of all others, and they
        for it.
        """
        self._require(stream)
        begin = max(self._streams.values()) if stream == 0 else max(self._streams[stream], self._streams[0])
        self._streams[stream] = begin + seconds

    def record_event(self, stream: int) -> int:
        """Returns an event behind the work of a stream."""
        self._require(stream)
        name = next(self._names)
        self._events[name] = max(self._streams.values()) if stream == 0 else self._streams[stream]
        return name

    def elapsed(self, start: int, end: int) -> float:
        """Returns the seconds between two events, and frees them."""
        if not {start, end} <= self._events.keys():
            raise DeviceError(f"sim({self.number}) has no events {start} and {end}")
        begin, stop = self._events.pop(start), self._events.pop(end, None)
        return (begin if stop is None else stop) - begin

    def _require(self, stream: int) -> None:
        if stream not in self._streams:
            raise DeviceError(f"sim({self.number}) has no stream {stream}")
