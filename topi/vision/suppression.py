"""Non-maximum suppression: of boxes that overlap, the one with the best score stays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tedsl import tir
from tedsl.record import record
from topi.vision.boxes import Box, overlap


@record
class Greedy:
    """Boxes of one image in the order of their scores, of which each stays unless it overlaps one that stayed before.

    count: how many there are. limit: how many stay at most. kept: memory for the numbers of the boxes that stayed, memory for
    their sides, and a function from a number, in the order in which they stayed, to its place there. box(j): the sides of box
    j. counts(j): whether box j is compared with others and counted; one that is not stays. comparable(j, k): whether box j may
    be removed by box k.
    removes(share): whether boxes with that share of their areas in common are removed.
    """

    ib: Any
    count: Any
    limit: Any
    kept: tuple[Any, Any, Callable[[Any], tuple[Any, ...]]]
    box: Callable[[Any], Box]
    removes: Callable[[Any], Any]
    counts: Callable[[Any], Any] = lambda j: tir.const(True, "bool")
    comparable: Callable[[Any, Any], Any] = lambda j, k: tir.const(True, "bool")
    pixel: float = 0.0

    def run(self, stays: Callable[[Any, Any], None], goes: Callable[[Any], None] | None = None) -> Any:
        """Writes stays(j, n) for each box j that stays, n counted ones before it, and goes(j) for the others. Returns memory
        that holds the number of those that stayed and were counted.
        """
        ib = self.ib
        memory, sides, at = self.kept
        number = ib.allocate("int32", (1,), name="number", scope="local")
        state = ib.allocate("int32", (3,), name="state", scope="local")  # next; next to compare with; whether j stays
        number[0], state[0] = 0, 0
        with ib.while_loop(state[0] < self.count if goes else tir.all(state[0] < self.count, number[0] < self.limit)):
            j = ib.let("j", state[0])
            state[2] = (number[0] < self.limit).astype("int32")
            with ib.if_scope(tir.all(state[2] > 0, self.counts(j))):
                self._compare(j, number, state)
            with ib.if_scope(state[2] > 0):
                stays(j, number[0])
                with ib.if_scope(self.counts(j)):
                    memory[at(number[0])] = j
                    box = self.box(j)
                    for d, side in enumerate((box.left, box.top, box.right, box.bottom)):
                        sides[(*at(number[0]), d)] = side
                    number[0] = number[0] + 1
            if goes:
                with ib.else_scope():
                    goes(j)
            state[0] = j + 1
        return number

    def _compare(self, j: Any, number: Any, state: Any) -> None:
        """Clears state[2] if a box that stayed removes box j."""
        ib = self.ib
        memory, sides, at = self.kept
        own = self.box(j)
        state[1] = 0
        with ib.while_loop(tir.all(state[1] < number[0], state[2] > 0)):
            k = ib.let("k", memory[at(state[1])])
            other = Box(*[sides[(*at(state[1]), d)] for d in range(4)])
            with ib.if_scope(self.comparable(j, k)), ib.if_scope(self.removes(overlap(ib, own, other, self.pixel))):
                state[2] = 0
            state[1] = state[1] + 1
