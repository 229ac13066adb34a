"""What a search shows while it runs: by tqdm where that is installed, else a line on standard error."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from tedsl.graph.network.limits import current_limits
from tedsl.target.target import Target
from tedsl.tune.measure.machine import ESTIMATED, is_estimated

_SAYS_END: ContextVar[bool] = ContextVar("whether the end of a search is said on standard error", default=True)


@contextmanager
def without_end() -> Iterator[None]:
    """Context manager in which searches show progress alone, for a caller who prints what they have found."""
    before = _SAYS_END.set(False)
    try:
        yield
    finally:
        _SAYS_END.reset(before)


def call_time(seconds: float) -> str:
    """The time of a call in words."""
    return f"{seconds * 1e6:.1f} µs" if seconds >= 1e-7 else f"{seconds * 1e9:.1f} ns"


class Progress:
    """The bar of a search of `seconds`: the best so far, trials, failures, and the share of the machine's limit. flop: of a
    call; at most 1 where there are none, or they are not known.
    """

    def __init__(self, name: str, seconds: float, flop: float, target: Target) -> None:
        self.name, self.seconds, self.flop = name, seconds, flop
        self.least = 0.0 if target.is_device or flop <= 1 else flop / current_limits(target).operations
        self.word = f" ({ESTIMATED})" if is_estimated(target) else ""
        self.trials = self.failed = 0
        self.best = float("inf")
        self.at = 0.0
        self._bar: Any = None
        try:
            from tqdm import tqdm
        except ImportError:
            return
        self._bar = tqdm(total=round(seconds, 1), desc=name, file=sys.stderr, unit="s",
                         bar_format="{desc}: {percentage:3.0f}%|{bar}| {n:.0f}/{total:.0f} s{postfix}")

    def told(self, cost: float, failed: bool, at: float) -> None:
        """A trial that ended `at` seconds after the begin."""
        self.trials, self.failed, self.best = self.trials + 1, self.failed + failed, min(self.best, cost)
        if self._bar is not None:
            self._bar.set_postfix_str(self.said, refresh=False)
            self._bar.update(min(at, self.seconds) - self.at)
            self.at = min(at, self.seconds)
        elif sys.stderr.isatty():
            print(f"\r{self.name}: {at:.0f}/{self.seconds:.0f} s, {self.said}", end="", file=sys.stderr)

    @property
    def said(self) -> str:
        """The best, the trials and the failures."""
        share = f" ({100 * self.least / self.best:.0f} % of the limit)" if self.least and self.best < float("inf") else ""
        return f"best {call_time(self.best)}{self.word}{share}, {self.trials} trials, {self.failed} failed"

    def close(self, words: str) -> None:
        """Ends the bar; prints what mattered."""
        if self._bar is not None:
            self._bar.close()
        elif sys.stderr.isatty():
            print(file=sys.stderr)
        if _SAYS_END.get():
            print(f"{self.name}: {self.said}\n{words}", file=sys.stderr)
