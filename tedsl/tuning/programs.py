"""The search over schedules of a program without a template, by `tedsl.auto_scheduler`, as a result of `tedsl.tune`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from statistics import median

from tedsl import auto_scheduler
from tedsl.auto_scheduler.dag import State
from tedsl.auto_scheduler.search.proposal import default_proposal
from tedsl.auto_scheduler.search.search import QUICK, Search
from tedsl.errors import TedslError
from tedsl.ir.expr import Var
from tedsl.lang.tensor import Tensor
from tedsl.schedule.handles import Schedule
from tedsl.tune import BuildOption, Record, RunOption
from tedsl.tune.measure.machine import machine_model, tool_versions
from tedsl.tune.records import Records, last_records
from tedsl.tune.records.history import journal_of
from tedsl.tune.records.lines import Lines
from tedsl.tuning.progress import Progress
from tedsl.tuning.result import Result
from tedsl.tuning.trial import Trial


class Recorded:
    """The schedule that a record holds, as a candidate."""

    def __init__(self, task: auto_scheduler.SearchTask, record: Record) -> None:
        self.task, self.record = task, record

    def schedule(self) -> tuple[Schedule, Sequence[Tensor | Var]]:
        journal = journal_of(self.record)
        if journal is None:
            raise TedslError("the record holds no schedule that can be made again")
        return State(self.task.compute_dag.tensors, journal).schedule(), self.task.problem.args

    def to_json(self) -> object:
        return self.record.candidate


def tuned_program(task: auto_scheduler.SearchTask, name: str, seconds: float, trials: int | None, seed: int,
                  kept: Records | Lines | None, bar: Progress | None, build: BuildOption | None, run: RunOption | None,
                  cluster: bool | str) -> Result:
    """Searches for a schedule of a program. kept: records, which are gone on with, and added to. Raises TedslError if no trial
    gave a time.
    """
    known = last_records(one for one in (() if kept is None else kept)
                         if one.task == task.problem.key and one.target == str(task.target)
                         and (one.machine, one.tools) == (machine_model(task.target), tool_versions()))
    found = [_trial(task, one, -1.0, None) for one in known]
    finals: list[Trial] = []

    def note(trial: auto_scheduler.Trial) -> None:
        made = _trial(task, trial.record, trial.elapsed, trial.predicted)
        (finals if trial.final else found).append(made)
        if kept is not None:
            kept.add(trial.record)
        if bar is not None and not trial.final:
            bar.told(made.cost, made.outcome.failure is not None, made.seconds)

    search = Search(task.problem, seed, build=build, run=QUICK if run is None else run, on_trial=note, cluster=cluster)
    search.preload(known)
    best = search.run(seconds, trials)
    chosen = next(trial for trial in [*finals, *found] if trial.cost == best.cost
                  and trial.candidate.to_json() == best.candidate)
    rules = default_proposal(search.problem).to_json()
    default = next((trial for trial in [*finals, *found] if trial.candidate.to_json() == rules), None)
    return Result(name, task.target, float(task.compute_dag.flop_ct), _to_scale(found), chosen, default)


def _trial(task: auto_scheduler.SearchTask, record: Record, elapsed: float, predicted: float | None) -> Trial:
    candidate = record.candidate
    decisions = candidate.get("decisions") if isinstance(candidate, Mapping) else None
    choices = {str(name): str(value) for name, value in decisions.items()} if isinstance(decisions, Mapping) else {}
    return Trial(Recorded(task, record), record.outcome, choices, elapsed, predicted)


def _to_scale(trials: Sequence[Trial]) -> list[Trial]:
    """The trials with what the model expected in seconds: it says them up to a factor, that of the median trial."""
    ratios = [trial.cost / trial.predicted for trial in trials if trial.predicted and trial.outcome.failure is None]
    factor = median(ratios) if ratios else 1.0
    return [trial if trial.predicted is None else replace(trial, predicted=trial.predicted * factor) for trial in trials]
