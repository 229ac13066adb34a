"""Arrays in the memory of a device beside the processor: where they lie, and the copies between there and numpy."""

from __future__ import annotations

import ctypes
import math
import weakref
from typing import Any

import numpy

from tedsl.errors import ArgumentError, DeviceError
from tedsl.runtime.devices.api import DeviceAPI
from tedsl.runtime.devices.device import Device
from tedsl.runtime.devices.streams import current_stream

Array = numpy.ndarray[Any, Any]


def driver_for(device: Device) -> DeviceAPI:
    """Returns the driver of a device that is there; DeviceError says in one sentence why one is not."""
    driver, missing = device.driver, device.missing
    if missing or driver is None:
        raise DeviceError(f"there is no device {device} here: {missing}", hint=device.instead)
    return driver


class DeviceMemory:
    """Memory of a device, which is given back when nobody holds this object."""

    def __init__(self, device: Device, size: int) -> None:
        driver = driver_for(device)
        self.address = driver.allocate(device.device_id, max(size, 1))
        free = weakref.finalize(self, driver.free, device.device_id, self.address)
        free.atexit = False  # the driver ends with the process


class DeviceArray:
    """An array in the memory of a device: what an NDArray there holds in the place of a numpy array.

    address: of the first element. strides: in bytes. owner: keeps the memory.
    """

    __slots__ = ("address", "device", "dtype", "owner", "shape", "strides")

    def __init__(self, device: Device, owner: object, address: int, shape: tuple[int, ...], dtype: numpy.dtype[Any],
                 strides: tuple[int, ...] = ()) -> None:
        self.device, self.owner, self.address, self.shape, self.dtype = device, owner, address, shape, dtype
        self.strides = strides or compact_strides(shape, dtype.itemsize)

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    @property
    def bytes(self) -> int:
        return self.size * self.dtype.itemsize

    @property
    def is_compact(self) -> bool:
        usual = compact_strides(self.shape, self.dtype.itemsize)
        return self.size == 0 or all(a == b for a, b, n in zip(self.strides, usual, self.shape) if n > 1)

    def copy_out(self, into: Array | None = None) -> Array:
        """Returns the elements as a numpy array. into: one of this shape and dtype, row-major; by default a new one."""
        values = numpy.empty(self.shape, self.dtype) if into is None else into
        self._require_compact("read")
        if values.size:
            driver = driver_for(self.device)
            driver.copy_out(self.device.device_id, values.ctypes.data, self.address, self.bytes, self._stream)
        return values

    def copy_in(self, values: Array) -> None:
        """Overwrites the elements with `values`, of the same shape."""
        self._require_compact("written")
        source = numpy.ascontiguousarray(values, self.dtype)
        if source.size:
            driver = driver_for(self.device)
            driver.copy_in(self.device.device_id, self.address, source.ctypes.data, self.bytes, self._stream)

    def copy_from(self, other: DeviceArray) -> None:
        """Overwrites the elements with those of an array of the same shape and dtype on a device of the same kind."""
        self._require_compact("written")
        other._require_compact("read")
        if self.size:
            driver_for(self.device).copy(self.device.device_id, self.address, other.device.device_id, other.address,
                                         self.bytes, self._stream)

    @property
    def _stream(self) -> int:
        return current_stream(self.device.kind, self.device.device_id)

    def _require_compact(self, done: str) -> None:
        if not self.is_compact:
            raise ArgumentError(f"an array of shape {self.shape} on {self.device} has the strides {self.strides} bytes; only "
                                f"compact arrays are {done} from here",
                                hint="make it contiguous in the library that made it: x.contiguous()")

    def shadow(self) -> Array:
        """Returns a numpy array at the address of this one, with all that a call checks. Its elements must not be touched:
        they are not in the memory of this process.
        """
        if not self.size:
            return numpy.empty(self.shape, self.dtype)
        low = sum((n - 1) * step for n, step in zip(self.shape, self.strides) if step < 0)
        high = sum((n - 1) * step for n, step in zip(self.shape, self.strides) if step > 0)
        block: Any = (ctypes.c_char * (high - low + self.dtype.itemsize)).from_address(self.address + low)
        return numpy.ndarray(self.shape, self.dtype, block, -low, self.strides)


def compact_strides(shape: tuple[int, ...], itemsize: int) -> tuple[int, ...]:
    """Returns the strides, in bytes, of a row-major array."""
    return tuple(math.prod(shape[k + 1:]) * itemsize for k in range(len(shape)))


def new_array(device: Device, shape: tuple[int, ...], dtype: numpy.dtype[Any]) -> DeviceArray:
    """Returns a new array on `device`, with undefined content."""
    memory = DeviceMemory(device, math.prod(shape) * dtype.itemsize)
    return DeviceArray(device, memory, memory.address, shape, dtype)
