"""DropletTuner: goes from a point to its neighbours as long as they are faster (Canesche et al., "The Droplet Search Algorithm
for Kernel Scheduling", 2024).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from itertools import combinations
from statistics import fmean, variance

from tedsl.autotvm.measure.inputs import MeasureInput, MeasureResult
from tedsl.autotvm.task.space import ConfigEntity
from tedsl.autotvm.task.task import Task
from tedsl.autotvm.tuner.genetic import Genes, genes_of, number_of
from tedsl.autotvm.tuner.tuner import Tuner
from tedsl.errors import ArgumentError


class DropletTuner(Tuner):
    """start_position: the number of a choice for each knob; None: the first of each. pvalue: a faster point is taken where the
    difference of the times is by chance with less probability than this.
    """

    def __init__(self, task: Task, start_position: Sequence[int] | None = None, pvalue: float = 0.05) -> None:
        super().__init__(task)
        self.dims = task.config_space.dims
        start = [0] * len(self.dims) if start_position is None else list(start_position)
        if len(start) != len(self.dims) or not all(type(at) is int and 0 <= at < count for at, count in zip(start, self.dims)):
            raise ArgumentError(f"DropletTuner: start_position numbers a choice of each of {len(self.dims)} knobs, which have "
                                f"{self.dims} choices, not {start_position!r}")
        self.pvalue, self.step = pvalue, 1
        self.best: Genes = tuple(start)
        self.best_times: Sequence[float] = ()
        self.waiting: list[Genes] = [self.best]
        self.seen = {self.best}

    def has_next(self) -> bool:
        return bool(self.waiting)

    def next_batch(self, batch_size: int) -> list[ConfigEntity]:
        chosen, self.waiting = self.waiting[:batch_size], self.waiting[batch_size:]
        return [self.task.config_space.get(number_of(genes, self.dims)) for genes in chosen]

    def update(self, inputs: Sequence[MeasureInput], results: Sequence[MeasureResult]) -> None:
        found = False
        for inp, result in zip(inputs, results):
            if result.error_no == 0 and self._is_faster(result.costs):
                self.best, self.best_times = genes_of(inp.config.index or 0, self.dims), result.costs
                found = True
        if found:
            self.step, self.waiting = 1, self._unseen(1)
        while not self.waiting and self.step < max(self.dims, default=1):
            self.step += 1
            self.waiting = self._unseen(self.step)

    def load_history(self, data_set: Iterable[tuple[MeasureInput, MeasureResult]]) -> None:
        """Nothing is learnt from times of other points, as in TVM."""

    def _is_faster(self, times: Sequence[float]) -> bool:
        if not self.best_times:
            return True
        return fmean(times) < fmean(self.best_times) and by_chance(times, self.best_times) <= self.pvalue

    def _unseen(self, step: int) -> list[Genes]:
        """The points `step` choices of one or two knobs away from the best that were not measured."""
        found = [one for one in self._neighbours(step) if one not in self.seen]
        self.seen.update(found)
        return list(dict.fromkeys(found))

    def _neighbours(self, step: int) -> Iterator[Genes]:
        knobs = range(len(self.dims))
        for moved in [*combinations(knobs, 1), *combinations(knobs, 2)]:
            for sign in (step, -step):
                place = tuple(at + sign * (k in moved) for k, at in enumerate(self.best))
                if all(0 <= at < count for at, count in zip(place, self.dims)):
                    yield place


def by_chance(a: Sequence[float], b: Sequence[float]) -> float:
    """The probability that samples of one mean and variance differ as much: Student's test, two-sided. 0 for single times."""
    if min(len(a), len(b)) < 2:
        return 0.0
    free = len(a) + len(b) - 2
    spread = (variance(a) * (len(a) - 1) + variance(b) * (len(b) - 1)) / free * (1 / len(a) + 1 / len(b))
    if spread == 0:
        return float(fmean(a) == fmean(b))
    return 1 - _within(abs(fmean(a) - fmean(b)) / math.sqrt(spread), free)


def _within(t: float, free: int) -> float:
    """The probability of |T| <= t for Student's T (Abramowitz and Stegun, 26.7.3 and 26.7.4)."""
    angle = math.atan(t / math.sqrt(free))
    sine, square = math.sin(angle), math.cos(angle) ** 2
    odd = free % 2
    term = total = (math.cos(angle) if odd else 1.0) if free > 1 else 0.0
    for k in range(2 + odd, free - 1, 2):
        term *= square * (k - 1) / k
        total += term
    return 2 / math.pi * (angle + sine * total) if odd else sine * total
