"""Sizes of tiles: which factors of an extent are worth trying."""

from __future__ import annotations

import math

_MOST = 24  # options of one decision: more would hide each other from a search of some hundred trials


def factors(extent: int, most: int) -> list[int]:
    """The divisors of `extent` up to `most` and, for extents with few of them, powers of two that leave a rest."""
    most = max(1, min(extent, most))
    small = [n for n in range(1, math.isqrt(extent) + 1) if extent % n == 0]
    found = {n for n in (*small, *(extent // n for n in small)) if n <= most}
    if len(found) <= 3:
        power = 2
        while power <= most:
            found.add(power)
            power *= 2
    ordered = sorted(found)
    return ordered[:_MOST // 2] + ordered[len(ordered) - _MOST // 2:] if len(ordered) > _MOST else ordered


def rows_of_tile(extent: int, most: int) -> list[int]:
    """Sizes of a register tile along an axis that is no vector: all that divide, and a few large ones that leave a rest."""
    most = max(1, min(extent, most))
    return [n for n in range(1, most + 1) if extent % n == 0 or n >= most * 3 // 4 or n in (2, 4)]


def counts(extent: int, most: int) -> list[int]:
    """How many tiles of a lower level make one of the next: powers of two and all of them."""
    found = [1]
    while found[-1] * 2 < min(extent, most):
        found.append(found[-1] * 2)
    if 1 < extent <= most:
        found.append(extent)
    return found
