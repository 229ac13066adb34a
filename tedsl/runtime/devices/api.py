"""The protocol of drivers: what a device beside the processor must be able to do. Drivers are ours (cuda, opencl, sim) or of
other packages; `table.py` finds them.

All are stateless towards their callers: memory, loaded code, streams and events are handles, which only the driver that gave
them can read. Errors of a device are `tedsl.errors.DeviceError`, with the device and what it was asked to do in the message.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

from tedsl.record import record
from tedsl.runtime.devices.code import DeviceCode


@record
class DeviceProperties:
    """The limits of one device, in threads, bytes and (clock) hertz; 0 where it does not say.

    capability: the generation of its instructions: "8.0" for a CUDA device.
    """

    name: str
    capability: str
    warp_size: int
    max_threads: int  # of a block
    max_block: tuple[int, int, int]  # x, y, z
    max_grid: tuple[int, int, int]
    shared_memory: int  # of a block
    registers: int  # of 32 bits, of a block
    processors: int  # that run blocks side by side
    clock: float
    memory: int


@runtime_checkable
class LoadedCode(Protocol):
    """Code that one device has loaded; it is unloaded when nobody holds it."""

    def launch(self, function: str, grid: tuple[int, int, int], block: tuple[int, int, int],
               arguments: Sequence[int | float], shared: int = 0, stream: int = 0) -> None:
        """Starts the kernel called `function` on grid x block threads (x, y, z), and may return before it ends.

        arguments: in the order of its parameters, memory of the device for arrays. shared: bytes of dynamic shared memory of a
        block.
        """
        ...


@runtime_checkable
class DeviceAPI(Protocol):
    """The driver of one kind of device. Devices of a kind are numbered from 0; stream 0 is the default one."""

    def missing(self, number: int) -> str:
        """Returns the sentence that says why there is no such device here; "" if there is one."""
        ...

    def properties(self, number: int) -> DeviceProperties:
        """Returns the limits of a device."""
        ...

    def allocate(self, number: int, size: int) -> int:
        """Returns `size` bytes of memory of the device, aligned to 256 bytes; AllocationError if it has none left."""
        ...

    def free(self, number: int, memory: int) -> None:
        """Gives memory back. What was started before may still use it until it ends."""
        ...

    def copy_in(self, number: int, memory: int, source: int, size: int, stream: int = 0) -> None:
        """Copies `size` bytes from the address `source` of this process, which may be overwritten on return."""
        ...

    def copy_out(self, number: int, target: int, memory: int, size: int, stream: int = 0) -> None:
        """Copies `size` bytes to the address `target` of this process, and returns when they are there."""
        ...

    def copy(self, number: int, target: int, source_number: int, source: int, size: int, stream: int = 0) -> None:
        """Copies `size` bytes between two devices of this kind, or inside one."""
        ...

    def load(self, number: int, code: DeviceCode) -> LoadedCode:
        """Loads `code`; DeviceError if the device does not take it."""
        ...

    def create_stream(self, number: int) -> int:
        """Returns a new queue of work."""
        ...

    def free_stream(self, number: int, stream: int) -> None:
        """Frees a stream, once its work has ended."""
        ...

    def synchronise(self, number: int, stream: int = 0) -> None:
        """Waits until all work of the stream has ended; DeviceError if a kernel failed."""
        ...

    def record_event(self, number: int, stream: int = 0) -> int:
        """Puts an event behind the work of the stream, and returns it."""
        ...

    def elapsed(self, number: int, start: int, end: int) -> float:
        """Waits for both events, frees them, and returns the seconds between them."""
        ...
