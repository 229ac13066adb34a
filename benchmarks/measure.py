"""Timing several contenders in one run: interleaved, median of many, so that a drifting machine is fair to all."""

from __future__ import annotations

import random
import statistics
import time
from collections.abc import Callable

Contender = Callable[[], object]


def interleaved(contenders: dict[str, Contender], *, rounds: int = 20, at_least: float = 2e-3,
                settle: float = 0.0) -> dict[str, float]:
    """The median seconds of one call of each, over `rounds` rounds of all in turn.

    A fast call is repeated so that one sample takes `at_least` seconds. Each round has an order of its own: in a fixed one,
    the slices of a busy machine always hit the same contender.
    settle: seconds of rest before each sample, then one call that is not counted. The threads of other libraries spin for a
    while after their last call; without a rest they take the cores from the next contender.
    """
    order, shuffle = list(contenders.items()), random.Random(0).shuffle
    repeats = {}
    for name, call in contenders.items():
        time.sleep(settle)
        repeats[name] = _repeats(call, at_least)
    samples: dict[str, list[float]] = {name: [] for name in contenders}
    for _ in range(rounds):
        shuffle(order)
        for name, call in order:
            count = repeats[name]
            if settle:
                time.sleep(settle)
                call()
            begin = time.perf_counter()
            for _ in range(count):
                call()
            samples[name].append((time.perf_counter() - begin) / count)
    return {name: statistics.median(values) for name, values in samples.items()}


def _repeats(call: Contender, at_least: float) -> int:
    call()
    begin = time.perf_counter()
    call()
    once = time.perf_counter() - begin
    if once >= at_least:
        return 1
    begin = time.perf_counter()
    for _ in range(10):
        call()
    once = (time.perf_counter() - begin) / 10
    return max(1, int(at_least / max(once, 1e-9)))
