"""The driver of OpenCL devices, through the package pyopencl: those of all platforms of the machine, processors last."""

from __future__ import annotations

import ctypes
import threading
from typing import Any

import numpy

from tedsl.errors import DeviceError
from tedsl.runtime.devices.api import DeviceProperties
from tedsl.runtime.devices.code import DeviceCode
from tedsl.runtime.devices.opencl.opened import Opened, devices, library
from tedsl.runtime.devices.opencl.program import LoadedProgram

INSTALL = "pip install 'tedsl[opencl]', and for the processor itself pip install pocl-binary-distribution"


class OpenCLDriver:
    """The driver of devices of kind "opencl"."""

    def __init__(self) -> None:
        self._opened: dict[int, Opened] = {}
        self._lock = threading.Lock()

    def missing(self, number: int) -> str:
        if library() is None:
            return f"there is no opencl({number}): the package pyopencl is not installed ({INSTALL})"
        count = len(devices())
        if 0 <= number < count:
            return ""
        if not count:
            return f"there is no opencl({number}): no platform of OpenCL is installed on this machine ({INSTALL})"
        return f"there is no opencl({number}): the last device of OpenCL on this machine is opencl({count - 1})"

    def properties(self, number: int) -> DeviceProperties:
        device = self._open(number).device
        x, y, z = (*device.max_work_item_sizes, 1, 1)[:3]
        most = (1 << 31) - 1
        return DeviceProperties(
            device.name, device.opencl_c_version.removeprefix("OpenCL C ").strip(), 1, device.max_work_group_size, (x, y, z),
            (most, most, most), device.local_mem_size, 0, device.max_compute_units, device.max_clock_frequency * 1e6,
            device.global_mem_size)

    def allocate(self, number: int, size: int) -> int:
        return self._open(number).allocate(size)

    def free(self, number: int, memory: int) -> None:
        self._open(number).free(memory)

    def copy_in(self, number: int, memory: int, source: int, size: int, stream: int = 0) -> None:
        if size:
            opened = self._open(number)
            buffer, before = opened.place(memory)
            with opened.asked(f"copy {size} bytes to it"):
                opened.cl.enqueue_copy(opened.stream(stream), buffer, _bytes_at(source, size), dst_offset=before)

    def copy_out(self, number: int, target: int, memory: int, size: int, stream: int = 0) -> None:
        if size:
            opened = self._open(number)
            buffer, before = opened.place(memory)
            with opened.asked(f"copy {size} bytes from it"):
                opened.cl.enqueue_copy(opened.stream(stream), _bytes_at(target, size), buffer, src_offset=before)

    def copy(self, number: int, target: int, source_number: int, source: int, size: int, stream: int = 0) -> None:
        if not size:
            return
        if number != source_number:  # devices do not reach each other's memory
            self.synchronise(source_number)
            held = (ctypes.c_char * size)()
            self.copy_out(source_number, ctypes.addressof(held), source, size)
            self.copy_in(number, target, ctypes.addressof(held), size, stream)
            return
        opened = self._open(number)
        (to, to_before), (of, of_before) = opened.place(target), opened.place(source)
        with opened.asked(f"copy {size} bytes"):
            opened.cl.enqueue_copy(opened.stream(stream), to, of, byte_count=size, src_offset=of_before, dst_offset=to_before)

    def load(self, number: int, code: DeviceCode) -> LoadedProgram:
        return LoadedProgram(self._open(number), code)

    def create_stream(self, number: int) -> int:
        opened = self._open(number)
        handle = next(opened.handles)
        with opened.asked("make a stream"):
            opened.queues[handle] = opened.queue()
        return handle

    def free_stream(self, number: int, stream: int) -> None:
        opened = self._open(number)
        opened.stream(stream).finish()
        if stream:
            del opened.queues[stream]

    def synchronise(self, number: int, stream: int = 0) -> None:
        opened = self._open(number)
        with opened.asked("run its kernels"):
            opened.stream(stream).finish()

    def record_event(self, number: int, stream: int = 0) -> int:
        opened = self._open(number)
        handle = next(opened.handles)
        with opened.asked("record an event"):
            opened.events[handle] = opened.cl.enqueue_marker(opened.stream(stream))
        return handle

    def elapsed(self, number: int, start: int, end: int) -> float:
        opened = self._open(number)
        first, last = opened.event(start), opened.event(end)
        with opened.asked("measure time"):
            opened.cl.wait_for_events([first, last])
            return float(last.profile.end - first.profile.end) * 1e-9

    def _open(self, number: int) -> Opened:
        opened = self._opened.get(number)
        if opened is None:
            why = self.missing(number)
            if why:
                raise DeviceError(why)
            with self._lock:
                opened = self._opened.get(number)
                if opened is None:
                    opened = self._opened[number] = Opened(number)
        return opened


def _bytes_at(address: int, size: int) -> Any:
    """Returns the bytes at an address of this process, as an array."""
    return numpy.ctypeslib.as_array((ctypes.c_uint8 * size).from_address(address))
