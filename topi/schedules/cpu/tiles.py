"""Register tile sizes for matrix products and convolutions."""

from __future__ import annotations

from tedsl.target import Target


def accumulators(target: Target) -> int:
    """The number of vector accumulators that fit the registers of the target beside the operands of a multiply-add."""
    return 24 if target.vector_bits == 512 or target.arch == "aarch64" else 12


def divisor_near(extent: int | None, most: int, least: int) -> int:
    """The largest divisor of `extent` from `least` to `most`; `most` where there is none, or nothing is known."""
    if extent is None:
        return most
    return next((n for n in range(most, least - 1, -1) if extent % n == 0), min(most, extent))


def tile_of(rows: int | None, columns: int | None, lanes: int, registers: int) -> tuple[int, int]:
    """The number of rows and columns of the register tile."""
    tall = divisor_near(rows, registers // 2, max(1, registers // 3))
    vectors = max(1, min(registers // tall, 4 if tall > 2 else 16))
    if columns is not None:
        vectors = min(vectors, max(1, -(-columns // lanes)))
    return tall, vectors * lanes
