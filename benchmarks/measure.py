"""Timing several contenders in one run: many samples of each, interleaved, so that a drifting machine is fair to all."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

Contender = Callable[[], object]
AGAIN = 50  # measurements of a probe that a kernel seems to beat


@dataclass(frozen=True)
class Probe:
    """A call that does nothing but the fastest operation of the machine, and its work: operations or bytes."""

    call: Contender
    work: float

    def rate(self, rounds: int = 7) -> float:
        """Operations or bytes per second: the best of some measurements, since a limit is what an undisturbed machine does."""
        self.call()
        return self.work / min(seconds_of(self.call) for _ in range(rounds))


def share(work: float, seconds: Sequence[float], probe: Probe, probe_seconds: Sequence[float]) -> float:
    """The part of the machine's limit that a kernel reaches, at most 1: its best sample beside the best of the probe.

    No code multiplies faster than the probe: if a kernel seems to, the probe was disturbed and is measured again.
    """
    rate, best = work / min(seconds), min(probe_seconds)
    for _ in range(AGAIN):
        if rate <= probe.work / best:
            break
        best = min(best, seconds_of(probe.call))
    return min(1.0, rate * best / probe.work)


def seconds_of(call: Contender) -> float:
    """How long one call takes."""
    begin = time.perf_counter()
    call()
    return time.perf_counter() - begin


def samples_of(contenders: dict[str, Contender], *, rounds: int = 20, at_least: float = 2e-3,
               settle: float = 0.0) -> dict[str, list[float]]:
    """The seconds per call of each contender, in `rounds` rounds of one sample each.

    A fast call is repeated so that one sample takes `at_least` seconds. Each round has an order of its own: in a fixed one,
    periodic load on the machine would always hit the same contender. Before a sample there are calls that are not counted, a
    fifth as many: what another contender left in the caches is not its fault, nor that threads sleep.
    settle: seconds of rest before each sample. The threads of other libraries spin for a while after their last call; without
    a rest they take the cores from the next contender.
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
            time.sleep(settle)
            if count > 1 or settle:
                for _ in range(-(-count // 5)):
                    call()
            begin = time.perf_counter()
            for _ in range(count):
                call()
            samples[name].append((time.perf_counter() - begin) / count)
    return samples


def _repeats(call: Contender, at_least: float) -> int:
    begin = time.perf_counter()
    call()
    while time.perf_counter() - begin < 2 * at_least:
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
