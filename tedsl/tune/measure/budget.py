"""How much is measured: a number of trials, or a time."""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterable, Iterator

from tedsl.amounts import check_count, check_number
from tedsl.tune.measure.outcome import Candidate, candidates_in


def within(candidates: Iterable[Candidate], seconds: float | None = None, trials: int | None = None) -> Iterator[Candidate]:
    """The `candidates`, until `seconds` have passed since the first was asked for, or until there were `trials` of them.

    `measurer.measure(within(...))` ends with its budget: candidates that were taken before are measured.
    """
    if seconds is not None and seconds != float("inf"):
        check_number("within", "seconds", seconds, may_be_zero=True)
    if trials is not None:
        check_count("within", "trials", trials, 0)
    return _within(itertools.islice(candidates_in(candidates, "within"), trials), float("inf") if seconds is None else seconds)


def _within(candidates: Iterator[Candidate], seconds: float) -> Iterator[Candidate]:
    begun = time.monotonic()
    while time.monotonic() - begun < seconds:
        try:
            yield next(candidates)
        except StopIteration:
            return
