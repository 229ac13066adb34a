"""Decides whether arrays overlap in memory: by their bounds first, then exactly, with limited work."""

from __future__ import annotations

from typing import Any

import numpy

Array = numpy.ndarray[Any, Any]

# How many candidates or elements the exact tests may look at, some 2 ms. The question is NP-hard in the number of dimensions:
# slices of one array take a few candidates, crafted strides take billions. The limit counts work and not time, so that the
# same call is refused on every machine or on none.
MOST_CANDIDATES = 100_000


def overlaps(a: Array, b: Array) -> bool | None:
    """Tells whether `a` and `b` overlap in memory; None where limited work does not decide it."""
    if not numpy.may_share_memory(a, b):
        return False
    shares: Any = numpy.shares_memory  # numpy's stubs know only two limits of its work
    try:
        return bool(shares(a, b, max_work=MOST_CANDIDATES))
    except numpy.exceptions.TooHardError:
        return None


def overlaps_itself(array: Array) -> bool | None:
    """Tells whether two elements of `array` overlap in memory; None where limited work does not decide it."""
    steps = sorted((abs(step), n) for step, n in zip(array.strides, array.shape) if n > 1)
    span, crossing = array.itemsize, False  # crossing: some stride does not reach beyond all that the smaller ones span
    for step, n in steps:
        crossing = crossing or step < span
        span += step * (n - 1)
    if array.size == 0 or not crossing:
        return False
    if steps[0][0] < array.itemsize:  # neighbours
        return True
    if array.size > MOST_CANDIDATES:
        return None
    starts = numpy.zeros(1, numpy.int64)
    for step, n in steps:
        starts = numpy.add.outer(starts, numpy.arange(n, dtype=numpy.int64) * step).ravel()
    starts.sort()
    return bool((numpy.diff(starts) < array.itemsize).any())
