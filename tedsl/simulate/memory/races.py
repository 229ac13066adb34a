"""Races: accesses of two threads to the same memory, one of them a write, with no barrier between them.

Each access has a code of the block, the number of barriers that the block has passed, the number of barriers of its warp since
then, whether it was atomic, and the thread. A region keeps the code of the last write of each grain, and one code for its
reads: "many" threads where several threads read between two barriers, all blocks where several blocks did.
"""

from __future__ import annotations

from typing import cast

import numpy as np

from tedsl.simulate.instructions.operation import Array
from tedsl.simulate.memory.region import Region

THREAD = 0xFFF  # the field of the thread: its number plus 1; MANY, or IN_WARP + the warp whose threads they are
MANY, IN_WARP = 0xFFF, 0x800
ATOMIC = 1 << 12
WARP_EPOCH, EPOCH, BLOCK = 13, 23, 41  # where the fields begin; each wraps around
ALL_BLOCKS = (1 << 22) - 1
_ALL = (ALL_BLOCKS << BLOCK) | MANY


def code_of(blocks: Array, epochs: Array, warp_epochs: Array, threads: Array) -> Array:
    """Returns the codes of accesses by threads of blocks (both counted from 0)."""
    return cast(Array, (((blocks + 1) % ALL_BLOCKS) << BLOCK) | ((epochs & 0x3FFFF) << EPOCH)
                | ((warp_epochs & 0x3FF) << WARP_EPOCH) | (threads + 1))


def _warps(codes: Array) -> Array:
    threads = codes & THREAD
    return np.where(threads >= IN_WARP, threads - IN_WARP, (threads - 1) >> 5)


def unordered(before: Array, now: Array, warps: bool) -> Array:
    """Returns where accesses of the codes `before` (0: none) and `now` are not ordered by a barrier.

    warps: the kernel has barriers of warps.
    """
    differ = before ^ now
    found = (differ >> EPOCH == 0) & (differ & THREAD != 0)
    if warps:
        found &= ~((_warps(before) == _warps(now)) & (differ >> WARP_EPOCH != 0))
    found |= differ >> BLOCK != 0
    found &= before != 0
    return cast(Array, found & (before & now & ATOMIC == 0))


def note_reads(region: Region, grains: Array, codes: Array, warps: bool) -> None:
    """Notes that `grains` are read."""
    _, readers = region.stamps()
    before = readers[grains]
    new = _joined(before, codes, warps) if before.any() else codes
    readers[grains] = new
    _settle(readers, grains, new, readers[grains], warps)


def _joined(before: Array, codes: Array, warps: bool) -> Array:
    """The codes of accesses after earlier ones that a later access may still meet."""
    differ = before ^ codes
    near = (before != 0) & (differ >> EPOCH == 0) & (differ & THREAD != 0)
    many = codes | MANY
    if warps:
        same = _warps(before) == _warps(codes)
        near &= ~(same & (differ >> WARP_EPOCH != 0))  # ordered, and in this warp
        many = np.where(same, (codes & ~THREAD) | (IN_WARP + _warps(codes)), many)
    far = (before != 0) & (differ >> BLOCK != 0)
    return np.where(far, _ALL, np.where(near, many, codes))


def _settle(stamps: Array, grains: Array, mine: Array, now: Array, warps: bool) -> None:
    """Joins the codes of threads that accessed the same grain in one instruction; `now` is what the stamps have."""
    lost = np.flatnonzero(mine != now)
    if lost.size:
        joined = _joined(now[lost], mine[lost], warps)
        atomic = mine[lost] & now[lost] & ATOMIC
        joined = np.where(joined == mine[lost], (joined & ~THREAD) | MANY, joined) | atomic
        stamps[grains[lost]] = joined
        blocks = joined >> BLOCK == ALL_BLOCKS
        stamps[grains[lost[blocks]]] = joined[blocks]


def reads_after_writes(region: Region, grains: Array, codes: Array, warps: bool) -> Array:
    """Returns which of `grains` another thread wrote with no barrier since."""
    return unordered(region.stamps()[0][grains], codes, warps)


def note_writes(region: Region, grains: Array, codes: Array, warps: bool) -> tuple[Array, Array, Array]:
    """Notes that `grains` are written, and returns which of them others wrote, and read, with no barrier since, and which
    another thread writes in this very instruction.
    """
    writers, readers = region.stamps()
    written, read = unordered(writers[grains], codes, warps), unordered(readers[grains], codes, warps)
    writers[grains] = codes
    now = writers[grains]
    together = unordered(now, codes, warps)
    if (codes & ATOMIC).any() or together.any():
        _settle(writers, grains, codes, now, warps)
    return written, read, together
