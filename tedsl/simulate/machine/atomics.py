"""Atomic changes of memory by many threads, in the order of their numbers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import cast

import numpy as np

from tedsl.simulate.instructions.floating import maximum, minimum
from tedsl.simulate.instructions.operation import Array, chosen


def _smaller(old: Array, value: Array) -> Array:
    return minimum(old, value) if old.dtype.kind == "f" else np.minimum(old, value)


def _larger(old: Array, value: Array) -> Array:
    return maximum(old, value) if old.dtype.kind == "f" else np.maximum(old, value)


FUNCTIONS: dict[str, Callable[..., Array]] = {
    "add": np.add, "and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor, "min": _smaller, "max": _larger,
    "exch": lambda old, value: value, "cas": lambda old, compared, value: chosen(old == compared, value, old),
    "inc": lambda old, value: chosen(old >= value, np.zeros_like(old), old + old.dtype.type(1)),
    "dec": lambda old, value: chosen((old == 0) | (old > value), value, old - old.dtype.type(1))}


def atomically(memory: Array, places: Array, values: Sequence[Array], function: Callable[..., Array]) -> Array:
    """Changes the elements of `memory` at `places`, and returns what each was before its change."""
    order = np.argsort(places, kind="stable")
    sorted_places = places[order]
    starts = np.flatnonzero(np.concatenate(([True], sorted_places[1:] != sorted_places[:-1])))
    ranks = np.arange(places.size) - np.repeat(starts, np.diff(np.append(starts, places.size)))
    before = np.empty(places.size, memory.dtype)
    turn = order[np.argsort(ranks, kind="stable")]
    ends = np.cumsum(np.bincount(ranks))
    for begin, end in zip((0, *ends[:-1]), ends):
        these = turn[begin:end]
        old = memory[places[these]]
        before[these] = old
        memory[places[these]] = function(old, *[value[these] for value in values])
    return cast(Array, before)
