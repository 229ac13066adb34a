"""Frames: threads that run the same instructions together, and their registers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tedsl.simulate.instructions.operation import Array
from tedsl.simulate.machine.batch import Batch
from tedsl.simulate.memory.traffic import WARP, in_rows

if TYPE_CHECKING:
    from tedsl.simulate.machine.run import Run


class Frame:
    """Threads of a batch. lanes: their numbers in it, rising; None for all. registers: by their numbers in the program, arrays
    of one value for each thread, or of one value where all agree.
    """

    __slots__ = ("batch", "count", "lanes", "registers", "run")

    def __init__(self, run: Run, batch: Batch, registers: list[Array], lanes: Array | None) -> None:
        self.run, self.batch, self.registers, self.lanes = run, batch, registers, lanes
        self.count = batch.count if lanes is None else lanes.size

    def of_these(self, values: Array) -> Array:
        """Returns those of `values`, one for each thread of the batch, that belong to these threads."""
        return values if self.lanes is None or values.size == 1 else values[self.lanes]

    def number(self, at: int) -> int:
        """Returns the number in the batch of the thread at `at` of these."""
        return at if self.lanes is None else int(self.lanes[at])

    def warps(self) -> int:
        """Returns how many warps these threads belong to."""
        if self.lanes is None:
            return self.batch.warps
        seen = np.zeros(self.batch.warps, bool)
        seen[self.batch.position[self.lanes] >> 5] = True
        return int(np.count_nonzero(seen))

    def in_rows(self, values: Array) -> Array:
        """Returns values of these threads as rows of 32, one for each of their warps; in gaps stands the value of another."""
        if self.lanes is None and self.batch.whole_warps:
            return values.reshape(-1, WARP)
        return in_rows(values, self.of_these(self.batch.position), self.batch.warps)
