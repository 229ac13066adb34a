"""The driver of simulated devices."""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable
from typing import ParamSpec, TypeVar

from tedsl.runtime.devices.api import DeviceProperties, LoadedCode
from tedsl.runtime.devices.code import DeviceCode
from tedsl.simulate.device import ONE_AT_A_TIME, SimulatedDevice
from tedsl.simulate.loaded import SimulatedCode
from tedsl.simulate.models import DEVICES
from tedsl.simulate.options import current_mode, current_model

P = ParamSpec("P")
R = TypeVar("R")


def _in_turn(function: Callable[P, R]) -> Callable[P, R]:
    """A function that one thread calls at a time, and not while a device works."""
    @functools.wraps(function)
    def call(*args: P.args, **named: P.kwargs) -> R:
        with ONE_AT_A_TIME:
            return function(*args, **named)

    return call


class SimDriver:
    """Devices of kind "sim": a `DeviceAPI`. They run PTX, one launch after the other, when it is launched; threads take turns.

    Raises ArgumentError if the environment asks for a mode or a model that is not known.
    """

    def __init__(self) -> None:
        current_mode(), current_model()
        self._devices: dict[int, SimulatedDevice] = {}

    def _device(self, number: int) -> SimulatedDevice:
        if number not in self._devices:
            self._devices[number] = SimulatedDevice(number, current_model())
        return self._devices[number]

    def missing(self, number: int) -> str:
        """Returns the sentence that says why there is no such device."""
        return "" if 0 <= number < DEVICES else f"there is no sim({number}): {DEVICES} devices are simulated, from 0"

    def properties(self, number: int) -> DeviceProperties:
        """Returns the limits of a device."""
        return self._device(number).model.properties

    @_in_turn
    def allocate(self, number: int, size: int) -> int:
        """Returns memory of a device, aligned to 256 bytes."""
        return self._device(number).allocate(size).base

    @_in_turn
    def free(self, number: int, memory: int) -> None:
        """Gives memory back."""
        self._device(number).free(memory)

    @_in_turn
    def copy_in(self, number: int, memory: int, source: int, size: int, stream: int = 0) -> None:
        """Copies bytes of this process to a device."""
        device = self._device(number)
        region, at = device.place(memory, size)
        region.fill(at, ctypes.string_at(source, size))
        device.spend(stream, size / device.model.host)

    @_in_turn
    def copy_out(self, number: int, target: int, memory: int, size: int, stream: int = 0) -> None:
        """Copies bytes of a device to this process."""
        device = self._device(number)
        region, at = device.place(memory, size)
        ctypes.memmove(target, region.bytes.ctypes.data + at, size)
        device.spend(stream, size / device.model.host)

    @_in_turn
    def copy(self, number: int, target: int, source_number: int, source: int, size: int, stream: int = 0) -> None:
        """Copies bytes between two devices, or inside one."""
        device, other = self._device(number), self._device(source_number)
        (region, at), (taken, taken_at) = device.place(target, size), other.place(source, size)
        region.copy_state(at, taken, taken_at, size)
        speed = device.model.bandwidth / 2 if device is other else device.model.host
        device.spend(stream, size / speed)

    @_in_turn
    def load(self, number: int, code: DeviceCode) -> LoadedCode:
        """Loads PTX."""
        return SimulatedCode(self._device(number), code)

    @_in_turn
    def create_stream(self, number: int) -> int:
        """Returns a new queue of work."""
        return self._device(number).create_stream()

    @_in_turn
    def free_stream(self, number: int, stream: int) -> None:
        """Frees a stream."""
        self._device(number).free_stream(stream)

    def synchronise(self, number: int, stream: int = 0) -> None:
        """Returns at once: work has ended when its launch returns."""
        self._device(number)

    @_in_turn
    def record_event(self, number: int, stream: int = 0) -> int:
        """Returns an event behind the work of a stream, in the time of the model."""
        return self._device(number).record_event(stream)

    @_in_turn
    def elapsed(self, number: int, start: int, end: int) -> float:
        """Returns the seconds of the model between two events."""
        return self._device(number).elapsed(start, end)
