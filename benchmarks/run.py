"""Measuring a case: every result checked, rounds of all contenders and the limit, again where they scatter."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from benchmarks.case import OURS, Case, Goal, difference
from benchmarks.goals import ROWS
from benchmarks.limits import Traffic, fma_probe, forget, memory_probe
from benchmarks.measure import Probe, samples_of, seconds_of

MOST_SPREAD = 0.10  # of the samples of a contender, above which its case is measured again
OCCASIONS = 3  # at most
CALIBRATIONS = 3  # of a limit that a kernel is above
ABOVE = 1.02
SETTLE = 0.06  # seconds; onnxruntime's threads spin for about 40 ms after a call, OpenMP's for less
AFTER_REST = 0.01  # seconds of a sample: for the first two or three after a rest, processors are slower
_LIMIT = "the limit"


@dataclass(frozen=True)
class Time:
    """Seconds of a contender: the median, the least, and the interquartile range as a part of the median."""

    median: float
    least: float
    spread: float

    @staticmethod
    def of(samples: Sequence[float]) -> Time:
        median = statistics.median(samples)
        low, _, high = statistics.quantiles(samples, n=4) if len(samples) > 1 else (median,) * 3
        return Time(median, min(samples), (high - low) / median)


@dataclass
class Result:
    """A measured case. ratio: the time of the best contender over the best of ours; share: of the limit `bound`."""

    name: str
    row: str
    suite: str
    threads: int
    times: dict[str, Time]
    ours: str = ""
    best: str = ""
    ratio: float | None = None
    bound: str = ""
    share: float | None = None
    rate: float | None = None
    intensity: float | None = None
    operations: float = 0.0
    occurs: int = 1
    goal: str = ""
    met: bool | None = None
    noisy: bool = False
    wrong: dict[str, str] = field(default_factory=dict)

    @staticmethod
    def of_json(fields: Mapping[str, Any]) -> Result:
        """The inverse of `as_json`."""
        return Result(**{**fields, "times": {name: Time(**time) for name, time in fields["times"].items()}})

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


def goal_of(case: Case) -> Goal:
    """The goal of a case: its own or that of its row."""
    return case.goal or ROWS[case.row].goal


def measured(case: Case, suite: str, threads: int, *, rounds: int = 9) -> Result:
    """The times, ratio and share of the limit of a case."""
    result = Result(case.name, case.row, suite, threads, {}, operations=case.operations, occurs=case.times)
    result.wrong = wrong_results(case)
    bound, probe, work = binding(case, threads)
    calls = {name: contender.call for name, contender in case.contenders.items()}
    best: dict[str, list[float]] = {}
    for _ in range(OCCASIONS):
        limit = {} if probe is None else {_LIMIT: probe.call}
        samples = samples_of(calls | limit, rounds=rounds) if threads == 1 else \
            samples_of(calls | limit, rounds=rounds, at_least=AFTER_REST, settle=SETTLE)
        if not best or _scatter(samples) < _scatter(best):
            best = samples
        if _scatter(best) <= MOST_SPREAD:
            break
    of_limit = best.pop(_LIMIT, [])
    result.times = {name: Time.of(values) for name, values in best.items()}
    _compare(result, case)
    if probe is not None:
        result.bound, result.share = bound, share_of(result, work, case, threads, probe, of_limit)
        traffic = case.read + case.written
        result.rate = (case.operations or traffic) / result.times[result.ours].median
        result.intensity = case.operations / traffic if traffic and case.operations else None
    goal = goal_of(case)
    result.goal, result.met = str(goal), goal.met(result.ratio, result.share)
    if result.wrong and any(name.startswith(OURS) for name in result.wrong):
        result.met = False
    return result


def wrong_results(case: Case) -> dict[str, str]:
    """What is wrong with the result of each contender, which is called once."""
    expected = case.reference() if case.reference is not None else None
    found = {}
    for name, contender in case.contenders.items():
        contender.call()
        if expected is not None and contender.result is not None:
            found[name] = difference(case, contender.result(), expected)
    return {name: problem for name, problem in found.items() if problem}


def _scatter(samples: Mapping[str, Sequence[float]]) -> float:
    """The larger spread of those that a ratio is made of: the best of ours and the best of the others."""
    medians = {name: statistics.median(values) for name, values in samples.items() if name != _LIMIT}
    ours = [name for name in medians if name.startswith(OURS)]
    others = [name for name in medians if name not in ours]
    chosen = [min(group, key=medians.__getitem__) for group in (ours, others) if group]
    return max(Time.of(samples[name]).spread for name in chosen)


def _compare(result: Result, case: Case) -> None:
    times = result.times
    ours = [name for name in times if name.startswith(OURS)]
    others = [name for name in times if name not in ours and name not in result.wrong and name not in case.beside]
    result.ours = min(ours, key=lambda name: times[name].median)
    result.noisy = times[result.ours].spread > MOST_SPREAD
    if others:
        result.best = min(others, key=lambda name: times[name].median)
        result.ratio = times[result.best].median / times[result.ours].median
        result.noisy |= times[result.best].spread > MOST_SPREAD
    elif case.budget is not None:
        result.ratio = case.budget / times[result.ours].median


# --- the limit ------------------------------------------------------------------------------------------------------------

def binding(case: Case, threads: int) -> tuple[str, Probe | None, float]:
    """Of multiply-adds and memory the one that takes longer at its limit: its name, its probe, and the work of the case."""
    bounds = []
    if case.operations:
        bounds.append(("FMA", fma_probe(threads), case.operations))
    if case.read or case.written:
        traffic = Traffic.of(case.read, case.written)
        kind = {(1, 0): "read", (0, 1): "write", (1, 1): "copy"}.get((traffic.reads, traffic.writes))
        bounds.append((kind or f"{traffic.reads}:{traffic.writes} streams", memory_probe(threads, traffic),
                       case.read + case.written))
    if not bounds:
        return "", None, 0.0
    return max(bounds, key=lambda bound: bound[2] / bound[1].rate(3)) if len(bounds) > 1 else bounds[0]


def share_of(result: Result, work: float, case: Case, threads: int, probe: Probe, samples: Sequence[float]) -> float | None:
    """The part of the limit that the best sample of ours reaches beside the best of the probe.

    No code is above the limit: where a kernel seems to be, the probe was disturbed or the wrong loop was chosen, and all loops
    are measured again. None if it remains above.
    """
    rate, limit = work / result.times[result.ours].least, probe.work / min(samples)
    for _ in range(CALIBRATIONS):
        if rate <= limit:
            break
        limit = max(limit, *(probe.work / seconds_of(probe.call) for _ in range(7)))
        if rate > limit:
            forget()
            _, probe, _ = binding(case, threads)
            assert probe is not None
            limit = max(limit, probe.rate())
    return rate / limit if rate <= ABOVE * limit else None
