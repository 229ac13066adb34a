"""Register tiles of matrix products and convolutions, chosen by the time that they take on the machine of the target.

A tile of `tall` rows and `vectors` vectors of columns takes, for each term of the sums, as many cycles as the third root of the
sum of the cubes of
    tall * vectors / (multiply-adds per cycle)              what is to be multiplied
    loads of tall elements and of the vectors               two in a cycle, fewer where they are wide
    bits of these / (bits per cycle from L2)                where the columns of a tile do not stay in L1, or its rows
                                                            evict each other: the whole line of an element is loaded again
    latency of a multiply-add, and some slack               its result is added to by the next term
and its registers hold the sums, the vectors of columns and one element. The whole takes that times the tiles that cover the
result, those at the end included. (The model of BLIS, Low et al., "Analytical modeling is enough for high-performance BLIS",
ACM TOMS 43(2), 2016, starts from the same latency and throughput.)
"""

from __future__ import annotations

import functools
import math

from tedsl.target import Target

_TERMS = 256  # of a sum whose number of terms is not known
_ENDS = 1.01  # the cost of tiles that are cut off: code of their own, masks
_POWER = 3  # of 306 products, compared with all tiles, the largest alone takes 1.05 of the best or more for 31, this for 7
_STORES = 3  # cycles for each vector of a result beside the multiply-adds: cleared, read for what follows, stored
_MOST_ROWS = 16
_ISSUE = 4.0  # instructions that start in a cycle
_COUNTING = 2  # instructions of the loop itself
_PORTS = 2  # loads that start in a cycle, if the vectors are not wider than half of what l1 gives
_SLACK = 1.5  # cycles: instructions do not start in the very cycle in which they could
_PIECES = 2  # narrower vectors that are cheaper than one with a mask
_WAITING = 64  # tiles below each other, of which the first one waits for a panel
ROOM = 2  # parts of the second cache, of which one has the panels that are used and those that are asked for
_UNKNOWN = 1 << 12  # rows or columns where their number is not known


def accumulators(target: Target) -> int:
    """The number of vector accumulators that fit the registers of the target beside the operands of a multiply-add."""
    return 24 if registers(target) == 32 else 12


def registers(target: Target) -> int:
    """The number of vector registers that generated code may use."""
    return 32 if target.vector_bits == 512 or target.architecture in ("aarch64", "riscv64") else 16


def divisor_near(extent: int | None, most: int, least: int) -> int:
    """The largest divisor of `extent` from `least` to `most`; `most` where there is none, or nothing is known."""
    if extent is None:
        return most
    return next((n for n in range(most, least - 1, -1) if extent % n == 0), min(most, extent))


