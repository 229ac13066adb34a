"""Threads that are simulated side by side: those of some blocks of a grid, one after the other."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np

from tedsl.simulate.instructions.operation import Array
from tedsl.simulate.memory.races import code_of
from tedsl.simulate.memory.traffic import WARP

Size = tuple[int, int, int]  # x, y, z


def coordinates(number: int, size: Sequence[int]) -> Size:
    """Returns x, y and z of the thread or block with this number, x the fastest."""
    return number % size[0], number // size[0] % size[1], number // (size[0] * size[1])


class Batch:
    """The threads of some blocks of a launch, and what they know of themselves. numbers: of the blocks, in order."""

    def __init__(self, numbers: Array, grid: Size, block: Size) -> None:
        self.numbers, self.grid, self.block = numbers, grid, block
        self.blocks = blocks = len(numbers)
        self.threads = block[0] * block[1] * block[2]  # of each block
        self.count = self.blocks * self.threads
        self.warps_of_block = -(-self.threads // WARP)
        self.warps = self.warps_of_block * blocks
        self.row = np.repeat(np.arange(blocks), self.threads)  # the block of each thread, from 0
        self.thread = np.tile(np.arange(self.threads), blocks)
        self.whole_warps = self.threads % WARP == 0
        self.position = self.row * (self.warps_of_block * WARP) + self.thread
        self.lane = (self.thread % WARP).astype(np.uint32)
        self.epochs = np.zeros(blocks, np.int64)  # barriers that each block has passed
        self.warp_epochs: Array | None = None  # barriers of the warp of each thread since then
        self.lost: set[tuple[str, int, int]] = set()  # what the next barrier makes undefined: variables, offsets, bytes
        self._special: dict[str, Array] = {}

    @cached_property
    def codes(self) -> Array:
        """The codes of accesses of all threads now."""
        warps = self.warp_epochs if self.warp_epochs is not None else np.zeros(1, np.int64)
        return code_of(self.numbers[self.row], self.epochs[self.row], warps, self.thread)

    def pass_barrier(self, rows: Array) -> None:
        """Notes that these blocks have passed a barrier."""
        self.epochs[rows] += 1
        if self.warp_epochs is not None:
            self.warp_epochs[np.isin(self.row, rows)] = 0
        self.__dict__.pop("codes", None)

    def pass_warp_barrier(self, lanes: Array | slice) -> None:
        """Notes that these threads have passed a barrier of their warp."""
        if self.warp_epochs is None:
            self.warp_epochs = np.zeros(self.count, np.int64)
        self.warp_epochs[lanes] += 1
        self.__dict__.pop("codes", None)

    def special(self, name: str) -> Array | None:
        """Returns the value of a special register for all threads (one value if they agree); None if it is not known."""
        if name not in self._special:
            value = self._value(name.removeprefix("%"))
            if value is None:
                return None
            value = np.atleast_1d(value).astype(np.uint32)
            self._special[name] = value[:1] if (value == value[0]).all() else value
        return self._special[name]

    def _value(self, name: str) -> Array | None:
        what, _, axis = name.partition(".")
        if axis in ("x", "y", "z") and axis:
            at = "xyz".index(axis)
            if what == "tid":
                return np.tile(_axis(np.arange(self.threads), self.block, at), self.blocks)
            if what == "ctaid":
                return np.repeat(_axis(self.numbers, self.grid, at), self.threads)
            sizes = {"ntid": self.block, "nctaid": self.grid}
            return np.array([sizes[what][at]]) if what in sizes else None
        lane = self.lane.astype(np.int64)
        one = np.int64(1)
        values = {"laneid": lane, "warpid": self.thread // WARP, "WARP_SZ": np.array([WARP]), "lanemask_eq": one << lane,
                  "nwarpid": np.array([self.warps_of_block]), "lanemask_lt": (one << lane) - 1,
                  "lanemask_le": (one << (lane + 1)) - 1, "lanemask_gt": 0xFFFFFFFF & ~((one << (lane + 1)) - 1),
                  "lanemask_ge": 0xFFFFFFFF & ~((one << lane) - 1)}
        return values.get(name)


def _axis(numbers: Array, size: Size, at: int) -> Array:
    return np.asarray(coordinates_of(numbers, size)[at])


def coordinates_of(numbers: Array, size: Size) -> tuple[Array, Array, Array]:
    """Returns x, y and z of many threads or blocks."""
    return numbers % size[0], numbers // size[0] % size[1], numbers // (size[0] * size[1])
