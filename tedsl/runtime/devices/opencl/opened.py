"""A device of OpenCL that was opened: its context, its queues and its memory.

Memory has addresses of our own, in no other use, so that an address inside of an array means its elements from there on, as it
does on other devices; each is found among the buffers that were allocated.
"""

from __future__ import annotations

import functools
import itertools
import threading
from bisect import bisect_right
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tedsl.errors import AllocationError, DeviceError

ALIGNMENT = 256
_FIRST_ADDRESS = 1 << 40


@functools.cache
def library() -> Any:
    """Returns the module pyopencl; None if it is not installed."""
    try:
        import pyopencl
    except ImportError:
        return None
    return pyopencl


@functools.cache
def devices() -> list[Any]:
    """Returns all devices: graphics cards first, processors last."""
    cl = library()
    try:
        found = [device for platform in cl.get_platforms() for device in platform.get_devices()]
    except cl.Error:  # no driver is installed
        return []
    order = {cl.device_type.GPU: 0, cl.device_type.CPU: 2}
    return sorted(found, key=lambda device: next((place for kind, place in order.items() if device.type & kind), 1))


def partition(number: int, units: int) -> list[int]:
    """Splits a device into as many as it has groups of `units` compute units; their numbers, behind those of all others.

    The whole device stays, and shares the units with its parts. Raises DeviceError if the device cannot be split so.
    """
    known = devices()
    if library() is None or not 0 <= number < len(known):
        raise DeviceError(f"partition: there is no opencl({number}) here", hint="tedsl.opencl(0).missing says why")
    cl, device = library(), known[number]
    try:
        made = device.create_sub_devices([cl.device_partition_property.EQUALLY, units])
    except (cl.Error, OverflowError, TypeError) as error:
        raise DeviceError(f"partition: opencl({number}), {device.name}, which has {device.max_compute_units} compute units, is "
                          f"not split into groups of {units!r}: {error}") from error
    first = len(known)
    known += made
    return list(range(first, len(known)))


class Opened:
    """What the driver keeps of one device: its context, its queues, its memory by address, its events."""

    def __init__(self, number: int) -> None:
        self.cl = library()
        self.number = number
        self.device = devices()[number]
        self.context = self.cl.Context([self.device])
        self.lock = threading.RLock()
        self.handles = itertools.count(1)
        self.queues: dict[int, Any] = {0: self.queue()}
        self.events: dict[int, Any] = {}
        self.starts: list[int] = []  # of the buffers, in ascending order
        self.buffers: dict[int, Any] = {}
        self.next = _FIRST_ADDRESS

    def queue(self) -> Any:
        return self.cl.CommandQueue(self.context, properties=self.cl.command_queue_properties.PROFILING_ENABLE)

    @contextmanager
    def asked(self, what: str) -> Iterator[None]:
        """What the device fails to do inside is a DeviceError, which says what that was."""
        try:
            yield
        except self.cl.Error as error:
            raise DeviceError(f"opencl({self.number}), {self.device.name}, failed to {what}: {error}") from error

    def allocate(self, size: int) -> int:
        if size > self.device.max_mem_alloc_size:
            raise AllocationError(f"opencl({self.number}) has no {size} bytes of memory for one array")
        try:
            buffer = self.cl.Buffer(self.context, self.cl.mem_flags.READ_WRITE, max(1, size))
        except self.cl.Error as error:
            raise AllocationError(f"opencl({self.number}) has no {size} bytes of memory left: {error}") from error
        with self.lock:
            address = self.next
            self.next += (size // ALIGNMENT + 2) * ALIGNMENT
            self.starts.append(address)
            self.buffers[address] = buffer
        return address

    def free(self, address: int) -> None:
        with self.lock:
            buffer = self.buffers.pop(address)
            del self.starts[bisect_right(self.starts, address) - 1]
        buffer.release()  # of this reference: work that was started holds others

    def place(self, address: int) -> tuple[Any, int]:
        """Returns the buffer in which `address` lies, and the bytes before it there."""
        with self.lock:
            at = bisect_right(self.starts, address) - 1
            start = self.starts[at] if at >= 0 else 0
            buffer = self.buffers.get(start)
        if buffer is None or address - start > buffer.size:
            raise DeviceError(f"opencl({self.number}): {address:#x} is no address of memory of this device")
        return buffer, address - start

    def argument(self, address: int) -> Any:
        """Returns what a kernel is given for the array at `address`: its buffer, or the part of it that begins there."""
        if address == 0:
            return None
        buffer, before = self.place(address)
        if not before:
            return buffer
        step = self.device.mem_base_addr_align // 8
        if before % step:
            raise DeviceError(f"opencl({self.number}) takes parts of an array that begin at a multiple of {step} bytes; this "
                              f"one begins at byte {before}", hint="copy the part into an array of its own")
        with self.asked("take a part of an array"):
            return buffer.get_sub_region(before, buffer.size - before)

    def stream(self, handle: int) -> Any:
        queue = self.queues.get(handle)
        if queue is None:
            raise DeviceError(f"opencl({self.number}) has no stream {handle}")
        return queue

    def event(self, handle: int) -> Any:
        event = self.events.pop(handle, None)
        if event is None:
            raise DeviceError(f"opencl({self.number}) has no event {handle}")
        return event
