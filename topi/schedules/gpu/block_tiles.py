"""The tile of a product that a block of threads computes, from a model of a processor of a device.

A block computes rows x columns results. For each term of the sums it brings one column of the left operand and one row of the
right one into shared memory; each thread computes `down` x `across` results in registers. Per clock a processor of the devices
since sm_70 does 128 multiply-adds, loads 32 words from shared memory, and gets about 16 bytes from the second level of cache
(NVIDIA's tuning guides give the first two; the last is the bandwidth of that cache divided by the processors). The slowest of
the three is the time of a block per term; the number of waves in which the blocks run multiplies it, and so does latency that
too few warps hide.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import lru_cache

from tedsl.record import record
from topi.schedules.gpu.limits import Limits

_FMAS, _WORDS, _BYTES = 128, 32, 16  # of a processor, per clock
_HIDING = 8  # warps of a processor that hide each other's latency
_SEVERAL = 4  # warps: one for each scheduler of a processor
_ABOUT = 1.05  # times that the model does not tell apart
_RESIDENT = 2048  # threads of a processor
_ADDRESSES = 24  # registers of a thread beside its results and operands
_REGISTERS = 255  # of a thread, whatever its block: CUDA's programming guide
_SIDES = (1, 2, 4, 8)  # results of a thread along one axis
_STEPS = (4, 8, 16, 32)  # terms that are in shared memory at a time


@record
class BlockTile:
    """threads_down x threads_across threads, each of which computes down x across results; `step` terms at a time."""

    threads_down: int
    threads_across: int
    down: int
    across: int
    step: int

    @property
    def threads(self) -> int:
        return self.threads_down * self.threads_across

    @property
    def rows(self) -> int:
        return self.threads_down * self.down

    @property
    def columns(self) -> int:
        return self.threads_across * self.across


@lru_cache(maxsize=256)
def block_tile(rows: int, columns: int, terms: int, batch: int, size: int, limits: Limits) -> BlockTile:
    """Returns the tile that takes the least time for `batch` products of rows x terms and terms x columns elements of `size`
    bytes.
    """
    best = min(_candidates(terms, size, limits), key=lambda tile: (_time(tile, rows, columns, terms, batch, size, limits),
                                                                   tile.threads, -tile.step))
    down = evenly(rows, best.threads_down, best.down, lambda each: _fits(best.threads, each, best.across, limits))
    across = evenly(columns, best.threads_across, best.across, lambda each: _fits(best.threads, down, each, limits))
    return replace(best, down=down, across=across)


def evenly(extent: int, threads: int, wanted: int, fits: Callable[[int], bool] = lambda each: True) -> int:
    """Returns how many results each of `threads` threads computes along a loop, about as many as wanted, of those that `fits`
    tells to have registers: loops whose extent the tile divides waste no threads, and more results of a thread use what it
    loads more often.
    """
    def cost(each: int) -> float:
        return -(-extent // (threads * each)) * threads * each * (1 + 1 / each)

    least = max(1, wanted // 2)
    return min((each for each in range(least, min(2 * wanted, _SIDES[-1]) + 1) if each == least or fits(each)), key=cost)


def unrolled_statements(down: int, across: int, threads: int, limits: Limits) -> int:
    """Returns how many multiply-adds of a thread with down x across results may follow one another without a loop: the
    assembler moves loads to the front of such code, so what they load must fit into registers beside the results.
    """
    free = _registers_of(threads, limits) - down * across - _ADDRESSES
    return max(1, free // (down + across)) * down * across


def element_threads(count: int, each: int, limits: Limits) -> int:
    """Returns how many of `count` results a block computes that share nothing, each by `each` threads: a number for which the
    processors take about the least time. Of several, one for which all processors have blocks, that divides `count`, so that no
    thread is guarded, and fills several warps; then the largest, or the smallest where some processors have nothing to do.
    """
    def time(results: int) -> float:
        blocks = math.ceil(math.ceil(count / results) / limits.processors)  # of the processor that has the most
        threads = results * each
        warps = max(1, min(_RESIDENT // threads, blocks)) * -(-threads // limits.warp)
        return blocks * -(-threads // limits.warp) * max(1.0, _HIDING / warps)

    most = max(1, limits.threads // each)
    least = max(1, min(limits.warp // each, count, most))
    numbers = {n for n in (least << k for k in range(most.bit_length())) if n <= most} | \
              {n for n in range(least, min(most, count) + 1) if count % n == 0}
    enough = _ABOUT * min(time(n) for n in numbers)
    fast = [n for n in numbers if time(n) <= enough]
    spread = [n for n in fast if -(-count // n) >= limits.processors]
    if not spread:
        return min(fast, key=lambda n: (count % n != 0, n))
    return max(spread, key=lambda n: (count % n == 0 and n * each >= _SEVERAL * limits.warp, n))


def _candidates(terms: int, size: int, limits: Limits) -> Iterator[BlockTile]:
    """The tiles that fit into a block: its threads, registers and shared memory."""
    sides = [1 << k for k in range(limits.threads.bit_length())]
    for threads_down in sides:
        for threads_across in sides:
            threads = threads_down * threads_across
            if threads > limits.threads or threads < min(limits.warp, limits.threads):
                continue
            for down in _SIDES:
                for across in _SIDES:
                    if not _fits(threads, down, across, limits):
                        continue
                    step = _step(threads_down * down + threads_across * across, terms, size, limits)
                    if step:
                        yield BlockTile(threads_down, threads_across, down, across, step)


def _step(edges: int, terms: int, size: int, limits: Limits) -> int:
    """The most terms of which a block holds both operands in a quarter of the shared memory; 0 if none fit at all."""
    fitting = [step for step in _STEPS if step * edges * size * 4 <= limits.shared]
    few = [step for step in fitting if step <= max(terms, _STEPS[0])]
    return max(few) if few else 1 if edges * size <= limits.shared else 0


def _registers(down: int, across: int) -> int:
    return down * across + down + across + _ADDRESSES


def _registers_of(threads: int, limits: Limits) -> int:
    """How many registers a thread may have in a block of `threads`."""
    return min(_REGISTERS, limits.registers // threads)


def _fits(threads: int, down: int, across: int, limits: Limits) -> bool:
    return _registers(down, across) <= _registers_of(threads, limits)


def _time(tile: BlockTile, rows: int, columns: int, terms: int, batch: int, size: int, limits: Limits) -> float:
    """The clocks that all blocks take."""
    blocks = -(-rows // tile.rows) * -(-columns // tile.columns) * batch
    waves = -(-blocks // limits.processors)
    words = max(size, 4) // 4
    term = max(tile.threads * tile.down * tile.across / _FMAS,
               tile.threads * (tile.down + tile.across) * words / _WORDS,
               (tile.rows + tile.columns) * size / _BYTES)
    resident = max(1, min(_RESIDENT // tile.threads, waves,
                          limits.registers // (_registers(tile.down, tile.across) * tile.threads),
                          limits.shared // max(1, tile.step * (tile.rows + tile.columns) * size)))
    warps = resident * tile.threads / limits.warp
    return waves * terms * term * max(1.0, _HIDING / warps)
