"""How often loops come to pages of memory whose addresses the processor has to look up again.

The inner loops touch pages of each array. As long as these fit the tables of addresses, each is looked up once, however often
the loops return to it, also in the next iteration of the loop around them; other loops around come with other pages each time.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from tedsl.target import Target
from topi.schedules.formulas import constant, extent_of, product, variables_in


class Loop(NamedTuple):
    """A loop of `extent` iterations. steps: the bytes from one iteration to the next in each array."""

    extent: int
    steps: tuple[int, ...]

    def by(self, count: int) -> Loop:
        """The loop in which an iteration is `count` of these."""
        return Loop(-(-self.extent // count), tuple(count * step for step in self.steps))


def loop_over(op: Any, load: Any, axes: list[Any]) -> Loop | None:
    """The loop over `axes` as one, with its steps in the result of `op` and in what `load` reads; None if that is not known."""
    own, last = list(op.axis), axes[-1]
    at = next((at for at, index in enumerate(load.indices) if last.var in variables_in(index)), None)
    written = product([extent_of(axis) for axis in own[own.index(last) + 1:]])
    read = 0 if at is None else product([constant(dim) for dim in load.producer.shape[at + 1:]])
    extent = product([extent_of(axis) for axis in axes])
    if extent is None or written is None or read is None:
        return None
    return Loop(extent, (written * op.output(0).dtype.bytes, read * load.producer.dtype.bytes))


def page_visits(loops: Sequence[Loop], target: Target, known: int | None = None) -> int:
    """The pages that are looked up while `loops` run, outermost first, by a table of `known` addresses; None: the second one of
    the target.
    """
    around, machine, arrays = 1, target.machine, range(len(loops[0].steps))
    before = None
    for at, loop in enumerate(loops):
        together = sum(_pages([(inner.extent, inner.steps[array]) for inner in loops[at:]], machine.page) for array in arrays)
        if together <= (machine.tlb2 if known is None else known):
            return together if before is None else before
        before = around * together  # in the next iteration of this loop, the pages of the last one are still known
        around *= loop.extent
    return around * len(arrays)


def _pages(loops: list[tuple[int, int]], page: int) -> int:
    """The pages that loops touch, of each the extent and the bytes from one iteration to the next."""
    apart, span = 1, 1
    for extent, step in loops:
        if step >= page:
            apart *= extent
        else:
            span += (extent - 1) * step
    return apart * -(-span // page)
