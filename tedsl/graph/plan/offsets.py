"""Offsets for ranges of memory that are in use at different times.

The problem is NP-hard. Each of several orders places one range after the other at the best of the free places; the order
that needs least memory is kept. Where none reaches the lower bound, ranges that stand highest are placed earlier, some rounds.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tedsl.record import record

ALIGNMENT = 64  # bytes: a line of the cache, and the widest vector
ROUNDS = 64  # of moving what stands highest to the front


@record
class Range:
    """Memory of `size` bytes that is in use from step `begin` to step `end`, both included."""

    size: int
    begin: int
    end: int

    def meets(self, other: Range) -> bool:
        """Whether both are in use at one time."""
        return self.begin <= other.end and other.begin <= self.end

    @property
    def steps(self) -> int:
        return self.end - self.begin + 1


@record
class Placed:
    """Offsets in the order of the ranges, the bytes that they need together, and the name of the order that gave them."""

    offsets: tuple[int, ...]
    size: int
    order: str


ORDERS: dict[str, Callable[[Range], tuple[int, ...]]] = {
    "largest first": lambda r: (-r.size, r.begin),
    "largest and longest first": lambda r: (-r.size * r.steps, -r.size),
    "largest first, then longest": lambda r: (-r.size, -r.steps, r.begin),
    "by time": lambda r: (r.begin, -r.size),
    "by time, backwards": lambda r: (-r.end, -r.size),
    "longest first": lambda r: (-r.steps, -r.size),
    "by time of the end": lambda r: (r.end, -r.size),
}


def aligned(size: int) -> int:
    """`size` rounded up to a multiple of the alignment."""
    return -(-size // ALIGNMENT) * ALIGNMENT


def least_bytes(ranges: Sequence[Range]) -> int:
    """The largest sum of the sizes in use at one time: no plan needs less."""
    change: dict[int, int] = {}
    for one in ranges:
        change[one.begin] = change.get(one.begin, 0) + aligned(one.size)
        change[one.end + 1] = change.get(one.end + 1, 0) - aligned(one.size)
    in_use = most = 0
    for step in sorted(change):
        in_use += change[step]
        most = max(most, in_use)
    return most


def place(ranges: Sequence[Range]) -> Placed:
    """The offsets that need least memory, of those that the orders give."""
    least, met = least_bytes(ranges), _neighbours(ranges)
    best: Placed | None = None
    for name, key in ORDERS.items():
        order = sorted(range(len(ranges)), key=lambda at: key(ranges[at]))
        made = _placed(ranges, order, met, name)
        if best is None or made.size < best.size:
            best = made
        if best.size == least:
            return best
    assert best is not None
    return _improved(ranges, best, met, least)


def _neighbours(ranges: Sequence[Range]) -> list[list[int]]:
    """For each range the others that are in use at one time with it."""
    return [[at for at, other in enumerate(ranges) if other is not one and one.meets(other)] for one in ranges]


def _placed(ranges: Sequence[Range], order: Sequence[int], met: Sequence[Sequence[int]], name: str) -> Placed:
    offsets = [-1] * len(ranges)
    for at in order:
        taken = sorted([(offsets[other], aligned(ranges[other].size)) for other in met[at] if offsets[other] >= 0])
        offsets[at] = _best_gap(taken, aligned(ranges[at].size))
    size = max((offset + aligned(one.size) for offset, one in zip(offsets, ranges)), default=0)
    return Placed(tuple(offsets), size, name)


def _best_gap(taken: Sequence[tuple[int, int]], size: int) -> int:
    """The start of the smallest gap between what is `taken`, sorted by offset, that holds `size` bytes; else the end."""
    best, best_room, end = -1, 0, 0
    for offset, length in taken:
        room = offset - end
        if room >= size and (best < 0 or room < best_room):
            best, best_room = end, room
        end = max(end, offset + length)
    return end if best < 0 else best


def _improved(ranges: Sequence[Range], best: Placed, met: Sequence[Sequence[int]], least: int) -> Placed:
    """`best`, or a better plan: the order by offsets, with those that stand highest moved to the front again and again."""
    order = sorted(range(len(ranges)), key=lambda at: (best.offsets[at], -ranges[at].size))
    for _ in range(ROUNDS if len(ranges) < 512 else 8):
        made = _placed(ranges, order, met, "highest moved to the front")
        if made.size < best.size:
            best = made
        if best.size == least:
            break
        highest = max(order, key=lambda at: made.offsets[at] + aligned(ranges[at].size))
        if order[0] == highest:
            order = [*order[1:], order[0]]
        order.remove(highest)
        order.insert(0, highest)
    return best
