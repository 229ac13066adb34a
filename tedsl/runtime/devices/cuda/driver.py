"""The driver of CUDA devices: memory, streams and events are the handles of libcuda, in the primary context of each device,
which other libraries of the process use too.
"""

from __future__ import annotations

import ctypes
import functools
import threading
from typing import Any

from tedsl.errors import DeviceError
from tedsl.runtime.devices.api import DeviceProperties
from tedsl.runtime.devices.code import DeviceCode
from tedsl.runtime.devices.cuda.library import ADDRESS, HANDLE, INT, SIZE, Cuda, libcuda
from tedsl.runtime.devices.cuda.program import LoadedProgram

# Numbers of attributes of a device.
_MAX_THREADS, _BLOCK, _GRID, _SHARED, _WARP, _REGISTERS = 1, (2, 3, 4), (5, 6, 7), 8, 10, 12
_KILOHERTZ, _PROCESSORS, _MAJOR, _MINOR = 13, 16, 75, 76


class CudaDriver:
    """The driver of devices of kind "cuda". library: libcuda, or what stands for it in tests."""

    def __init__(self, library: Any = None) -> None:
        self._library = library
        self._contexts: dict[int, int] = {}
        self._current = threading.local()
        self._lock = threading.Lock()

    @functools.cached_property
    def _problem(self) -> str:
        """Why there are no devices at all; "" if there are some."""
        if self._library is None:
            self._library = libcuda()
        if self._library is None:
            return "NVIDIA's driver is not installed: there is no libcuda.so.1"
        status = int(self._library.cuInit(0))
        if status:
            return f"the driver does not start: {Cuda(self._library, 'cuda').words_of(status)}"
        return "" if self._count else "the driver sees no device"

    @functools.cached_property
    def _count(self) -> int:
        return int(Cuda(self._library, "cuda").number("count its devices", "cuDeviceGetCount", INT))

    def missing(self, number: int) -> str:
        if self._problem:
            return self._problem
        return "" if number < self._count else f"the last one is cuda({self._count - 1})"

    def properties(self, number: int) -> DeviceProperties:
        cuda, device = self._open(number), self._device(number)

        def attribute(which: int) -> int:
            return int(cuda.number("say its limits", "cuDeviceGetAttribute", INT, which, device))

        name = ctypes.create_string_buffer(256)
        cuda("say its name", "cuDeviceGetName", name, len(name), device)
        memory = int(cuda.number("say its memory", "cuDeviceTotalMem_v2", SIZE, device))
        block, grid = (tuple(map(attribute, three)) for three in (_BLOCK, _GRID))
        return DeviceProperties(
            name.value.decode(), f"{attribute(_MAJOR)}.{attribute(_MINOR)}", attribute(_WARP), attribute(_MAX_THREADS),
            (block[0], block[1], block[2]), (grid[0], grid[1], grid[2]), attribute(_SHARED), attribute(_REGISTERS),
            attribute(_PROCESSORS), attribute(_KILOHERTZ) * 1e3, memory)

    def allocate(self, number: int, size: int) -> int:
        cuda = self._open(number)
        return int(cuda.number(f"allocate {size} bytes", "cuMemAlloc_v2", ADDRESS, max(size, 1)))

    def free(self, number: int, memory: int) -> None:
        self._open(number)("free memory", "cuMemFree_v2", memory)

    def copy_in(self, number: int, memory: int, source: int, size: int, stream: int = 0) -> None:
        self._open(number)(f"copy {size} bytes to it", "cuMemcpyHtoDAsync_v2", memory, source, size, stream)
        self.synchronise(number, stream)

    def copy_out(self, number: int, target: int, memory: int, size: int, stream: int = 0) -> None:
        self._open(number)(f"copy {size} bytes from it", "cuMemcpyDtoHAsync_v2", target, memory, size, stream)
        self.synchronise(number, stream)

    def copy(self, number: int, target: int, source_number: int, source: int, size: int, stream: int = 0) -> None:
        if number == source_number:
            self._open(number)(f"copy {size} bytes", "cuMemcpyDtoDAsync_v2", target, source, size, stream)
            return
        self.synchronise(source_number)
        of = self._contexts[source_number]
        self._open(number)(f"copy {size} bytes from cuda({source_number})", "cuMemcpyPeerAsync", target, self._contexts[number],
                           source, of, size, stream)
        self.synchronise(number, stream)  # the source may be freed on return

    def load(self, number: int, code: DeviceCode) -> LoadedProgram:
        return LoadedProgram(functools.partial(self._open, number), code)

    def create_stream(self, number: int) -> int:
        return int(self._open(number).number("make a stream", "cuStreamCreate", HANDLE, 0) or 0)

    def free_stream(self, number: int, stream: int) -> None:
        if stream:
            self.synchronise(number, stream)
            self._open(number)("free a stream", "cuStreamDestroy_v2", stream)

    def synchronise(self, number: int, stream: int = 0) -> None:
        self._open(number)("run what it was given", "cuStreamSynchronize", stream)

    def record_event(self, number: int, stream: int = 0) -> int:
        cuda = self._open(number)
        event = int(cuda.number("make an event", "cuEventCreate", HANDLE, 0) or 0)
        cuda("record an event", "cuEventRecord", event, stream)
        return event

    def elapsed(self, number: int, start: int, end: int) -> float:
        cuda = self._open(number)
        for event in (start, end):
            cuda("run what it was given", "cuEventSynchronize", event)
        milliseconds = cuda.number("measure time", "cuEventElapsedTime", ctypes.c_float, start, end)
        for event in (start, end):
            cuda("free an event", "cuEventDestroy_v2", event)
        return float(milliseconds) * 1e-3

    def _device(self, number: int) -> int:
        return int(Cuda(self._library, f"cuda({number})").number("be opened", "cuDeviceGet", INT, number))

    def _open(self, number: int) -> Cuda:
        """Returns the functions of a device, whose context is that of this thread from now on."""
        if number not in self._contexts:
            why = self.missing(number)
            if why:
                raise DeviceError(f"there is no device cuda({number}) here: {why}")
        cuda = Cuda(self._library, f"cuda({number})")
        with self._lock:
            if number not in self._contexts:
                self._contexts[number] = cuda.number("be opened", "cuDevicePrimaryCtxRetain", HANDLE, self._device(number))
        cuda("become the device of this thread", "cuCtxSetCurrent", self._contexts[number])
        return cuda
