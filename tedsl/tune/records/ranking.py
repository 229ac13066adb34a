"""Which trial is the best: one rule for everything that reads what was measured.

The time of a trial is the median of its repetitions. Where a candidate was measured several times, its last trial counts, for
searches measure what seemed fastest once more, longer, before they end. A candidate whose last trial failed is left out.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import TypeVar

from tedsl.target.target import Target
from tedsl.tune.measure.machine import machine_model, tool_versions
from tedsl.tune.measure.outcome import Outcome
from tedsl.tune.records.record import Record, records_in

GAIN = 0.02  # of the time: in another process, at other places in memory, equal kernels differ by as much

T = TypeVar("T")
Key = Callable[[T], Hashable]


def last_of_each(trials: Iterable[T], candidate: Key[T], outcome: Callable[[T], Outcome]) -> list[T]:
    """The last trial of each candidate by its timestamp, the later one of `trials` where they are equal; in the order in which
    the candidates were first tried.
    """
    last: dict[Hashable, T] = {}
    for trial in trials:
        key = candidate(trial)
        if key not in last or outcome(trial).timestamp >= outcome(last[key]).timestamp:
            last[key] = trial
    return list(last.values())


def fastest_first(trials: Iterable[T], candidate: Key[T], outcome: Callable[[T], Outcome]) -> list[T]:
    """The last trial of each candidate, without failures, the least time first; what was tried first, where they are equal."""
    timed = [trial for trial in last_of_each(trials, candidate, outcome) if outcome(trial).failure is None]
    return sorted(timed, key=lambda trial: outcome(trial).cost)


def surely_fastest(trials: Sequence[T], outcome: Callable[[T], Outcome]) -> T:
    """The fastest of trials, of which the first is the default: that one, unless another is surely faster, its whole interval
    below the default's time by at least GAIN.
    """
    best = min(trials, key=lambda trial: outcome(trial).cost)
    return best if max(outcome(best).costs, default=math.inf) < (1 - GAIN) * outcome(trials[0]).cost else trials[0]


def confirmed(trials: Sequence[T], again: Callable[[T], T | None], outcome: Callable[[T], Outcome]) -> T:
    """What `surely_fastest` says of trials, if it says so again of the default and that one, measured once more by `again`: of
    many candidates the one that luck favoured seems fastest. None of `again` is a measurement that failed.
    """
    best = surely_fastest(trials, outcome)
    if best is trials[0] or not math.isfinite(outcome(trials[0]).cost):
        return best
    default, found = again(trials[0]), again(best)
    if default is None or found is None:
        return trials[0] if default is not None else best
    return surely_fastest([default, found], outcome)


def last_records(records: Iterable[Record]) -> list[Record]:
    """The last record of each candidate on each machine."""
    return last_of_each(records_in(records, "last_records"), candidate_of, lambda record: record.outcome)


def fastest_records(records: Iterable[Record]) -> list[Record]:
    """The records with times, the least first, by the rule above. A candidate that ran on several models of machines, or with
    several versions of the tools, is one for each.
    """
    return fastest_first(records_in(records, "fastest_records"), candidate_of, lambda record: record.outcome)


def fastest_records_of(records: Iterable[Record], task: str, target: Target) -> list[Record]:
    """Those of a task and a target: the records of this model of machine and these tools before all others, whose times say
    less here.
    """
    here = machine_model(target), tool_versions()
    found = fastest_records(record for record in records_in(records, "fastest_records_of")
                            if record.task == task and record.target == str(target))
    return sorted(found, key=lambda record: (record.machine, record.tools) != here)


def candidate_of(record: Record) -> Hashable:
    """What a record has measured, and on which model of machine with which tools."""
    return record.task, record.target, record.machine, record.tools, json.dumps(record.candidate, sort_keys=True)
