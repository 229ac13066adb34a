"""Spaces of addresses: which region an address lies in."""

from __future__ import annotations

from bisect import bisect_right, insort
from collections.abc import Iterable
from typing import cast

import numpy as np

from tedsl.record import record
from tedsl.simulate.instructions.operation import Array
from tedsl.simulate.memory.region import Region

SHARED_WINDOW, LOCAL_WINDOW, GLOBAL_WINDOW = 1 << 36, 1 << 37, 1 << 40  # where the spaces begin in the space of all
WINDOW = 22  # bits of the addresses inside of a variable of shared or local memory; each has a window of its own


@record(eq=False)
class Piece:
    """Accesses that lie in one region: `offsets` from its base. threads: which of those asked for; None for all."""

    region: Region
    offsets: Array
    threads: Array | None


class Space:
    """Regions by their bases."""

    def __init__(self, regions: Iterable[Region] = ()) -> None:
        self.regions = sorted(regions, key=lambda region: region.base)
        self._last: Region | None = None

    def add(self, region: Region) -> None:
        insort(self.regions, region, key=lambda one: one.base)

    def remove(self, region: Region) -> None:
        self.regions.remove(region)
        self._last = None

    def before(self, address: int) -> Region | None:
        """Returns the last region that begins at `address` or before it."""
        at = bisect_right(self.regions, address, key=lambda region: region.base)
        return self.regions[at - 1] if at else None

    def locate(self, addresses: Array, size: int) -> tuple[list[Piece], Array | None]:
        """Returns where accesses of `size` bytes lie, and which of them lie nowhere or are not aligned; None for no such."""
        low, high = int(addresses.min()), int(addresses.max()) + size
        region = self._last
        if region is None or low < region.base or high > region.base + region.size:
            region = self.before(low)
        if region is not None and low >= region.base and high <= region.base + region.size:
            self._last = region
            offsets = addresses - region.base
            if not int(np.bitwise_or.reduce(offsets)) & (size - 1):
                return [Piece(region, offsets, None)], None
        return self._apart(addresses, size)

    def _apart(self, addresses: Array, size: int) -> tuple[list[Piece], Array | None]:
        if not self.regions:
            return [], np.arange(addresses.size)
        bases = np.array([region.base for region in self.regions], np.int64)
        ends = bases + np.array([region.size for region in self.regions], np.int64)
        numbers = np.searchsorted(bases, addresses, "right") - 1
        offsets = addresses - bases[numbers]
        good = (numbers >= 0) & (addresses + size <= ends[numbers]) & (offsets & (size - 1) == 0)
        pieces = []
        for number in np.unique(numbers[good]):
            threads = np.flatnonzero(good & (numbers == number))
            pieces.append(Piece(self.regions[number], offsets[threads], threads))
        bad = np.flatnonzero(~good)
        return pieces, cast(Array, bad) if bad.size else None
