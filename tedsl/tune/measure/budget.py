"""How much is measured: a number of trials, or a time."""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterable, Iterator

from tedsl.errors import ArgumentError
from tedsl.tune.measure.outcome import Candidate, candidates_in


def within(candidates: Iterable[Candidate], seconds: float | None = None, trials: int | None = None) -> Iterator[Candidate]:
    """The `candidates`, until `seconds` have passed since the first was asked for, or until there were `trials` of them.

    `measurer.measure(within(...))` ends with its budget: candidates that were taken before are measured.
    """
    if seconds is not None and (isinstance(seconds, bool) or not isinstance(seconds, (int, float)) or not seconds >= 0):
        raise ArgumentError(f"within: seconds is a number of at least 0, not {seconds!r}")
    if trials is not None and (isinstance(trials, bool) or not isinstance(trials, int) or trials < 0):
        raise ArgumentError(f"within: trials is an int of at least 0, not {trials!r}")
    return _within(itertools.islice(candidates_in(candidates, "within"), trials), float("inf") if seconds is None else seconds)


def _within(candidates: Iterator[Candidate], seconds: float) -> Iterator[Candidate]:
    begun = time.monotonic()
    while time.monotonic() - begun < seconds:
        try:
            yield next(candidates)
        except StopIteration:
            return
