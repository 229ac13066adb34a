"""Threefry-4x64 with 20 rounds (Salmon et al., Parallel random numbers: as easy as 1, 2, 3, 2011): a function from a key and a
counter of four words each to four random words.

    x = counter                                 words of 64 bits, sums modulo 2^64
    every 4 rounds, and at the end:             x[j] += key[(s + j) % 5], x[3] += s      s counts these additions
    a round:                                    a, b = a + b, rotated(b) ^ (a + b) of two pairs, then x[1] and x[3] exchanged

The fifth word of the key is the exclusive or of the others and a constant.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tedsl import te, tir

ROUNDS = 20
PARITY = 0x1BD11BDAA9FC1A22  # the constant of the paper in the fifth word of a key
ROTATIONS = ((14, 16), (52, 57), (23, 40), (5, 37), (25, 33), (46, 12), (58, 22), (32, 32))  # of the paper, by round modulo 8


def word(value: int) -> Any:
    """A constant of 64 bits."""
    return te.const(value, "uint64")


def threefry(ib: Any, key: Sequence[Any], counter: Sequence[Any]) -> list[Any]:
    """The four random words for four words of a key and of a counter."""
    parity = word(PARITY)
    for part in key:
        parity = parity ^ part
    keys = [*key, ib.let("parity", parity)]
    x = [ib.let("x", value + part) for value, part in zip(counter, keys)]
    for step in range(ROUNDS):
        for pair, places in enumerate(ROTATIONS[step % 8]):
            a, b = x[2 * pair:2 * pair + 2]
            x[2 * pair] = ib.let("x", a + b)
            x[2 * pair + 1] = ib.let("x", (b << word(places) | b >> word(64 - places)) ^ x[2 * pair])
        x[1], x[3] = x[3], x[1]
        if step % 4 == 3:
            added = (step + 1) // 4
            x = [ib.let("x", value + keys[(added + j) % 5] + word(added if j == 3 else 0)) for j, value in enumerate(x)]
    return x


def key_and_counter(state: Any) -> tuple[list[Any], list[Any]]:
    """The key, and the counter at its beginning, of memory that holds a generator."""
    return [state[j] for j in range(4)], [state[j] for j in range(4, 8)]


def later_bit(high: Any, low: Any) -> tuple[Any, Any]:
    """Two words in which one bit is set, with the next lower bit set instead; none after the last."""
    return high >> word(1), tir.Select(high == word(1), word(1 << 63), low >> word(1))
