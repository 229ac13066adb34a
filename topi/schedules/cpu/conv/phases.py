"""Transposed convolutions whose results use only the taps of their phase: neighbours in a row use different weights.

    for row of the image:                     its sums are kept in the nearest cache, for the channels of one panel
        for phase:                            the weights of a phase stay in the nearest cache, for every tile
            for tile of pixels of the phase:
                for channel, tap of the phase:    sums of the tile += weights * data
"""

from __future__ import annotations

from typing import Any

from topi.kinds import TransposedConvOp
from topi.schedules.cpu.conv.operands import weights_of
from topi.schedules.cpu.conv.register_tiles import ImageTile
from topi.schedules.formulas import constant, extent_of
from topi.schedules.kernel import Kernel


def phases_of(kernel: Kernel) -> int:
    """The number of phases of a row: the pixels after which weights repeat. 1 where they are no whole number in a row."""
    taps, columns = extent_of(kernel.anchor.reduce_axis[-1]), extent_of(kernel.tail.axis[-1])
    entries = constant(weights_of(kernel).shape[-1])
    if type(kernel.record) is not TransposedConvOp or taps is None or columns is None or entries is None:
        return 1
    return entries // taps if columns % (entries // taps) == 0 else 1


def sum_up_by_phases(kernel: Kernel, sums: Any, tail: Any, place: Any, tile: ImageTile, phases: int) -> None:
    """Compute the sums of a row at the loop `place`, by tiles in registers, phase by phase."""
    stage = kernel.schedule[sums]
    stage.compute_at(tail, place)
    *rows, x, c = stage.op.axis
    pixels, phase = stage.split(x, factor=phases)
    over, inside = stage.split(pixels, factor=tile.across)
    stage.reorder(*rows, phase, over, *stage.op.reduce_axis, inside, c)
    stage.unroll(inside)
    stage.vectorize(c)
