"""Curves that say how a search went, over its trials in their order; by TVM's names."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tedsl.amounts import check_count
from tedsl.autotvm.utils import get_rank
from tedsl.errors import ArgumentError, entries

__all__ = ["average_recall", "cover_curve", "max_curve", "mean_curve", "recall_curve"]


def max_curve(trial_scores: Sequence[float]) -> Any:
    """The best score up to each trial, as an array: of `Monitor().trial_scores()` how a search got better."""
    return np.maximum.accumulate(_numbers("max_curve", trial_scores))


def mean_curve(trial_scores: Sequence[float]) -> Any:
    """The mean of the scores up to each trial."""
    scores = _numbers("mean_curve", trial_scores)
    return np.cumsum(scores) / np.arange(1, len(scores) + 1)


def recall_curve(trial_ranks: Sequence[int], top: int | None = None) -> Any:
    """Of the best `top` points, which share is among the trials before each one; None: of one point more than those trials.

    trial_ranks: the rank of each trial among all points, 0 for the best.
    """
    ranks = _numbers("recall_curve", trial_ranks)
    if top is not None:
        check_count("recall_curve", "top", top, 1)
    return np.asarray([np.sum(ranks[:before] < (top or before + 1)) / (top or before + 1) for before in range(len(ranks))])


def cover_curve(trial_ranks: Sequence[int]) -> Any:
    """How many of the best points, from the very best on without a gap, are among the trials up to each one, as a share of all
    trials.
    """
    ranks = _numbers("cover_curve", trial_ranks)
    seen: set[int] = set()
    covered, counts = 0, []
    for rank in ranks:
        seen.add(int(rank))
        while covered in seen:
            covered += 1
        counts.append(covered)
    return np.asarray(counts) / max(1, len(counts))


def average_recall(preds: Sequence[float], labels: Sequence[float], N: int) -> float:
    """How well predicted scores find the best points: the mean of the recall over the first N points in predicted order."""
    predicted, true = _numbers("average_recall", preds), _numbers("average_recall", labels)
    if len(predicted) != len(true) or isinstance(N, bool) or not isinstance(N, int) or not 1 <= N <= len(true):
        raise ArgumentError(f"average_recall: {len(predicted)} predictions, {len(true)} labels and N={N!r} do not go together",
                            hint="give a label for each prediction, and an N of at most as many")
    in_order = true[np.argsort(-predicted, kind="stable")]
    return float(np.sum(recall_curve(get_rank(list(in_order)))[:N]) / N)


def _numbers(what: str, given: object) -> Any:
    """Scores or ranks as an array. Raises ArgumentError for anything else."""
    try:
        numbers = np.asarray(given, "float64")
    except (TypeError, ValueError):
        numbers = np.empty((0, 0))
    if numbers.ndim != 1:
        raise ArgumentError(f"{what} takes a number for each trial, not {given!r}",
                            hint="monitor = autotvm.callback.Monitor() among the callbacks, then monitor.trial_scores()")
    return numbers


entries(globals())
