"""Budgets of trials and of seconds."""

import itertools

import pytest

from tedsl.errors import ArgumentError
from tedsl.tune.measure import within

from .conftest import Doubled


def candidates():
    return map(Doubled, itertools.count(1))


def test_trials():
    assert [one.split for one in within(candidates(), trials=3)] == [1, 2, 3]
    assert list(within(candidates(), trials=0)) == []
    assert [one.split for one in within([Doubled(7)], trials=3)] == [7]


def test_seconds(monkeypatch):
    clock = itertools.count()
    monkeypatch.setattr("tedsl.tune.measure.budget.time.monotonic", lambda: next(clock))
    assert [one.split for one in within(candidates(), seconds=5)] == [1, 2, 3, 4]
    assert [one.split for one in within(candidates(), seconds=5, trials=2)] == [1, 2]
    assert list(within(candidates(), seconds=0)) == []


def test_neither():
    assert len(list(within([Doubled()] * 4))) == 4


def test_candidates_are_taken_when_they_are_asked_for(measure):
    rest = candidates()
    assert len(measure(*within(rest, trials=2))) == 2 and next(rest).split == 3


@pytest.mark.parametrize("wrong", [{"seconds": -1}, {"seconds": "long"}, {"seconds": float("nan")}, {"trials": 1.5},
                                   {"trials": True}])
def test_what_is_refused(wrong):
    with pytest.raises(ArgumentError, match=f"within: {next(iter(wrong))} is"):
        within([], **wrong)
