"""The register tile of a convolution that takes the least time by a model of the machine.

A tile of `rows` elements that are broadcast (pixels, or channels of the result) and `vectors` vectors of the others takes, for
each term of the sums, as many cycles as the largest of

    rows * vectors / (multiply-adds per cycle)          what is to be multiplied
    (rows + vectors) / (loads per cycle)                an element for each row, and the vectors
    latency of a multiply-add                           its result is added to by the next term

and its registers hold the sums, the vectors that are loaded, and one element. The time of the whole is that of the tiles that
cover the result; those at its ends are smaller.
"""

from __future__ import annotations

import functools

from tedsl.target import Target

_MOST_VECTORS = 4
_MANY = 1 << 10  # rows or vectors, where their number is not known
_END = 1.02  # each kind of tile is code of its own
_LOAD = 0.02  # cycles of a load beside multiply-adds: the fewer the better where both fit
_RESULT = 4.0  # cycles for each vector of a result: cleared, read for what follows, stored


def registers(target: Target) -> int:
    """The number of vector registers that generated code may use."""
    return 32 if target.vector_bits == 512 or target.arch in ("aarch64", "riscv64") else 16


@functools.lru_cache(maxsize=4096)
def best_tile(target: Target, rows: int | None, vectors: int | None, terms: int | None,
              most_rows: int = 16, most_vectors: int = _MOST_VECTORS) -> tuple[int, int]:
    """The number of rows and of vectors of the tile for a result of `rows` rows, each of `vectors` vectors; None: unknown."""
    tiles = [(tall, wide) for wide in range(1, min(most_vectors, vectors or most_vectors) + 1)
             for tall in range(1, min(most_rows, rows or most_rows) + 1) if tall * wide + wide + 1 <= registers(target)]
    return min(tiles, key=lambda tile: (tile_cycles(target, tile, rows, vectors, terms), -tile[0]))


def tile_cycles(target: Target, tile: tuple[int, int], rows: int | None, vectors: int | None, terms: int | None) -> float:
    """The cycles that a result of `rows` rows, each of `vectors` vectors, takes by tiles of (rows, vectors)."""
    machine, bits = target.machine, target.vector_bits
    down, across = _parts(rows, tile[0]), _parts(vectors, tile[1])

    def one(tall: int, wide: int) -> float:
        loads = tall + wide
        step = max(tall * wide / machine.fmas(bits), loads * bits / machine.load_bits, machine.fma_latency)
        return (terms or _MANY) * (step + _LOAD * loads) + _RESULT * tall * wide

    whole = sum(count * times * one(tall, wide) for count, tall in down for times, wide in across)
    return whole * _END ** (len(down) + len(across) - 2)


def _parts(extent: int | None, size: int) -> list[tuple[float, int]]:
    """How often a tile of which size occurs along `extent`."""
    if extent is None:
        return [(_MANY / size, size)]
    return [(count, part) for count, part in ((extent // size, size), (1, extent % size)) if count and part]
