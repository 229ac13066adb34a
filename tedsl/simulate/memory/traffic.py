"""What accesses of warps cost: 32-byte sectors of global memory that move, passes over the 32 banks of shared memory.

Addresses come as rows of 32, one for each warp; threads that take no part repeat the address of one that does.
"""

from __future__ import annotations

import numpy as np

from tedsl.simulate.instructions.operation import Array

WARP, SECTOR, BANKS = 32, 32, 32


class Pattern:
    """The cost of the last access of an instruction, reused while the addresses of its warps differ by a shift alone."""

    def __init__(self) -> None:
        self._near: Array | None = None
        self.sectors = 0
        self.passes, self.degree, self.ideal = 0, 0, 0

    def _known(self, near: Array) -> bool:
        known = self._near is not None and self._near.shape == near.shape and bool((self._near == near).all())
        self._near = near
        return known

    def count_sectors(self, rows: Array) -> int:
        """Returns how many sectors the accesses at these addresses move, each warp for itself."""
        near = rows - (rows[:, :1] & ~(SECTOR - 1))
        if not self._known(near):
            self.sectors = distinct(near >> 5)
        return self.sectors

    def count_passes(self, rows: Array, size: int) -> tuple[int, int, int]:
        """Returns how many passes the accesses of `size` bytes take, the most of any part of a warp that is served at once, and
        how many there would be without conflicts.
        """
        near = rows - (rows[:, :1] & ~3)
        if not self._known(near):
            self.passes, self.degree, self.ideal = bank_passes(near, size)
        return self.passes, self.degree, self.ideal


def distinct(rows: Array) -> int:
    """Returns the number of distinct numbers in each row, summed over the rows."""
    steps = np.diff(rows, axis=1)
    if (steps < 0).any():
        steps = np.diff(np.sort(rows, axis=1), axis=1)
    return int(np.count_nonzero(steps)) + len(rows)


def bank_passes(rows: Array, size: int) -> tuple[int, int, int]:
    """Returns `count_passes` of rows of addresses.

    A word of 4 bytes is in bank word % 32; one pass serves one word of each bank, for any number of threads. Accesses of
    8 bytes are served half a warp at a time, those of 16 bytes a quarter.
    """
    words = rows >> 2
    if size > 4:
        parts = size // 4
        words = (words.reshape(-1, WARP // parts)[:, :, None] + np.arange(parts)).reshape(-1, WARP)
    words = np.sort(words, axis=1)
    first = np.ones(words.shape, bool)
    first[:, 1:] = words[:, 1:] != words[:, :-1]
    keys = (np.arange(len(words))[:, None] * BANKS + (words & (BANKS - 1)))[first]
    degrees = np.bincount(keys, minlength=len(words) * BANKS).reshape(-1, BANKS).max(axis=1)
    return int(degrees.sum()), int(degrees.max()), len(words)


def in_rows(values: Array, positions: Array, warps: int) -> Array:
    """Returns values of threads at `positions` (32 for each of `warps` warps) as rows of the warps that have any."""
    held, there = np.zeros(warps * WARP, values.dtype), np.zeros(warps * WARP, bool)
    held[positions], there[positions] = values, True
    rows, present = held.reshape(-1, WARP), there.reshape(-1, WARP)
    some = present.any(axis=1)
    rows, present = rows[some], present[some]
    stand_in = rows[np.arange(len(rows)), present.argmax(axis=1)]
    return np.where(present, rows, stand_in[:, None])
