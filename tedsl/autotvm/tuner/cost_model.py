"""Models that predict the rate of a point from its knobs: trees of lightgbm where it is installed, else a ridge regression."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np

_PENALTY = 1e-2  # of squared weights, for features of variance 1
_TREES = {"objective": "regression", "num_leaves": 15, "min_data_in_leaf": 3, "num_threads": 1, "seed": 0, "verbosity": -1}


class CostModel(Protocol):
    """Learns rates, relative to the best one, from features."""

    def fit(self, features: Any, rates: Any) -> None:
        """Learns from an array (points, features) and the rates of the points."""

    def predict(self, features: Any) -> Any:
        """The rates of points, for their order alone."""


class Ridge:
    """Least squares over the logarithms of the features, their squares and products, with a penalty on the weights."""

    def __init__(self) -> None:
        self.mean: Any = 0.0
        self.scale: Any = 1.0
        self.weights: Any = None

    def fit(self, features: Any, rates: Any) -> None:
        wide = _products(features)
        self.mean, self.scale = wide.mean(0), wide.std(0) + 1e-9
        rows = (wide - self.mean) / self.scale
        rows = np.hstack([rows, np.ones((len(rows), 1))])
        self.weights = np.linalg.solve(rows.T @ rows + _PENALTY * len(rows) * np.eye(rows.shape[1]), rows.T @ rates)

    def predict(self, features: Any) -> Any:
        if self.weights is None:
            return np.zeros(len(features))
        rows = (_products(features) - self.mean) / self.scale
        return rows @ self.weights[:-1] + self.weights[-1]


def _products(features: Any) -> Any:
    logs = np.sign(features) * np.log2(np.abs(features) + 1)
    pairs = [logs[:, i] * logs[:, j] for i in range(logs.shape[1]) for j in range(i, logs.shape[1])]
    return np.column_stack([logs, *pairs]) if pairs else logs


class Trees:
    """Gradient-boosted trees of lightgbm, on one thread: the same points give the same trees. Its classes with the interface of
    scikit-learn would need that, too.
    """

    def __init__(self, package: Any) -> None:
        self.package = package
        self.model: Any = None

    def fit(self, features: Any, rates: Any) -> None:
        self.model = self.package.train(_TREES, self.package.Dataset(features, rates), num_boost_round=100)

    def predict(self, features: Any) -> Any:
        return np.zeros(len(features)) if self.model is None else self.model.predict(features)


def default_model() -> CostModel:
    """Trees where lightgbm is installed (the extra `tune`), else a ridge regression."""
    try:
        import lightgbm
    except ImportError:
        return Ridge()
    return Trees(lightgbm)


def as_array(features: Sequence[Sequence[float]]) -> Any:
    """Features of points as an array (points, features)."""
    return np.asarray(features, dtype="float64")
