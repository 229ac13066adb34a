"""What a host function may call by name while it runs: its kernels, and the workspaces of the device."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from tedsl.runtime.devices.api import DeviceAPI, LoadedCode
from tedsl.runtime.devices.code import DeviceCode, DeviceFunction

ALLOCATE, FREE = "device_api.allocate", "device_api.free"  # bytes -> memory of the device that runs the call; and back
# What to do where a block has more threads than a device takes, by a number that only the call knows.
FEWER_THREADS = ("the size of a block is known at the call alone: split the loop by a constant, s[B].split(i, factor=256), "
                 "bind the inner loop to threadIdx.x and the outer one to blockIdx.x")
_PLACES = {f"{which}Idx.{axis}": (which == "thread", k) for which in ("block", "thread") for k, axis in enumerate("xyz")}


class Launches:
    """One run of a host function on the device `number`, with the kernels of `code`."""

    def __init__(self, driver: DeviceAPI, number: int, code: DeviceCode, loaded: LoadedCode, stream: int) -> None:
        self.driver, self.number, self.loaded, self.stream = driver, number, loaded, stream
        self._workspaces: list[int] = []
        self.functions: Mapping[str, Callable[..., Any]] = {
            ALLOCATE: self.allocate, FREE: self.free,
            **{function.name: self._launcher(function) for function in code.functions}}

    def allocate(self, size: int) -> int:
        """Returns a workspace of `size` bytes."""
        memory = self.driver.allocate(self.number, max(size, 1))
        self._workspaces.append(memory)
        return memory

    def free(self, memory: int) -> None:
        """Gives a workspace back; kernels that were launched before may use it still."""
        self._workspaces.remove(memory)
        self.driver.free(self.number, memory)

    def close(self) -> None:
        """Gives back the workspaces that a run which failed has left."""
        while self._workspaces:
            self.driver.free(self.number, self._workspaces.pop())

    def _launcher(self, function: DeviceFunction) -> Callable[..., None]:
        def launch(*given: int | float) -> None:
            launch_kernel(self.loaded, function, given, self.stream)

        return launch


def launch_kernel(loaded: LoadedCode, function: DeviceFunction, given: tuple[int | float, ...], stream: int) -> None:
    """Starts a kernel with its arguments, the sizes of its axes, and the bytes of its dynamic shared memory if it has some.
    Without threads nothing is started.
    """
    count = len(function.parameters)
    sizes: tuple[list[int], list[int]] = ([1, 1, 1], [1, 1, 1])
    for axis, size in zip(function.axes, given[count:]):
        of_block, place = _PLACES[axis]
        sizes[of_block][place] = int(size)
    if min(*sizes[0], *sizes[1]) < 1:
        return
    grid, block = sizes
    shared = int(given[-1]) if function.dynamic_shared else 0
    loaded.launch(function.name, (grid[0], grid[1], grid[2]), (block[0], block[1], block[2]), given[:count], shared, stream)
