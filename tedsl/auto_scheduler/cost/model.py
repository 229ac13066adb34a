"""What schedules take: the estimate of the machine's model, times a correction that is learned from measured ones.

The correction is a Gaussian process over the logarithms of the features (Rasmussen and Williams, "Gaussian Processes for
Machine Learning", algorithm 2.1): near what was measured it follows the measurements, far from it the estimate stands.
"""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from typing import Any

import numpy as np

_ENOUGH = 4  # measured schedules, fewer than which teach nothing
_NOISE = 0.1  # of the logarithm of a time, as a share of the spread of all
_LATEST = 600  # measured schedules that are kept: solving takes the cube of their number


class Corrected:
    """Predicts the logarithm of a schedule's seconds from its features, of which the last is the estimate in nanoseconds.

    A failure counts as twice as slow as anything that was measured.
    """

    def __init__(self) -> None:
        self.rows: list[list[float]] = []
        self.costs: list[float] = []
        self._known: Any = None
        self._weights: Any = None
        self._mean = self._middle = self._scale = 0.0

    def learn(self, rows: Sequence[list[float]], costs: Sequence[float]) -> None:
        """Adds measured schedules: their features and seconds, infinity after a failure."""
        self.rows = [*self.rows, *rows][-_LATEST:]
        self.costs = [*self.costs, *costs][-_LATEST:]
        finite = [cost for cost in self.costs if math.isfinite(cost)]
        if len(finite) < _ENOUGH:
            return
        slow = max(finite) * 2
        logs = _logs(self.rows)
        self._mean, self._scale = logs.mean(0), logs.std(0) + 1e-3
        self._known = (logs - self._mean) / self._scale
        targets = np.array([math.log(min(cost, slow)) - _estimated(row) for row, cost in zip(self.rows, self.costs)])
        self._middle = float(targets.mean())
        kernel = self._near(self._known) + _NOISE * np.eye(len(targets))
        self._weights = np.linalg.solve(kernel, targets - self._middle)

    def predict(self, rows: Sequence[list[float]]) -> list[float]:
        """Logarithms of seconds: the lower the better."""
        if not rows:
            return []
        if self._known is None:
            return [_estimated(row) for row in rows]
        corrections = self._near((_logs(rows) - self._mean) / self._scale) @ self._weights + self._middle
        return [_estimated(row) + float(more) for row, more in zip(rows, corrections)]

    def _near(self, points: Any) -> Any:
        """How much points and measured ones tell of each other: 1 for equal ones, 0 for far ones."""
        squares = (points ** 2).sum(1)[:, None] + (self._known ** 2).sum(1)[None, :] - 2 * points @ self._known.T
        return np.exp(-np.maximum(squares, 0) / (2 * points.shape[1]))


class Chance(Corrected):
    """Predicts nothing: numbers by chance, for comparisons with searches that learn. seed: of the numbers."""

    def __init__(self, seed: int = 0) -> None:
        super().__init__()
        self.draw = random.Random(seed)

    def learn(self, rows: Sequence[list[float]], costs: Sequence[float]) -> None:
        """Learns nothing."""

    def predict(self, rows: Sequence[list[float]]) -> list[float]:
        return [self.draw.random() for _ in rows]


def _logs(rows: Sequence[list[float]]) -> Any:
    return np.log2(np.abs(np.asarray(rows, dtype="float64")) + 1)


def _estimated(row: list[float]) -> float:
    return math.log(max(row[-1], 1e-3) * 1e-9)
