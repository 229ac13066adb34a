"""Points in order, and points at random."""

from __future__ import annotations

import random

from tedsl.autotvm.task.space import ConfigEntity
from tedsl.autotvm.task.task import Task
from tedsl.autotvm.tuner.tuner import Tuner
from tedsl.errors import ArgumentError


class _Ordered(Tuner):
    """Points in an order that is known from the start. range_idx: (first, last) of their numbers; None: all."""

    def __init__(self, task: Task, range_idx: tuple[int, int] | None = None) -> None:
        super().__init__(task)
        count = len(task.config_space)
        given = (0, count - 1) if range_idx is None else range_idx
        first, last = given if isinstance(given, (tuple, list)) and len(given) == 2 else (0, count)
        if not (type(first) is type(last) is int and 0 <= first <= last < count):
            raise ArgumentError(f"{type(self).__name__}: range_idx is a pair of numbers from 0 to {count - 1}, not "
                                f"{range_idx!r}")
        self.first, self.last = first, last
        self.taken = 0

    def has_next(self) -> bool:
        return self.taken <= self.last - self.first

    def next_batch(self, batch_size: int) -> list[ConfigEntity]:
        found: list[ConfigEntity] = []
        while len(found) < batch_size and self.has_next():
            found.append(self.task.config_space.get(self._number(self.taken)))
            self.taken += 1
        return found

    def _number(self, at: int) -> int:
        """The number of the point that comes `at` others later than the first."""
        return self.first + at

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {self.taken} of {self.last - self.first + 1} points>"


class GridSearchTuner(_Ordered):
    """All points in the order of their numbers."""


class RandomTuner(_Ordered):
    """Points at random, none twice. seed: the same one gives the same order."""

    def __init__(self, task: Task, range_idx: tuple[int, int] | None = None, seed: int = 0) -> None:
        super().__init__(task, range_idx)
        self.draw = random.Random(seed)
        self._moved: dict[int, int] = {}  # of a shuffle that is made as far as it is needed

    def _number(self, at: int) -> int:
        other = self.draw.randrange(at, self.last - self.first + 1)
        chosen = self._moved.get(other, other)
        self._moved[other] = self._moved.pop(at, at)
        return self.first + chosen
