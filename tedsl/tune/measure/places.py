"""Places in memory for the arrays of a call: of two kernels one may be faster at some places and slower at others.

What differs is the size of the pages, where an array begins within a line of the caches, and whether two arrays begin at the
same distance from a page, so that the processor takes loads from one to wait for stores to the other.
"""

from __future__ import annotations

import contextlib
import mmap
from collections.abc import Sequence
from typing import Any

import numpy

from tedsl.record import record

_LINE = 64
_LARGE_PAGE = 1 << 21
_STAGGER = 5  # lines between the beginnings of two arrays, where they differ


@record
class Place:
    """has_large_pages: whether the system is asked for pages of 2 MB; offset: bytes from the beginning of a line; is_staggered:
    whether the arrays begin at different distances from a page.
    """

    has_large_pages: bool
    offset: int
    is_staggered: bool


PLACES = (Place(True, 16, False), Place(False, 0, True), Place(True, 0, True), Place(False, 16, False))


def moved(args: Sequence[Any], place: Place) -> list[Any]:
    """`args` with a copy at that place of each numpy array without gaps; what is given twice is copied once. An array for
    which there is no memory stays where it is.
    """
    copies: dict[int, Any] = {}
    for number, one in enumerate(args):
        if id(one) not in copies:
            copies[id(one)] = _copy(one, place, number) if _is_compact(one) else one
    return [copies[id(one)] for one in args]


def _is_compact(one: Any) -> bool:
    return isinstance(one, numpy.ndarray) and one.flags.c_contiguous and one.nbytes > 0


def _copy(array: Any, place: Place, number: int) -> Any:
    distance = place.offset + (number * _STAGGER * _LINE if place.is_staggered else 0)
    try:
        memory = mmap.mmap(-1, array.nbytes + distance + _LARGE_PAGE)
    except (OSError, MemoryError):
        return array
    advice = getattr(mmap, "MADV_HUGEPAGE" if place.has_large_pages else "MADV_NOHUGEPAGE", None)
    if advice is not None:
        with contextlib.suppress(OSError):  # a system without large pages
            memory.madvise(advice)
    whole = numpy.frombuffer(memory, numpy.uint8)
    begin = -whole.ctypes.data % _LARGE_PAGE + distance
    made = whole[begin:begin + array.nbytes].view(array.dtype).reshape(array.shape)
    made[...] = array
    return made
