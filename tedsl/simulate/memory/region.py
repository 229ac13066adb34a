"""Regions of memory: an allocation of a device, a variable of shared or local memory.

Beside its bytes a region keeps, for each grain of 1, 2 or 4 bytes, whether it was written and who last wrote and read it. The
grain is the smallest width of the accesses so far.
"""

from __future__ import annotations

from typing import Any, cast

import numpy as np

from tedsl.simulate.instructions.operation import Array

POISON = 0xCB  # of bytes that nobody has written
_ALIGNED = 32  # regions are as many bytes long as the widest access divides


class Region:
    """`copies` times `size` bytes, the copies `stride` bytes apart: one for each block, or each thread, where memory is theirs.

    name: in reports. space: "global", "shared" or "local". base: the address of each copy, as programs see it.
    """

    def __init__(self, name: str, base: int, size: int, copies: int = 1, space: str = "global") -> None:
        self.name, self.base, self.size, self.copies, self.space = name, base, size, copies, space
        self.stride = -(-max(size, 1) // _ALIGNED) * _ALIGNED
        self.bytes = np.full(self.stride * copies, POISON, np.uint8)
        self.grain = 4
        self.all_ready = False
        self.ready = np.zeros(self.bytes.size // self.grain, bool)
        self.writers: Array | None = None  # codes of accesses, see `races`; None before the first
        self.readers: Array | None = None
        self._views: dict[int, Array] = {1: self.bytes}

    def elements(self, width: int) -> Array:
        """Returns the bytes as unsigned numbers of `width` bytes."""
        if width not in self._views:
            self._views[width] = self.bytes.view(f"u{width}")
        return self._views[width]

    def refine(self, width: int) -> None:
        """Makes the grain as fine as accesses of `width` bytes need."""
        while self.grain > width:
            self.grain //= 2
            self.ready = np.repeat(self.ready, 2)
            self.writers = None if self.writers is None else np.repeat(self.writers, 2)
            self.readers = None if self.readers is None else np.repeat(self.readers, 2)

    def grains(self, places: Array, size: int) -> Array:
        """Returns the grains of accesses to `size` bytes each at `places`, one access after the other."""
        first = places >> (self.grain.bit_length() - 1)
        count = size // self.grain
        return first if count <= 1 else cast(Array, (first[:, None] + np.arange(count)).reshape(-1))

    def stamps(self) -> tuple[Array, Array]:
        """Returns the codes of the last writers and readers of all grains; 0 where there is none."""
        if self.writers is None or self.readers is None:
            self.writers, self.readers = np.zeros(self.ready.size, np.int64), np.zeros(self.ready.size, np.int64)
        return self.writers, self.readers

    def forget(self) -> None:
        """Forgets who wrote and read: a kernel begins."""
        self.writers = self.readers = None

    def fill(self, at: int, data: Any) -> None:
        """Writes bytes from the host at `at`."""
        values = np.frombuffer(data, np.uint8)
        self.bytes[at:at + values.size] = values
        if self.all_ready or not values.size:
            return
        if values.size == self.size:
            self.all_ready = True
            return
        while at % self.grain or (values.size % self.grain and at + values.size != self.size):
            self.refine(self.grain // 2)
        self.ready[at // self.grain:-(-(at + values.size) // self.grain)] = True
        self.check_ready()

    def lose(self, at: int, size: int, copies: Array) -> None:
        """Forgets, in these copies, that bytes were written."""
        self.all_ready = False
        for copy in copies.tolist():
            begin = copy * self.stride + at
            self.ready[begin // self.grain:-(-(begin + size) // self.grain)] = False

    def copy_state(self, at: int, source: Region, source_at: int, size: int) -> None:
        """Copies bytes of `source`, and whether they were written."""
        self.bytes[at:at + size] = source.bytes[source_at:source_at + size]
        if self.all_ready:
            return
        if source.all_ready and size == self.size:
            self.all_ready = True
            return
        self.refine(1)
        known = np.ones(size, bool) if source.all_ready \
            else np.repeat(source.ready, source.grain)[source_at:source_at + size]
        self.ready[at:at + size] = known
        self.check_ready()

    def check_ready(self) -> None:
        """Notes if all bytes were written."""
        self.all_ready = self.copies == 1 and bool(self.ready[:-(-self.size // self.grain)].all())