def divisors(extent: int) -> list[int]:
    """All divisors of a number, the least first."""
    small = [n for n in range(1, math.isqrt(extent) + 1) if extent % n == 0]
    return small + [extent // n for n in reversed(small) if n * n != extent]


@functools.lru_cache(maxsize=1024)
def tile_of(rows: int | None, columns: int | None, terms: int | None, lanes: int, target: Target, embeds: bool = True,
            panel: int | None = None, block: int | None = None, are_far: bool = False) -> tuple[int, int]:
    """The number of rows and columns of the register tile that takes the least time for a product of that size.

    embeds: whether an element of a row may be an operand in memory, where vectors of 512 bits have such instructions. panel:
    the columns of a tile, where they are given. block: rows that are computed together, which those of a tile divide. are_far:
    whether panels of columns, packed before, come from beyond the second cache.
    """
    embeds = embeds and target.vector_bits == 512
    size = (rows, columns, terms or _TERMS)
    tall, vectors = min(tiles_that_fit(rows, columns, lanes, target, embeds, panel, block),
                        key=lambda tile: (_cycles(tile, *size, lanes, target, embeds, are_far), -tile[0]))
    return tall, vectors * lanes


def first_tile_counts(rows: int, tall: int) -> bool:
    """Whether tiles below each other are so few that it counts for how long the first one waits for a panel."""
    return rows <= _WAITING * tall


def next_is_asked_for(panels: int, target: Target) -> bool:
    """Whether the next panels from beyond the second cache, of so many bytes, are asked for beside the tiles of these: that
    cache holds both.
    """
    return panels <= target.machine.l2.size // ROOM // 2


def tiles_that_fit(rows: int | None, columns: int | None, lanes: int, target: Target, embeds: bool = True,
                   panel: int | None = None, block: int | None = None) -> list[tuple[int, int]]:
    """The tiles of (rows, vectors of columns), as of `tile_of`, whose sums and operands the registers hold."""
    available, masks = registers(target), target.has_mask_registers
    most_vectors = 16 if columns is None else max(1, -(-columns // lanes))
    widths = range(1, min(16, most_vectors) + 1) if panel is None else [panel // lanes]
    return [(tall, vectors) for vectors in widths
            for held in [max((row for _, row in registers_of_rows(columns, vectors, lanes, masks)), default=1)]
            for tall in range(1, min(_MOST_ROWS, rows or _MOST_ROWS) + 1) if block is None or block % tall == 0
            if tall * held + held + (held > 1 or not embeds) <= available or (tall, vectors) == (1, 1)]


def registers_of_rows(columns: int | None, vectors: int, lanes: int, masks: bool = False) -> list[tuple[float, int]]:
    """How many tiles of `vectors` vectors lie beside each other, and the registers that hold a row of each; whole ones first.

    The rest of columns that fill no vector is parted into powers of two, 13 into 8, 4 and 1: all of them where one tile is as
    wide as the columns, else one or two; more are a vector with a mask. Columns that are fewer than lanes are one vector.
    masks: whether the target loads vectors of any number of lanes at once: then the rest of one wide tile is a vector, too.
    """
    if columns is None:
        return [(_UNKNOWN / (vectors * lanes), vectors)]
    whole, rest = divmod(columns, vectors * lanes)
    pieces = (rest % lanes).bit_count()
    if whole == 0 and rest and (rest < lanes or masks):
        return [(1.0, -(-rest // lanes))]
    held = rest // lanes + (pieces if whole == 0 or pieces <= _PIECES else 1)
    return [(count, row) for count, row in ((float(whole), vectors), (1.0, held)) if count and row]


def _cycles(tile: tuple[int, int], rows: int | None, columns: int | None, terms: int, lanes: int, target: Target,
            embeds: bool, are_far: bool) -> float:
    """The time of a product in cycles, by a register tile of (rows, vectors of columns)."""
    tall, vectors = tile

    def one(height: int, held: int) -> float:
        bounds = tile_bounds(height, held, terms, lanes, target, terms * target.vector_bits // lanes // 8, embeds)
        times = (*bounds, target.machine.fma_latency + _SLACK)
        return terms * math.pow(sum([cycles**_POWER for cycles in times]), 1 / _POWER) + _STORES * height * held

    whole, rest = divmod(_UNKNOWN if rows is None else rows, tall)
    across = registers_of_rows(columns, vectors, lanes, target.has_mask_registers)
    down = [(float(whole), tall)] * bool(whole) + [(1.0, rest)] * bool(rest)
    cut = bool(rest and rows is not None) + bool(columns is not None and columns % (vectors * lanes))
    times = [(m, held, [(n, one(height, held)) for n, height in down]) for m, held in across]
    total = sum(m * n * cycles for m, _, tiles in times for n, cycles in tiles)
    if are_far and rows is not None and first_tile_counts(rows, tall):
        total += sum(m * _waits(terms * held * target.vector_bits, tiles, target) for m, held, tiles in times)
    return total * _ENDS**cut


def _waits(bits: int, tiles: list[tuple[float, float]], target: Target) -> float:
    """The cycles for which tiles (how many, the cycles of one) wait for a panel of so many bits from beyond the second cache:
    the first one, or all of them, if the panel was asked for before.
    """
    (_, first), *_ = tiles
    busy = sum(n * cycles for n, cycles in tiles) if next_is_asked_for(bits // 8, target) else first
    return max(0.0, bits / target.machine.l3_bits - busy)


def tile_bounds(rows: int, vectors: int, terms: int, lanes: int, target: Target, apart: int,
                embeds: bool = True, lines: float = 1.0) -> tuple[float, ...]:
    """The cycles that one term of a tile takes at least: its multiply-adds, loads and instructions, and its share of L2.

    apart: the bytes between the elements of two rows. embeds: as in `tile_of`; else each of them fills a vector. lines: how
    often a vector costs what one within a line does.
    """
    machine, bits = target.machine, target.vector_bits
    stays = 2 * terms * vectors * bits <= 8 * machine.l1.size
    sums, wide = rows * vectors, max(1.0, _PORTS * bits / machine.load_bits)
    loads = (rows * (1.0 if embeds else wide) + vectors * wide * lines) / _PORTS
    instructions = (sums + vectors + (0 if embeds and vectors == 1 and bits == 512 else rows) + _COUNTING) / _ISSUE
    evicted = machine.l1.evicts(rows, apart)
    rows_bits = rows * (8 * machine.line if evicted else 0 if stays else bits // lanes)
    far = (rows_bits + (0 if stays else vectors * bits * lines)) / machine.l2_bits
    return sums / machine.fmas(bits), loads, instructions, far
