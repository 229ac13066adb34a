"""What a search has found: the best schedule, all trials, pictures of them, and what the best have in common."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import Any

from tedsl.display.chart import Chart, Series, charts_svg
from tedsl.driver import build
from tedsl.errors import ArgumentError, ArgumentTypeError, entry, type_in_words
from tedsl.runtime.module import Module
from tedsl.schedule.handles import Schedule
from tedsl.target.target import Target
from tedsl.tune.measure.machine import ESTIMATED, is_estimated
from tedsl.tuning.explain import Explanation, explained
from tedsl.tuning.progress import call_time
from tedsl.tuning.trial import Trial


class Picture(str):
    """A picture as a text of SVG, which notebooks show."""

    __slots__ = ()

    def _repr_svg_(self) -> str:
        return str(self)

    @entry
    def save(self, path: str | PathLike[str]) -> None:
        """Writes the picture to a file, whose name ends in .svg. Raises ArgumentError where it cannot be written."""
        file = picture_file("save", path)
        try:
            file.write_text(self, encoding="utf-8")
        except (OSError, ValueError) as error:  # ValueError: a name that no file has
            raise ArgumentError(f"save: {file} cannot be written: {getattr(error, 'strerror', '') or error}",
                                hint="write to a folder of your own") from None


def picture_file(what: str, path: str | PathLike[str]) -> Path:
    """The file of a picture. Raises ArgumentError, ArgumentTypeError for what is no path, where none can be written there."""
    if not isinstance(path, (str, PathLike)):
        raise ArgumentTypeError(f"{what}: a picture is written to the path of a file, not {type_in_words(path)}",
                                hint='result.plot().save("search.svg")')
    file = Path(path)
    if file.suffix.lower() != ".svg":
        raise ArgumentError(f"{what}: a picture is written as SVG, and {str(path)!r} is not the name of such a file",
                            hint=f"write to {file.with_suffix('.svg') if file.name else 'search.svg'}: browsers show it, and "
                                 "other programs make other forms of it")
    if file.is_dir():
        raise ArgumentError(f"{what}: the picture cannot be written to {path}: it is a folder",
                            hint=f"name a file: {file / 'search.svg'}")
    if not file.absolute().parent.is_dir():
        raise ArgumentError(f"{what}: the picture cannot be written to {path}: there is no folder {file.parent}",
                            hint="make the folder first")
    return file


class Result:
    """What a search has found.

    name: of what was tuned. trials: in their order, those of an earlier search first. best: the trial whose schedule is
    returned; default: that of topi's rules, None if it could not be measured beside the best.
    """

    def __init__(self, name: str, target: Target, flop: float, trials: Sequence[Trial], best: Trial,
                 default: Trial | None) -> None:
        self.name, self.target, self.flop = name, target, flop
        self.trials, self.best, self.default = tuple(trials), best, default

    @cached_property
    def _scheduled(self) -> tuple[Schedule, list[Any]]:
        sch, args = self.best.candidate.schedule()
        return sch, list(args)

    @property
    def schedule(self) -> Schedule:
        """The best schedule."""
        return self._scheduled[0]

    @property
    def args(self) -> list[Any]:
        """The arguments of its function."""
        return self._scheduled[1]

    @property
    def seconds(self) -> float:
        """Of a call with the best schedule."""
        return self.best.cost

    @property
    def config(self) -> object:
        """The best candidate as JSON."""
        return self.best.candidate.to_json()

    @property
    def speedup(self) -> float | None:
        """The time of the default schedule over that of the best; None where the default was not measured."""
        return None if self.default is None or self.default.outcome.failure is not None else self.default.cost / self.best.cost

    def build(self, name: str = "default_function") -> Module:
        """The kernel of the best schedule."""
        return build(self.schedule, self.args, self.target, name=name)

    def explain_best(self) -> Explanation:
        """Which decisions distinguish the best ten trials from the rest."""
        return explained(self.trials)

    def plot(self) -> Picture:
        """Times over the time of the search with the best so far, and measured times over those that were predicted."""
        timed = [trial for trial in self.trials if trial.outcome.failure is None]
        tried = [(max(trial.seconds, 0.0), trial.cost * 1e6) for trial in timed]
        best = [(at, min(cost for _, cost in tried[:number + 1])) for number, (at, _) in enumerate(tried)]
        expected = [(trial.predicted * 1e6, trial.cost * 1e6) for trial in timed if trial.predicted is not None]
        ends = [value for pair in expected for value in pair]
        even = ((min(ends), min(ends)), (max(ends), max(ends))) if ends else ()
        return Picture(charts_svg([
            Chart(f"{self.name}: {len(self.trials)} trials", "seconds of the search",
                  f"µs of a call, {ESTIMATED}" if is_estimated(self.target) else "µs of a call",
                  (Series("trials", tuple(tried)), Series("best so far", tuple(best), steps=True)), log_y=True),
            Chart("what the model expected", "µs predicted",
                  f"µs {ESTIMATED} by the simulator" if is_estimated(self.target) else "µs measured",
                  (Series("trials", tuple(expected)), Series("as predicted", even, line=True)), log_x=True, log_y=True)]))

    def __repr__(self) -> str:
        failed = sum(trial.outcome.failure is not None for trial in self.trials)
        rate = f", {self.flop / self.seconds / 1e9:.1f} GFLOP/s" if self.flop > 1 else ""
        rate += f" ({ESTIMATED})" if is_estimated(self.target) else ""
        beside = "" if self.speedup is None else f", {self.speedup:.2f} times as fast as the default schedule"
        beside = ", the default schedule" if self.best is self.default else beside
        return (f"<{self.name}: {call_time(self.seconds)}{rate}{beside}; {len(self.trials)} trials, {failed} failed>")

    def _repr_html_(self) -> str:
        from tedsl.display.markup import Markup, joined
        from tedsl.display.page import fragment

        return fragment(repr(self)[1:-1], joined(Markup(self.plot()), Markup(self.explain_best()._repr_html_())))
